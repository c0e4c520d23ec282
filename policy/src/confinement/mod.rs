//! The second wall of a confinement: its nftables rules as a value, and what a refused packet means.
//!
//! The boundary is the absence of a link; the rules are the fast refusal and the witness. They accept what
//! stays on the namespace's own loopback and ends at one of four addresses, and refuse, count and log the
//! rest by class. [`classify`] says of one packet what the rules say of it: the two are tested against each
//! other. How the value reaches the kernel is netd's affair.

mod class;
mod prefix;
mod render;
mod ruleset;

pub use class::{Attempt, Class, classify};
pub use prefix::{Prefix, PrefixError};
pub use ruleset::{Act, Chain, ChainName, Family, Hook, Limit, Match, Protocol, Rule, Ruleset, Surroundings};

#[cfg(test)]
mod tests;
