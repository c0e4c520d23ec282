//! Tools that change something, and which of them work (G10, E17, E27).

use policy::economy::texts::next_version;
use policy::judge::sanitise::sanitise;
use policy::{AgentId, Instant};

use super::input::{DocketId, EpisodeId, ToolUse};
use super::lives::{over_limit, unknown_agent};
use super::reply::{Refusal, Reply};
use super::state::{Agent, Life};
use super::{Core, Fault};

/// Tools that only read: any agent that is not dead has them.
const READING: [&str; 4] = ["my_figures", "read_work_log", "read_digest", "read_lessons"];
/// What a living agent has besides.
const LIVING: [&str; 1] = ["write_daily_report"];

impl Core {
    /// The names of the tools that work for an agent now; none for one that is dead or unknown.
    pub fn tools(&self, id: &AgentId) -> Vec<&'static str> {
        let Some(agent) = self.state.agents.get(id) else { return Vec::new() };
        let mut tools = READING.to_vec();
        match agent.life {
            Life::Alive => tools.extend(LIVING),
            Life::Condemned { .. } if self.state.settings.judge.enabled => {
                tools.extend(["submit_appeal", "submit_death_report"]);
            }
            Life::Condemned { .. } => tools.push("submit_death_report"),
            Life::Removing { .. } | Life::Dead { .. } => tools.clear(),
        }
        tools
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
        let Life::Condemned { docket } = agent.life else { return agent.report_versions };
        let case = self.state.dockets.get(&docket).and_then(|open| open.cases.get(&agent.id));
        case.map_or(0, |case| match tool {
            ToolUse::WriteDailyReport { .. } => agent.report_versions,
            ToolUse::SubmitAppeal { .. } => case.appeals.len(),
            ToolUse::SubmitDeathReport { .. } => case.death_reports.len(),
        })
    }

    /// A tool's name, its text and that text's limit in characters.
    fn text_of<'a>(&self, tool: &'a ToolUse) -> (&'static str, &'a str, usize) {
        let settings = &self.state.settings;
        match tool {
            ToolUse::WriteDailyReport { text } => ("write_daily_report", text, settings.log.report_chars_max),
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
