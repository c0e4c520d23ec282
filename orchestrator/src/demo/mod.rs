//! `darwin demo`: the whole product on one machine, from one command, with evidence.

pub mod cast;
pub mod checks;
pub mod crash;
pub mod dns;
pub mod drive;
pub mod evidence;
pub mod files;
pub mod https;
pub mod namespace;
pub mod pki;
pub mod process;
pub mod provider;
pub mod report;
pub mod rootfs;
pub mod scratch;
pub mod screen;
pub mod side;
pub mod stage;
pub mod stand_in;
pub mod traces;
pub mod users;
pub mod watch;
pub mod witness;
pub mod world;
