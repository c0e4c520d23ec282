//! `darwin-netd`: start-up order and nothing else.

use std::process::ExitCode;

use clap::Parser;
use netd::cli::{self, Cli};
use policy::Exit;

fn main() -> ExitCode {
    if let Err(error) = netd::keep_descriptors() {
        netd::say(&format!("cannot mark descriptors as its own, which Linux 5.11 can: {error}"));
        return ExitCode::from(Exit::Io.code());
    }
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
