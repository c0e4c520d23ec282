//! Casts that are given: their figures lead to a published result through the rules, whatever the seed.

use policy::time::DAY_MS;

use super::kind::{self, Kind, Temper};
use super::{Options, START};

/// A cast that is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// The published run: 30 eligible, 6 idle, 4 on performance, 10 appellants, 3 reprieved, 7 dead; and four lone
    /// starvation dockets, all denied.
    Published,
}

impl Scenario {
    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Published => "published",
        }
    }
}

/// Most agents of one run: four digits name them.
pub(super) const AGENTS_MAX: u32 = 9_999;

/// How every agent behaves, in order of creation.
pub(super) fn cast(options: &Options) -> Vec<Temper> {
    match options.scenario {
        Some(Scenario::Published) => published(),
        None => (0..options.agents as usize).map(|place| Temper::of(kind::of_place(place))).collect(),
    }
}

/// The options with what a scenario brings of its own.
pub(super) fn arranged(options: &Options) -> Options {
    let mut arranged = options.clone();
    match options.scenario {
        Some(Scenario::Published) => {
            // At the eleventh midnight everyone is ten days and a day old: older than ten days.
            arranged.settings.schedule.first_ms = Some(START.plus_ms(11 * DAY_MS));
            arranged.days = 12;
            arranged.agents = u32::try_from(published().len()).unwrap_or(0);
        }
        None => {}
    }
    arranged
}

/// Twenty that earn well, four that earn over the idle line and least of all, six that earn nothing and spend little,
/// and four that spend all they have before the cull.
fn published() -> Vec<Temper> {
    let sure = |kind, cents| Temper {
        pay_permille: 1_000,
        pay_cents: cents,
        appeal_permille: 1_000,
        signal_permille: 0,
        ..Temper::of(kind)
    };
    let never = |kind| Temper { pay_permille: 0, ..sure(kind, (0, 0)) };
    let parts = [
        (20, sure(Kind::Worker, (45, 70))),
        (4, sure(Kind::BusyWorker, (18, 22))),
        (6, never(Kind::FrugalIdler)),
        (4, Temper { large_calls: (16, 20), ..never(Kind::Spender) }),
    ];
    parts.into_iter().flat_map(|(count, temper)| std::iter::repeat_n(temper, count)).collect()
}
