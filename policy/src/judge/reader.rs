//! What the judge may answer (J8, J9): exactly that, or it is no judgement.
//!
//! Nothing is clamped, defaulted or fished out of prose. Whatever the bytes, each seat of the frame has one
//! judgement in the end, so the quota's base never changes.

use super::frame::Seat;
use super::json::{self, Json, JsonError};
use super::sanitise::{Clean, sanitise};

/// The scores that an entry has to have.
pub(super) const SCORES: [&str; 6] = ["traction", "plan", "cost_discipline", "learning", "risk", "promise"];
/// Every field of an entry.
pub(super) const FIELDS: [&str; 8] =
    ["key", "traction", "plan", "cost_discipline", "learning", "risk", "promise", "reasoning"];
/// Most characters of the raw reasoning.
pub const REASONING_CHARS_MAX: usize = 700;
/// What an agent reads where its judgement could not be.
pub const UNREADABLE_REASONING: &str = "unreadable judgement";
/// Highest score of a dimension.
const DIMENSION_MAX: u32 = 5;
/// Most labels of strangers that are recorded, and characters of each.
const IGNORED_MAX: usize = 100;

/// One appellant's scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scores {
    /// What has been shown to sell; 0 to 5.
    pub traction: u32,
    /// How specific and cheap the plan is; 0 to 5.
    pub plan: u32,
    /// How it handles money; 0 to 5.
    pub cost_discipline: u32,
    /// What it learned; 0 to 5.
    pub learning: u32,
    /// How little there is to fear; 0 to 5.
    pub risk: u32,
    /// The overall score; 0 to 100.
    pub promise: u32,
    /// The paragraph to the agent.
    pub reasoning: Clean,
}

/// Why one entry is unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The whole reply was rejected.
    #[error("the whole reply was rejected")]
    Rejected,
    /// There is no entry for the label.
    #[error("there is no entry for it")]
    Absent,
    /// The entry is no object.
    #[error("its entry is not an object")]
    NotAnObject,
    /// A field is not there.
    #[error("{field} is missing")]
    Missing {
        /// Which.
        field: &'static str,
    },
    /// A field that an entry does not have.
    #[error("there is an extra field")]
    Extra,
    /// The echo key is another one.
    #[error("the echo key is wrong")]
    WrongKey,
    /// A score is no integer: a float, a string, a sign.
    #[error("{field} is not an integer")]
    NotAnInteger {
        /// Which.
        field: &'static str,
    },
    /// A score is out of its range, or huge.
    #[error("{field} is over {max}")]
    OutOfRange {
        /// Which.
        field: &'static str,
        /// The highest that it may be.
        max: u32,
    },
    /// A text is not one.
    #[error("{field} is not a text")]
    NotText {
        /// Which.
        field: &'static str,
    },
    /// The reasoning is over its limit.
    #[error("reasoning has {chars} characters, more than {REASONING_CHARS_MAX}")]
    TooLong {
        /// How many it has.
        chars: usize,
    },
    /// Nothing is left of the reasoning.
    #[error("reasoning is blank")]
    Blank,
}

/// Why a whole reply is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is not one JSON text.
    #[error("the reply is not one JSON object: {0}")]
    Json(#[source] JsonError),
    /// It is JSON, but no object.
    #[error("the reply is JSON, but not an object")]
    NotAnObject,
}

/// The judgement on one seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Whose.
    pub id: String,
    /// Its label in the frame.
    pub label: String,
    /// Its scores, or why there are none.
    pub scores: Result<Scores, Unreadable>,
}

impl Judgement {
    /// Its promise; 0 where it could not be read.
    pub fn promise(&self) -> u32 {
        self.scores.as_ref().map_or(0, |scores| scores.promise)
    }

    /// The paragraph to the agent, clean.
    pub fn reasoning(&self) -> &str {
        self.scores.as_ref().map_or(UNREADABLE_REASONING, |scores| scores.reasoning.as_str())
    }
}

/// What one reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Why the whole of it was rejected, if it was.
    pub rejected: Option<Rejected>,
    /// Labels that are nobody's, sanitised, at most a hundred.
    pub ignored_labels: Vec<Clean>,
    /// One for each seat, in their order.
    pub judgements: Vec<Judgement>,
}

