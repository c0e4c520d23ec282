//! `darwin decide`: the pure rules, JSON in on stdin, JSON out on stdout.

use std::collections::BTreeSet;
use std::io::{self, Write};

use policy::economy::SettingError;
use policy::economy::cull::{CullRules, CullSettings, Figures, cull};
use policy::economy::quota::{self, Appellant, QuotaRules, QuotaSettings};
use policy::{Exit, Instant};
use serde::Deserialize;

use super::document;

const EXAMPLE: &str = r#"Examples, as they can be given on standard input (amounts in nano-dollars, instants in ms since 1970):
  quota  {"appellants": [{"id": "a", "created": 1, "born_ms": 0, "promise": 70, "lifetime_profit_nano": 0, "reprieves": 0}]}
  cull   {"now_ms": 950400000, "agents": [{"id": "a", "created": 1, "born_ms": 0, "state": "alive", "exempt": false,
          "paused": false, "period_income_nano": 0, "period_costs_nano": 0, "lifetime_profit_nano": 0}]}
Rules that are left out take their defaults; "rules": {"share_bps": 2500} sets one."#;

/// Arguments of `darwin decide`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    #[command(subcommand)]
    rule: Rule,
}

#[derive(Debug, Clone, Copy, clap::Subcommand)]
enum Rule {
    /// Who is condemned at a cull
    Cull,
    /// Which appellants live
    Quota,
    /// What an appeal claims, against the ledger (not in this version)
    Claims,
}

/// Runs it.
#[expect(clippy::needless_pass_by_value, reason = "every subcommand is handed its arguments")]
pub fn run(args: Args) -> Exit {
    match args.rule {
        Rule::Cull => match document::from_stdin().map(decide_cull) {
            Ok(Ok(found)) => document::print(&found, Exit::Done),
            Ok(Err(error)) => document::wrong(&error),
            Err(error) => document::unread(&error),
        },
        Rule::Quota => match document::from_stdin().map(decide_quota) {
            Ok(Ok(decisions)) => document::print(&decisions, Exit::Done),
            Ok(Err(error)) => document::wrong(&error),
            Err(error) => document::unread(&error),
        },
        Rule::Claims => {
            let text = "darwin: cannot decide claims: this is not in this version of darwin";
            drop(writeln!(io::stderr(), "{text}"));
            Exit::Usage
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CullInput {
    now_ms: Instant,
    #[serde(default)]
    rules: CullSettings,
    agents: Vec<Figures<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaInput {
    #[serde(default)]
    rules: QuotaSettings,
    appellants: Vec<Appellant<String>>,
}

/// Why a document of the right shape decides nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum DecideError {
    /// A rule out of its range.
    #[error("take the rules")]
    Rules(#[from] SettingError),
    /// Two entries that must differ.
    #[error("decide: {list}[{at}].{field} is {value}, which an earlier one has")]
    Twice { list: &'static str, at: usize, field: &'static str, value: String },
    /// A promise over what the passes can sum to.
    #[error("decide: appellants[{at}].promise is {found}, and must be 0 to {max}")]
    Promise { at: usize, found: u32, max: u32 },
}

fn decide_cull(input: CullInput) -> Result<policy::economy::cull::Cull<String>, DecideError> {
    let rules = CullRules::parse(input.rules)?;
    check_unique("agents", input.agents.iter().map(|agent| (agent.id.as_str(), agent.created)))?;
    Ok(cull(input.now_ms, &rules, &input.agents))
}

fn decide_quota(input: QuotaInput) -> Result<quota::Decisions<String>, DecideError> {
    let rules = QuotaRules::parse(input.rules)?;
    check_unique(
        "appellants",
        input.appellants.iter().map(|appellant| (appellant.id.as_str(), appellant.created)),
    )?;
    let max = rules.promise_max();
    for (at, appellant) in input.appellants.iter().enumerate() {
        if appellant.promise > max {
            return Err(DecideError::Promise { at, found: appellant.promise, max });
        }
    }
    Ok(quota::decide(&input.appellants, &rules))
}

/// That no identifier and no number of creation stands twice.
fn check_unique<'a>(
    list: &'static str,
    entries: impl Iterator<Item = (&'a str, u64)>,
) -> Result<(), DecideError> {
    let (mut ids, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for (at, (id, created)) in entries.enumerate() {
        if !ids.insert(id) {
            return Err(DecideError::Twice { list, at, field: "id", value: format!("{id:?}") });
        }
        if !numbers.insert(created) {
            return Err(DecideError::Twice { list, at, field: "created", value: created.to_string() });
        }
    }
    Ok(())
}
