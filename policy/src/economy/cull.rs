//! Who is condemned at a cull (E13 to E16).
//!
//! Decides over figures that it is given, taken at the cull's instant; it neither reads a ledger nor knows what
//! happens to the condemned.

use std::cmp::Ordering;

use super::{BPS, Reason, SettingError, within};
use crate::time::DAY_MS;
use crate::{Instant, Money};

/// Settings of the cull, unchecked; what is left out takes its default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct CullSettings {
    /// Days between two culls, and the age that an agent must be over; 1 to 36,500.
    pub period_days: u32,
    /// Gross income of the period under which an agent is idle; not negative.
    pub idle_under_nano: Money,
    /// Whether the performance half runs at all.
    pub performance: bool,
    /// Share of the ranked that the performance half takes, in basis points; 0 to 10,000.
    pub performance_share_bps: u32,
    /// Fewest ranked agents for which the performance half runs.
    pub performance_min: u32,
}

impl Default for CullSettings {
    fn default() -> Self {
        Self {
            period_days: 10,
            idle_under_nano: Money::DOLLAR,
            performance: true,
            performance_share_bps: 2_000,
            performance_min: 10,
        }
    }
}

/// Checked settings: only [`CullRules::parse`] makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CullRules(CullSettings);

impl CullRules {
    /// Checks settings.
    ///
    /// # Errors
    /// [`SettingError`] names the first setting that is out of its range; [`CullRules::mistakes`] names all.
    pub fn parse(settings: CullSettings) -> Result<Self, SettingError> {
        match Self::mistakes(&settings).into_iter().next() {
            Some(first) => Err(first),
            None => Ok(Self(settings)),
        }
    }

    /// Every setting that is out of its range.
    pub fn mistakes(settings: &CullSettings) -> Vec<SettingError> {
        let share = i64::from(settings.performance_share_bps);
        let found = [
            within("period_days", settings.period_days.into(), 1..=36_500, "1 to 36500"),
            within("performance_share_bps", share, 0..=BPS.into(), "0 to 10000"),
            within("idle_under_nano", settings.idle_under_nano.nano(), 0..=i64::MAX, "0 or more"),
        ];
        found.into_iter().flatten().collect()
    }

    /// The settings that were checked.
    pub const fn settings(&self) -> &CullSettings {
        &self.0
    }

    /// Milliseconds between two culls.
    pub fn period_ms(&self) -> i64 {
        i64::from(self.0.period_days) * DAY_MS
    }

    /// The income under which an agent is idle.
    pub const fn idle_under(&self) -> Money {
        self.0.idle_under_nano
    }

    /// How many of `ranked` agents the performance half takes; `None` where it does not run.
    pub fn performance_takes(&self, ranked: usize) -> Option<usize> {
        let enough = u32::try_from(ranked).is_ok_and(|ranked| ranked >= self.0.performance_min);
        if !self.0.performance || !enough {
            return None;
        }
        // A `usize` times 10,000 fits 128 bits; the quotient is at most `ranked`.
        let taken = ranked as u128 * u128::from(self.0.performance_share_bps) / u128::from(BPS);
        Some(usize::try_from(taken).unwrap_or(ranked))
    }
}

/// The defaults, which are in their ranges.
impl Default for CullRules {
    fn default() -> Self {
        Self(CullSettings::default())
    }
}

/// Where an agent stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum LifeState {
    /// It wakes and works.
    Alive,
    /// It has one more episode, or waits for its judgement.
    Condemned,
    /// It is gone.
    Dead,
}

/// One agent's figures at the cull's instant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Figures<Id> {
    /// Whose.
    pub id: Id,
    /// Its number in order of creation.
    pub created: u64,
    /// The instant of the grant that gave it life.
    #[cfg_attr(feature = "serde", serde(rename = "born_ms"))]
    pub born: Instant,
    /// Where it stands.
    pub state: LifeState,
    /// Whether an earlier reprieve lets it off this cull.
    pub exempt: bool,
    /// Whether an admin has paused it.
    pub paused: bool,
    /// Gross income of the period, internal income left out; taken as it is, also below zero.
    #[cfg_attr(feature = "serde", serde(rename = "period_income_nano"))]
    pub period_income: Money,
    /// Costs of the period.
    #[cfg_attr(feature = "serde", serde(rename = "period_costs_nano"))]
    pub period_costs: Money,
    /// Profit of its life.
    #[cfg_attr(feature = "serde", serde(rename = "lifetime_profit_nano"))]
    pub lifetime_profit: Money,
}

