//! Every decision that Darwin's code makes, as pure functions over plain data.
//!
//! A rule that decides who may live, what may leave or what may run is in this crate or it is in the wrong
//! place. The crate has no I/O, no clock, no randomness, no logging and no hash-ordered iteration: what it
//! needs comes in as values.
#![forbid(unsafe_code)]

pub mod confinement;
pub mod constitution;
pub mod economy;
pub mod egress;
pub mod exit;
pub mod ident;
pub mod image;
pub mod judge;
pub mod mistake;
pub mod money;
pub mod signal;
pub mod time;

pub use exit::Exit;
pub use ident::{AgentId, ProfileName};
pub use mistake::Mistake;
pub use money::Money;
pub use time::Instant;
