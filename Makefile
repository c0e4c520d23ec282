# What people type. `make run` and `make test` do all the set-up that they need, once; each step has a stamp.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:

export CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TERM_COLOR ?= auto
BIN := $(CARGO_TARGET_DIR)/debug
STAMPS := $(CARGO_TARGET_DIR)/stamps
PREFIX ?= /usr/local
DEMO_ARGS ?=

.PHONY: help run build test test-netns lint fmt install clean

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make run         set up, build, and run the whole product on this machine (darwin demo)
run: build
	$(BIN)/darwin demo $(DEMO_ARGS)

## make build       set up and build the four programs
build: $(STAMPS)/packages-build
	cargo build --locked --workspace --bins

## make test        set up what the tests need and run all of them, the namespace suite included (root)
test: $(STAMPS)/packages-test $(STAMPS)/nextest build
	cargo test --locked --workspace --doc --quiet
	cargo nextest run --locked --workspace --no-fail-fast

## make test-netns  the table of probes against states, for an audit (root)
test-netns: $(STAMPS)/packages-test build
	$(BIN)/netns-table $(NETNS_ARGS)

## make lint        formatting, clippy, licences and sources of dependencies, the fence round policy
lint: $(STAMPS)/packages-build $(STAMPS)/deny
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo deny --log-level error check bans licenses sources
	.ci/policy-fence

fmt:
	cargo fmt --all

## make install     programs, units, users, man pages and example configuration, below DESTDIR and PREFIX
install: $(STAMPS)/packages-build
	cargo build --locked --release --workspace --bins
	packaging/install "$(CARGO_TARGET_DIR)/release" "$(DESTDIR)" "$(PREFIX)"

clean:
	cargo clean

# Debian's packages; elsewhere the names are printed, and what is already there is enough.
$(STAMPS)/packages-build: .ci/packages
	.ci/packages build
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/packages-test: .ci/packages
	.ci/packages test
	@mkdir -p $(STAMPS) && touch $@

# The test runner and the licence checker are programs of the toolchain, not dependencies of the product: built
# quickly rather than to run fast.
quick := CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/tools

$(STAMPS)/nextest: $(STAMPS)/packages-build
	command -v cargo-nextest >/dev/null || $(quick) cargo install --locked --no-default-features --features default-no-update cargo-nextest
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/deny: $(STAMPS)/packages-build
	command -v cargo-deny >/dev/null || $(quick) cargo install --locked --no-default-features cargo-deny
	@mkdir -p $(STAMPS) && touch $@
