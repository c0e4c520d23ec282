//! `darwin simulate`: years of the economy in seconds, with hard checks.
#![expect(clippy::print_stderr, reason = "a command's errors go to stderr")]

use std::path::PathBuf;

use policy::Exit;
use serde_json::json;

use crate::core::settings::Settings;
use crate::simulate::outcome::Outcome;
use crate::simulate::{self, JournalAt, Options, Point, Scenario, SimulateError, Vary};

/// Arguments of `darwin simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  darwin simulate --agents 20 --days 7
  darwin simulate --scenario published
  darwin simulate --agents 30 --days 30 --seeds 100 --vary quota=0.1,0.25,0.5
The same seed gives the same bytes, but for wall_ms. Exits 1 where a check did not hold.")]
pub struct Args {
    /// How many agents there are at the beginning
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=9_999))]
    agents: u32,
    /// How many days it lasts
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// The seed; with --seeds the first one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A cast that is given, with its own number of agents and days
    #[arg(long, value_enum, conflicts_with_all = ["agents", "days"])]
    scenario: Option<Scenario>,
    /// How many seeds to run, one after the other in number
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: u32,
    /// How many threads to run seeds on; left out, one a processor
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
    /// A rule at several values, such as quota=0.1,0.25,0.5; an unknown rule is told the known ones
    #[arg(long, value_name = "KEY=A,B,C")]
    vary: Option<String>,
    /// Have the seed bring faults too: restarts, outages, clock steps, admins
    #[arg(long)]
    faults: bool,
    /// Write the journal as well: `memory`, or a new file
    #[arg(long, value_name = "memory|FILE", conflicts_with_all = ["seeds", "vary"])]
    journal: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs it: 0 where every check held, 1 where one did not, 3 for wrong arguments, 4 where a journal cannot be written.
pub fn run(args: Args) -> Exit {
    let threads = args
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, std::num::NonZeroUsize::get);
    let options = Options {
        agents: args.agents,
        days: args.days,
        seed: args.seed,
        scenario: args.scenario,
        faults: args.faults,
        settings: Settings::default(),
        journal: args.journal.map(journal_at),
    };
    let Some(text) = args.vary else {
        return match simulate::many(&options, args.seeds, threads) {
            Ok(outcomes) => tell(&options, &outcomes, args.json),
            Err(error) => failed(&error),
        };
    };
    let vary = match Vary::parse(&text, &options.settings) {
        Ok(vary) => vary,
        Err(error) => {
            eprintln!("darwin simulate: cannot {error}");
            return Exit::Usage;
        }
    };
    match simulate::sweep(&options, &vary, args.seeds, threads) {
        Ok(points) => tell_points(&options, &points, args.json),
        Err(error) => failed(&error),
    }
}

fn journal_at(path: PathBuf) -> JournalAt {
    if path.as_os_str() == "memory" { JournalAt::Memory } else { JournalAt::File(path) }
}

fn tell(options: &Options, outcomes: &[Outcome], as_json: bool) -> Exit {
    let exit = complain(options, "", outcomes);
    let text = match (as_json, outcomes) {
        (false, _) => Ok(simulate::outcome_text(outcomes)),
        (true, [one]) => serde_json::to_string(one),
        (true, several) => serde_json::to_string(several),
    };
    print(text, exit)
}

fn tell_points(options: &Options, points: &[(Point, Vec<Outcome>)], as_json: bool) -> Exit {
    let mut exit = Exit::Done;
    for (point, outcomes) in points {
        let vary = format!(" --vary {}={}", point.key, point.value);
        if complain(options, &vary, outcomes) != Exit::Done {
            exit = Exit::Negative;
        }
    }
    let told: Vec<&Point> = points.iter().map(|(point, _)| point).collect();
    let text = if as_json { Ok(json!(told).to_string()) } else { Ok(simulate::points_text(&told)) };
    print(text, exit)
}

/// Names the first breach of each run, and the command that replays it.
fn complain(options: &Options, vary: &str, outcomes: &[Outcome]) -> Exit {
    let mut exit = Exit::Done;
    for outcome in outcomes {
        let broken = outcome.checks.iter().filter(|check| !check.held);
        let Some(first) = broken.min_by_key(|check| check.first_broken_ms) else { continue };
        exit = Exit::Negative;
        let at = first.first_broken_ms.map(|at| at.to_string()).unwrap_or_default();
        let cast = match options.scenario {
            Some(scenario) => format!("--scenario {}", scenario.word()),
            None => format!("--agents {} --days {}", options.agents, options.days),
        };
        let faults = if options.faults { " --faults" } else { "" };
        eprintln!(
            "darwin simulate: {} did not hold, first at {at}; replay it with: darwin simulate {cast} --seed {}{faults}{vary}",
            first.name, outcome.seed
        );
    }
    exit
}

fn print(text: Result<String, serde_json::Error>, exit: Exit) -> Exit {
    match text {
        Ok(text) => super::say(&text, exit),
        Err(error) => {
            eprintln!("darwin simulate: cannot print the outcome: {error}");
            Exit::Io
        }
    }
}

fn failed(error: &SimulateError) -> Exit {
    eprintln!("darwin simulate: cannot {}", super::with_causes(error));
    match error {
        SimulateError::Genesis { .. } | SimulateError::Agents { .. } | SimulateError::Begun { .. } => {
            Exit::Usage
        }
        SimulateError::Fault { .. } => Exit::Negative,
        SimulateError::Journal(_) | SimulateError::Runtime { .. } | SimulateError::Thread => Exit::Io,
    }
}
