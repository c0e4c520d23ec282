//! `darwin demo`.

use policy::Exit;

/// Arguments of `darwin demo`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> Exit {
    Exit::Io
}
