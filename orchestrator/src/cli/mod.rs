//! The command line of `darwin`: one module a subcommand, each with `Args` and `run`.

pub mod decide;
pub mod demo;
mod document;
pub mod judge;
pub mod operate;
pub mod serve;
pub mod simulate;
pub mod verify;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use policy::Exit;

use crate::demo::side;
use crate::{episode, spawn};

/// Hosts AI agents that must earn their keep.
#[derive(Debug, Parser)]
#[command(name = "darwin", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The whole product on this host, with one full cull
    Demo(demo::Args),
    /// The control plane and gateway
    Serve(serve::Args),
    /// The pure rules: JSON in on stdin, JSON out
    Decide(decide::Args),
    /// The judge's frame and its strict reader
    Judge(judge::Args),
    /// Agents of a running control plane
    Agent(operate::AgentArgs),
    /// Announce income to a running control plane
    Income(operate::IncomeArgs),
    /// Years of the economy in seconds: the same rules, stand-in agents, hard checks
    Simulate(simulate::Args),
    /// Recompute chain, balances and projections of a journal from nothing
    Verify(verify::Args),
    /// Change user, namespace and limits, then become a program
    #[command(hide = true)]
    Launch(spawn::launch::Args),
    /// Become a confined run; the plan comes on standard input
    #[command(hide = true)]
    Confined(episode::child::Args),
    /// The demo's stand-in for a model provider
    #[command(hide = true)]
    DemoProvider(side::ProviderArgs),
    /// The demo's sites and name server
    #[command(hide = true)]
    DemoWorld(side::WorldArgs),
    /// The demo's cull, the control plane killed at random points of it
    #[command(hide = true)]
    DemoCrash(side::CrashArgs),
    /// Whether an ordinary user may make the namespaces of an episode
    #[command(hide = true)]
    DemoProbe,
}

impl Cli {
    /// Runs the subcommand.
    pub fn run(self) -> ExitCode {
        let exit: Exit = match self.command {
            Command::Demo(args) => demo::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Decide(args) => decide::run(args),
            Command::Judge(args) => judge::run(args),
            Command::Agent(args) => operate::agent(args),
            Command::Income(args) => operate::income(args),
            Command::Simulate(args) => simulate::run(args),
            Command::Verify(args) => verify::run(args),
            Command::DemoProvider(args) => side::provider(args),
            Command::DemoWorld(args) => side::world(args),
            Command::DemoCrash(args) => side::crash_test(&args),
            Command::DemoProbe => side::probe(),
            Command::Launch(args) => return spawn::launch::run(args),
            Command::Confined(args) => return episode::child::run(&args),
        };
        ExitCode::from(exit.code())
    }
}

/// Writes an answer and a line's end to standard output: `exit`, or that it could not be written. A reader that has
/// seen enough (`| head`) is no failure.
#[expect(clippy::print_stderr, reason = "an answer that cannot be written must be said somewhere")]
fn say(answer: &str, exit: Exit) -> Exit {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{answer}").and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("darwin: cannot write the answer: {error}");
            Exit::Io
        }
        Ok(()) | Err(_) => exit,
    }
}

/// An error and its causes in one line, as it reads after "cannot".
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        if write!(line, ": {next}").is_err() {
            break;
        }
        cause = next.source();
    }
    line
}
