//! `netns-table [--json FILE]`: every probe in every state, as a table, and as JSON if asked.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use netns_tests::{may_run, table};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(policy::Exit::Negative.code()),
        Err(error) => {
            complain(&error);
            ExitCode::from(policy::Exit::Unknown.code())
        }
    }
}

#[expect(clippy::print_stderr, reason = "what a command line program says on failure")]
fn complain(error: &anyhow::Error) {
    eprintln!("netns-table: cannot make the table: {error:#}");
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = match arguments.as_slice() {
        [] => None,
        [flag, file] if flag == "--json" => Some(file),
        _ => bail!("usage: netns-table [--json FILE]"),
    };
    if !may_run("netns-table") {
        return Ok(true);
    }
    let cells = table::run()?;
    print!("{}", table::text(&cells));
    if let Some(file) = file {
        let text = serde_json::to_string_pretty(&table::json(&cells))?;
        std::fs::write(file, text).with_context(|| format!("write {file}"))?;
    }
    Ok(cells.iter().all(|cell| cell.fault().is_none()))
}
