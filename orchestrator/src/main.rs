//! `darwin`: start-up order and nothing else.
#![expect(clippy::print_stderr, reason = "usage errors of a command line go to stderr")]

use std::process::ExitCode;

use clap::Parser;
use orchestrator::cli::Cli;
use policy::Exit;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            if let Err(broken) = error.print() {
                eprintln!("darwin: cannot print: {broken}");
            }
            ExitCode::from(exit.code())
        }
    }
}
