//! The core from the journal, and nothing else.

use std::path::Path;

use sqlx::sqlite::SqliteConnection;

use super::chain::{ChainError, Head, Record};
use super::{JournalError, json, queries};
use crate::core::input::Input;
use crate::core::{Core, Fault, Step};

/// Why rows do not lead to what they say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The input cannot be read.
    #[error("row {row} has an input that this darwin does not know")]
    Input {
        /// Which row.
        row: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// The core answers it otherwise now.
    #[error("row {row} leads to another {what} now than it says")]
    Differs {
        /// Which row.
        row: u64,
        /// `reply` or `effects`.
        what: &'static str,
    },
    /// The core breaks on it.
    #[error("row {row} breaks the core")]
    Fault {
        /// Which row.
        row: u64,
        /// How.
        source: Fault,
    },
}

impl ReplayError {
    /// The first row that is wrong.
    pub const fn row(&self) -> u64 {
        match self {
            Self::Input { row, .. } | Self::Differs { row, .. } | Self::Fault { row, .. } => *row,
        }
    }
}

/// What the rows lead to.
pub(super) struct Replayed {
    pub core: Core,
    pub head: Head,
}

/// Steps a new core through every row, checks the chain on the way, and shows each step to `seen`.
pub(super) async fn replay(
    conn: &mut SqliteConnection,
    path: &Path,
    mut seen: impl FnMut(&Core, (&Record, Step)) -> Result<(), Fault>,
) -> Result<Replayed, JournalError> {
    let database = |source| JournalError::Database { doing: "read", path: path.to_owned(), source };
    let broken = |source| JournalError::Broken { path: path.to_owned(), source };
    let wrong = |source| JournalError::Replay { path: path.to_owned(), source };
    let (mut core, mut head) = (Core::new(), Head::empty());
    let stated = queries::head(conn).await.map_err(database)?;
    loop {
        let page = queries::page(conn, head.seq).await.map_err(database)?;
        if page.is_empty() {
            break;
        }
        for record in &page {
            head.follow(record).map_err(broken)?;
            let step = one(&mut core, record).map_err(wrong)?;
            let fault = |source| wrong(ReplayError::Fault { row: record.seq, source });
            seen(&core, (record, step)).map_err(fault)?;
        }
    }
    ChainError::compare(&head, &stated).map_err(broken)?;
    Ok(Replayed { core, head })
}

fn one(core: &mut Core, record: &Record) -> Result<Step, ReplayError> {
    let row = record.seq;
    let input: Input =
        serde_json::from_str(&record.input).map_err(|source| ReplayError::Input { row, source })?;
    let step = core.step(record.at_ms, &input).map_err(|source| ReplayError::Fault { row, source })?;
    if json(&step.reply) != record.reply {
        return Err(ReplayError::Differs { row, what: "reply" });
    }
    if effect_keys(&step) != record.effects {
        return Err(ReplayError::Differs { row, what: "effects" });
    }
    Ok(step)
}

/// The keys of a step's effects, as a JSON list.
pub(super) fn effect_keys(step: &Step) -> String {
    let keys: Vec<String> = step.effects.iter().filter_map(crate::core::effect::Effect::key).collect();
    json(&keys)
}
