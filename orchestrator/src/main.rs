//! `darwin`: start-up order and nothing else.
#![expect(clippy::print_stderr, reason = "errors of the start go to stderr")]

use std::process::ExitCode;

use clap::Parser;
use orchestrator::cli::Cli;
use policy::Exit;

fn main() -> ExitCode {
    if let Err(error) = netd::keep_descriptors() {
        eprintln!("darwin: cannot mark descriptors as its own, which Linux 5.11 can: {error}");
        return ExitCode::from(Exit::Io.code());
    }
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
