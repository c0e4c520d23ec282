//! What the core remembers. Everything here follows from the journal and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use policy::economy::cull::LifeState;
use policy::time::Window;
use policy::{AgentId, Instant, Money};
use serde::Serialize;

use super::docket::Docket;
use super::effect::{Effect, StartEpisode};
use super::input::{DocketId, EpisodeId, Key};
use super::ledger::Ledger;
use super::reply::Reply;
use super::row::{Row, Table};
use super::schedule::NextCull;
use super::settings::Settings;
use super::worklog::WorkLog;

/// Everything.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct State {
    pub settings: Settings,
    pub seed: String,
    /// When the genesis row was stepped; `None` before it.
    pub genesis_ms: Option<Instant>,
    /// The last instant that a journalled input came at: time never runs back.
    pub now_ms: Instant,
    pub ledger: Ledger,
    pub agents: BTreeMap<AgentId, Agent>,
    pub episodes: BTreeMap<EpisodeId, Episode>,
    pub episodes_made: EpisodeId,
    pub calls: BTreeMap<Key, Call>,
    /// Calls that nobody reported in time, with what they were charged (G6).
    pub unknown_outcomes: BTreeMap<Key, Money>,
    pub clearing: BTreeMap<u64, Clearing>,
    pub clearings_made: u64,
    /// All income by its key, for good: each can be reversed, once.
    pub incomes: BTreeMap<Key, Income>,
    pub answered: BTreeMap<String, Answered>,
    pub open: BTreeMap<String, Effect>,
    pub due: BTreeSet<(Instant, Due)>,
    /// Agents that something wakes as soon as they can be.
    pub wanting: BTreeSet<AgentId>,
    pub next_cull: NextCull,
    pub dockets: BTreeMap<DocketId, Docket>,
    pub log: WorkLog,
    pub flags: BTreeMap<String, Flag>,
    pub signals_seen: BTreeSet<String>,
    pub spools: BTreeMap<String, u64>,
}

/// What happens at an instant that is known beforehand; at one instant, in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum Due {
    /// Day close, daily reports, figures, cull: always first at its instant.
    Midnight,
    /// Income that has cleared.
    Clears(u64),
    /// A call that nobody reported.
    CallLimit(Key),
    /// The wall clock of an episode.
    EpisodeLimit(EpisodeId),
    /// A last episode that could not be started is tried again.
    LastEpisode(DocketId, AgentId),
    /// No more appeals.
    AppealsClose(DocketId),
    /// A batch that got no judgement is asked again.
    JudgeRetry(DocketId, u32),
    /// The hold window is over.
    HoldWindow(DocketId),
    /// Who would be condemned is warned.
    Warning,
    /// The digest of the day before.
    Digest,
    /// An agent's wake by the schedule.
    Wake(AgentId),
    /// An ordinary run that was lost is made again.
    Again(AgentId),
}

/// An answer that is given again to the same key and body (E4).
#[derive(Debug, Clone, Serialize)]
pub(super) struct Answered {
    /// SHA-256 of the input.
    pub body: String,
    pub reply: Reply,
}

/// How an agent stands between birth and death.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Life {
    /// It lives.
    Alive,
    /// It waits for the end of its docket.
    Condemned {
        /// Which docket.
        docket: DocketId,
    },
    /// It is to die; what runs for it is being taken away.
    Removing {
        /// Why.
        cause: String,
        /// The docket that it is in, if it is in one.
        docket: Option<DocketId>,
    },
    /// It is dead.
    Dead {
        /// Since when.
        at_ms: Instant,
        /// Why.
        cause: String,
    },
}

impl Life {
    /// As the rules see it: one that is being removed is dead to them.
    pub const fn for_rules(&self) -> LifeState {
        match self {
            Self::Alive => LifeState::Alive,
            Self::Condemned { .. } => LifeState::Condemned,
            Self::Removing { .. } | Self::Dead { .. } => LifeState::Dead,
        }
    }

    /// One word, as in tables and refusals.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Condemned { .. } => "condemned",
            Self::Removing { .. } => "removing",
            Self::Dead { .. } => "dead",
        }
    }
}

/// What came in and went out on one UTC day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Gross income: grants, gifts, refunds and internal income are none.
    pub income_nano: Money,
    /// Settled costs.
    pub costs_nano: Money,
}

/// One agent.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Agent {
    pub id: AgentId,
    pub name: String,
    pub image: String,
    pub brief: String,
    /// Its number in order of creation, from one.
    pub created: u64,
    pub born_ms: Instant,
    pub life: Life,
    pub paused: bool,
    pub reprieves: u32,
    /// Whose child it is (E9).
    pub parent: Option<AgentId>,
    /// Whether its first run has begun: what it inherits is in its state by then.
    pub has_run: bool,
    pub children: u32,
    pub last_child_ms: Option<Instant>,
    /// Whether the next cull that runs passes it by (E23).
    pub exempt: bool,
    pub next_wake_ms: Instant,
    pub events: Vec<Event>,
    pub episode: Option<EpisodeId>,
    /// How many runs in a row were lost to an outage of ours.
    pub lost: u32,
    /// When the last one that was lost is made again.
    pub again_ms: Option<Instant>,
    pub days: BTreeMap<i64, Flow>,
    pub lifetime: Flow,
    pub internal_nano: Money,
    pub clearing_nano: Money,
    /// Gross income, one by one, as far back as facts look.
    pub earned: Vec<Earned>,
    /// The report of this day, until midnight publishes it.
    pub report: Option<String>,
    /// How many versions of it there were.
    pub report_versions: usize,
    /// Published ones as written, oldest first; as many as the judge is shown.
    pub reports: Vec<String>,
}

