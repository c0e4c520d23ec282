//! A docket: the agents condemned together, from their snapshot to their end (E17 to E26).

use std::collections::BTreeMap;

use policy::economy::Reason;
use policy::economy::quota::DecisionReason;
use policy::judge::Facts;
use policy::judge::frame::Seat;
use policy::{AgentId, Instant};
use serde::Serialize;

use super::input::{DocketId, EpisodeId};
use super::row::{Row, Table};

/// Why there is a docket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DocketKind {
    /// A cull by the schedule.
    Cull,
    /// One agent that starved between culls (E7).
    Starvation,
}

/// Where a docket stands; states of a cull in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DocketState {
    /// Its instant is known.
    Scheduled,
    /// Who would be condemned was told.
    Warned,
    /// Put off to a later instant; the note says why.
    Postponed,
    /// The figures are pinned.
    Snapshotted,
    /// Who is condemned is fixed.
    Condemned,
    /// Last episodes run.
    AppealsOpen,
    /// The deadline has passed.
    AppealsClosed,
    /// The judge is asked.
    Judging,
    /// The quota was applied.
    Decided,
    /// Decisions wait for an admin.
    Held,
    /// Decisions are carried out.
    Executing,
    /// Everyone in it lives or is dead.
    Done,
    /// It never ran; the note says why.
    Skipped,
}

/// The agents condemned together.
#[derive(Debug, Clone, Serialize)]
pub struct Docket {
    /// Its number.
    pub id: DocketId,
    /// Why there is one.
    pub kind: DocketKind,
    /// The instant that it is for: a cull's midnight, or when the agent starved.
    pub at_ms: Instant,
    /// When its agents were condemned.
    pub condemned_ms: Option<Instant>,
    /// First instant at which no appeal counts any more.
    pub deadline_ms: Option<Instant>,
    /// Where it stands.
    pub state: DocketState,
    /// What there is to say about it.
    pub note: String,
    /// How many were eligible at a cull.
    pub eligible: usize,
    /// Whether the performance half ran.
    pub performance_ran: bool,
    /// How many may be reprieved.
    pub quota: usize,
    /// Who is in it.
    pub cases: BTreeMap<AgentId, Case>,
    /// Requests to the judge that are not answered yet.
    pub(super) batches: BTreeMap<u32, Ask>,
    pub(super) batches_made: u32,
    /// Since when the judge has been out of reach.
    pub outage_ms: Option<Instant>,
    /// Whether the outage is so long that only an admin has it asked again (E26).
    pub waits_for_admin: bool,
}

/// One condemned agent.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// Why it was condemned.
    pub reason: Reason,
    /// Its facts at the snapshot.
    pub facts: Facts,
    /// Its number in order of creation.
    pub created: u64,
    /// When it was born.
    pub born_ms: Instant,
    /// Its last episode, if it was started.
    pub episode: Option<EpisodeId>,
    /// Every version of its appeal; the last one counts.
    pub appeals: Vec<Version>,
    /// Every version of its death report; the last one counts.
    pub death_reports: Vec<Version>,
    /// The judge's scores by pass.
    pub scores: BTreeMap<u32, Score>,
    /// What the code decided.
    pub decision: Option<Verdict>,
    /// An admin's word against it (E25).
    pub overturned: Option<Overturned>,
    /// Whether an admin ended the agent meanwhile: it takes nobody's place.
    pub withdrawn: bool,
    /// Whether it lives again or is dead.
    pub done: bool,
}

/// One version of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    /// When it was submitted.
    pub at_ms: Instant,
    /// As written: untrusted.
    pub text: String,
}

/// What one pass of the judge made of one appellant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Score {
    /// 0 to 5.
    pub traction: u32,
    /// 0 to 5.
    pub plan: u32,
    /// 0 to 5.
    pub cost_discipline: u32,
    /// 0 to 5.
    pub learning: u32,
    /// 0 to 5.
    pub risk: u32,
    /// 0 to 100; 0 where it could not be read.
    pub promise: u32,
    /// The paragraph to the agent, sanitised.
    pub reasoning: String,
    /// Why it could not be read.
    pub unreadable: Option<String>,
}

/// What the code decided about one case, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether it lives.
    pub reprieved: bool,
    /// Why.
    pub why: Why,
    /// Its place among those that the quota ranked, from 1.
    pub rank: Option<usize>,
}

/// Why a case was decided as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Within the quota.
    Reprieved,
    /// It has had all the reprieves that a life may have.
    ReprievedTooOften,
    /// Its promise is under the floor.
    UnderFloor,
    /// Others stood before it.
    OverQuota,
    /// It submitted no appeal (E18).
    NoAppeal,
    /// There is no judge (E19).
    NoJudge,
    /// An admin ended it.
    Withdrawn,
}

/// An admin's word against the code's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overturned {
    /// Whether it lives.
    pub reprieved: bool,
    /// Why, and who said so.
    pub reason: String,
}

