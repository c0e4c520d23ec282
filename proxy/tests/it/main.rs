//! The proxy against real peers on loopback: DNS over UDP, TLS, raw sockets; and the binary itself.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what a test is built of fails as the test does"
)]

mod binary;
mod heads;
mod hellos;
mod life;
mod names;
mod reloads;
mod stage;
