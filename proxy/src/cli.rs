//! The command line: `serve` and `check`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use nix::unistd::geteuid;
use policy::egress::{Authority, Code, Grounds, Permit, Refusal, Surroundings, decide};
use policy::{Exit, ProfileName};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Config, ConfigError, Policies};
use crate::host;
use crate::server::Server;

/// A CONNECT-only egress proxy for programs that are not trusted.
#[derive(Debug, Parser)]
#[command(name = "darwin-proxy", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve confined agents (listeners from netd) and --listen addresses.
    Serve(Serve),
    /// Say what the policy says of one target, before its look-up: 0 allowed or only reported, 1 refused, 2 could not
    /// tell, 3 bad policy. The addresses that the name has, its pins and the server name are judged when it is dialled.
    Check(Check),
}

#[derive(Debug, Args)]
struct Serve {
    /// proxy.toml; without it the built-in defaults hold and netd is not asked.
    #[arg(long)]
    config: Option<PathBuf>,
    /// policy.toml; overrides the configuration's.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// Serve one caller here, without netd; repeat it in pairs with --profile.
    #[arg(long, value_name = "ADDR")]
    listen: Vec<SocketAddr>,
    /// The egress profile of the --listen with the same number.
    #[arg(long, value_name = "PROFILE")]
    profile: Vec<ProfileName>,
    /// Read everything, print all mistakes and end.
    #[arg(long)]
    check_config: bool,
}

#[derive(Debug, Args)]
struct Check {
    /// policy.toml.
    #[arg(long)]
    policy: PathBuf,
    /// The egress profile.
    #[arg(long)]
    profile: ProfileName,
    /// HOST:PORT, as in a CONNECT.
    target: String,
}

/// Runs the command; what went wrong has been told on stderr.
pub fn run(cli: Cli) -> Exit {
    match cli.command {
        Command::Serve(args) => serve(args),
        Command::Check(args) => check(&args),
    }
}

fn tell(text: &str) {
    // With stderr gone there is nobody left to tell.
    drop(writeln!(std::io::stderr(), "darwin-proxy: {text}"));
}

/// An error and its causes, on one line unless a cause has more.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("cannot {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn told<T>(result: Result<T, ConfigError>) -> Result<T, Exit> {
    result.map_err(|error| {
        match &error {
            // One mistake a line and nothing before it: editors jump to PATH:LINE:COLUMN.
            ConfigError::Wrong { path, mistakes } => {
                for mistake in mistakes {
                    drop(writeln!(std::io::stderr(), "{}:{mistake}", path.display()));
                }
            }
            ConfigError::Read { .. } => tell(&chain(&error)),
        }
        Exit::Usage
    })
}

/// Everything that `serve` starts from, checked.
struct Settings {
    config: Config,
    policies: Policies,
    listen: Vec<(SocketAddr, ProfileName)>,
}

fn settings(args: Serve) -> Result<Settings, Exit> {
    let config =
        args.config.as_deref().map_or_else(|| Ok(Config::default()), |path| told(Config::load(path)));
    let named = config.as_ref().map_or_else(|_| None, |config| Some(config.policy.clone()));
    let policy = args.policy.or(named).map(|path| if path.is_absolute() { path } else { absolute(&path) });
    // A wrong configuration does not hide what is wrong with the policy.
    let policies = policy.as_deref().map(|path| told(Policies::load(path))).transpose();
    let (mut config, policies) = (config?, policies?);
    let (Some(policies), Some(path)) = (policies, policy) else { return Err(Exit::Usage) };
    config.policy = path;
    if args.listen.len() != args.profile.len() {
        tell("every --listen needs a --profile of its own");
        return Err(Exit::Usage);
    }
    if args.listen.is_empty() && config.netd.is_none() {
        tell(
            "there is nobody to serve: name netd's socket in the configuration, or give --listen and --profile",
        );
        return Err(Exit::Usage);
    }
    for profile in args.profile.iter().filter(|profile| !policies.profiles.contains_key(profile)) {
        tell(&format!("the policy has no profile {profile}: its caller will be refused everything"));
    }
    Ok(Settings { config, policies, listen: args.listen.into_iter().zip(args.profile).collect() })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn serve(args: Serve) -> Exit {
    let only_check = args.check_config;
    let settings = match settings(args) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    if only_check {
        return Exit::Done;
    }
    if geteuid().is_root() {
        tell("it refuses to run as root: start it as a user of its own, such as darwin-proxy");
        return Exit::Usage;
    }
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(serve_until_told(settings)),
        Err(error) => {
            tell(&format!("cannot start the runtime: {error}"));
            Exit::Io
        }
    }
}

async fn serve_until_told(settings: Settings) -> Exit {
    let (terminate, interrupt, hang_up) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()));
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hang_up)) = (terminate, interrupt, hang_up) else {
        tell("cannot take signals");
        return Exit::Io;
    };
    let server = match Server::start(settings.config, settings.policies, &settings.listen).await {
        Ok(server) => server,
        Err(error) => {
            tell(&chain(&error));
            return Exit::Io;
        }
    };
    for (address, (_, profile)) in server.addresses().iter().zip(&settings.listen) {
        tell(&format!("serving {address} with the profile {profile}"));
    }
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => server.reload().await,
        }
    }
    tell("draining");
    let cut = server
        .drain(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await;
    if cut == 0 { Exit::Done } else { Exit::Negative }
}

/// What `check` prints.
#[derive(Debug, Serialize)]
struct Said {
    verdict: &'static str,
    rule: Option<String>,
    reason: &'static str,
}

fn check(args: &Check) -> Exit {
    let policies = match told(Policies::load(&args.policy)) {
        Ok(policies) => policies,
        Err(exit) => return exit,
    };
    let own_addresses = match host::own_addresses() {
        Ok(own_addresses) => own_addresses,
        // Without them a target that is this host would be called allowed.
        Err(error) => {
            tell(&format!("cannot tell whether the target is this host: {error}"));
            return Exit::Unknown;
        }
    };
    let surroundings = Surroundings { own_addresses, own_ports: Vec::new() };
    if !policies.profiles.contains_key(&args.profile) {
        let known: Vec<String> = policies.profiles.keys().map(ToString::to_string).collect();
        tell(&format!("the policy has no profile {}; it has: {}", args.profile, known.join(", ")));
    }
    let decided = Authority::parse(args.target.as_bytes())
        .map_err(|_malformed| Refusal { code: Code::MalformedTarget, rule: None })
        .and_then(|wanted| decide(policies.profiles.get(&args.profile), &wanted, &surroundings));
    let (verdict, exit) = match &decided {
        Ok(permit) => (allowed(permit), Exit::Done),
        Err(refusal) => (refused("deny", refusal), Exit::Negative),
    };
    let line = serde_json::to_string(&verdict).unwrap_or_default();
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => exit,
        Err(_) => Exit::Io,
    }
}

fn allowed(permit: &Permit) -> Said {
    match permit.grounds() {
        Grounds::Rule(rule) => Said { verdict: "allow", rule: Some(rule.to_string()), reason: "rule" },
        Grounds::PublicMode => Said { verdict: "allow", rule: None, reason: "public_mode" },
        Grounds::ReportOnly(refusal) => refused("report", refusal),
    }
}

fn refused(verdict: &'static str, refusal: &Refusal) -> Said {
    Said { verdict, rule: refusal.rule.as_ref().map(ToString::to_string), reason: refusal.code.as_str() }
}
