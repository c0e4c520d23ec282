//! Axes: round numbers at even steps, and where a value lies between them.

use super::text::count;

/// One axis of a chart: what it spans, its ticks, and the pixels that they lie on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// Pixel of `low`.
    from: f64,
    /// Pixel of `high`.
    to: f64,
    /// Round numbers on it, in rising order.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// An axis that has all of `low..=high` on it and ends at ticks.
    pub(super) fn to_ticks(low: f64, high: f64, (from, to): (f64, f64), about: usize) -> Self {
        let ticks = ticks(low, high, about);
        let (low, high) = (first(&ticks, low), ticks.last().copied().unwrap_or(high));
        Self { low, high, from, to, ticks }
    }

    /// An axis of exactly `low..=high`; ticks beyond its ends are left out.
    pub(super) fn exact(low: f64, high: f64, (from, to): (f64, f64), about: usize) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let inside = ticks(low, high, about).into_iter().filter(|tick| *tick >= low && *tick <= high);
        Self { low, high, from, to, ticks: inside.collect() }
    }

    /// The pixel of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }
}

fn first(ticks: &[f64], otherwise: f64) -> f64 {
    ticks.first().copied().unwrap_or(otherwise)
}

/// About `about` round numbers at one step of 1, 2 or 5 times a power of ten, the first at or below `low`, the last
/// at or above `high`.
pub(super) fn ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let (low, high) = if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
    // A span too small for its values to differ in would never end.
    let span = (high - low).max(low.abs().max(high.abs()) * 1e-9);
    let (low, high) = if span > 0.0 { (low, low + span) } else { (low, low + 1.0) };
    let step = step((high - low) / count(about.max(1)));
    let (start, end) = ((low / step).floor(), (high / step).ceil());
    let mut ticks = Vec::new();
    let mut at = start;
    while at <= end {
        ticks.push(at * step);
        at += 1.0;
    }
    ticks
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`. By multiplication: logarithms differ in
/// their last digit from one machine to another.
fn step(least: f64) -> f64 {
    let mut power = 1.0;
    while power > least {
        power /= 10.0;
    }
    while power * 10.0 <= least {
        power *= 10.0;
    }
    let above = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|step| *step >= least);
    above.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 30.0, 5), [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(ticks(0.0, 9.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(-3.0, 4.0, 4), [-4.0, -2.0, 0.0, 2.0, 4.0]);
        let flat = ticks(7.0, 7.0, 5);
        assert!(flat.len() >= 2 && (flat[0] - 7.0).abs() < 1e-6, "{flat:?}");
    }

    #[test]
    fn an_axis_has_its_values_between_its_ends() {
        let axis = Axis::to_ticks(0.0, 30.0, (200.0, 0.0), 5);
        assert!((axis.at(0.0) - 200.0).abs() < 1e-9 && (axis.at(15.0) - 100.0).abs() < 1e-9);
        let exact = Axis::exact(0.0, 7.0, (0.0, 70.0), 3);
        assert_eq!(exact.ticks, [0.0, 5.0]);
        assert!((exact.at(7.0) - 70.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn ticks_span_the_values_at_one_round_step(low in -1e9_f64..1e9, span in 0.0_f64..1e9, about in 1_usize..12) {
            let ticks = ticks(low, low + span, about);
            let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
            prop_assert!(first <= low && last >= low + span);
            prop_assert!(ticks.len() >= 2 && ticks.len() <= about + 3, "{} ticks", ticks.len());
            let step = ticks[1] - ticks[0];
            for pair in ticks.windows(2) {
                prop_assert!(((pair[1] - pair[0]) / step - 1.0).abs() < 1e-3);
            }
        }

        #[test]
        fn steps_are_one_two_or_five(least in 1e-6_f64..1e12) {
            let step = step(least);
            prop_assert!(step >= least && step <= least * 2.5 * (1.0 + 1e-9));
            let digits = format!("{step:e}");
            let mantissa: f64 = digits.split('e').next().unwrap().parse().unwrap();
            prop_assert!([1.0, 2.0, 5.0, 10.0].iter().any(|digit| (mantissa - digit).abs() < 1e-9), "{digits}");
        }
    }
}
