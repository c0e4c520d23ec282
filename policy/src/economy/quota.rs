//! How many appellants live, and which (E20 to E22): code decides, never the judge.

use std::cmp::Ordering;

use super::{BPS, SettingError, within};
use crate::{Instant, Money};

/// Settings of the quota, unchecked; what is left out takes its default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct QuotaSettings {
    /// Share of the appellants that may be reprieved, in basis points, rounded up; 1 to 10,000.
    pub share_bps: u32,
    /// Promise of one pass under which an appellant is denied; 0 to 100.
    pub floor: u32,
    /// Reprieves that an agent may have in its life; 0 spares nobody.
    pub max_reprieves: u32,
    /// Passes that the judge makes; 1 to 5. Promise and floor are sums over them.
    pub passes: u32,
}

impl Default for QuotaSettings {
    fn default() -> Self {
        Self { share_bps: 2_500, floor: 40, max_reprieves: 2, passes: 1 }
    }
}

/// Checked settings: only [`QuotaRules::parse`] makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaRules(QuotaSettings);

impl QuotaRules {
    /// Checks settings.
    ///
    /// # Errors
    /// [`SettingError`] names the first setting that is out of its range; [`QuotaRules::mistakes`] names all.
    pub fn parse(settings: QuotaSettings) -> Result<Self, SettingError> {
        match Self::mistakes(&settings).into_iter().next() {
            Some(first) => Err(first),
            None => Ok(Self(settings)),
        }
    }

    /// Every setting that is out of its range.
    pub fn mistakes(settings: &QuotaSettings) -> Vec<SettingError> {
        let found = [
            within("share_bps", settings.share_bps.into(), 1..=BPS.into(), "1 to 10000"),
            within("floor", settings.floor.into(), 0..=PROMISE_MAX.into(), "0 to 100"),
            within("passes", settings.passes.into(), 1..=5, "1 to 5"),
        ];
        found.into_iter().flatten().collect()
    }

    /// The settings that were checked.
    pub const fn settings(&self) -> &QuotaSettings {
        &self.0
    }

    /// How many of `appellants` may be reprieved: the share, rounded up.
    pub fn quota(&self, appellants: usize) -> usize {
        // A `usize` times 10,000 fits 128 bits; with a share of at most the whole the quotient is at most
        // `appellants`.
        let share = appellants as u128 * u128::from(self.0.share_bps);
        usize::try_from(share.div_ceil(u128::from(BPS))).unwrap_or(appellants)
    }

    /// The promise, summed over the passes, under which an appellant is denied.
    pub const fn floor(&self) -> u32 {
        self.0.floor * self.0.passes
    }

    /// The highest promise that the passes can sum to.
    pub const fn promise_max(&self) -> u32 {
        PROMISE_MAX * self.0.passes
    }
}

/// The defaults, which are in their ranges.
impl Default for QuotaRules {
    fn default() -> Self {
        Self(QuotaSettings::default())
    }
}

/// The highest promise of one pass.
pub const PROMISE_MAX: u32 = 100;

/// One agent with a valid appeal in the docket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Appellant<Id> {
    /// Whose appeal.
    pub id: Id,
    /// Its number in order of creation.
    pub created: u64,
    /// The instant of the grant that gave it life.
    #[cfg_attr(feature = "serde", serde(rename = "born_ms"))]
    pub born: Instant,
    /// The judge's promise, summed over the passes; 0 where it could not be read.
    pub promise: u32,
    /// Profit of its life, at the docket's snapshot.
    #[cfg_attr(feature = "serde", serde(rename = "lifetime_profit_nano"))]
    pub lifetime_profit: Money,
    /// How often it has been reprieved before.
    pub reprieves: u32,
}

/// Whether an appellant lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Decision {
    /// It lives.
    Reprieved,
    /// It dies.
    Denied,
}

/// Why a decision fell as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum DecisionReason {
    /// Within the quota.
    Reprieved,
    /// It has had all the reprieves that a life may have.
    ReprievedTooOften,
    /// Its promise is under the floor.
    UnderFloor,
    /// Others stood before it, and the quota was used up.
    OverQuota,
}

impl DecisionReason {
    /// What it decides: one reason alone reprieves.
    pub const fn decision(self) -> Decision {
        match self {
            Self::Reprieved => Decision::Reprieved,
            Self::ReprievedTooOften | Self::UnderFloor | Self::OverQuota => Decision::Denied,
        }
    }
}

/// The decision on one appellant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Decided<Id> {
    /// Whose.
    pub id: Id,
    /// Whether it lives.
    pub decision: Decision,
    /// Why.
    pub reason: DecisionReason,
    /// Its place, from 1, among those that were neither reprieved too often nor under the floor.
    pub rank: Option<usize>,
}

/// The decisions on one docket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Decisions<Id> {
    /// How many appealed: the base of the quota.
    pub appellants: usize,
    /// How many may be reprieved at most.
    pub quota: usize,
    /// One decision an appellant, in order of creation.
    pub decisions: Vec<Decided<Id>>,
}

/// Decides one docket. Total, and independent of the order of `docket`.
pub fn decide<Id: Clone + Ord>(docket: &[Appellant<Id>], rules: &QuotaRules) -> Decisions<Id> {
    let quota = rules.quota(docket.len());
    let mut order: Vec<&Appellant<Id>> = docket.iter().collect();
    order.sort_by(|one, other| best_first(one, other));
    let mut ranked = 0;
    let mut all: Vec<_> = order
        .into_iter()
        .map(|appellant| {
            if let Some(reason) = barred(appellant, rules) {
                return (appellant, reason, None);
            }
            ranked += 1;
            (appellant, placed(ranked, quota), Some(ranked))
        })
        .collect();
    all.sort_by(|(one, ..), (other, ..)| by_creation(one, other));
    let decided = |(appellant, reason, rank): (&Appellant<Id>, DecisionReason, _)| Decided {
        id: appellant.id.clone(),
        decision: reason.decision(),
        reason,
        rank,
    };
    Decisions { appellants: docket.len(), quota, decisions: all.into_iter().map(decided).collect() }
}

/// Why an appellant is out before promises are compared; too many reprieves are looked at first.
fn barred<Id>(appellant: &Appellant<Id>, rules: &QuotaRules) -> Option<DecisionReason> {
    if appellant.reprieves >= rules.0.max_reprieves {
        Some(DecisionReason::ReprievedTooOften)
    } else if appellant.promise < rules.floor() {
        Some(DecisionReason::UnderFloor)
    } else {
        None
    }
}

fn placed(rank: usize, quota: usize) -> DecisionReason {
    if rank <= quota { DecisionReason::Reprieved } else { DecisionReason::OverQuota }
}

/// Who stands first: the higher promise, then the higher lifetime profit, then the older, then the earlier
/// created.
fn best_first<Id: Ord>(one: &Appellant<Id>, other: &Appellant<Id>) -> Ordering {
    other
        .promise
        .cmp(&one.promise)
        .then_with(|| other.lifetime_profit.cmp(&one.lifetime_profit))
        .then_with(|| one.born.cmp(&other.born))
        .then_with(|| by_creation(one, other))
}

/// In order of creation. The identifier settles what cannot be: two agents with one number.
fn by_creation<Id: Ord>(one: &Appellant<Id>, other: &Appellant<Id>) -> Ordering {
    one.created.cmp(&other.created).then_with(|| one.id.cmp(&other.id))
}

#[cfg(test)]
mod tests;
