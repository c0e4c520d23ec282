//! Progress of a run as it happens, from the journal's tables alone: days, deaths, dockets.

use std::collections::BTreeMap;

use policy::Instant;
use policy::time::DAY_MS;

use super::evidence::{Agent, Docket, EvidenceError, Tables};
use super::files::BORN;
use super::screen::Screen;

/// What was told already.
#[derive(Debug, Default)]
pub struct Watch {
    day: i64,
    dockets: BTreeMap<i64, String>,
    states: BTreeMap<String, String>,
}

/// How far the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The last instant of the journal.
    pub last_ms: i64,
    /// Whether a docket is between its snapshot and its end.
    pub docket_open: bool,
    /// Whether any cull is done.
    pub cull_done: bool,
}

impl Watch {
    /// Looks once and tells what is new.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub async fn look(&mut self, tables: &mut Tables, screen: Screen) -> Result<Standing, EvidenceError> {
        let (agents, dockets) = (tables.agents().await?, tables.dockets().await?);
        let last_ms = tables.last_ms().await?;
        self.tell_day(last_ms, &agents, screen);
        for docket in &dockets {
            self.tell_docket(docket, screen);
        }
        for agent in &agents {
            self.tell_agent(agent, screen);
        }
        Ok(Standing {
            last_ms,
            docket_open: dockets.iter().any(is_open),
            cull_done: dockets.iter().any(|docket| docket.kind == "cull" && docket.state == "done"),
        })
    }

    fn tell_day(&mut self, last_ms: i64, agents: &[Agent], screen: Screen) {
        let day = (last_ms - BORN.midnight().ms()).div_euclid(DAY_MS) + 1;
        if day <= self.day || agents.is_empty() {
            return;
        }
        self.day = day;
        let living = agents.iter().filter(|agent| agent.state != "dead").count();
        let income: i64 = agents.iter().map(|agent| agent.lifetime_income_nano).sum();
        let costs: i64 = agents.iter().map(|agent| agent.lifetime_costs_nano).sum();
        let (income, costs) = (policy::Money::from_nano(income), policy::Money::from_nano(costs));
        let date: String = Instant::from_ms(last_ms).to_string().chars().take(10).collect();
        screen.line(&format!("  day {day:>2}  {date}  {living:>2} living  income {income}  costs {costs}"));
    }

    fn tell_docket(&mut self, docket: &Docket, screen: Screen) {
        let known = self.dockets.insert(docket.docket, docket.state.clone());
        if known.as_ref() == Some(&docket.state) {
            return;
        }
        let note = docket.note.as_deref().filter(|note| !note.is_empty());
        let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
        let at: String = Instant::from_ms(docket.at_ms).to_string().chars().take(16).collect();
        let state = docket.state.replace('_', " ");
        screen.line(&format!("          {} of {at}: {state}{note}", docket.kind));
    }

    fn tell_agent(&mut self, agent: &Agent, screen: Screen) {
        let known = self.states.insert(agent.agent.clone(), agent.state.clone());
        if let Some(known) = known
            && known != agent.state
        {
            screen.line(&format!("          {}: {} -> {}", agent.agent, known, agent.state));
        }
    }
}

/// Whether a docket is between its snapshot and its end.
pub fn is_open(docket: &Docket) -> bool {
    !matches!(docket.state.as_str(), "scheduled" | "warned" | "postponed" | "done" | "skipped")
}
