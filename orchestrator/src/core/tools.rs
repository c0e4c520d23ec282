//! Tools that change something, and which of them work (G10, E17, E27).

use policy::economy::reproduction::BRIEF_CHARS_MAX;
use policy::economy::texts::next_version;
use policy::economy::tools;
use policy::judge::sanitise::sanitise;
use policy::{AgentId, Instant};

use super::input::{DocketId, EpisodeId, ToolUse};
use super::lives::{over_limit, unknown_agent};
use super::reply::{Refusal, Reply};
use super::state::{Agent, Life};
use super::{Core, Fault};

impl Core {
    /// The names of the tools that work for an agent now; none for one that is dead or unknown.
    pub fn tools(&self, id: &AgentId) -> Vec<&'static str> {
        let Some(agent) = self.state.agents.get(id) else { return Vec::new() };
        let may_reproduce = self.tier(id, self.state.now_ms).1.may_reproduce && !agent.paused;
        tools::tools(agent.life.for_rules(), self.state.settings.judge.enabled, may_reproduce)
    }

    pub(super) fn tool_used(
        &mut self,
        now: Instant,
        id: &AgentId,
        episode: EpisodeId,
        tool: &ToolUse,
    ) -> Result<Reply, Fault> {
        let Some(agent) = self.state.agents.get(id) else { return Ok(unknown_agent(id)) };
        if agent.episode != Some(episode) {
            return Ok(wrong_state("not in this episode"));
        }
        let (name, text, limit) = self.text_of(tool);
        if !self.tools(id).contains(&name) {
            return Ok(wrong_state(agent.standing_word()));
        }
        if let Some(refusal) = over_limit("text", text, limit) {
            return Ok(refusal.into());
        }
        if is_blank(text) {
            return Ok(
                Refusal::Invalid { what: format!("{name} got a blank text, which counts as none") }.into()
            );
        }
        if let Err(many) = next_version(self.versions(agent, tool)) {
            return Ok(Refusal::Invalid { what: many.to_string() }.into());
        }
        match (tool, &agent.life) {
            (ToolUse::WriteDailyReport { text }, _) => Ok(self.write_report(id, text)),
            (ToolUse::Reproduce { text }, _) => self.reproduce(now, id, text),
            (
                ToolUse::SubmitAppeal { .. } | ToolUse::SubmitDeathReport { .. },
                Life::Condemned { docket },
            ) => {
                let docket: DocketId = *docket;
                self.submit(now, docket, id, tool)
            }
            (ToolUse::SubmitAppeal { .. } | ToolUse::SubmitDeathReport { .. }, _) => {
                Ok(wrong_state(agent.standing_word()))
            }
        }
    }

    fn write_report(&mut self, id: &AgentId, text: &str) -> Reply {
        if let Some(agent) = self.state.agents.get_mut(id) {
            agent.report = Some(text.to_owned());
            agent.report_versions += 1;
        }
        Reply::Tool {
            text: "Kept. The day's last version is published at midnight UTC, with your figures.".to_owned(),
        }
    }

    /// How many versions of a tool's text are kept: of this day, or of the case.
    fn versions(&self, agent: &Agent, tool: &ToolUse) -> usize {
        if matches!(tool, ToolUse::Reproduce { .. }) {
            // A child is no text of which versions are kept.
            return 0;
        }
        let Life::Condemned { docket } = agent.life else { return agent.report_versions };
        let case = self.state.dockets.get(&docket).and_then(|open| open.cases.get(&agent.id));
        case.map_or(0, |case| match tool {
            ToolUse::WriteDailyReport { .. } | ToolUse::Reproduce { .. } => agent.report_versions,
            ToolUse::SubmitAppeal { .. } => case.appeals.len(),
            ToolUse::SubmitDeathReport { .. } => case.death_reports.len(),
        })
    }

    /// A tool's name, its text and that text's limit in characters.
    fn text_of<'a>(&self, tool: &'a ToolUse) -> (&'static str, &'a str, usize) {
        let settings = &self.state.settings;
        match tool {
            ToolUse::WriteDailyReport { text } => ("write_daily_report", text, settings.log.report_chars_max),
            ToolUse::Reproduce { text } => ("reproduce", text, BRIEF_CHARS_MAX),
            ToolUse::SubmitAppeal { text } => ("submit_appeal", text, settings.appeal.appeal_chars_max),
            ToolUse::SubmitDeathReport { text } => {
                ("submit_death_report", text, settings.appeal.death_report_chars_max)
            }
        }
    }
}

fn wrong_state(state: &str) -> Reply {
    Refusal::WrongState { state: state.to_owned() }.into()
}

/// Nothing that a reader could read: what only hides is none (J6).
fn is_blank(text: &str) -> bool {
    sanitise(text, text.chars().count()).0.is_blank()
}
