//! The journal: one row an input, each hashing the one before it, in one SQLite file with one writer.
//!
//! A row, the keys of its effects and the tables that people read are written in one transaction, which is on the
//! disk (`synchronous = FULL`) before anything of it is acted on.

mod chain;
mod queries;
mod replay;
mod verify;

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::Instant;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

pub use chain::{ChainError, Head, Record, VERSION};
pub use replay::ReplayError;
pub use verify::{Report, Wrong, verify};

use crate::core::input::Input;
use crate::core::{Core, Step};

/// How long an earlier engine's lock may outlive it: a process that was killed lets go within this.
const LOCK_TRIES: u32 = 20;
const LOCK_WAIT: Duration = Duration::from_millis(100);

/// Why a journal is not opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process writes it.
    #[error("open journal {path}: another darwin writes it; stop that one, or name another journal")]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// Its file, or the lock beside it, cannot be used.
    #[error("open journal {path}: check that its folder exists and is writable")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database says no.
    #[error("{doing} journal {path}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// The journal.
        path: PathBuf,
        /// Why.
        source: sqlx::Error,
    },
    /// It was written by a version that meant something else by its rows.
    #[error(
        "read journal {path}: its version is {found}, and this darwin reads {VERSION}; use the darwin that wrote it"
    )]
    Version {
        /// The journal.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// It is no journal.
    #[error("read journal {path}: it is no journal of darwin's")]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// Its chain is broken.
    #[error("trust journal {path} (restore it from a copy)")]
    Broken {
        /// The journal.
        path: PathBuf,
        /// Where.
        source: ChainError,
    },
    /// Its rows do not lead to what they say they led to.
    #[error("trust journal {path}")]
    Replay {
        /// The journal.
        path: PathBuf,
        /// Where.
        source: ReplayError,
    },
}

/// A journal open for writing; there is one at a time.
#[derive(Debug)]
pub(crate) struct Journal {
    conn: SqliteConnection,
    path: PathBuf,
    head: Head,
    /// Held as long as this lives; the operating system lets go of it with the process. One in memory has none.
    _lock: Option<File>,
}

impl Journal {
    /// Opens a journal, or makes one, and rebuilds the core from it.
    pub(crate) async fn open(path: &Path) -> Result<(Self, Core), JournalError> {
        let lock = lock(path).await?;
        let mut conn = connect(path, false).await?;
        prepare(&mut conn, path).await?;
        let replayed = replay::replay(&mut conn, path, |_, _| Ok(())).await?;
        Ok((Self { conn, path: path.to_owned(), head: replayed.head, _lock: Some(lock) }, replayed.core))
    }

    /// A journal in memory, which ends with it: for simulations that want the real tables and no file.
    pub(crate) async fn in_memory() -> Result<Self, JournalError> {
        let path = PathBuf::from(":memory:");
        let mut conn = connect(&path, false).await?;
        prepare(&mut conn, &path).await?;
        Ok(Self { conn, path, head: Head::empty(), _lock: None })
    }

    /// The last row's number and hash.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Writes steps in one transaction; they are on the disk when this returns, or none of them is.
    pub(crate) async fn commit(&mut self, steps: &[(Instant, Input, Step)]) -> Result<(), JournalError> {
        let database = |source| JournalError::Database { doing: "write", path: self.path.clone(), source };
        let mut head = self.head.clone();
        let mut transaction = queries::begin(&mut self.conn).await.map_err(database)?;
        for (at, input, step) in steps {
            let record = record(&head, *at, input, step);
            queries::append(&mut transaction, &record).await.map_err(database)?;
            for row in &step.rows {
                queries::project(&mut transaction, row, record.seq).await.map_err(database)?;
            }
            head = Head { seq: record.seq, hash: record.hash };
        }
        queries::write_head(&mut transaction, &head).await.map_err(database)?;
        transaction.commit().await.map_err(database)?;
        self.head = head;
        Ok(())
    }

    /// Closes the database in order.
    pub(crate) async fn close(self) -> Result<(), JournalError> {
        let Self { conn, path, .. } = self;
        conn.close().await.map_err(|source| JournalError::Database { doing: "close", path, source })
    }
}

/// The row that a step makes after `head`.
pub(crate) fn record(head: &Head, at: Instant, input: &Input, step: &Step) -> Record {
    let mut record = Record {
        seq: head.seq + 1,
        at_ms: at,
        input: json(input),
        reply: json(&step.reply),
        effects: replay::effect_keys(step),
        hash: String::new(),
    };
    record.hash = head.hash_of(&record);
    record
}

fn json(value: &impl serde::Serialize) -> String {
    // Inputs and replies are made of text, numbers and maps with text keys: they always have JSON.
    serde_json::to_string(value).unwrap_or_default()
}

/// Takes the lock beside the journal. SQLite's own lock is released between transactions, and would let two
/// engines write turn about.
async fn lock(path: &Path) -> Result<File, JournalError> {
    let beside = PathBuf::from(format!("{}.lock", path.display()));
    let file_error = |source| JournalError::File { path: beside.clone(), source };
    let options = || OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).clone();
    let file = options().open(&beside).map_err(file_error)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => {
                // The journal has the judge's seed in it: made here, so that only its owner can read it.
                options()
                    .open(path)
                    .map_err(|source| JournalError::File { path: path.to_owned(), source })?;
                return Ok(file);
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_WAIT).await,
            Err(TryLockError::Error(source)) => return Err(JournalError::File { path: beside, source }),
        }
    }
    Err(JournalError::Locked { path: path.to_owned() })
}

async fn connect(path: &Path, read_only: bool) -> Result<SqliteConnection, JournalError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(read_only)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10))
        .disable_statement_logging();
    let options = if read_only { options } else { options.journal_mode(SqliteJournalMode::Wal) };
    let opened = options.connect().await;
    opened.map_err(|source| JournalError::Database { doing: "open", path: path.to_owned(), source })
}

/// Makes what is missing of a new journal; leaves one of another version alone.
async fn prepare(conn: &mut SqliteConnection, path: &Path) -> Result<(), JournalError> {
    let database = |source| JournalError::Database { doing: "prepare", path: path.to_owned(), source };
    if queries::is_journal(conn).await.map_err(database)? {
        check_version(conn, path).await?;
    }
    queries::create(conn).await.map_err(database)?;
    queries::write_meta(conn, "version", VERSION).await.map_err(database)
}

async fn check_version(conn: &mut SqliteConnection, path: &Path) -> Result<(), JournalError> {
    let database = |source| JournalError::Database { doing: "read", path: path.to_owned(), source };
    if !queries::is_journal(conn).await.map_err(database)? {
        return Err(JournalError::NotAJournal { path: path.to_owned() });
    }
    match queries::meta(conn, "version").await.map_err(database)? {
        Some(found) if found == VERSION => Ok(()),
        // A crash between the tables and the version leaves a journal without rows.
        None if !queries::has_rows(conn).await.map_err(database)? => Ok(()),
        None => Err(JournalError::Version { path: path.to_owned(), found: "missing".to_owned() }),
        Some(found) => Err(JournalError::Version { path: path.to_owned(), found }),
    }
}
