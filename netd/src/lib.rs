//! `darwin-netd`: a network namespace that no packet leaves.
//!
//! The client's half ([`protocol`], [`client`]) stands alone: it holds no privilege and knows nothing of
//! namespaces. The server is two processes: the hand, which enters namespaces and opens sockets there, and
//! the head, which does everything else with less.

pub mod cli;
pub mod client;
pub mod config;
mod hand;
mod head;
pub mod lines;
mod netlink;
mod nft;
pub mod privilege;
pub mod protocol;
pub mod selftest;
pub mod seqpacket;
pub mod server;
mod sys;

pub use hand::own_cookie as own_netns_cookie;
pub use head::HeadError;

/// Marks every descriptor but the standard three, so that no program which this process starts gets what whoever
/// started it had left open. All our programs call this first.
///
/// # Errors
/// The kernel's, before 5.11.
pub fn keep_descriptors() -> std::io::Result<()> {
    sys::keep_descriptors().map_err(std::io::Error::from)
}

/// Tells the operator something: a line on stderr, which the service manager keeps.
#[expect(clippy::print_stderr, reason = "the one place where the daemon writes to its log")]
pub fn say(line: &str) {
    eprintln!("darwin-netd: {line}");
}