impl<Id> Figures<Id> {
    /// Income less costs of the period, in nano-dollars; 128 bits, since the difference of two amounts may not
    /// fit one.
    pub fn period_profit_nano(&self) -> i128 {
        i128::from(self.period_income.nano()) - i128::from(self.period_costs.nano())
    }

    /// Whether a cull at `at` may condemn it (E14): exactly one period old is not older.
    pub fn is_eligible(&self, at: Instant, rules: &CullRules) -> bool {
        self.state == LifeState::Alive && !self.exempt && !self.paused && self.is_old_enough(at, rules)
    }

    /// Whether it is older than one period at `at`.
    pub fn is_old_enough(&self, at: Instant, rules: &CullRules) -> bool {
        at.since_ms(self.born) > rules.period_ms()
    }

    /// Whether its income is under the idle line (E15).
    pub fn is_idle(&self, rules: &CullRules) -> bool {
        self.period_income < rules.idle_under()
    }
}

/// What a cull found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Cull<Id> {
    /// Whom it could condemn, in order of creation.
    pub eligible: Vec<Id>,
    /// Whom the idle half condemns, in order of creation.
    pub idle: Vec<Id>,
    /// How many eligible agents the idle half left, whether or not the performance half ran.
    pub ranked: usize,
    /// Whether the performance half ran.
    pub performance_ran: bool,
    /// Whom the performance half condemns, worst first.
    pub performance: Vec<Id>,
}

impl<Id: Clone> Cull<Id> {
    /// Everyone that it condemns, with the reason: the idle by creation, then the others, worst first.
    pub fn condemned(&self) -> Vec<(Id, Reason)> {
        let idle = self.idle.iter().map(|id| (id.clone(), Reason::Idle));
        let performance = self.performance.iter().map(|id| (id.clone(), Reason::Performance));
        idle.chain(performance).collect()
    }
}

/// Decides one cull at its instant. Total, and independent of the order of `agents`.
pub fn cull<Id: Clone + Ord>(at: Instant, rules: &CullRules, agents: &[Figures<Id>]) -> Cull<Id> {
    let mut eligible: Vec<&Figures<Id>> =
        agents.iter().filter(|agent| agent.is_eligible(at, rules)).collect();
    eligible.sort_by(|one, other| by_creation(one, other));
    let (idle, mut ranked): (Vec<_>, Vec<_>) =
        eligible.iter().copied().partition(|agent| agent.is_idle(rules));
    ranked.sort_by(|one, other| worst_first(one, other));
    let takes = rules.performance_takes(ranked.len());
    let ids = |agents: &[&Figures<Id>]| agents.iter().map(|agent| agent.id.clone()).collect();
    Cull {
        eligible: ids(&eligible),
        idle: ids(&idle),
        ranked: ranked.len(),
        performance_ran: takes.is_some(),
        performance: ranked.iter().take(takes.unwrap_or(0)).map(|agent| agent.id.clone()).collect(),
    }
}

/// In order of creation. The identifier settles what cannot be: two agents with one number.
fn by_creation<Id: Ord>(one: &Figures<Id>, other: &Figures<Id>) -> Ordering {
    one.created.cmp(&other.created).then_with(|| one.id.cmp(&other.id))
}

/// Who goes first (E16): the lower profit of the period, then of the lifetime, then the younger, then the later
/// created.
pub(super) fn worst_first<Id: Ord>(one: &Figures<Id>, other: &Figures<Id>) -> Ordering {
    one.period_profit_nano()
        .cmp(&other.period_profit_nano())
        .then_with(|| one.lifetime_profit.cmp(&other.lifetime_profit))
        .then_with(|| other.born.cmp(&one.born))
        .then_with(|| by_creation(other, one))
}

#[cfg(test)]
mod tests;
