//! Where an agent stands against the line before a cull (E7, E11, E12): figures for wake messages and warnings.

use super::cull::{CullRules, Figures, LifeState, worst_first};
use crate::{Instant, Money};

/// Where one agent stands, were its cull now with these figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Dead, or condemned already: no cull concerns it.
    OutOfPlay,
    /// A reprieve lets it off this cull.
    Exempt,
    /// An admin has paused it.
    Paused,
    /// Not over one period old at the cull.
    TooYoung {
        /// First instant at which a cull could take it.
        old_enough: Instant,
    },
    /// Under the idle line: it would be condemned.
    Idle {
        /// What it has to bring in to stand at the line.
        gap_nano: i128,
    },
    /// Over the idle line, and in the lowest share: it would be condemned.
    Lowest {
        /// Its place from the bottom, from 1.
        place: usize,
        /// How many are ranked.
        ranked: usize,
        /// How many of them are condemned.
        takes: usize,
        /// What its profit lacks to that of the lowest one that is safe; `None` where none is.
        gap_nano: Option<i128>,
    },
    /// It would live.
    Safe {
        /// Its place from the bottom, from 1.
        place: usize,
        /// How many are ranked.
        ranked: usize,
        /// How many of them are condemned; 0 where the performance half does not run.
        takes: usize,
        /// How much more it brought in than the idle line.
        above_idle_nano: i128,
    },
}

impl Standing {
    /// Whether it would be condemned.
    pub const fn is_condemned(&self) -> bool {
        matches!(self, Self::Idle { .. } | Self::Lowest { .. })
    }

    /// The figures in a sentence, for the wake message.
    pub fn sentence(&self, rules: &CullRules) -> String {
        let line = rules.idle_under();
        match self {
            Self::OutOfPlay => "This cull does not concern you.".to_owned(),
            Self::Exempt => "You are exempt from it.".to_owned(),
            Self::Paused => "You are paused by an admin, and it passes you by.".to_owned(),
            Self::TooYoung { old_enough } => {
                format!("You are too young for it: culls can take you from {old_enough}.")
            }
            Self::Idle { gap_nano } => format!(
                "As it stands you would be condemned as idle: you are {} short of the line of {line} gross income.",
                dollars(*gap_nano)
            ),
            Self::Lowest { place, ranked, takes, gap_nano } => format!(
                "As it stands you would be condemned on performance: place {place} from the bottom of {ranked}, and \
                 the lowest {takes} go; {}. That depends on what the others do.",
                gap_nano.map_or_else(
                    || "nobody is safe".to_owned(),
                    |gap| format!("your profit is {} under the lowest one that is safe", dollars(gap))
                )
            ),
            Self::Safe { place, ranked, takes, above_idle_nano } => format!(
                "As it stands you would live: {} over the idle line of {line}; by profit place {place} from the \
                 bottom of {ranked}, and the lowest {takes} go. That depends on what the others do.",
                dollars(*above_idle_nano)
            ),
        }
    }
}

/// Where each of `agents` stands against a cull at `at`, in their order.
///
/// A warning before a cull is fair only if it uses the cull's own instant for `at`: an agent that is over the
/// age by then is concerned, though it is not yet.
pub fn standings<Id: Clone + Ord>(
    at: Instant,
    rules: &CullRules,
    agents: &[Figures<Id>],
) -> Vec<(Id, Standing)> {
    let eligible = agents.iter().filter(|agent| agent.is_eligible(at, rules));
    let mut ranked: Vec<_> = eligible.filter(|agent| !agent.is_idle(rules)).collect();
    ranked.sort_by(|one, other| worst_first(one, other));
    let standing = |agent| out_of_reach(agent, at, rules).unwrap_or_else(|| in_reach(agent, rules, &ranked));
    agents.iter().map(|agent| (agent.id.clone(), standing(agent))).collect()
}

/// The standing of an agent that the cull cannot take.
fn out_of_reach<Id>(agent: &Figures<Id>, at: Instant, rules: &CullRules) -> Option<Standing> {
    if agent.state != LifeState::Alive {
        Some(Standing::OutOfPlay)
    } else if agent.exempt {
        Some(Standing::Exempt)
    } else if agent.paused {
        Some(Standing::Paused)
    } else if !agent.is_old_enough(at, rules) {
        Some(Standing::TooYoung { old_enough: agent.born.plus_ms(rules.period_ms().saturating_add(1)) })
    } else {
        None
    }
}

