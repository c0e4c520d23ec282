//! Rows of the tables that people read, as one step leaves them.
//!
//! They are projections: whatever stands in them follows from the journal, and `darwin verify` compares the two.

use policy::{Instant, Money};

/// A table of projections; its first column is its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Every movement of money, once.
    Transfers,
    /// What each account has.
    Accounts,
    /// Each agent's state.
    Agents,
    /// Reports, death reports, reprieves, digests.
    WorkLog,
    /// Each culls' and starvation dockets' state.
    Dockets,
    /// Each condemned agent in its docket.
    Cases,
    /// What the judge was asked and what it answered.
    Judgements,
    /// Signals that stay open against an agent, and those that were closed.
    Flags,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Transfers,
        Self::Accounts,
        Self::Agents,
        Self::WorkLog,
        Self::Dockets,
        Self::Cases,
        Self::Judgements,
        Self::Flags,
    ];

    /// Its name in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfers => "transfers",
            Self::Accounts => "accounts",
            Self::Agents => "agents",
            Self::WorkLog => "work_log",
            Self::Dockets => "dockets",
            Self::Cases => "cases",
            Self::Judgements => "judgements",
            Self::Flags => "flags",
        }
    }

    /// Its columns, the key first; the journal adds `seq`, the row that wrote it last.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Transfers => &["id", "at_ms", "debit", "credit", "amount_nano", "kind", "reference"],
            Self::Accounts => &["account", "posted_nano", "held_nano"],
            Self::Agents => &[
                "agent",
                "name",
                "created",
                "born_ms",
                "state",
                "paused",
                "reprieves",
                "exempt",
                "lifetime_income_nano",
                "lifetime_costs_nano",
                "died_ms",
                "cause",
            ],
            Self::WorkLog => &["id", "at_ms", "kind", "agent", "text", "figures"],
            Self::Dockets => &["docket", "kind", "at_ms", "condemned_ms", "deadline_ms", "state", "note"],
            Self::Cases => &[
                "case_key",
                "docket",
                "agent",
                "reason",
                "facts",
                "appeal",
                "promise",
                "reasoning",
                "decision",
                "why",
                "rank",
                "override_reason",
            ],
            Self::Judgements => &[
                "judgement",
                "docket",
                "batch",
                "at_ms",
                "model",
                "stop_reason",
                "system",
                "user",
                "raw",
                "usage",
                "cost_nano",
                "read",
            ],
            Self::Flags => {
                &["signal", "agent", "source", "name", "severity", "count", "seen_ms", "closed_ms", "reason"]
            }
        }
    }
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
}

/// One row, whole: it replaces the one with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where it stands.
    pub table: Table,
    /// Its values in the order of [`Table::columns`].
    pub cells: Vec<Cell>,
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<u64> for Cell {
    /// Numbers of rows and dockets: far below 2^63, and held there were they ever not.
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<Money> for Cell {
    fn from(value: Money) -> Self {
        Self::Int(value.nano())
    }
}

impl From<Instant> for Cell {
    fn from(value: Instant) -> Self {
        Self::Int(value.ms())
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Row {
    /// A row of `table`.
    pub fn new<const N: usize>(table: Table, cells: [Cell; N]) -> Self {
        debug_assert_eq!(table.columns().len(), N, "a value for each column of {}", table.name());
        Self { table, cells: cells.into() }
    }
}
