//! `darwin-netd`: start-up order and nothing else.

use std::process::ExitCode;

use clap::Parser;
use netd::cli::{self, Cli};
use policy::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wanted = !error.use_stderr();
            drop(error.print());
            return ExitCode::from(if wanted { Exit::Done.code() } else { Exit::Usage.code() });
        }
    };
    ExitCode::from(cli::run(cli).code())
}
