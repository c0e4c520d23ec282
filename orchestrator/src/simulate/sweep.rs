//! Many seeds at once, and a rule at several values (E35): results in order of seeds, whatever the threads do.

use std::sync::atomic::{AtomicUsize, Ordering};

use policy::economy::quota::QuotaSettings;
use policy::{Instant, Money};
use serde::Serialize;

use super::outcome::Outcome;
use super::{Options, SimulateError, run};
use crate::core::settings::Settings;

/// Runs `seeds` seeds from that of the options on, on `threads` threads; the outcomes are in order of seeds.
///
/// # Errors
/// The first seed's that has no outcome.
pub fn many(options: &Options, seeds: u32, threads: usize) -> Result<Vec<Outcome>, SimulateError> {
    let count = seeds as usize;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= count {
                return done;
            }
            let seed = options.seed.wrapping_add(place as u64);
            done.push((place, run(&Options { seed, ..options.clone() })));
        }
    };
    let mut all: Vec<(usize, Result<Outcome, SimulateError>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_panic| SimulateError::Thread));
        let joined: Result<Vec<_>, SimulateError> = joined.collect();
        joined.map(|parts| parts.into_iter().flatten().collect())
    })?;
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// A rule at several values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    key: Key,
    values: Vec<String>,
}

/// A rule that can be varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Quota,
    Floor,
    Passes,
    MaxReprieves,
    IdleUnder,
    Performance,
    PerformanceShare,
    PeriodDays,
    Grant,
    ReprieveGrant,
    AppealBudget,
    Judge,
    Starving,
}

const KEYS: [(&str, Key); 13] = [
    ("quota", Key::Quota),
    ("floor", Key::Floor),
    ("passes", Key::Passes),
    ("max_reprieves", Key::MaxReprieves),
    ("idle_under", Key::IdleUnder),
    ("performance", Key::Performance),
    ("performance_share", Key::PerformanceShare),
    ("period_days", Key::PeriodDays),
    ("grant", Key::Grant),
    ("reprieve_grant", Key::ReprieveGrant),
    ("appeal_budget", Key::AppealBudget),
    ("judge", Key::Judge),
    ("starving", Key::Starving),
];

/// Why nothing is varied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VaryError {
    /// Not `KEY=A,B,C`.
    #[error("read {text:?}: it must be KEY=A,B,C, such as quota=0.1,0.25,0.5")]
    Shape {
        /// As it was given.
        text: String,
    },
    /// No rule of this name.
    #[error("vary {key:?}: the rules that can be varied are {}", known())]
    Key {
        /// As it was given.
        key: String,
    },
    /// A value that the rule cannot have.
    #[error("vary {key}: {value:?} is not {wanted}")]
    Value {
        /// Which rule.
        key: &'static str,
        /// As it was given.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// The rules cannot be made with it.
    #[error("vary {key} to {value}: {what}")]
    Rules {
        /// Which rule.
        key: &'static str,
        /// As it was given.
        value: String,
        /// What is wrong.
        what: String,
    },
}

fn known() -> String {
    KEYS.map(|(word, _)| word).join(", ")
}

impl Vary {
    /// Reads `KEY=A,B,C`, and tries each value on `settings`.
    ///
    /// # Errors
    /// [`VaryError`] names what is wrong, and what there is instead.
    pub fn parse(text: &str, settings: &Settings) -> Result<Self, VaryError> {
        let shape = || VaryError::Shape { text: text.to_owned() };
        let (word, values) = text.split_once('=').ok_or_else(shape)?;
        let word = word.trim();
        let found = KEYS.iter().find(|(known, _)| *known == word);
        let (_, key) = *found.ok_or_else(|| VaryError::Key { key: word.to_owned() })?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let vary = Self { key, values };
        for value in &vary.values {
            let mut tried = settings.clone();
            vary.key.apply(value, &mut tried)?;
            if let Some(wrong) = crate::core::rules::check(&tried).into_iter().next() {
                let what = wrong.to_string();
                return Err(VaryError::Rules { key: vary.key.word(), value: value.clone(), what });
            }
        }
        Ok(vary)
    }

    /// Its name.
    pub fn key(&self) -> &'static str {
        self.key.word()
    }
}

