//! What a few seeds say of all of them: a mean, and an interval round it.

use super::text::count;

/// A mean over seeds and its 95% interval by Student's t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower and upper end; `None` where one seed alone says nothing of the others.
    pub interval: Option<(f64, f64)>,
    /// Over how many seeds.
    pub seeds: usize,
}

/// Two-sided 95% points of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Estimate {
    /// From one value a seed; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let seeds = values.len();
        if seeds == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count(seeds);
        let interval = (seeds > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            let error = (squares / count(seeds - 1) / count(seeds)).sqrt();
            // From 31 degrees on, the last point is too wide by at most 4%: the cautious side.
            let t = T_95.get(seeds - 2).or(T_95.last()).copied().unwrap_or(2.042);
            (mean - t * error, mean + t * error)
        });
        Some(Self { mean, interval, seeds })
    }

    /// The same, its interval held within what is possible.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        let interval = self.interval.map(|(from, to)| (from.clamp(low, high), to.clamp(low, high)));
        Self { interval, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: mean 4, squares 4 + 0 + 4 = 8, variance 4, error sqrt(4 / 3) = 1.1547, times 4.303 is 4.969.
    #[test]
    fn three_seeds_by_hand() {
        let estimate = Estimate::of(&[2.0, 4.0, 6.0]).unwrap();
        assert!((estimate.mean - 4.0).abs() < 1e-12);
        let (low, high) = estimate.interval.unwrap();
        assert!((low - (4.0 - 4.9687)).abs() < 1e-3 && (high - (4.0 + 4.9687)).abs() < 1e-3, "{low} {high}");
        assert!(estimate.within(0.0, 5.0).interval == Some((0.0, 5.0)));
    }

    #[test]
    fn one_seed_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::of(&[3.0]), Some(Estimate { mean: 3.0, interval: None, seeds: 1 }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
