//! Darwin's control plane: ledger, gateway, episodes, culls, judge, work log.
//!
//! `core` is one deterministic machine without threads, clock, randomness, files or sockets; everything else
//! is a shell round it. What decides is in `policy`.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod demo;
pub mod engine;
pub mod episode;
pub mod gateway;
pub mod journal;
pub mod judge;
pub mod provider;
pub mod serve;
pub mod simulate;
pub mod spawn;
pub mod spool;
