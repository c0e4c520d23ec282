//! `darwin-sample-agent`: a small program that plays an agent in `darwin demo`, and says so in all that it writes.
//!
//! It has no model of its own and no will: which of the demo's parts it plays is the first word of its
//! identifier, and what it does on a day depends on the part and the day alone. It stands here for whatever agent
//! a user brings: it knows the gateway, the proxy and the tools by their addresses in its environment, and it may
//! do what it likes in its namespace.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an episode's output is the agent's own log")]

mod episode;
mod gateway;
mod http;
mod part;
mod tunnel;
mod wall;
mod words;

use std::collections::BTreeSet;
use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    match argument.as_deref() {
        Some("--list-libraries") => list_libraries(),
        Some(other) => {
            eprintln!("darwin-sample-agent: no argument but --list-libraries is known, not {other:?}");
            ExitCode::from(3)
        }
        None => match episode::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("darwin-sample-agent: cannot {error}");
                ExitCode::from(4)
            }
        },
    }
}

/// Prints each file that the loader mapped to run this program, its own file first: what an image for it needs.
fn list_libraries() -> ExitCode {
    let maps = match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => maps,
        Err(error) => {
            eprintln!("darwin-sample-agent: cannot read /proc/self/maps: {error}");
            return ExitCode::from(4);
        }
    };
    let own = std::env::current_exe().ok();
    let files: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.splitn(6, ' ').nth(5))
        .map(str::trim)
        .filter(|path| path.starts_with('/'))
        .collect();
    if let Some(own) = &own {
        println!("{}", own.display());
    }
    for file in files.into_iter().filter(|file| own.as_deref() != Some(std::path::Path::new(file))) {
        println!("{file}");
    }
    ExitCode::SUCCESS
}
