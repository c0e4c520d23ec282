//! From a core to what a run comes to: culls, dockets, deaths, and the series for charts.

use std::collections::BTreeMap;

use policy::economy::Reason;
use policy::time::DAY_MS;
use policy::{AgentId, Instant, Money};

use super::Kind;
use super::outcome::{CullOutcome, Day, Deaths, LifeOutcome, StarvationOutcome};
use crate::core::Core;
use crate::core::docket::{Docket, DocketKind};
use crate::core::state::Life;

/// Ages in days at which a new band of [`Day::by_age`] begins.
const BANDS: [i64; 4] = [10, 20, 40, 80];

/// One agent that ever lived, in order of creation.
#[derive(Debug, Clone)]
pub(super) struct Newborn {
    pub id: AgentId,
    pub kind: Kind,
    pub born_ms: Instant,
}

/// The culls that ran.
pub(super) fn culls(core: &Core) -> Vec<CullOutcome> {
    dockets(core, DocketKind::Cull).map(cull).collect()
}

/// The dockets of starving agents.
pub(super) fn starvation_dockets(core: &Core) -> Vec<StarvationOutcome> {
    dockets(core, DocketKind::Starvation)
        .map(|docket| StarvationOutcome {
            at_ms: docket.at_ms,
            appellants: count(docket.appellants().count()),
            reprieved: count(docket.cases.values().filter(|case| case.is_reprieved()).count()),
        })
        .collect()
}

/// Deaths by cause; those that an admin brought are of none of these.
pub(super) fn deaths(lives: &[LifeOutcome]) -> Deaths {
    let of = |cause| count(lives.iter().filter(|life| life.cause == Some(cause)).count());
    Deaths { idle: of(Reason::Idle), performance: of(Reason::Performance), starved: of(Reason::Starved) }
}

/// Every life.
pub(super) fn lives(core: &Core, born: &[Newborn]) -> Vec<LifeOutcome> {
    let reprieves = reprieves(core);
    born.iter()
        .map(|one| {
            let (died_ms, cause) = match core.life(&one.id) {
                Some(Life::Dead { at_ms, cause }) => (Some(*at_ms), reason(cause)),
                Some(Life::Alive | Life::Condemned { .. } | Life::Removing { .. }) | None => (None, None),
            };
            LifeOutcome {
                agent: one.id.clone(),
                kind: one.kind.word().to_owned(),
                born_ms: one.born_ms,
                died_ms,
                cause,
                reprieves: reprieves.get(&one.id).copied().unwrap_or(0),
                lifetime_profit_nano: core.lifetime(&one.id).unwrap_or_default().profit_nano(),
            }
        })
        .collect()
}

/// The platform at a midnight.
pub(super) fn day(core: &Core, at: Instant, born: &[Newborn]) -> Day {
    let mut day = Day { at_ms: at, treasury_nano: core.treasury().available(), ..Day::default() };
    let mut balances: Vec<Money> = Vec::new();
    for one in born {
        if matches!(core.life(&one.id), Some(Life::Dead { .. } | Life::Removing { .. }) | None) {
            continue;
        }
        balances.push(core.balance(&one.id).available());
        *day.by_kind.entry(one.kind.word().to_owned()).or_default() += 1;
        let age = at.since_ms(one.born_ms) / DAY_MS;
        let band = BANDS.iter().filter(|begins| age >= **begins).count();
        if let Some(band) = day.by_age.get_mut(band) {
            *band += 1;
        }
    }
    balances.sort_unstable();
    day.balances_nano = percentiles(&balances);
    day
}

fn percentiles(sorted: &[Money]) -> Option<[Money; 5]> {
    let last = sorted.len().checked_sub(1)?;
    // The nearest rank at or below: an amount that some agent really has.
    let at = |percent: usize| sorted.get(last * percent / 100).copied();
    Some([at(10)?, at(25)?, at(50)?, at(75)?, at(90)?])
}

fn dockets(core: &Core, kind: DocketKind) -> impl Iterator<Item = &Docket> {
    core.dockets().filter(move |docket| docket.kind == kind && docket.condemned_ms.is_some())
}

fn cull(docket: &Docket) -> CullOutcome {
    let for_reason = |reason| count(docket.cases.values().filter(|case| case.reason == reason).count());
    let over = || docket.cases.values().filter(|case| case.done);
    let mut promises: Vec<(u64, u32)> =
        docket.appellants().map(|(_, case)| (case.created, case.promise())).collect();
    promises.sort_unstable();
    CullOutcome {
        at_ms: docket.at_ms,
        eligible: count(docket.eligible),
        idle: for_reason(Reason::Idle),
        performance: for_reason(Reason::Performance),
        appellants: count(docket.appellants().count()),
        reprieved: count(docket.cases.values().filter(|case| case.is_reprieved()).count()),
        died: count(over().filter(|case| !case.is_reprieved()).count()),
        quota: count(docket.quota),
        promises: promises.into_iter().map(|(_, promise)| promise).collect(),
    }
}

fn reprieves(core: &Core) -> BTreeMap<AgentId, u32> {
    let mut reprieves: BTreeMap<AgentId, u32> = BTreeMap::new();
    for docket in core.dockets() {
        for (agent, _) in docket.cases.iter().filter(|(_, case)| case.done && case.is_reprieved()) {
            *reprieves.entry(agent.clone()).or_default() += 1;
        }
    }
    reprieves
}

fn reason(cause: &str) -> Option<Reason> {
    [Reason::Idle, Reason::Performance, Reason::Starved].into_iter().find(|reason| reason.as_str() == cause)
}

/// A count for the outcome; there are never more agents than its names can tell apart.
fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_amounts_that_somebody_has() {
        let balances: Vec<Money> = (0..=100).map(Money::from_nano).collect();
        assert_eq!(percentiles(&balances), Some([10, 25, 50, 75, 90].map(Money::from_nano)));
        assert_eq!(percentiles(&[Money::from_nano(7)]), Some([7; 5].map(Money::from_nano)));
        assert_eq!(percentiles(&[]), None);
    }
}
