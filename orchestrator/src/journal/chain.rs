//! The hash chain: each row hashes the one before it.

use policy::Instant;
use sha2::{Digest as _, Sha256};

use crate::core::hex;

/// What the journal's rows mean. Another version's journal is not read: the same rows might lead to another state.
pub const VERSION: &str = "darwin-journal/1";

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number, from one.
    pub seq: u64,
    /// When the input came.
    pub at_ms: Instant,
    /// The input, as JSON.
    pub input: String,
    /// What it was answered, as JSON.
    pub reply: String,
    /// Keys of the effects that it led to, as a JSON list.
    pub effects: String,
    /// SHA-256 over the row before it and all of the above, in lower-case hexadecimal.
    pub hash: String,
}

/// The last row's number and hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Number of the last row; 0 before the first.
    pub seq: u64,
    /// Its hash; that of the version before the first.
    pub hash: String,
}

impl Head {
    /// The head of a journal without rows.
    pub fn empty() -> Self {
        Self { seq: 0, hash: hex(&Sha256::digest(VERSION)) }
    }

    /// The hash of a row that follows this head.
    pub fn hash_of(&self, record: &Record) -> String {
        let mut hasher = Sha256::new();
        hasher.update(&self.hash);
        hasher.update(record.seq.to_be_bytes());
        hasher.update(record.at_ms.ms().to_be_bytes());
        // Each part with its length before it: no two rows have the same bytes.
        for part in [&record.input, &record.reply, &record.effects] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hex(&hasher.finalize())
    }

    /// Moves on to `record`, if it follows.
    ///
    /// # Errors
    /// [`ChainError`] says what is wrong with the row.
    pub fn follow(&mut self, record: &Record) -> Result<(), ChainError> {
        if record.seq != self.seq + 1 {
            return Err(ChainError::Gap { row: self.seq + 1, found: record.seq });
        }
        let hash = self.hash_of(record);
        if hash != record.hash {
            return Err(ChainError::Hash { row: record.seq });
        }
        *self = Self { seq: record.seq, hash };
        Ok(())
    }
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A row is missing.
    #[error("row {row} is missing: row {found} stands in its place")]
    Gap {
        /// The row that should be there.
        row: u64,
        /// The one that is.
        found: u64,
    },
    /// A row was changed, or the one before it.
    #[error("row {row} does not hash to what it says: it was changed, or does not follow the row before it")]
    Hash {
        /// Which.
        row: u64,
    },
    /// The journal ends before its head.
    #[error("row {row} is missing: the journal ends before it, and its head says that there are {head}")]
    Cut {
        /// The first row that is missing.
        row: u64,
        /// How many there should be.
        head: u64,
    },
    /// The journal goes on after its head, or its head is of another chain.
    #[error("row {row} is not the head that the journal states")]
    Head {
        /// The last row.
        row: u64,
    },
}

impl ChainError {
    /// The first row that is wrong.
    pub const fn row(&self) -> u64 {
        match self {
            Self::Gap { row, .. } | Self::Hash { row } | Self::Cut { row, .. } | Self::Head { row } => *row,
        }
    }

    /// Compares the last row with the head that the journal states.
    ///
    /// # Errors
    /// `Cut` or `Head`.
    pub fn compare(found: &Head, stated: &Head) -> Result<(), Self> {
        if found.seq < stated.seq {
            Err(Self::Cut { row: found.seq + 1, head: stated.seq })
        } else if found == stated {
            Ok(())
        } else {
            Err(Self::Head { row: found.seq })
        }
    }
}
