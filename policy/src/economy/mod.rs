//! Money decisions: culls, quotas, prices, standings (E1 to E30).
//!
//! Each rule is a function of plain values: the shell gathers figures from the ledger, calls, and does what it
//! is told.

pub mod cull;
pub mod price;
pub mod quota;
pub mod reproduction;
pub mod reversal;
pub mod schedule;
pub mod standing;
pub mod texts;
pub mod tier;
pub mod tools;

/// Why an agent was condemned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Reason {
    /// It brought in less than the idle line (E15).
    Idle,
    /// It was in the lowest share by profit (E16).
    Performance,
    /// It could not pay the cheapest call on its menu (E7).
    Starved,
}

impl Reason {
    /// The word that facts and records use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Performance => "performance",
            Self::Starved => "starved",
        }
    }
}

/// Why settings make no rules. Each is the operator's mistake and names the setting and its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is {found}, and must be {range}")]
pub struct SettingError {
    /// The setting's name, as in the configuration.
    pub setting: &'static str,
    /// What it was.
    pub found: i64,
    /// What it may be.
    pub range: &'static str,
}

/// What is wrong with `found`, if it lies outside `range`.
fn within(
    setting: &'static str,
    found: i64,
    range: std::ops::RangeInclusive<i64>,
    said: &'static str,
) -> Option<SettingError> {
    (!range.contains(&found)).then_some(SettingError { setting, found, range: said })
}

/// The whole in basis points.
const BPS: u32 = 10_000;