impl Key {
    fn word(self) -> &'static str {
        KEYS.iter().find(|(_, key)| *key == self).map_or("", |(word, _)| word)
    }

    fn apply(self, value: &str, settings: &mut Settings) -> Result<(), VaryError> {
        let wrong = |wanted| VaryError::Value { key: self.word(), value: value.to_owned(), wanted };
        let whole = || value.parse::<u32>().map_err(|_error| wrong("a whole number"));
        let dollars = || Money::parse(value).map_err(|_error| wrong("an amount in dollars, such as 1.50"));
        let share = || share_bps(value).ok_or_else(|| wrong("a share from 0 to 1, such as 0.25"));
        let switch = || match value {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(wrong("on or off")),
        };
        let QuotaSettings { share_bps, floor, max_reprieves, passes } = &mut settings.quota;
        match self {
            Self::Quota => *share_bps = share()?,
            Self::Floor => *floor = whole()?,
            Self::Passes => *passes = whole()?,
            Self::MaxReprieves => *max_reprieves = whole()?,
            Self::IdleUnder => settings.cull.idle_under_nano = dollars()?,
            Self::Performance => settings.cull.performance = switch()?,
            Self::PerformanceShare => settings.cull.performance_share_bps = share()?,
            Self::PeriodDays => settings.cull.period_days = whole()?,
            Self::Grant => settings.money.grant_nano = dollars()?,
            Self::ReprieveGrant => settings.judge.reprieve_grant_nano = dollars()?,
            Self::AppealBudget => settings.appeal.budget_nano = dollars()?,
            Self::Judge => settings.judge.enabled = switch()?,
            Self::Starving => settings.lives.starving = switch()?,
        }
        Ok(())
    }
}

/// A share such as `0.25` in hundredths of a percent: exactly, without a detour by fractions of two.
fn share_bps(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 4 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u32 = format!("{part:0<4}").parse().ok()?;
    let bps = whole.parse::<u32>().ok()?.checked_mul(10_000)?.checked_add(part)?;
    (bps <= 10_000).then_some(bps)
}

/// One value of a rule over all its seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Which rule.
    pub key: &'static str,
    /// At what value.
    pub value: String,
    /// How many seeds were run.
    pub seeds: u32,
    /// Each with its interval.
    pub figures: Vec<Interval>,
    /// Checks that did not hold: `seed`, check and instant of the first one.
    pub broken: Vec<Broken>,
}

/// A check that did not hold in one of several runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Of which run.
    pub seed: u64,
    /// Which check.
    pub name: String,
    /// When first.
    pub first_broken_ms: Option<Instant>,
}

/// A figure over several runs, with its 95% interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// What.
    pub name: &'static str,
    /// The mean, or the share.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Runs each value of a rule with the same seeds. Also gives each value's outcomes.
///
/// # Errors
/// As [`many`].
pub fn sweep(
    options: &Options,
    vary: &Vary,
    seeds: u32,
    threads: usize,
) -> Result<Vec<(Point, Vec<Outcome>)>, SimulateError> {
    let one = |value: &String| {
        let mut varied = options.clone();
        vary.key
            .apply(value, &mut varied.settings)
            .map_err(|error| SimulateError::Genesis { what: error.to_string() })?;
        let outcomes = many(&varied, seeds, threads)?;
        Ok((point(vary.key(), value, &outcomes), outcomes))
    };
    vary.values.iter().map(one).collect()
}

fn point(key: &'static str, value: &str, outcomes: &[Outcome]) -> Point {
    let broken = outcomes.iter().flat_map(|outcome| {
        let wrong = outcome.checks.iter().filter(|check| !check.held);
        wrong.map(|check| Broken {
            seed: outcome.seed,
            name: check.name.clone(),
            first_broken_ms: check.first_broken_ms,
        })
    });
    Point {
        key,
        value: value.to_owned(),
        seeds: u32::try_from(outcomes.len()).unwrap_or(u32::MAX),
        figures: figures(outcomes),
        broken: broken.collect(),
    }
}