/// One request to the judge.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ask {
    pub pass: u32,
    pub seats: Vec<Seat>,
    pub system: String,
    pub user: String,
    pub schema: String,
    pub max_tokens: u64,
    /// How often it got no answer.
    pub tries: u32,
    /// Whether it is one appellant, asked again after an answer that could not be read.
    pub again: bool,
    /// Whether it was refused when it was alone.
    pub refused: bool,
    /// Whether it waits to be asked again.
    pub waiting: bool,
}

impl DocketKind {
    /// One word, as in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cull => "cull",
            Self::Starvation => "starvation",
        }
    }
}

impl DocketState {
    /// One word, as in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Warned => "warned",
            Self::Postponed => "postponed",
            Self::Snapshotted => "snapshotted",
            Self::Condemned => "condemned",
            Self::AppealsOpen => "appeals_open",
            Self::AppealsClosed => "appeals_closed",
            Self::Judging => "judging",
            Self::Decided => "decided",
            Self::Held => "held",
            Self::Executing => "executing",
            Self::Done => "done",
            Self::Skipped => "skipped",
        }
    }
}

impl Why {
    /// One word, as in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reprieved => "reprieved",
            Self::ReprievedTooOften => "reprieved_too_often",
            Self::UnderFloor => "under_floor",
            Self::OverQuota => "over_quota",
            Self::NoAppeal => "no_appeal",
            Self::NoJudge => "no_judge",
            Self::Withdrawn => "withdrawn",
        }
    }
}

impl From<DecisionReason> for Why {
    fn from(reason: DecisionReason) -> Self {
        match reason {
            DecisionReason::Reprieved => Self::Reprieved,
            DecisionReason::ReprievedTooOften => Self::ReprievedTooOften,
            DecisionReason::UnderFloor => Self::UnderFloor,
            DecisionReason::OverQuota => Self::OverQuota,
        }
    }
}

impl Docket {
    pub(super) fn new(id: DocketId, kind: DocketKind, at_ms: Instant) -> Self {
        Self {
            id,
            kind,
            at_ms,
            condemned_ms: None,
            deadline_ms: None,
            state: DocketState::Scheduled,
            note: String::new(),
            eligible: 0,
            performance_ran: false,
            quota: 0,
            cases: BTreeMap::new(),
            batches: BTreeMap::new(),
            batches_made: 0,
            outage_ms: None,
            waits_for_admin: false,
        }
    }

    /// Who appealed and is still in it: the base of the quota.
    pub fn appellants(&self) -> impl Iterator<Item = (&AgentId, &Case)> {
        self.cases.iter().filter(|(_, case)| case.is_appellant())
    }

    pub(super) fn row(&self) -> Row {
        Row::new(
            Table::Dockets,
            [
                self.id.into(),
                self.kind.word().into(),
                self.at_ms.into(),
                self.condemned_ms.into(),
                self.deadline_ms.into(),
                self.state.word().into(),
                self.note.as_str().into(),
            ],
        )
    }
}

impl Case {
    pub(super) fn new(facts: Facts, (created, born_ms): (u64, Instant)) -> Self {
        Self {
            reason: facts.reason,
            facts,
            created,
            born_ms,
            episode: None,
            appeals: Vec::new(),
            death_reports: Vec::new(),
            scores: BTreeMap::new(),
            decision: None,
            overturned: None,
            withdrawn: false,
            done: false,
        }
    }

    /// The appeal that counts.
    pub fn appeal(&self) -> Option<&str> {
        self.appeals.last().map(|version| version.text.as_str())
    }

    /// Whether it is an appellant.
    pub fn is_appellant(&self) -> bool {
        !self.withdrawn && !self.appeals.is_empty()
    }

    /// The promise, summed over the passes.
    pub fn promise(&self) -> u32 {
        self.scores.values().map(|score| score.promise).sum()
    }

    /// The judge's words to it: the last pass's.
    pub fn reasoning(&self) -> Option<&str> {
        self.scores.last_key_value().map(|(_, score)| score.reasoning.as_str())
    }

    /// Whether it lives in the end: an admin's word stands over the code's.
    pub fn is_reprieved(&self) -> bool {
        let by_code = self.decision.is_some_and(|verdict| verdict.reprieved);
        !self.withdrawn && self.overturned.as_ref().map_or(by_code, |overturned| overturned.reprieved)
    }

    /// Its row in the tables. A sealed death report stands in none.
    pub(super) fn row(&self, docket: DocketId, agent: &AgentId) -> Row {
        let decision = self.decision.map(|verdict| if verdict.reprieved { "reprieved" } else { "denied" });
        let rank = self.decision.and_then(|verdict| verdict.rank).map(|rank| rank as u64);
        Row::new(
            Table::Cases,
            [
                format!("{docket}/{agent}").into(),
                docket.into(),
                agent.as_str().into(),
                self.reason.as_str().into(),
                json(&self.facts).into(),
                self.appeal().into(),
                (!self.scores.is_empty()).then(|| self.promise()).into(),
                self.reasoning().into(),
                decision.into(),
                self.decision.map(|verdict| verdict.why.word()).into(),
                rank.into(),
                self.overturned.as_ref().map(|overturned| overturned.reason.as_str()).into(),
            ],
        )
    }
}

/// JSON of a value that always has it.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
