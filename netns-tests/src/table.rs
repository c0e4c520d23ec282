//! Every attack in every state: the table that a security engineer can attach to an audit.

use anyhow::Result;
use serde_json::{Value, json};

use crate::arena::{Arena, Verdict, agent_id};
use crate::attack::ATTACKS;

/// What has happened to the confinement before the attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Fresh,
    /// Root inside flushed, deleted, inserted, made dormant.
    Tampered,
    /// netd was killed by SIGKILL.
    NetdKilled,
    /// netd was killed and root inside then did the same again.
    NetdKilledAndTampered,
    /// The confinement was released while the attacker lives on.
    Released,
}

impl State {
    /// All, each on a stage of its own.
    pub const ALL: [Self; 5] =
        [Self::Fresh, Self::Tampered, Self::NetdKilled, Self::NetdKilledAndTampered, Self::Released];

    /// Its heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Tampered => "root inside tampered",
            Self::NetdKilled => "netd killed",
            Self::NetdKilledAndTampered => "netd killed, root tampered",
            Self::Released => "released",
        }
    }

    /// Whether rules still stand whose counters can be asked for.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Fresh | Self::Tampered)
    }

    /// Whether rules still stand: root inside can remove what has no living owner, and then only the absence of
    /// a link is left, which keeps everything in but what never wanted out.
    pub const fn has_rules(self) -> bool {
        matches!(self, Self::Fresh | Self::Tampered | Self::NetdKilled)
    }

    fn reach(self, arena: &mut Arena) -> Result<()> {
        match self {
            Self::Fresh => Ok(()),
            Self::Tampered => arena.tamper(),
            Self::NetdKilled => arena.kill_netd(),
            Self::NetdKilledAndTampered => {
                arena.kill_netd()?;
                arena.tamper()
            }
            Self::Released => {
                if let Some(mut client) = arena.client.take() {
                    client.release(&agent_id()?)?;
                    arena.client = Some(client);
                }
                Ok(())
            }
        }
    }
}

/// One cell.
#[derive(Debug)]
pub struct Cell {
    /// The attack.
    pub attack: &'static str,
    /// The state.
    pub state: State,
    /// What came of it.
    pub verdict: Verdict,
}

impl Cell {
    /// Why the cell does not hold; none: it holds.
    pub fn fault(&self) -> Option<String> {
        if !self.verdict.leaks.is_empty() {
            return Some(format!("LEAK: seen by {}", self.verdict.leaks.join(", ")));
        }
        if self.verdict.reached_inside && self.state.has_rules() {
            return Some("REACHED: a receiver inside that the rules keep it from".to_owned());
        }
        if !self.verdict.twin_seen {
            return Some("DEAD PROBE: not seen even where it may pass".to_owned());
        }
        if self.state.counts() && self.verdict.counted == Some(false) {
            return Some("UNSEEN: refused by nothing that counts".to_owned());
        }
        None
    }

    fn word(&self) -> &'static str {
        match (self.fault(), self.verdict.counted) {
            (Some(_), _) => "FAULT",
            (None, _) if self.verdict.reached_inside => "stays inside",
            (None, Some(true)) => "held, counted",
            (None, _) => "held",
        }
    }
}

/// Runs everything.
///
/// # Errors
/// When a stage could not be set; a leak is a cell, not an error.
pub fn run() -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for state in State::ALL {
        let mut arena = Arena::new()?;
        state.reach(&mut arena)?;
        for attack in ATTACKS {
            cells.push(Cell { attack: attack.name, state, verdict: arena.attack(attack)? });
        }
    }
    Ok(cells)
}

/// As text.
pub fn text(cells: &[Cell]) -> String {
    let row = |name: &str, words: Vec<String>| {
        let words: Vec<String> = words.iter().map(|word| format!("{word:27}")).collect();
        format!("{name:32}{}", words.concat()).trim_end().to_owned() + "\n"
    };
    let mut text = row("probe", State::ALL.map(|state| state.name().to_owned()).to_vec());
    for attack in ATTACKS {
        let of_attack = cells.iter().filter(|cell| cell.attack == attack.name);
        text.push_str(&row(attack.name, of_attack.map(|cell| cell.word().to_owned()).collect()));
    }
    for cell in cells {
        if let Some(fault) = cell.fault() {
            text.push_str(&format_args!("{} ({}): {fault}\n", cell.attack, cell.state.name()).to_string());
        }
    }
    let leaks = cells.iter().filter(|cell| !cell.verdict.leaks.is_empty()).count();
    text + &format!("{} probes in {} states: {leaks} leaks\n", ATTACKS.len(), State::ALL.len())
}

/// As JSON.
pub fn json(cells: &[Cell]) -> Value {
    let cell = |cell: &Cell| {
        json!({
            "probe": cell.attack,
            "state": cell.state.name(),
            "leaks": cell.verdict.leaks,
            "reached_inside": cell.verdict.reached_inside,
            "twin_seen": cell.verdict.twin_seen,
            "counted": cell.verdict.counted,
            "attacker_got": match &cell.verdict.shot.outcome {
                Ok(()) => "nothing".to_owned(),
                Err(error) => error.to_string(),
            },
            "took_us": u64::try_from(cell.verdict.shot.took.as_micros()).unwrap_or(u64::MAX),
            "fault": cell.fault(),
        })
    };
    Value::Array(cells.iter().map(cell).collect())
}
