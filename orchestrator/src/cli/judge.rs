//! `darwin judge`.

use policy::Exit;

/// Arguments of `darwin judge`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> Exit {
    Exit::Io
}
