//! `darwin-netd`: a network namespace that no packet leaves.
//!
//! The client's half ([`protocol`], [`client`]) stands alone: it holds no privilege and knows nothing of
//! namespaces. The server is two processes: the hand, which enters namespaces and opens sockets there, and
//! the head, which does everything else with less.

pub mod client;
pub mod protocol;
pub mod seqpacket;
mod sys;
