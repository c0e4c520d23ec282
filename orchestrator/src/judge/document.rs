//! What `darwin judge` reads and prints.

use policy::judge::frame::{self, Appellant, Batch, Seat, Setup};
use policy::judge::reader::{self, Judgement, Reading};
use policy::judge::sanitise::Report;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SeededDice;

/// Most passes over one docket.
const PASSES_MAX: u32 = 5;

/// What `judge render` reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Docket {
    appellants: Vec<Appellant>,
    #[serde(default = "one")]
    passes: u32,
}

const fn one() -> u32 {
    1
}

/// What `judge render` prints.
#[derive(Debug, Serialize)]
pub struct Rendered {
    seed: u64,
    batches: Vec<Shown>,
}

#[derive(Debug, Serialize)]
struct Shown {
    pass: u32,
    system: String,
    user: String,
    sigil: String,
    order: Vec<Seat>,
    sanitised: Vec<Sanitised>,
}

#[derive(Debug, Serialize)]
struct Sanitised {
    id: String,
    dropped: usize,
    folded: usize,
    phrases: Vec<&'static str>,
    style: usize,
    cut: usize,
}

/// One batch as `judge render` printed it. The seats alone are needed to read a reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    order: Vec<Seat>,
    #[serde(rename = "pass")]
    _pass: Option<u32>,
    #[serde(rename = "system")]
    _system: Option<String>,
    #[serde(rename = "user")]
    _user: Option<String>,
    #[serde(rename = "sigil")]
    _sigil: Option<String>,
    #[serde(rename = "sanitised")]
    _sanitised: Option<Value>,
}

/// What `judge read` prints.
#[derive(Debug, Serialize)]
pub struct Read {
    reply: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    ignored_labels: Vec<String>,
    judgements: Vec<Judged>,
}

#[derive(Debug, Serialize)]
struct Judged {
    id: String,
    label: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    traction: u32,
    plan: u32,
    cost_discipline: u32,
    learning: u32,
    risk: u32,
    promise: u32,
    reasoning: String,
}

/// Why a document is no docket or frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Two entries that must differ.
    #[error("take the input: {list}[{at}].{field} is the same as that of an earlier one")]
    Twice {
        /// The list that both are in.
        list: &'static str,
        /// Place of the second, from zero.
        at: usize,
        /// The field.
        field: &'static str,
    },
    /// Passes out of range.
    #[error("take the input: passes is {found}, and must be 1 to {PASSES_MAX}")]
    Passes {
        /// What it was.
        found: u32,
    },
    /// A seat that no frame has.
    #[error("take the input: order[{at}].{field} is none that `judge render` prints")]
    Seat {
        /// Its place, from zero.
        at: usize,
        /// The field.
        field: &'static str,
    },
}

/// The place of the first of `keys` that has been there before.
pub fn second_of<T: Ord>(keys: impl Iterator<Item = T>) -> Option<usize> {
    let mut seen = std::collections::BTreeSet::new();
    keys.enumerate().find_map(|(at, key)| (!seen.insert(key)).then_some(at))
}

/// Renders every pass of a docket, each from a stream of its own.
///
/// # Errors
/// [`DocumentError`] for an identifier that stands twice and for passes out of range.
pub fn render(docket: &Docket, seed: u64) -> Result<Rendered, DocumentError> {
    if !(1..=PASSES_MAX).contains(&docket.passes) {
        return Err(DocumentError::Passes { found: docket.passes });
    }
    if let Some(at) = second_of(docket.appellants.iter().map(|appellant| &appellant.id)) {
        return Err(DocumentError::Twice { list: "appellants", at, field: "id" });
    }
    let batches = (1..=docket.passes).flat_map(|pass| {
        let mut dice = SeededDice::from_number(seed, &format!("render/{pass}"));
        let batches = frame::render(&docket.appellants, &Setup::default(), &mut dice);
        batches.into_iter().map(move |batch| shown(pass, batch))
    });
    Ok(Rendered { seed, batches: batches.collect() })
}

fn shown(pass: u32, batch: Batch) -> Shown {
    Shown {
        pass,
        system: batch.system,
        user: batch.user,
        sigil: batch.sigil.as_str().to_owned(),
        order: batch.order,
        sanitised: batch.sanitised.into_iter().map(|(id, report)| sanitised(id, report)).collect(),
    }
}

fn sanitised(id: String, report: Report) -> Sanitised {
    let (dropped, folded) = (report.dropped(), report.folded());
    Sanitised { id, dropped, folded, phrases: report.phrases, style: report.style, cut: report.cut }
}

impl Frame {
    /// The seats, checked: labels as we deal them, nothing twice, no empty key.
    ///
    /// # Errors
    /// [`DocumentError`] names the first seat that is wrong.
    pub fn seats(self) -> Result<Vec<Seat>, DocumentError> {
        for (at, seat) in self.order.iter().enumerate() {
            if !is_label(&seat.label) {
                return Err(DocumentError::Seat { at, field: "label" });
            }
            if seat.key.is_empty() {
                return Err(DocumentError::Seat { at, field: "key" });
            }
        }
        let twice = |at, field| DocumentError::Twice { list: "order", at, field };
        if let Some(at) = second_of(self.order.iter().map(|seat| &seat.label)) {
            return Err(twice(at, "label"));
        }
        match second_of(self.order.iter().map(|seat| &seat.id)) {
            Some(at) => Err(twice(at, "id")),
            None => Ok(self.order),
        }
    }
}

fn is_label(label: &str) -> bool {
    let digits = label.strip_prefix('A');
    digits.is_some_and(|digits| {
        !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl Read {
    /// Reads a reply to the frame of these seats.
    pub fn new(seats: &[Seat], reply: &[u8]) -> Self {
        let Reading { rejected, ignored_labels, judgements } = reader::read(seats, reply);
        Self {
            reply: if rejected.is_some() { "rejected" } else { "accepted" },
            reason: rejected.map(|rejected| rejected.to_string()),
            ignored_labels: ignored_labels.iter().map(policy::judge::sanitise::Clean::escaped).collect(),
            judgements: judgements.into_iter().map(judged).collect(),
        }
    }

    /// Whether the reply as a whole was taken.
    pub fn is_accepted(&self) -> bool {
        self.reason.is_none()
    }
}

fn judged(judgement: Judgement) -> Judged {
    let (status, why) = match &judgement.scores {
        Ok(_) => ("read", None),
        Err(unreadable) => ("unreadable", Some(unreadable.to_string())),
    };
    let scores = judgement.scores.as_ref().ok();
    let score = |of: fn(&reader::Scores) -> u32| scores.map_or(0, of);
    Judged {
        status,
        why,
        traction: score(|scores| scores.traction),
        plan: score(|scores| scores.plan),
        cost_discipline: score(|scores| scores.cost_discipline),
        learning: score(|scores| scores.learning),
        risk: score(|scores| scores.risk),
        promise: score(|scores| scores.promise),
        reasoning: scores
            .map_or_else(|| reader::UNREADABLE_REASONING.to_owned(), |scores| scores.reasoning.escaped()),
        id: judgement.id,
        label: judgement.label,
    }
}
