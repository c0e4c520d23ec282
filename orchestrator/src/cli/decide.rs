//! `darwin decide`.

use policy::Exit;

/// Arguments of `darwin decide`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> Exit {
    Exit::Io
}
