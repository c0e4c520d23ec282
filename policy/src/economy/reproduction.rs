//! Who may have a child (E9).

use super::cull::LifeState;
use crate::{Instant, Money};

/// Longest brief that a parent writes for its child, in characters.
pub const BRIEF_CHARS_MAX: usize = 1_000;

/// An agent that wants a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// Where it stands.
    pub state: LifeState,
    /// Whether an admin has paused it.
    pub paused: bool,
    /// Whether its tier allows it.
    pub tier_allows: bool,
    /// What it can spend.
    pub available: Money,
    /// The cheapest call on its menu: with less it starves. `None` where no price is known.
    pub cheapest_hold: Option<Money>,
    /// When its last child was born.
    pub last_child: Option<Instant>,
}

/// What it is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nursery {
    /// What the parent gives the child.
    pub gift: Money,
    /// When the period began: one child a period.
    pub period_start: Instant,
    /// How many agents are not dead.
    pub living: usize,
    /// How many may be, as far as children go.
    pub population_max: usize,
}

/// Why there is no child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoChild {
    /// Condemned, paused or dead.
    #[error("only an agent that is alive and not paused may have a child")]
    State,
    /// Its tier does not allow it.
    #[error("your tier allows no child")]
    Tier,
    /// It had one in this period.
    #[error("you had a child in this period, which is as many as there may be")]
    Period,
    /// The platform is full.
    #[error("there are as many agents as there may be: {population_max}")]
    Population {
        /// How many there may be.
        population_max: usize,
    },
    /// It could not live on afterwards.
    #[error(
        "a child costs {gift}, and the cheapest call afterwards {cheapest}: you have {available} to spend"
    )]
    Money {
        /// What a child is given.
        gift: Money,
        /// What must be left.
        cheapest: Money,
        /// What there is.
        available: Money,
    },
}

/// Decides whether a parent may have a child now. The gift moves money and is nobody's income or cost: it leaves the
/// parent's balance, and neither agent's figures.
///
/// # Errors
/// [`NoChild`]. An unknown price allows none: the parent might starve of it.
pub fn may_reproduce(parent: &Parent, nursery: &Nursery) -> Result<(), NoChild> {
    if parent.state != LifeState::Alive || parent.paused {
        return Err(NoChild::State);
    }
    if !parent.tier_allows {
        return Err(NoChild::Tier);
    }
    if parent.last_child.is_some_and(|born| born >= nursery.period_start) {
        return Err(NoChild::Period);
    }
    if nursery.living >= nursery.population_max {
        return Err(NoChild::Population { population_max: nursery.population_max });
    }
    let needed = parent.cheapest_hold.and_then(|cheapest| nursery.gift.checked_add(cheapest));
    if needed.is_none_or(|needed| parent.available < needed) {
        let cheapest = parent.cheapest_hold.unwrap_or(Money::MAX);
        return Err(NoChild::Money { gift: nursery.gift, cheapest, available: parent.available });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NURSERY: Nursery = Nursery {
        gift: Money::from_nano(500),
        period_start: Instant::from_ms(100),
        living: 9,
        population_max: 10,
    };

    const fn parent() -> Parent {
        Parent {
            state: LifeState::Alive,
            paused: false,
            tier_allows: true,
            available: Money::from_nano(510),
            cheapest_hold: Some(Money::from_nano(10)),
            last_child: Some(Instant::from_ms(99)),
        }
    }

    #[test]
    fn whoever_can_live_on_may_have_a_child() {
        assert_eq!(may_reproduce(&parent(), &NURSERY), Ok(()));
        assert_eq!(may_reproduce(&Parent { last_child: None, ..parent() }, &NURSERY), Ok(()));
    }

    #[test]
    fn each_condition_alone_refuses() {
        for (wanted, why) in [
            (Parent { state: LifeState::Condemned, ..parent() }, NoChild::State),
            (Parent { state: LifeState::Dead, ..parent() }, NoChild::State),
            (Parent { paused: true, ..parent() }, NoChild::State),
            (Parent { tier_allows: false, ..parent() }, NoChild::Tier),
            (Parent { last_child: Some(Instant::from_ms(100)), ..parent() }, NoChild::Period),
        ] {
            assert_eq!(may_reproduce(&wanted, &NURSERY), Err(why), "{wanted:?}");
        }
        let full = Nursery { living: 10, ..NURSERY };
        assert_eq!(may_reproduce(&parent(), &full), Err(NoChild::Population { population_max: 10 }));
    }

    #[test]
    fn the_cheapest_call_must_be_left() {
        let short = |available: i64, cheapest: Option<i64>| {
            let available = Money::from_nano(available);
            let cheapest_hold = cheapest.map(Money::from_nano);
            let wanted = Parent { available, cheapest_hold, ..parent() };
            matches!(may_reproduce(&wanted, &NURSERY), Err(NoChild::Money { .. }))
        };
        assert!(!short(510, Some(10)) && short(509, Some(10)));
        assert!(short(i64::MAX, None) && short(i64::MAX, Some(i64::MAX)));
    }
}
