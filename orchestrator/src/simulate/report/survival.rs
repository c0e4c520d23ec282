//! Survival by Kaplan and Meier: lives that outlast the run count as far as they were seen.

use super::text::count;

/// One life as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// How long it was seen, in milliseconds.
    pub age_ms: i64,
    /// Whether it died at that age; otherwise the run ended first.
    pub died: bool,
}

/// The share that outlives an age, from that age on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drop {
    /// Age in milliseconds.
    pub age_ms: i64,
    /// How many had been seen up to that age.
    pub at_risk: usize,
    /// How many of them died at it.
    pub died: usize,
    /// Share that lives on.
    pub share: f64,
}

/// Each age at which somebody died. One that was last seen at that very age was seen to live through it.
pub(super) fn survival(lives: &[Seen]) -> Vec<Drop> {
    let mut ages: Vec<i64> = lives.iter().filter(|life| life.died).map(|life| life.age_ms).collect();
    ages.sort_unstable();
    ages.dedup();
    let mut share = 1.0;
    let mut drops = Vec::new();
    for age_ms in ages {
        let at_risk = lives.iter().filter(|life| life.age_ms >= age_ms).count();
        let died = lives.iter().filter(|life| life.died && life.age_ms == age_ms).count();
        share *= 1.0 - count(died) / count(at_risk);
        drops.push(Drop { age_ms, at_risk, died, share });
    }
    drops
}

/// The age at which at most half live on, where that was seen.
pub(super) fn median_ms(drops: &[Drop]) -> Option<i64> {
    drops.iter().find(|drop| drop.share <= 0.5).map(|drop| drop.age_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ages: &[(i64, bool)]) -> Vec<Seen> {
        ages.iter().map(|&(age_ms, died)| Seen { age_ms, died }).collect()
    }

    /// By hand: of 6, one dies at 6 (5/6); the one lost at 6 was there; of 4 left one dies at 10 (5/6 × 3/4 = 5/8);
    /// one is lost at 12; of 2 left one dies at 15 (5/16).
    #[test]
    fn a_worked_example() {
        let drops =
            survival(&seen(&[(6, true), (6, false), (10, true), (12, false), (15, true), (20, false)]));
        let ages: Vec<(i64, usize, usize)> =
            drops.iter().map(|drop| (drop.age_ms, drop.at_risk, drop.died)).collect();
        assert_eq!(ages, [(6, 6, 1), (10, 4, 1), (15, 2, 1)]);
        for (drop, share) in drops.iter().zip([5.0 / 6.0, 5.0 / 8.0, 5.0 / 16.0]) {
            assert!((drop.share - share).abs() < 1e-12, "{drop:?}");
        }
        assert_eq!(median_ms(&drops), Some(15));
    }

    #[test]
    fn nobody_dead_is_no_drop_and_no_median() {
        assert_eq!(survival(&seen(&[(5, false), (9, false)])), []);
        assert_eq!(median_ms(&[]), None);
    }

    #[test]
    fn all_dead_at_once_ends_at_nothing() {
        let drops = survival(&seen(&[(5, true), (5, true)]));
        assert_eq!(drops, [Drop { age_ms: 5, at_risk: 2, died: 2, share: 0.0 }]);
    }
}
