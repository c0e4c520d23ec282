//! The namespace suite: root, real Linux, one test a claim, each with its allow twin.
//!
//! An [`Arena`](arena::Arena) is the real `darwin-netd`, two confined namespaces, a namespace with a real link as the allow
//! twin, and sniffers. Every namespace is held by a descriptor and has no name, so that nothing is left when
//! a test is killed.

pub mod arena;
pub mod attack;
pub mod links;
pub mod netd;
pub mod ns;
pub mod sniffer;
pub mod table;

use nix::unistd::Uid;

/// Whether the test may run. Without root it fails, unless `NETNS_TESTS_ALLOW_SKIP=1` says that it may be
/// skipped, which it then says.
///
/// # Panics
/// Without root, unless skipping is allowed.
#[expect(clippy::print_stderr, reason = "what was skipped must be seen")]
pub fn may_run(test: &str) -> bool {
    if Uid::effective().is_root() {
        return true;
    }
    let allowed = std::env::var_os("NETNS_TESTS_ALLOW_SKIP").is_some_and(|value| value == "1");
    assert!(
        allowed,
        "{test} needs root, since it makes network namespaces; run it as root, or set NETNS_TESTS_ALLOW_SKIP=1 to skip it"
    );
    eprintln!("SKIPPED {test}: it needs root");
    false
}
