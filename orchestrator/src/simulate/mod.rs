//! The simulator: the same core on a virtual clock, with stand-in agents and a stand-in judge (E31 to E35).
//!
//! Everything that happens follows from the seed: agents draw from streams of their own, events are ordered by
//! instant and number, and nothing looks at the host's clock but the one figure `wall_ms`.

mod checks;
mod fault;
mod kind;
pub mod outcome;
pub mod report;
mod run;
mod scenario;
mod streams;
mod sweep;
mod tally;
mod text;
mod words;
mod world;

use policy::Instant;
use policy::time::DAY_MS;

use crate::core::Fault;
use crate::core::settings::Settings;
use crate::journal::JournalError;

pub use kind::Kind;
pub use run::{JournalAt, run};
pub use scenario::Scenario;
pub use sweep::{Interval, Point, Vary, VaryError, many, sweep};
pub use text::{outcome_text, points_text};

/// Where every simulation begins: 2027-01-01T00:00:00Z, when every default price is in force.
pub const START: Instant = Instant::from_ms(20_819 * DAY_MS);

/// What is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How many agents there are at the beginning; a scenario brings its own.
    pub agents: u32,
    /// How many days it lasts.
    pub days: u32,
    /// Of the random streams.
    pub seed: u64,
    /// A cast that is given.
    pub scenario: Option<Scenario>,
    /// Whether the seed also brings faults (E34).
    pub faults: bool,
    /// The economy; the treasury is raised to what the cast needs.
    pub settings: Settings,
    /// Where the journal is written, if it is.
    pub journal: Option<JournalAt>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agents: 20,
            days: 7,
            seed: 1,
            scenario: None,
            faults: false,
            settings: Settings::default(),
            journal: None,
        }
    }
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The settings make no rules.
    #[error("begin: {what}")]
    Genesis {
        /// What is wrong.
        what: String,
    },
    /// More agents than there are names for.
    #[error("name {count} agents: there may be 1 to {max}")]
    Agents {
        /// How many were asked for.
        count: u32,
        /// How many there may be.
        max: u32,
    },
    /// The core broke a promise of its own: a bug of ours.
    #[error("go on at {at} of seed {seed}: the core broke a promise of its own")]
    Fault {
        /// When.
        at: Instant,
        /// Of which run.
        seed: u64,
        /// Which promise.
        #[source]
        source: Fault,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No runtime for the journal.
    #[error("start a runtime for the journal")]
    Runtime {
        /// Why.
        source: std::io::Error,
    },
    /// A journal that has rows already.
    #[error("begin journal {path}: it has rows already; name a new file")]
    Begun {
        /// Which.
        path: std::path::PathBuf,
    },
    /// A thread of a sweep ended without an answer: a bug of ours.
    #[error("finish: a thread ended without an answer")]
    Thread,
}
