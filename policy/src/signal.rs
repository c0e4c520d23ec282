//! One security observation, in the one shape that every source uses.

use std::collections::BTreeMap;

use crate::{AgentId, Instant};

/// Who saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Source {
    /// The namespace's own rules.
    Netd,
    /// The egress proxy.
    Proxy,
    /// The gateway to the models.
    Gateway,
    /// The judge's sanitiser.
    Judge,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Severity {
    /// Worth a line in the record; opens no flag.
    Info,
    /// Opens a flag against the agent.
    Warn,
    /// Opens a flag and asks for an operator.
    Alarm,
}

/// One value of a signal's detail.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum Detail {
    /// A yes or no.
    Flag(bool),
    /// A count, a port, an amount in its unit.
    Number(i64),
    /// Text, hostile bytes escaped by whoever wrote the signal.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

/// One security observation; on a spool it is one JSON object a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Signal {
    /// When it was seen (the first of `count`).
    pub time_ms: Instant,
    /// Unique over all sources and restarts; a reader drops a second one.
    pub id: String,
    /// Who saw it.
    pub source: Source,
    /// Whose it is.
    pub agent: AgentId,
    /// Its kind, such as `direct_attempt` or `deny_burst`.
    pub name: String,
    /// How much it matters.
    pub severity: Severity,
    /// How often it was seen since the last of its kind.
    pub count: u64,
    /// What else is known.
    pub detail: BTreeMap<String, Detail>,
}
