//! `darwin agent` and `darwin income`: acts on a running control plane, as thin clients of its interface.
#![expect(clippy::print_stderr, reason = "a command's answer")]

use std::path::PathBuf;

use hyper::Method;
use policy::{AgentId, Exit, Money};
use serde_json::{Value, json};

use super::with_causes;
use crate::api::client;
use crate::config::Config;

/// Where the control plane is.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Its Unix socket
    #[arg(long, global = true)]
    api: Option<PathBuf>,
    /// Its configuration, which names the socket
    #[arg(long, global = true, default_value = "/etc/darwin/darwin.toml")]
    config: PathBuf,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

/// Arguments of `darwin agent`.
#[derive(Debug, clap::Args)]
pub struct AgentArgs {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Make an agent; it gets its grant and wakes
    Create {
        /// Its identifier
        agent: AgentId,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        /// The configured image that it runs from
        #[arg(long)]
        image: String,
        /// What it is told in its first wake message
        #[arg(long, default_value = "")]
        brief: String,
    },
    /// All agents, with their figures
    List,
    /// One agent's figures
    Show {
        /// Which
        agent: AgentId,
    },
    /// Keep an agent from waking and from being culled
    Pause(Reasoned),
    /// The reverse of pause
    Resume(Reasoned),
    /// End an agent at once, without appeal
    Kill(Reasoned),
}

#[derive(Debug, clap::Args)]
struct Reasoned {
    /// Which
    agent: AgentId,
    /// Why; it is kept
    #[arg(long)]
    reason: String,
}

/// Arguments of `darwin income`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct IncomeArgs {
    #[command(flatten)]
    place: Place,
    /// Whose
    #[arg(long, required = true)]
    agent: Option<AgentId>,
    /// Where it came from
    #[arg(long, required = true)]
    source: Option<String>,
    /// For which project
    #[arg(long, required = true)]
    project: Option<String>,
    /// Who paid
    #[arg(long, required = true)]
    payer: Option<String>,
    /// Dollars, such as 1.25
    #[arg(long, required = true, value_parser = Money::parse)]
    amount: Option<Money>,
    /// Idempotency key: the same one again moves nothing
    #[arg(long, required = true)]
    key: Option<String>,
    #[command(subcommand)]
    act: Option<IncomeAct>,
}

#[derive(Debug, clap::Subcommand)]
enum IncomeAct {
    /// Take an income back, once
    Reverse {
        /// The key of the income: the `webhook-id` or the --key that it came under
        income: String,
        /// Why; it is kept, and the agent is told
        #[arg(long)]
        reason: String,
        /// Idempotency key of the reversal; left out, the income's
        #[arg(long)]
        key: Option<String>,
    },
}

/// Runs `darwin agent`.
#[expect(clippy::needless_pass_by_value, reason = "every subcommand's `run` takes its arguments")]
pub fn agent(args: AgentArgs) -> Exit {
    let reasoned = |act: &str, reasoned: &Reasoned| {
        (format!("/{}/{act}", reasoned.agent), Some(json!({"reason": reasoned.reason})))
    };
    let (path, body) = match &args.act {
        Act::Create { agent, name, image, brief } => {
            let name = name.clone().unwrap_or_else(|| agent.to_string());
            (String::new(), Some(json!({"agent": agent, "name": name, "image": image, "brief": brief})))
        }
        Act::List => (String::new(), None),
        Act::Show { agent } => (format!("/{agent}"), None),
        Act::Pause(why) => reasoned("pause", why),
        Act::Resume(why) => reasoned("resume", why),
        Act::Kill(why) => reasoned("kill", why),
    };
    ask(&args.place, &format!("/api/v1/agents{path}"), body.as_ref())
}

/// Runs `darwin income`. Without a subcommand the command line has made sure that every part is there.
#[expect(clippy::needless_pass_by_value, reason = "every subcommand's `run` takes its arguments")]
pub fn income(args: IncomeArgs) -> Exit {
    if let Some(IncomeAct::Reverse { income, reason, key }) = &args.act {
        let key = key.as_ref().unwrap_or(income);
        let body = json!({"key": key, "income": income, "reason": reason});
        return ask(&args.place, "/api/v1/income/reverse", Some(&body));
    }
    let body = json!({
        "key": args.key,
        "agent": args.agent,
        "source": args.source,
        "project": args.project,
        "payer": args.payer,
        "amount_nano": args.amount,
    });
    ask(&args.place, "/api/v1/income", Some(&body))
}

/// A body makes it a POST. Refused is 1, unreachable 4.
fn ask(place: &Place, path: &str, body: Option<&Value>) -> Exit {
    let socket = match socket(place) {
        Ok(socket) => socket,
        Err((exit, what)) => {
            eprintln!("darwin: cannot {what}");
            return exit;
        }
    };
    let method = if body.is_some() { Method::POST } else { Method::GET };
    match client::ask(&socket, method, path, body) {
        Ok((status, answer)) if status.is_success() => super::say(&shown(&answer, place.json), Exit::Done),
        Ok((status, answer)) => {
            let message =
                answer.pointer("/error/message").and_then(Value::as_str).unwrap_or("no reason given");
            eprintln!("darwin: refused ({}): {message}", status.as_u16());
            Exit::Negative
        }
        Err(error) => {
            eprintln!("darwin: cannot {}", with_causes(&error));
            Exit::Io
        }
    }
}

fn socket(place: &Place) -> Result<PathBuf, (Exit, String)> {
    if let Some(socket) = &place.api {
        return Ok(socket.clone());
    }
    let unix = Config::api_socket(&place.config).map_err(|error| (Exit::Usage, with_causes(&error)))?;
    unix.ok_or((
        Exit::Usage,
        "find the control plane: its configuration listens on no Unix socket".to_owned(),
    ))
}

fn shown(answer: &Value, as_json: bool) -> String {
    if as_json {
        format!("{answer:#}")
    } else if let Some(rows) = answer.as_array() {
        rows.iter().map(figures).collect::<Vec<_>>().join("\n")
    } else if answer.get("balance_nano").is_some() {
        figures(answer)
    } else {
        answer.get("reply").and_then(Value::as_str).unwrap_or("done").to_owned()
    }
}

fn figures(row: &Value) -> String {
    let word = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
    let money = |key: &str| Money::from_nano(row.get(key).and_then(Value::as_i64).unwrap_or_default());
    format!(
        "{:<20} {:<10} balance {:>14} period income {:>14} costs {:>14} lifetime profit {:>14}",
        word("agent"),
        word("state"),
        money("balance_nano"),
        money("period_income_nano"),
        money("period_costs_nano"),
        money("lifetime_profit_nano"),
    )
}
