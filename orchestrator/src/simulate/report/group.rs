//! The runs of one group, side by side: the same rules, one run a seed.

use std::collections::{BTreeMap, BTreeSet};

use policy::Instant;
use policy::time::DAY_MS;

use super::chart::{mean, thinned};
use super::survival::Seen;
use super::text::real;
use crate::simulate::outcome::{CullOutcome, Day, LifeOutcome, Outcome};

/// Most midnights that a chart draws.
const MIDNIGHTS_MAX: usize = 180;

/// Runs under the same rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    /// What the rules are called, such as `quota=0.25`.
    pub name: &'a str,
    /// One run a seed.
    pub runs: &'a [Outcome],
}

/// The days that a chart shows.
#[derive(Debug)]
pub(super) struct Midnights {
    /// Days since the start, rising.
    pub days: Vec<f64>,
    /// Places in each run's series.
    places: Vec<usize>,
    /// Whether some are left out.
    pub thinned: bool,
}

impl<'a> Group<'a> {
    /// The first instant of the first run.
    pub(super) fn start(self) -> Instant {
        let births = self.runs.iter().flat_map(|run| &run.series.lives).map(|life| life.born_ms);
        let days = self.runs.iter().flat_map(|run| &run.series.days).map(|day| day.at_ms);
        births.chain(days).min().unwrap_or_default()
    }

    /// The midnights to draw: those of the longest run.
    pub(super) fn midnights(self) -> Midnights {
        let longest = self.runs.iter().map(|run| run.series.days.as_slice()).max_by_key(|days| days.len());
        let longest = longest.unwrap_or_default();
        let places = thinned(longest.len(), MIDNIGHTS_MAX);
        let start = self.start();
        let day =
            |place: &usize| longest.get(*place).map(|day| real(day.at_ms.since_ms(start)) / real(DAY_MS));
        Midnights {
            days: places.iter().filter_map(day).collect(),
            thinned: places.len() < longest.len(),
            places,
        }
    }

    /// A value of each midnight, by run; runs that had ended, or had no such value, are left out.
    pub(super) fn values(self, midnights: &Midnights, value: impl Fn(&Day) -> Option<f64>) -> Vec<Vec<f64>> {
        let at = |place: &usize| {
            let days = self.runs.iter().filter_map(|run| run.series.days.get(*place));
            days.filter_map(&value).collect()
        };
        midnights.places.iter().map(at).collect()
    }

    /// The mean of a value over the runs at each midnight; zero where no run had it.
    pub(super) fn means(self, midnights: &Midnights, value: impl Fn(&Day) -> f64) -> Vec<f64> {
        let values = self.values(midnights, |day| Some(value(day)));
        values.iter().map(|values| mean(values).unwrap_or(0.0)).collect()
    }

    /// Every life of every run.
    pub(super) fn lives(self) -> impl Iterator<Item = &'a LifeOutcome> {
        self.runs.iter().flat_map(|run| &run.series.lives)
    }

    /// The culls of all runs, by their number from zero.
    pub(super) fn culls(self) -> Vec<Vec<&'a CullOutcome>> {
        let most = self.runs.iter().map(|run| run.culls.len()).max().unwrap_or(0);
        (0..most).map(|place| self.runs.iter().filter_map(|run| run.culls.get(place)).collect()).collect()
    }

    /// How long each life of a kind (or any kind) was seen.
    pub(super) fn seen(self, kind: Option<&str>) -> Vec<Seen> {
        let of_run = |run: &'a Outcome| {
            let end = end(run);
            let lives = run.series.lives.iter().filter(move |life| kind.is_none_or(|kind| life.kind == kind));
            lives.map(move |life| Seen {
                age_ms: life.died_ms.unwrap_or(end).since_ms(life.born_ms).max(0),
                died: life.died_ms.is_some(),
            })
        };
        self.runs.iter().flat_map(of_run).collect()
    }

    /// `the mean of 30 seeds`, or nothing for one.
    pub(super) fn over_seeds(self) -> String {
        match self.runs.len() {
            0 | 1 => String::new(),
            seeds => format!(" Mean of {seeds} seeds."),
        }
    }
}

/// The last instant that a run saw.
fn end(run: &Outcome) -> Instant {
    let midnights = run.series.days.iter().map(|day| day.at_ms);
    let lives = run.series.lives.iter().flat_map(|life| [Some(life.born_ms), life.died_ms]);
    let start = run.series.lives.iter().map(|life| life.born_ms).min();
    let planned = start.map(|start| start.plus_ms(i64::from(run.days).saturating_mul(DAY_MS)));
    // A run that a broken check cut short saw no more than its last midnight.
    let planned = planned.filter(|_| run.checks.iter().all(|check| check.held));
    midnights.chain(lives.flatten()).chain(planned).max().unwrap_or_default()
}

/// Every kind that any group had, in order of its name.
pub(super) fn kinds(groups: &[Group<'_>]) -> Vec<String> {
    let lives = groups.iter().flat_map(|group| group.lives()).map(|life| life.kind.clone());
    let days = groups.iter().flat_map(|group| group.runs).flat_map(|run| &run.series.days);
    let living = days.flat_map(|day| day.by_kind.keys().cloned());
    lives.chain(living).collect::<BTreeSet<String>>().into_iter().collect()
}

/// Whether a kind is promising: its income grows late, so a cull may take it for idle. Told by its name, which is
/// all that an outcome has.
pub(super) fn is_promising(kind: &str) -> bool {
    let words: String =
        kind.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { ' ' }).collect();
    words.to_ascii_lowercase().split_whitespace().eq(["late", "bloomer"])
}

/// The share of a run's lives that were kept to its end, by kind.
pub(super) fn kept(run: &Outcome) -> BTreeMap<&str, f64> {
    let mut lives: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for life in &run.series.lives {
        let (born, kept) = lives.entry(life.kind.as_str()).or_default();
        *born += 1;
        *kept += i64::from(life.died_ms.is_none());
    }
    lives.into_iter().map(|(kind, (born, kept))| (kind, real(kept) / real(born))).collect()
}
