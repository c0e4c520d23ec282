//! Start-up order: stderr, arguments, command.

use std::process::ExitCode;

use clap::Parser;
use policy::Exit;
use proxy::cli::{Cli, run};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    if let Err(error) = netd::keep_descriptors() {
        tracing::error!("cannot mark descriptors as its own, which Linux 5.11 can: {error}");
        return ExitCode::from(Exit::Io.code());
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            drop(error.print());
            return ExitCode::from(exit.code());
        }
    };
    ExitCode::from(run(cli).code())
}