/// Reads a reply to the frame that `order` comes from. Total: any bytes have an answer.
pub fn read(order: &[Seat], reply: &[u8]) -> Reading {
    match entries(reply) {
        Ok(entries) => Reading {
            rejected: None,
            ignored_labels: strangers(order, &entries),
            judgements: order.iter().map(|seat| judgement(seat, scores(seat, &entries))).collect(),
        },
        Err(rejected) => Reading {
            rejected: Some(rejected),
            ignored_labels: Vec::new(),
            judgements: order.iter().map(|seat| judgement(seat, Err(Unreadable::Rejected))).collect(),
        },
    }
}

fn judgement(seat: &Seat, scores: Result<Scores, Unreadable>) -> Judgement {
    Judgement { id: seat.id.clone(), label: seat.label.clone(), scores }
}

fn entries(reply: &[u8]) -> Result<Vec<(String, Json)>, Rejected> {
    match json::parse(reply).map_err(Rejected::Json)? {
        Json::Object(entries) => Ok(entries),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => {
            Err(Rejected::NotAnObject)
        }
    }
}

fn strangers(order: &[Seat], entries: &[(String, Json)]) -> Vec<Clean> {
    let unknown = entries.iter().filter(|(label, _)| !order.iter().any(|seat| seat.label == *label));
    unknown.take(IGNORED_MAX).map(|(label, _)| sanitise(label, IGNORED_MAX).0).collect()
}

fn scores(seat: &Seat, entries: &[(String, Json)]) -> Result<Scores, Unreadable> {
    let entry = entries.iter().find(|(label, _)| *label == seat.label).ok_or(Unreadable::Absent)?;
    let Json::Object(fields) = &entry.1 else { return Err(Unreadable::NotAnObject) };
    if fields.iter().any(|(name, _)| !FIELDS.contains(&name.as_str())) {
        return Err(Unreadable::Extra);
    }
    if text(fields, "key")? != seat.key {
        return Err(Unreadable::WrongKey);
    }
    Ok(Scores {
        traction: integer(fields, "traction", DIMENSION_MAX)?,
        plan: integer(fields, "plan", DIMENSION_MAX)?,
        cost_discipline: integer(fields, "cost_discipline", DIMENSION_MAX)?,
        learning: integer(fields, "learning", DIMENSION_MAX)?,
        risk: integer(fields, "risk", DIMENSION_MAX)?,
        promise: integer(fields, "promise", crate::economy::quota::PROMISE_MAX)?,
        reasoning: reasoning(text(fields, "reasoning")?)?,
    })
}

fn field<'a>(fields: &'a [(String, Json)], name: &'static str) -> Result<&'a Json, Unreadable> {
    let found = fields.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value).ok_or(Unreadable::Missing { field: name })
}

fn text<'a>(fields: &'a [(String, Json)], name: &'static str) -> Result<&'a str, Unreadable> {
    if let Json::Text(text) = field(fields, name)? {
        Ok(text)
    } else {
        Err(Unreadable::NotText { field: name })
    }
}

/// An integer as digits alone: `-0`, `1.0` and `1e1` are none.
fn integer(fields: &[(String, Json)], name: &'static str, max: u32) -> Result<u32, Unreadable> {
    let Json::Number(written) = field(fields, name)? else {
        return Err(Unreadable::NotAnInteger { field: name });
    };
    if !written.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unreadable::NotAnInteger { field: name });
    }
    // Digits that do not fit are out of range too.
    written.parse().ok().filter(|value| *value <= max).ok_or(Unreadable::OutOfRange { field: name, max })
}

fn reasoning(raw: &str) -> Result<Clean, Unreadable> {
    let chars = raw.chars().count();
    if chars > REASONING_CHARS_MAX {
        return Err(Unreadable::TooLong { chars });
    }
    let (clean, _) = sanitise(raw, REASONING_CHARS_MAX);
    if clean.is_blank() { Err(Unreadable::Blank) } else { Ok(clean) }
}

#[cfg(test)]
mod tests;
