//! When culls are due (E13): `first + k × period`, never by day of the month.

use crate::Instant;
use crate::time::{DAY_MS, HOUR_MS, Window};

/// How late a cull may run on the figures of its scheduled instant.
pub const LATE_MS_MAX: i64 = DAY_MS;
/// How long before a cull its warnings go out (E12).
pub const WARNING_MS: i64 = 48 * HOUR_MS;
/// With less than this between warning and cull, the cull waits (E12).
pub const WARNING_MS_MIN: i64 = 24 * HOUR_MS;

/// The instants of culls: a first one and a period over zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Schedule {
    first: Instant,
    period_ms: i64,
}

/// What is to be done about the next cull, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Its instant has not come.
    NotYet,
    /// It runs, on the figures of `at`. Those before it, if any, are skipped.
    Run {
        /// The scheduled instant.
        at: Instant,
        /// How many earlier culls were missed.
        skipped: u64,
    },
    /// It is too late for the figures of `at`: postponed, with a new warning.
    Postpone {
        /// The scheduled instant.
        at: Instant,
        /// How many earlier culls were missed.
        skipped: u64,
    },
}

impl Schedule {
    /// A cull at `first` and one every `rules`' period after it.
    pub fn new(first: Instant, rules: &super::cull::CullRules) -> Self {
        Self { first, period_ms: rules.period_ms() }
    }

    /// The default first cull of a platform that starts at `start`: one period after its midnight, at midnight.
    pub fn from_start(start: Instant, rules: &super::cull::CullRules) -> Self {
        Self::new(start.midnight().plus_ms(rules.period_ms()), rules)
    }

    /// The first cull after `now`; one at `now` itself is not after it.
    pub fn next_after(self, now: Instant) -> Instant {
        if now < self.first {
            return self.first;
        }
        let done = now.since_ms(self.first).div_euclid(self.period_ms);
        self.first.plus_ms(self.period_ms.saturating_mul(done.saturating_add(1)))
    }

    /// The period that a cull at `at` looks at: `[at − period, at)`.
    pub fn period(self, at: Instant) -> Window {
        Window { start: at.plus_ms(-self.period_ms), end: at }
    }

    /// What to do at `now` about the stored `next` cull.
    pub fn due(self, next: Instant, now: Instant) -> Due {
        if now < next {
            return Due::NotYet;
        }
        let missed = now.since_ms(next).div_euclid(self.period_ms);
        let at = next.plus_ms(self.period_ms.saturating_mul(missed));
        let skipped = u64::try_from(missed).unwrap_or(0);
        if now.since_ms(at) <= LATE_MS_MAX { Due::Run { at, skipped } } else { Due::Postpone { at, skipped } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::economy::cull::CullRules;

    const DAY: i64 = DAY_MS;

    fn day(day: i64) -> Instant {
        Instant::from_ms(day * DAY)
    }

    fn schedule() -> Schedule {
        Schedule::new(day(20), &CullRules::default())
    }

    #[test]
    fn culls_come_every_ten_days_from_the_first() {
        assert_eq!(schedule().next_after(day(0)), day(20));
        assert_eq!(schedule().next_after(Instant::from_ms(20 * DAY - 1)), day(20));
        assert_eq!(schedule().next_after(day(20)), day(30));
        assert_eq!(schedule().next_after(Instant::from_ms(30 * DAY - 1)), day(30));
        assert_eq!(schedule().next_after(day(1_000)), day(1_010));
    }

    #[test]
    fn a_platform_that_starts_at_noon_culls_first_at_the_tenth_midnight() {
        let start = Instant::from_ms(3 * DAY + DAY / 2);
        assert_eq!(Schedule::from_start(start, &CullRules::default()).next_after(start), day(13));
    }

    #[test]
    fn a_period_ends_before_its_cull() {
        let period = schedule().period(day(30));
        assert!(period.contains(day(20)));
        assert!(period.contains(Instant::from_ms(30 * DAY - 1)));
        assert!(!period.contains(day(30)));
    }

    #[test]
    fn a_cull_runs_late_by_at_most_a_day() {
        assert_eq!(schedule().due(day(20), Instant::from_ms(20 * DAY - 1)), Due::NotYet);
        assert_eq!(schedule().due(day(20), day(20)), Due::Run { at: day(20), skipped: 0 });
        assert_eq!(schedule().due(day(20), day(21)), Due::Run { at: day(20), skipped: 0 });
        let over = Instant::from_ms(21 * DAY + 1);
        assert_eq!(schedule().due(day(20), over), Due::Postpone { at: day(20), skipped: 0 });
    }

    #[test]
    fn of_several_missed_only_the_latest_runs() {
        assert_eq!(schedule().due(day(20), day(50)), Due::Run { at: day(50), skipped: 3 });
        assert_eq!(schedule().due(day(20), day(55)), Due::Postpone { at: day(50), skipped: 3 });
    }

    #[test]
    fn the_ends_of_time_are_no_overflow() {
        let far = Instant::from_ms(i64::MAX);
        assert_eq!(schedule().next_after(far), far);
        assert!(matches!(
            schedule().due(Instant::from_ms(i64::MIN), far),
            Due::Run { .. } | Due::Postpone { .. }
        ));
    }
}