fn in_reach<Id: Ord>(agent: &Figures<Id>, rules: &CullRules, ranked: &[&Figures<Id>]) -> Standing {
    let over = i128::from(agent.period_income.nano()) - i128::from(rules.idle_under().nano());
    if agent.is_idle(rules) {
        return Standing::Idle { gap_nano: -over };
    }
    let place = ranked.iter().filter(|other| worst_first(other, agent).is_lt()).count() + 1;
    let takes = rules.performance_takes(ranked.len()).unwrap_or(0);
    if place > takes {
        return Standing::Safe { place, ranked: ranked.len(), takes, above_idle_nano: over };
    }
    let gap_nano = ranked.get(takes).map(|safe| safe.period_profit_nano() - agent.period_profit_nano());
    Standing::Lowest { place, ranked: ranked.len(), takes, gap_nano }
}

/// Whether an agent starves (E7): it cannot pay the cheapest call on its menu and no open hold could give money
/// back. Never on an unknown price: `cheapest_hold` of `None` starves nobody.
pub fn is_starving(available: Money, open_holds: usize, cheapest_hold: Option<Money>) -> bool {
    open_holds == 0 && cheapest_hold.is_some_and(|hold| available < hold)
}

/// A difference of amounts in dollars; one that fits no amount is shown as the nearest that does.
fn dollars(nano: i128) -> Money {
    Money::from_nano(i64::try_from(nano).unwrap_or(if nano < 0 { i64::MIN } else { i64::MAX }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::economy::cull::cull;
    use crate::time::DAY_MS;

    fn agent(created: u64, income: i64, costs: i64) -> Figures<u64> {
        Figures {
            id: created,
            created,
            born: Instant::from_ms(0),
            state: LifeState::Alive,
            exempt: false,
            paused: false,
            period_income: Money::from_nano(income),
            period_costs: Money::from_nano(costs),
            lifetime_profit: Money::ZERO,
        }
    }

    const AT: Instant = Instant::from_ms(11 * DAY_MS);

    #[test]
    fn standings_agree_with_the_cull() {
        let rules = CullRules::default();
        let agents: Vec<_> =
            (0..25).map(|n| agent(n, i64::try_from(n).unwrap() * 300_000_000, 50_000_000)).collect();
        let condemned: Vec<u64> =
            cull(AT, &rules, &agents).condemned().into_iter().map(|(id, _)| id).collect();
        let standings = standings(AT, &rules, &agents);
        let foreseen: Vec<u64> =
            standings.iter().filter(|(_, standing)| standing.is_condemned()).map(|&(id, _)| id).collect();
        assert_eq!(foreseen, condemned);
        assert_eq!(foreseen.len(), 4 + 4);
    }

    #[test]
    fn gaps_are_exact() {
        let rules = CullRules::default();
        let mut agents: Vec<_> =
            (0..10).map(|n| agent(n, 2_000_000_000 + i64::try_from(n).unwrap() * 10, 0)).collect();
        agents.push(agent(10, 999_999_999, 0));
        let found = standings(AT, &rules, &agents);
        assert_eq!(found[10].1, Standing::Idle { gap_nano: 1 });
        assert_eq!(found[0].1, Standing::Lowest { place: 1, ranked: 10, takes: 2, gap_nano: Some(20) });
        let safe = Standing::Safe { place: 3, ranked: 10, takes: 2, above_idle_nano: 1_000_000_020 };
        assert_eq!(found[2].1, safe);
        assert!(found[0].1.sentence(&rules).contains("$0.00000002 under"));
    }

    #[test]
    fn those_out_of_reach_are_told_why() {
        let rules = CullRules::default();
        let young = Figures { born: Instant::from_ms(DAY_MS), ..agent(0, 0, 0) };
        let exempt = Figures { exempt: true, ..agent(1, 0, 0) };
        let paused = Figures { paused: true, ..agent(2, 0, 0) };
        let dead = Figures { state: LifeState::Dead, ..agent(3, 0, 0) };
        let found: Vec<_> = standings(AT, &rules, &[young, exempt, paused, dead])
            .into_iter()
            .map(|(_, found)| found)
            .collect();
        let old_enough = Instant::from_ms(11 * DAY_MS + 1);
        assert_eq!(
            found,
            [Standing::TooYoung { old_enough }, Standing::Exempt, Standing::Paused, Standing::OutOfPlay]
        );
    }

    #[test]
    fn starving_needs_a_known_price_and_no_open_hold() {
        let cent = Money::from_nano(10_000_000);
        assert!(is_starving(Money::ZERO, 0, Some(cent)));
        assert!(!is_starving(cent, 0, Some(cent)));
        assert!(!is_starving(Money::ZERO, 1, Some(cent)));
        assert!(!is_starving(Money::ZERO, 0, None));
    }
}
