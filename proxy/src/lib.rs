//! darwin-proxy: CONNECT and nothing else.
//!
//! Everything that decides is in `policy::egress`; this crate reads the world, asks, does what it is told and writes
//! one line about it. A connection's order is in [`connection`]; what it may do next is always a value that only
//! `policy` makes.

mod caller;
pub mod cli;
pub mod config;
mod connection;
mod dial;
mod feed;
mod head;
mod hello;
mod host;
mod record;
mod reload;
mod reply;
mod resolve;
pub mod server;
mod signals;
mod tunnel;
