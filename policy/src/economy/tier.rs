//! The rungs that an agent climbs by lifetime profit and age (E8): what it may call, reach and do.

use super::{SettingError, within};
use crate::{Money, ProfileName};

/// Most rungs of a table.
pub const RUNGS_MAX: usize = 32;

/// One rung: what it asks for, and what it gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct Rung {
    /// Least lifetime profit; left out, any will do, also a loss.
    pub profit_from_nano: Option<Money>,
    /// Least age, in whole days.
    pub age_from_days: u32,
    /// Models that it may call; left out, those of the general menu.
    pub menu: Option<Vec<String>>,
    /// Egress profile of its episodes; left out, the general one.
    pub profile: Option<ProfileName>,
    /// Whether it may have a child (E9).
    pub may_reproduce: bool,
}

impl Rung {
    fn is_reached(&self, profit: Money, age_days: u32) -> bool {
        self.profit_from_nano.is_none_or(|least| profit >= least) && age_days >= self.age_from_days
    }

    /// Whether it asks for at least as much as `lower` in both, and for more in one.
    fn is_above(&self, lower: &Self) -> bool {
        // No least profit is less than any.
        let (profit, age) = (self.profit_from_nano, self.age_from_days);
        let at_least = profit >= lower.profit_from_nano && age >= lower.age_from_days;
        at_least && (profit, age) != (lower.profit_from_nano, lower.age_from_days)
    }
}

/// A checked table: the first rung catches everyone, and each further one asks for more. Only [`Tiers::parse`]
/// makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    first: Rung,
    further: Vec<Rung>,
}

impl Tiers {
    /// Checks a table.
    ///
    /// # Errors
    /// [`SettingError`] names the first mistake; [`Tiers::mistakes`] names all.
    pub fn parse(rungs: &[Rung]) -> Result<Self, SettingError> {
        let none = SettingError { setting: "tiers", found: 0, range: "1 to 32 rungs" };
        match (Self::mistakes(rungs).into_iter().next(), rungs.split_first()) {
            (Some(first), _) => Err(first),
            (None, None) => Err(none),
            (None, Some((first, further))) => Ok(Self { first: first.clone(), further: further.to_vec() }),
        }
    }

    /// Every mistake of a table; a rung is named by its number from 0, as facts name it.
    pub fn mistakes(rungs: &[Rung]) -> Vec<SettingError> {
        let count = i64::try_from(rungs.len()).unwrap_or(i64::MAX);
        let mut found: Vec<SettingError> =
            within("tiers", count, 1..=32, "1 to 32 rungs").into_iter().collect();
        let wrong = |at: usize, range| SettingError {
            setting: "tiers",
            found: i64::try_from(at).unwrap_or(i64::MAX),
            range,
        };
        if let Some(first) = rungs.first()
            && !(first.profit_from_nano.is_none() && first.age_from_days == 0)
        {
            found.push(wrong(0, "a first rung without conditions: somebody would stand on none"));
        }
        for (at, (lower, upper)) in rungs.iter().zip(rungs.iter().skip(1)).enumerate() {
            if !upper.is_above(lower) {
                found.push(wrong(at + 1, "a rung that asks for more than the one before it"));
            }
        }
        found
    }

    /// The rung that an agent stands on, and its number from 0: the highest that it has reached. Since each rung
    /// asks for at least as much as the one below, more profit or more age never leads down.
    pub fn of(&self, lifetime_profit: Money, age_days: u32) -> (u32, &Rung) {
        let reached = (1_u32..)
            .zip(&self.further)
            .take_while(|(_, rung)| rung.is_reached(lifetime_profit, age_days))
            .last();
        reached.unwrap_or((0, &self.first))
    }

    /// All rungs, from the lowest.
    pub fn rungs(&self) -> impl Iterator<Item = &Rung> {
        std::iter::once(&self.first).chain(&self.further)
    }
}

/// One rung, with the general menu and profile and without children.
impl Default for Tiers {
    fn default() -> Self {
        Self { first: Rung::default(), further: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rung(profit: Option<i64>, age_from_days: u32) -> Rung {
        Rung { profit_from_nano: profit.map(Money::from_nano), age_from_days, ..Rung::default() }
    }

    fn table() -> Vec<Rung> {
        vec![rung(None, 0), rung(Some(0), 0), rung(Some(10), 0), rung(Some(10), 20)]
    }

    #[test]
    fn an_agent_stands_on_the_highest_rung_that_it_has_reached() {
        let tiers = Tiers::parse(&table()).unwrap();
        for (profit, age, number) in [
            (-1, 0, 0),
            (i64::MIN, u32::MAX, 0),
            (0, 0, 1),
            (9, 99, 1),
            (10, 0, 2),
            (10, 19, 2),
            (10, 20, 3),
            (i64::MAX, u32::MAX, 3),
        ] {
            assert_eq!(tiers.of(Money::from_nano(profit), age).0, number, "{profit} at {age} days");
        }
        assert_eq!(tiers.of(Money::from_nano(10), 20).1, &table()[3]);
        assert_eq!(tiers.rungs().count(), 4);
    }

    #[test]
    fn a_table_that_is_no_ladder_is_named_with_its_rung() {
        let places =
            |rungs: &[Rung]| Tiers::mistakes(rungs).iter().map(|wrong| wrong.found).collect::<Vec<_>>();
        assert_eq!(places(&table()), [] as [i64; 0]);
        assert_eq!(places(&[]), [0]);
        assert_eq!(places(&[rung(Some(i64::MIN), 0)]), [0]);
        assert_eq!(places(&[rung(None, 1)]), [0]);
        assert_eq!(places(&[rung(None, 0), rung(None, 0)]), [1]);
        assert_eq!(places(&[rung(None, 0), rung(Some(5), 9), rung(Some(6), 8)]), [2]);
        assert_eq!(places(&[rung(None, 0), rung(Some(5), 8), rung(Some(4), 9)]), [2]);
        assert_eq!(places(&[rung(None, 0), rung(None, 8), rung(None, 9)]), [] as [i64; 0]);
        let long = |count: u32| (0..count).map(|age| rung(None, age)).collect::<Vec<_>>();
        assert_eq!(places(&long(32)), [] as [i64; 0]);
        assert_eq!(places(&long(33)), [33]);
        assert!(Tiers::parse(&long(33)).is_err() && Tiers::parse(&[]).is_err());
    }

    proptest! {
        #[test]
        fn more_profit_and_more_age_never_lead_down(
            profit in any::<i64>(), age in any::<u32>(), more in 0..=i64::MAX, older in any::<u32>(),
        ) {
            let tiers = Tiers::parse(&table()).unwrap();
            let now = tiers.of(Money::from_nano(profit), age).0;
            let then = tiers.of(Money::from_nano(profit.saturating_add(more)), age.saturating_add(older)).0;
            prop_assert!(then >= now);
        }
    }
}
