//! Chain, balances and projections recomputed from nothing, and compared with what stands in the database.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use sqlx::Connection as _;

use super::{JournalError, check_version, connect, queries, replay};
use crate::core::row::{Cell, Table};

/// What `darwin verify` found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Rows of the journal that were found right.
    pub rows: u64,
    /// The last row's hash.
    pub head: String,
    /// SHA-256 of the state that the rows lead to.
    pub state: String,
    /// Rows of the tables that people read, as compared.
    pub projected: u64,
    /// The first thing that is wrong.
    pub wrong: Option<Wrong>,
}

/// The first row that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// `journal`, or a table that people read.
    pub table: String,
    /// The row's key in it.
    pub row: String,
    /// What is wrong with it.
    pub what: String,
}

type Projection = BTreeMap<(Table, Cell), (Vec<Cell>, u64)>;

/// Verifies a journal, also while an engine writes it: one state of the database is looked at.
///
/// # Errors
/// [`JournalError`] where it cannot be read at all; what is wrong in it is in the report.
pub async fn verify(path: &Path) -> Result<Report, JournalError> {
    let database = |source| JournalError::Database { doing: "read", path: path.to_owned(), source };
    if let Err(source) = std::fs::metadata(path) {
        return Err(JournalError::File { path: path.to_owned(), source });
    }
    let mut conn = connect(path, true).await?;
    check_version(&mut conn, path).await?;
    let mut transaction = queries::begin(&mut conn).await.map_err(database)?;
    let mut expected = Projection::new();
    let mut rows = 0;
    let replayed = replay::replay(&mut transaction, path, |core, (record, step)| {
        core.check()?;
        rows = record.seq;
        for row in step.rows {
            let key = row.cells.first().cloned().unwrap_or(Cell::Null);
            expected.insert((row.table, key), (row.cells, record.seq));
        }
        Ok(())
    })
    .await;
    let mut report = Report {
        rows,
        head: String::new(),
        state: String::new(),
        projected: expected.len() as u64,
        wrong: None,
    };
    match replayed {
        Ok(replayed) => {
            report.head.clone_from(&replayed.head.hash);
            report.state = replayed.core.state_hash().unwrap_or_default();
            let found = projections(&mut transaction).await.map_err(database)?;
            report.wrong = first_difference(&expected, &found);
        }
        Err(JournalError::Broken { source, .. }) => {
            report.wrong = Some(in_journal(source.row(), source.to_string()));
        }
        Err(JournalError::Replay { source, .. }) => {
            report.wrong = Some(in_journal(source.row(), source.to_string()));
        }
        Err(other) => return Err(other),
    }
    transaction.rollback().await.map_err(database)?;
    conn.close().await.map_err(database)?;
    Ok(report)
}

async fn projections(conn: &mut sqlx::SqliteConnection) -> Result<Projection, sqlx::Error> {
    let mut found = Projection::new();
    for table in Table::ALL {
        for (cells, seq) in queries::projected(conn, table).await? {
            let key = cells.first().cloned().unwrap_or(Cell::Null);
            found.insert((table, key), (cells, seq));
        }
    }
    Ok(found)
}

/// The difference that the earliest journal row is behind.
fn first_difference(expected: &Projection, found: &Projection) -> Option<Wrong> {
    let missing = expected.iter().filter_map(|(place, (cells, seq))| {
        let what = match found.get(place) {
            None => format!("it is missing; row {seq} of the journal wrote it"),
            Some((stands, _)) if stands != cells => difference(place.0, cells, stands, *seq),
            Some((_, by)) if by != seq => {
                format!("it says row {by} of the journal wrote it, and row {seq} did")
            }
            Some(_) => return None,
        };
        Some((*seq, place, what))
    });
    let extra = found
        .iter()
        .filter(|(place, _)| !expected.contains_key(place))
        .map(|(place, (_, seq))| (*seq, place, "no row of the journal wrote it".to_owned()));
    let first = missing.chain(extra).min_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
    first.map(|(_, (table, key), what)| Wrong { table: table.name().to_owned(), row: shown(key), what })
}

fn difference(table: Table, expected: &[Cell], found: &[Cell], seq: u64) -> String {
    let columns = table.columns().iter().zip(expected.iter().zip(found));
    let wrong = columns.into_iter().find(|(_, (right, stands))| right != stands);
    wrong.map_or_else(String::new, |(column, (right, stands))| {
        format!("its {column} is {}, and row {seq} of the journal makes it {}", shown(stands), shown(right))
    })
}

fn in_journal(row: u64, what: String) -> Wrong {
    Wrong { table: "journal".to_owned(), row: row.to_string(), what }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "nothing".to_owned(),
        Cell::Int(value) => value.to_string(),
        Cell::Text(text) => format!("{text:?}"),
    }
}