/// What is compared between values of a rule, or told of many seeds.
pub(super) fn figures(outcomes: &[Outcome]) -> Vec<Interval> {
    let of = |name, figure: &dyn Fn(&Outcome) -> f64| mean(name, outcomes.iter().map(figure));
    let culled = |outcome: &Outcome, one: &dyn Fn(&super::outcome::CullOutcome) -> u32| {
        f64::from(outcome.culls.iter().map(one).sum::<u32>())
    };
    let sum = |one: &dyn Fn(&super::outcome::CullOutcome) -> u32| {
        outcomes.iter().flat_map(|outcome| &outcome.culls).map(one).map(u64::from).sum::<u64>()
    };
    let dead = |outcome: &Outcome| outcome.series.lives.iter().filter(|life| life.died_ms.is_some()).count();
    let lives = outcomes.iter().map(|outcome| outcome.series.lives.len() as u64).sum::<u64>();
    let died = outcomes.iter().map(|outcome| dead(outcome) as u64).sum::<u64>();
    vec![
        of("alive at the end", &|outcome| float(outcome.series.lives.len() - dead(outcome))),
        of("deaths, idle", &|outcome| f64::from(outcome.deaths.idle)),
        of("deaths, performance", &|outcome| f64::from(outcome.deaths.performance)),
        of("deaths, starved", &|outcome| f64::from(outcome.deaths.starved)),
        of("appellants at culls", &|outcome| culled(outcome, &|cull| cull.appellants)),
        of("reprieved at culls", &|outcome| culled(outcome, &|cull| cull.reprieved)),
        wilson("share of appellants reprieved", sum(&|cull| cull.reprieved), sum(&|cull| cull.appellants)),
        wilson("share of agents alive", lives.saturating_sub(died), lives),
        of("lifetime profit of the living, $", &living_profit),
        of("treasury at the end, $", &|outcome| dollars(outcome.treasury_nano)),
    ]
}

/// The mean lifetime profit of those that live at the end; zero where nobody does.
fn living_profit(outcome: &Outcome) -> f64 {
    let living: Vec<f64> = outcome
        .series
        .lives
        .iter()
        .filter(|life| life.died_ms.is_none())
        .map(|life| dollars(life.lifetime_profit_nano))
        .collect();
    if living.is_empty() { 0.0 } else { living.iter().sum::<f64>() / float(living.len()) }
}

#[expect(clippy::cast_precision_loss, reason = "a figure that is shown to a few digits")]
fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a figure that is shown to a few digits")]
fn dollars(amount: Money) -> f64 {
    amount.nano() as f64 / Money::DOLLAR.nano() as f64
}

/// Normal quantile of a 95% interval.
const Z: f64 = 1.96;

/// Mean and `Z` standard errors to either side.
fn mean(name: &'static str, values: impl Iterator<Item = f64>) -> Interval {
    let values: Vec<f64> = values.collect();
    let count = float(values.len());
    if values.is_empty() {
        return Interval { name, mean: 0.0, low: 0.0, high: 0.0 };
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = if count > 1.0 { Z * (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
    Interval { name, mean, low: mean - error, high: mean + error }
}

/// Wilson's interval of a share: it stays within 0 and 1, however few there are.
#[expect(clippy::cast_precision_loss, reason = "a figure that is shown to a few digits")]
fn wilson(name: &'static str, hits: u64, all: u64) -> Interval {
    if all == 0 {
        return Interval { name, mean: 0.0, low: 0.0, high: 0.0 };
    }
    let (n, share) = (all as f64, hits as f64 / all as f64);
    let scale = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    Interval { name, mean: share, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact() {
        let shares = ["0.25", "0.1", "1", "0.0001", "1.0", "0", "1.01", "0.12345", "x", "-1", "."];
        let bps = shares.map(share_bps);
        assert_eq!(
            bps,
            [
                Some(2_500),
                Some(1_000),
                Some(10_000),
                Some(1),
                Some(10_000),
                Some(0),
                None,
                None,
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn intervals_are_those_of_the_textbook() {
        // 1, 2, 3: mean 2, deviation 1, error 1.96 / sqrt(3).
        let found = mean("m", [1.0, 2.0, 3.0].into_iter());
        assert!((found.mean - 2.0).abs() < 1e-12 && (found.high - 3.131_607).abs() < 1e-5, "{found:?}");
        // 1 of 10: Wilson's 0.0179 to 0.4042.
        let found = wilson("w", 1, 10);
        assert!((found.low - 0.017_9).abs() < 1e-3 && (found.high - 0.404_2).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn an_unknown_rule_is_told_the_known_ones() {
        let error = Vary::parse("quotas=0.1", &Settings::default()).unwrap_err();
        assert!(error.to_string().contains("quota, floor, passes"), "{error}");
        assert!(Vary::parse("quota=0.1,0.25", &Settings::default()).is_ok());
    }

    #[test]
    fn a_value_that_makes_no_rules_is_refused() {
        let parse = |text| Vary::parse(text, &Settings::default());
        assert!(matches!(parse("quota=0"), Err(VaryError::Rules { .. })));
        assert!(matches!(parse("floor=101"), Err(VaryError::Rules { .. })));
        assert!(matches!(parse("floor=x"), Err(VaryError::Value { .. })));
        assert!(matches!(parse("quota"), Err(VaryError::Shape { .. })));
    }
}
