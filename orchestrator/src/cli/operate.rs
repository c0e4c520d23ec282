//! `darwin agent` and `darwin income`: acts on a running control plane.

use policy::Exit;

/// Arguments of `darwin agent`.
#[derive(Debug, clap::Args)]
pub struct AgentArgs {}

/// Arguments of `darwin income`.
#[derive(Debug, clap::Args)]
pub struct IncomeArgs {}

/// Runs `darwin agent`.
pub fn agent(_args: AgentArgs) -> Exit {
    Exit::Io
}

/// Runs `darwin income`.
pub fn income(_args: IncomeArgs) -> Exit {
    Exit::Io
}
