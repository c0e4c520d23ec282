//! `darwin demo`: the whole product on one machine, from one command, with evidence.

pub mod cast;
pub mod dns;
pub mod https;
pub mod namespace;
pub mod pki;
pub mod provider;
pub mod stand_in;
pub mod witness;
pub mod world;
