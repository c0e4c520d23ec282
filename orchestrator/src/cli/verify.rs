//! `darwin verify`: a journal recomputed from nothing.
#![expect(clippy::print_stderr, reason = "a command's errors go to stderr")]

use std::path::PathBuf;

use policy::Exit;

use crate::journal::{JournalError, Report, verify};

/// Arguments of `darwin verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The journal's file; an engine may be writing it meanwhile
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it: 0 where everything is right, 1 where a row is wrong, 4 where it cannot be read.
pub fn run(args: Args) -> Exit {
    let Args { journal, json } = args;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cannot(&format!("start a runtime: {error}")),
    };
    match runtime.block_on(verify(&journal)) {
        Ok(report) => show(&report, json),
        Err(error @ (JournalError::Version { .. } | JournalError::NotAJournal { .. })) => {
            eprintln!("darwin verify: cannot {}", super::with_causes(&error));
            Exit::Unknown
        }
        Err(error) => cannot(&super::with_causes(&error)),
    }
}

fn cannot(what: &str) -> Exit {
    eprintln!("darwin verify: cannot {what}");
    Exit::Io
}

fn show(report: &Report, json: bool) -> Exit {
    let exit = if report.wrong.is_some() { Exit::Negative } else { Exit::Done };
    if json {
        return match serde_json::to_string(report) {
            Ok(text) => super::say(&text, exit),
            Err(error) => cannot(&format!("print the report: {error}")),
        };
    }
    let read = format!("{} rows of the journal, {} rows of its tables", report.rows, report.projected);
    let found = match &report.wrong {
        Some(wrong) => format!("wrong: table {}, row {}: {}", wrong.table, wrong.row, wrong.what),
        None => format!(
            "head {}\nstate {}\nall as the journal says: chain, balances, tables",
            report.head, report.state
        ),
    };
    super::say(&format!("{read}\n{found}"), exit)
}
