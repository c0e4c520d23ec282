//! `darwin demo`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command's answer goes to stdout, its errors to stderr"
)]

use std::io::IsTerminal as _;
use std::path::PathBuf;

use policy::Exit;

use super::with_causes;
use crate::demo::drive::{DriveError, Options, drive};
use crate::demo::files::Rates;

/// Arguments of `darwin demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Days of the accelerated clock; the first cull is ten and a half days after the births, so fewer than eleven
    /// show and check none
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=100))]
    days: u32,
    /// Serve on after the report, until Ctrl-C; the results of the checks come after it
    #[arg(long)]
    serve: bool,
    /// How fast the days pass; left out: `watch` on a terminal, `fast` elsewhere
    #[arg(long, value_enum)]
    pace: Option<Pace>,
    /// Keep journal, logs, signals and summary in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Have the real judge score: needs `ANTHROPIC_API_KEY`
    #[arg(long)]
    live_judge: bool,
    /// Print a summary as JSON on standard output, and everything else on standard error
    #[arg(long)]
    json: bool,
}

/// How fast the days pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Pace {
    /// As fast as the agents work: seconds
    Fast,
    /// Ten days in about a minute
    Watch,
}

impl Pace {
    fn of_the_audience() -> Self {
        if std::io::stdout().is_terminal() { Self::Watch } else { Self::Fast }
    }

    fn rates(self) -> Rates {
        match self {
            Self::Fast => Rates::default(),
            Self::Watch => Rates::watch(),
        }
    }
}

/// Runs it: 0 where every check held, 1 where one did not.
pub fn run(args: Args) -> Exit {
    if args.live_judge && std::env::var_os("ANTHROPIC_API_KEY").is_none_or(|key| key.is_empty()) {
        eprintln!("darwin demo: cannot ask the real judge: ANTHROPIC_API_KEY is not set");
        return Exit::Usage;
    }
    let Args { days, serve, pace, out, live_judge, json } = args;
    let rates = pace.unwrap_or_else(Pace::of_the_audience).rates();
    match drive(&Options { days, serve, rates, out, live_judge, json }) {
        Ok(ended) => {
            let failed: Vec<&str> =
                ended.checks.iter().filter(|check| !check.held).map(|check| check.name).collect();
            if json {
                println!("{:#}", ended.summary);
            }
            if failed.is_empty() {
                return Exit::Done;
            }
            eprintln!("darwin demo: {} checks failed: {}", failed.len(), failed.join("; "));
            Exit::Negative
        }
        Err(error) => {
            let exit = if matches!(error, DriveError::Interrupted) { Exit::Unknown } else { error.exit() };
            eprintln!("darwin demo: cannot {}", with_causes(&error));
            exit
        }
    }
}
