//! Start-up order of `image-audit`, and nothing else.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use image_audit::cli::{Cli, run};
use policy::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            // Help and version are answers; clap's own 2 would say "could not tell".
            let answered = error.exit_code() == 0 && printed.is_ok();
            return ExitCode::from(if answered { Exit::Done } else { Exit::Usage }.code());
        }
    };
    let exit = run(&cli).unwrap_or_else(|error| {
        let exit = error.exit();
        let text = format!("{:#}", anyhow::Error::from(error));
        // Nobody is left to tell if stderr is gone too; the exit code still says it.
        let _told = writeln!(io::stderr(), "image-audit: cannot {text}");
        exit
    });
    ExitCode::from(exit.code())
}
