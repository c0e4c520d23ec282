//! Time as values: instants in milliseconds since 1970 UTC, spans, half-open windows.

use std::fmt;

/// Milliseconds in a day; culls and reports count in these, never in days of a month.
pub const DAY_MS: i64 = 86_400_000;
/// Milliseconds in an hour.
pub const HOUR_MS: i64 = 3_600_000;

/// An instant: milliseconds since 1970-01-01T00:00:00 UTC, without leap seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Instant(i64);

impl Instant {
    /// The instant `ms` milliseconds after (before, if negative) 1970.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// This instant and `ms` more, held at the ends of the range.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this, negative if it is later; held at the ends of the range.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The midnight UTC at or before this instant.
    #[must_use]
    pub const fn midnight(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(DAY_MS)))
    }

    /// The number of the UTC day, from 1970-01-01 as zero.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }
}

/// RFC 3339 with milliseconds, UTC: `2026-11-30T20:02:38.000Z`.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.day());
        let ms = self.0.rem_euclid(DAY_MS);
        let (hour, minute, second) = (ms / HOUR_MS, ms / 60_000 % 60, ms / 1000 % 60);
        f.pad(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000))
    }
}

/// Year, month and day of a day number, in the proleptic Gregorian calendar.
///
/// Counts from 0000-03-01, where leap days come last: 400 years have 146,097 days, and the months from March
/// have `(153 m + 2) / 5` days before them.
const fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day_of_month)
}

/// A half-open window of time: `start` is in it, `end` is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    /// First instant inside.
    pub start: Instant,
    /// First instant after it.
    pub end: Instant,
}

impl Window {
    /// Whether `at` lies in `[start, end)`.
    pub const fn contains(self, at: Instant) -> bool {
        at.0 >= self.start.0 && at.0 < self.end.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_shown_in_utc() {
        assert_eq!(Instant::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Instant::from_ms(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Instant::from_ms(1_709_164_800_000).to_string(), "2024-02-29T00:00:00.000Z");
        assert_eq!(Instant::from_ms(1_796_068_958_042).to_string(), "2026-11-30T20:02:38.042Z");
    }

    #[test]
    fn midnight_is_at_or_before() {
        assert_eq!(Instant::from_ms(DAY_MS).midnight(), Instant::from_ms(DAY_MS));
        assert_eq!(Instant::from_ms(DAY_MS - 1).midnight(), Instant::from_ms(0));
        assert_eq!(Instant::from_ms(-1).midnight(), Instant::from_ms(-DAY_MS));
    }

    #[test]
    fn windows_are_half_open() {
        let window = Window { start: Instant::from_ms(10), end: Instant::from_ms(20) };
        assert!(window.contains(Instant::from_ms(10)));
        assert!(!window.contains(Instant::from_ms(20)));
    }
}