/// Something that an agent is told at its next wake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Event {
    /// The platform's own words.
    pub text: String,
    /// Somebody else's, with a label: they are quoted.
    pub quoted: Option<(String, String)>,
}

impl Event {
    /// One in the platform's own words alone.
    pub(super) const fn platform(text: String) -> Self {
        Self { text, quoted: None }
    }
}

/// One piece of gross income.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Earned {
    pub at_ms: Instant,
    pub source: String,
    pub project: String,
    pub amount_nano: Money,
    /// The transfer that credited it.
    pub transfer: u64,
}

/// One confined run that is not over.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Episode {
    pub start: StartEpisode,
    /// The docket whose case pays for it; `None` for an ordinary one.
    pub docket: Option<DocketId>,
    pub started_ms: Option<Instant>,
    pub ends_ms: Option<Instant>,
    pub stop: Option<String>,
    /// Settled and held together.
    pub spent_nano: Money,
    /// Events that its wake message told: they wait again if it could not be started.
    pub told: Vec<Event>,
}

/// One model call that is not over.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Call {
    pub agent: AgentId,
    pub episode: EpisodeId,
    pub model: String,
    pub hold_nano: Money,
    pub limit_ms: Instant,
}

/// Income that can still be reversed.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Clearing {
    pub agent: AgentId,
    pub source: String,
    pub project: String,
    pub internal: bool,
    pub amount_nano: Money,
    pub key: Key,
    /// The transfer that brought it to its source's clearing account.
    pub transfer: u64,
}

/// Income as far as a reversal needs it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Income {
    pub agent: AgentId,
    pub source: String,
    pub internal: bool,
    pub amount_nano: Money,
    pub stage: Stage,
}

/// How far an income has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// It clears, under this number.
    Clearing { id: u64 },
    /// It is the agent's.
    Credited { at_ms: Instant, transfer: u64 },
    /// The agent was dead by then: the treasury has it.
    Treasury { transfer: u64 },
    /// It was taken back.
    Reversed,
}

/// A signal that stays open against an agent until an admin closes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// Whose.
    pub agent: AgentId,
    /// Who saw it.
    pub source: policy::signal::Source,
    /// Its kind.
    pub name: String,
    /// How much it matters.
    pub severity: policy::signal::Severity,
    /// How often it was seen.
    pub count: u64,
    /// When it was seen first.
    pub seen_ms: Instant,
    /// When an admin closed it.
    pub closed_ms: Option<Instant>,
    /// Why it was closed.
    pub reason: Option<String>,
}

impl Agent {
    /// Its row in the tables.
    pub(super) fn row(&self) -> Row {
        let (died_ms, cause) = match &self.life {
            Life::Dead { at_ms, cause } => (Some(*at_ms), Some(cause.as_str())),
            Life::Alive | Life::Condemned { .. } | Life::Removing { .. } => (None, None),
        };
        Row::new(
            Table::Agents,
            [
                self.id.as_str().into(),
                self.name.as_str().into(),
                self.created.into(),
                self.born_ms.into(),
                self.life.word().into(),
                self.paused.into(),
                self.reprieves.into(),
                self.exempt.into(),
                self.lifetime.income_nano.into(),
                self.lifetime.costs_nano.into(),
                died_ms.into(),
                cause.into(),
            ],
        )
    }

    /// What came in and went out in `[window.start, window.end)`; both are midnights.
    pub(super) fn flow(&self, window: Window) -> Flow {
        let days = self.days.range(window.start.day()..window.end.day());
        days.fold(Flow::default(), |sum, (_, day)| sum.plus(*day))
    }

    /// The state in one word, pausing included.
    pub(super) fn standing_word(&self) -> &'static str {
        if self.paused && self.life == Life::Alive { "paused" } else { self.life.word() }
    }
}

impl Flow {
    /// The sum of two spans; each part is within what ever came in, so it fits, and is held at the end were it not.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = |one: Money, more: Money| one.checked_add(more).unwrap_or(Money::MAX);
        Self {
            income_nano: sum(self.income_nano, other.income_nano),
            costs_nano: sum(self.costs_nano, other.costs_nano),
        }
    }

    /// Income less costs.
    pub fn profit_nano(self) -> Money {
        // Both are at least zero: the difference of two such amounts always fits.
        self.income_nano.checked_sub(self.costs_nano).unwrap_or(Money::ZERO)
    }
}
