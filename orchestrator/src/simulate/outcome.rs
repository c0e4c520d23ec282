//! What a simulation comes to: figures for programs, and the series that its charts are drawn from.

use std::collections::BTreeMap;

use policy::economy::Reason;
use policy::{AgentId, Instant, Money};
use serde::Serialize;

/// One run of one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Of the random streams.
    pub seed: u64,
    /// How many agents it began with.
    pub agents: u32,
    /// How many days it lasted.
    pub days: u32,
    /// Hash of the journal's last row.
    pub journal_hash: String,
    /// What it took on the host's clock: the one figure that two runs do not share.
    pub wall_ms: u64,
    /// Inputs that were stepped.
    pub events: u64,
    /// Culls that ran, in order.
    pub culls: Vec<CullOutcome>,
    /// Dockets of starving agents, in order.
    pub starvation_dockets: Vec<StarvationOutcome>,
    /// Agents born after the first ones.
    pub births: u32,
    /// By cause.
    pub deaths: Deaths,
    /// The treasury at the end.
    pub treasury_nano: Money,
    /// What must hold, and whether it did.
    pub checks: Vec<CheckOutcome>,
    /// For charts.
    #[serde(skip)]
    pub series: Series,
}

/// One cull.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CullOutcome {
    /// Its instant.
    pub at_ms: Instant,
    /// Agents that it looked at.
    pub eligible: u32,
    /// Condemned by the idle half.
    pub idle: u32,
    /// Condemned by the performance half.
    pub performance: u32,
    /// Who appealed.
    pub appellants: u32,
    /// Who lives on.
    pub reprieved: u32,
    /// Who died of it.
    pub died: u32,
    /// How many could have been reprieved.
    #[serde(skip)]
    pub quota: u32,
    /// The judge's overall scores, 0 to 100 a pass, in order of creation.
    #[serde(skip)]
    pub promises: Vec<u32>,
}

/// One docket of starving agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StarvationOutcome {
    /// When it was opened.
    pub at_ms: Instant,
    /// Who appealed.
    pub appellants: u32,
    /// Who lives on.
    pub reprieved: u32,
}

/// Deaths by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Deaths {
    /// Of the idle half.
    pub idle: u32,
    /// Of the performance half.
    pub performance: u32,
    /// Of starving.
    pub starved: u32,
}

/// One thing that must hold after every event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckOutcome {
    /// What.
    pub name: String,
    /// Whether it did.
    pub held: bool,
    /// The first instant at which it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_broken_ms: Option<Instant>,
}

/// Series for charts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// One for each midnight.
    pub days: Vec<Day>,
    /// One for each agent that ever lived, in order of creation.
    pub lives: Vec<LifeOutcome>,
}

/// The platform at a midnight.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Day {
    /// Which midnight.
    pub at_ms: Instant,
    /// The treasury's available balance.
    pub treasury_nano: Money,
    /// Available balances of the living: the 10th, 25th, 50th, 75th and 90th percentile; `None` where nobody lives.
    pub balances_nano: Option<[Money; 5]>,
    /// The living by kind.
    pub by_kind: BTreeMap<String, u32>,
    /// The living by age in days: under 10, 20, 40, 80, and from 80 on.
    pub by_age: [u32; 5],
}

/// One life.
#[derive(Debug, Clone, PartialEq)]
pub struct LifeOutcome {
    /// Who.
    pub agent: AgentId,
    /// Its kind.
    pub kind: String,
    /// When it was born.
    pub born_ms: Instant,
    /// When it died, if it did.
    pub died_ms: Option<Instant>,
    /// Of what.
    pub cause: Option<Reason>,
    /// How often it was reprieved.
    pub reprieves: u32,
    /// Income less costs over its life.
    pub lifetime_profit_nano: Money,
}
