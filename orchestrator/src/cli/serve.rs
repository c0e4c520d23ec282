//! `darwin serve`.

use policy::Exit;

/// Arguments of `darwin serve`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> Exit {
    Exit::Io
}
