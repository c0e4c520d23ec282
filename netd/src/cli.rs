//! The command line: `serve`, and the client's commands.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use policy::{AgentId, Exit, ProfileName};

use crate::client::{Client, ClientError};
use crate::config::{self, Config, DEFAULT_PATH};
use crate::protocol::{Refusal, Status};
use crate::seqpacket::PacketError;
use crate::{selftest, server};

/// Puts agents in network namespaces that no packet leaves, and watches them.
#[derive(Debug, Parser)]
#[command(name = "darwin-netd", version, max_term_width = 110)]
pub struct Cli {
    /// The configuration; left out: /etc/darwin/netd.toml, or the built-in one where that is missing.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read the configuration, tell every mistake, and end.
    #[arg(long, global = true)]
    check_config: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon.
    Serve,
    /// Confine a namespace until it is released.
    Confine(ConfineArgs),
    /// End a confinement.
    Release {
        /// Whose.
        #[arg(long, value_name = "ID")]
        agent: AgentId,
    },
    /// Show all confinements.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compare the kernel's state with the model; 1 if anything differs.
    Verify {
        /// Of one agent only.
        #[arg(long, value_name = "ID")]
        agent: Option<AgentId>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Confine a scratch namespace on this host and try to get out of it; 1 if anything does not hold.
    Selftest {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print an agent's rules as nft text.
    Render {
        /// Whose.
        #[arg(long, value_name = "ID")]
        agent: AgentId,
    },
}

#[derive(Debug, Args)]
struct ConfineArgs {
    #[command(flatten)]
    namespace: Namespace,
    /// The agent.
    #[arg(long, value_name = "ID")]
    agent: AgentId,
    /// Its egress profile.
    #[arg(long, value_name = "NAME")]
    profile: ProfileName,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Namespace {
    /// The namespace's file.
    #[arg(long, value_name = "PATH")]
    netns: Option<PathBuf>,
    /// A process in the namespace.
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
}

/// Runs one command; says why where it cannot.
pub fn run(cli: Cli) -> Exit {
    let config = match load(cli.config.as_deref()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    match (cli.check_config, cli.command) {
        (true, _) => Exit::Done,
        (false, None) => {
            crate::say("no command: try `darwin-netd --help`");
            Exit::Usage
        }
        (false, Some(Command::Serve)) => match server::serve(config) {
            Ok(()) => Exit::Done,
            Err(error) => {
                cannot("", &error);
                Exit::Io
            }
        },
        (false, Some(Command::Selftest { json })) => test_here(&config, json),
        (false, Some(command)) => ask(&config, command),
    }
}

fn load(named: Option<&Path>) -> Result<Config, Exit> {
    let path = named.unwrap_or(Path::new(DEFAULT_PATH));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            crate::say(&format!("cannot read {}: {error}", path.display()));
            return Err(Exit::Usage);
        }
    };
    Config::read(&text, &config::user_on_this_host).map_err(|mistakes| {
        for mistake in mistakes {
            crate::say(&format!("{}:{mistake}", path.display()));
        }
        Exit::Usage
    })
}

fn cannot(doing: &str, error: &dyn Error) {
    let mut line = format!("cannot {doing}{error}");
    let mut cause = error.source();
    while let Some(next) = cause {
        line = format!("{line}: {next}");
        cause = next.source();
    }
    crate::say(&line);
}

fn ask(config: &Config, command: Command) -> Exit {
    let outcome = Client::connect(&config.socket).and_then(|mut client| obey(&mut client, command));
    match outcome {
        Ok(exit) => exit,
        Err(error) => {
            cannot("", &error);
            match error.refusal() {
                Some(Refusal::Failed { .. } | Refusal::ReadBack { .. }) | None => Exit::Io,
                Some(_) => Exit::Negative,
            }
        }
    }
}

fn obey(client: &mut Client, command: Command) -> Result<Exit, ClientError> {
    match command {
        // Not reached: `run` does these itself.
        Command::Serve | Command::Selftest { .. } => Ok(Exit::Usage),
        Command::Confine(args) => confine(client, &args),
        Command::Release { agent } => client.release(&agent).map(|()| Exit::Done),
        Command::List { json } => list(client, json),
        Command::Verify { agent, json } => verify(client, agent.as_ref(), json),
        Command::Render { agent } => client.render(&agent).map(|text| print(&text)),
    }
}

fn test_here(config: &Config, json: bool) -> Exit {
    let report = match selftest::run(config) {
        Ok(report) => report,
        Err(error) => {
            cannot("", &error);
            return Exit::Unknown;
        }
    };
    let text =
        if json { serde_json::to_string_pretty(&report).map(|text| text + "\n") } else { Ok(report.text()) };
    let printed = match text {
        Ok(text) => print(&text),
        Err(error) => {
            cannot("write the report: ", &error);
            Exit::Io
        }
    };
    if report.held { printed } else { Exit::Negative }
}

fn print(text: &str) -> Exit {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Exit::Done,
        Err(error) => {
            crate::say(&format!("cannot write to stdout: {error}"));
            Exit::Io
        }
    }
}

fn print_json<T: serde::Serialize>(value: &T) -> Result<Exit, ClientError> {
    let text = serde_json::to_string_pretty(value).map_err(PacketError::Encode)?;
    Ok(print(&format!("{text}\n")))
}

fn confine(client: &mut Client, args: &ConfineArgs) -> Result<Exit, ClientError> {
    let path = match (&args.namespace.netns, args.namespace.pid) {
        (Some(path), _) => path.clone(),
        (None, Some(pid)) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        (None, None) => return Ok(Exit::Usage),
    };
    let netns = match File::open(&path) {
        Ok(netns) => netns,
        Err(error) => {
            crate::say(&format!("cannot open {}: {error}", path.display()));
            return Ok(Exit::Io);
        }
    };
    let confined = client.confine_lasting(netns.as_fd(), &args.agent, &args.profile)?;
    print_json(&confined)
}

fn list(client: &mut Client, json: bool) -> Result<Exit, ClientError> {
    let all = client.list()?;
    if json {
        return print_json(&all);
    }
    let line = |status: &Status| {
        let drops: Vec<String> = status
            .drops
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(class, n)| format!("{class}={n}"))
            .collect();
        let lasting = if status.persist { "owned, outlives netd" } else { "goes when netd goes" };
        format!(
            "{}\t{}\t{:?}\tnetns {}\t{lasting}\tforeign tables {}\t{}\n",
            status.agent,
            status.profile,
            status.state,
            status.netns_cookie,
            status.foreign_tables,
            drops.join(" ")
        )
    };
    Ok(print(&all.iter().map(line).collect::<String>()))
}

fn verify(client: &mut Client, agent: Option<&AgentId>, json: bool) -> Result<Exit, ClientError> {
    let found = client.verify(agent)?;
    let exit = if found.is_empty() { Exit::Done } else { Exit::Negative };
    let printed = if json {
        print_json(&found)?
    } else {
        let lines: Vec<String> = found.iter().map(|one| format!("{}: {}\n", one.agent, one.what)).collect();
        print(&lines.concat())
    };
    Ok(if printed == Exit::Done { exit } else { printed })
}
