//! The wake message, in the order of E11. What others wrote is quoted, and cannot leave its quotation.

use policy::judge::quote::{Sigil, quote};
use policy::{AgentId, Instant};

use super::Core;
use crate::judge::dice::SeededDice;

use super::query::Figures;
use super::state::{Agent, Event, Life};

impl Core {
    /// What an agent is told when it wakes at `now`; `None` for one that is not known.
    pub fn wake_text(&self, id: &AgentId, now: Instant) -> Option<String> {
        let agent = self.state.agents.get(id)?;
        let figures = self.figures(id, now)?;
        let sigil = self.wake_sigil(agent);
        let parts = [
            format!("It is {now}."),
            cull_line(&figures),
            figures_line(&figures),
            self.events_part(agent, &sigil),
            self.digest_part(&sigil),
            format!("Your tools: {}.", self.tools(id).join(", ")),
        ];
        Some(parts.join("\n\n") + "\n")
    }

    fn wake_sigil(&self, agent: &Agent) -> Sigil {
        let quoted = agent.events.iter().filter_map(|event| event.quoted.as_ref());
        let digest = self.digest().map(|(_, text)| text);
        let texts: Vec<&str> = quoted.map(|(_, text)| text.as_str()).chain(digest).collect();
        let purpose = format!("wake/{}/{}", agent.id, self.state.episodes_made);
        Sigil::draw(&mut SeededDice::new(self.state.seed.as_bytes(), &purpose), &texts)
    }

    fn events_part(&self, agent: &Agent, sigil: &Sigil) -> String {
        let mut part = String::from("Events:\n");
        if let Life::Condemned { docket } = agent.life {
            part += &self.condemned_brief(docket);
        }
        if agent.events.is_empty() {
            part += "No others.\n";
        }
        for Event { text, quoted } in &agent.events {
            part += "- ";
            part += text;
            part.push('\n');
            if let Some((label, text)) = quoted {
                part += &quote(label, text, sigil);
            }
        }
        part.trim_end().to_owned()
    }

    fn digest_part(&self, sigil: &Sigil) -> String {
        match self.digest() {
            Some((_, text)) => {
                format!("Yesterday across Darwin:\n{}", quote("digest", text, sigil).trim_end())
            }
            None => "Yesterday across Darwin: there is no digest yet.".to_owned(),
        }
    }

    /// What a condemned agent's last episode is for (E17).
    fn condemned_brief(&self, docket: u64) -> String {
        let Some(open) = self.state.dockets.get(&docket) else { return String::new() };
        let deadline = open.deadline_ms.unwrap_or_default();
        let settings = &self.state.settings;
        let days = settings.cull.period_days;
        let appeal = if settings.judge.enabled {
            format!(
                "Submit an appeal of up to {} characters with submit_appeal: what real traction you have, what you \
                 learned, and a specific and cheap plan for the next {days} days. Exaggeration is easy to check \
                 against the ledger, and counts against you. ",
                settings.appeal.appeal_chars_max
            )
        } else {
            String::new()
        };
        format!(
            "- You are condemned. This is your last episode: you have {} to spend, until {deadline}. {appeal}Submit a \
             death report of up to {} characters, one to three paragraphs, with submit_death_report: what you did, \
             what went wrong, what others should learn. It is published if you die, and sealed if you live. The last \
             version of each before the deadline counts.\n",
            settings.appeal.budget_nano, settings.appeal.death_report_chars_max
        )
    }
}

fn cull_line(figures: &Figures) -> String {
    format!("Next cull: {}. {}", figures.next_cull_ms, figures.standing)
}

fn figures_line(figures: &Figures) -> String {
    format!(
        "Balance {} ({} of it held); this period: income {}, costs {}, profit {}; lifetime profit {}; tier {}.",
        figures.balance_nano,
        figures.held_nano,
        figures.period_income_nano,
        figures.period_costs_nano,
        figures.period_profit_nano,
        figures.lifetime_profit_nano,
        figures.tier
    )
}
