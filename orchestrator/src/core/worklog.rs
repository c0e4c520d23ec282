//! The work log: daily reports, deaths, reprieves, digests and lessons (E27 to E29).

use std::collections::BTreeMap;

use policy::judge::quote::{Sigil, quote};
use policy::time::DAY_MS;
use policy::{AgentId, Instant, Money};
use serde::Serialize;

use super::row::{Row, Table};
use super::state::Life;
use super::{Core, Fault};

/// Everything that was published.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct WorkLog {
    /// In order of publication.
    pub entries: Vec<LogEntry>,
    /// By the UTC day that each tells of.
    pub digests: BTreeMap<i64, String>,
    /// Short post-mortems, oldest first.
    pub lessons: Vec<String>,
}

/// What an entry of the work log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An agent's own daily report.
    Report,
    /// The platform's line for an agent that wrote none.
    NoReport,
    /// A dead agent's own report.
    DeathReport,
    /// The platform's line for a dead agent that left none.
    NoDeathReport,
    /// An agent that was reprieved, with the judge's reasoning.
    Reprieve,
    /// The digest of a day.
    Digest,
}

impl EntryKind {
    /// One word, as in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::NoReport => "no_report",
            Self::DeathReport => "death_report",
            Self::NoDeathReport => "no_death_report",
            Self::Reprieve => "reprieve",
            Self::Digest => "digest",
        }
    }
}

/// One entry. Its text is untrusted unless the platform wrote it: whoever shows it to an agent or a model quotes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Its number, from one.
    pub id: u64,
    /// When it was published.
    pub at_ms: Instant,
    /// What it is.
    pub kind: EntryKind,
    /// Whose; `None` for a digest.
    pub agent: Option<AgentId>,
    /// As written; nobody has read it for what it may try.
    pub text: String,
    /// The platform's figures beside it: numbers are never self-reported.
    pub figures: Option<String>,
}

impl Core {
    /// Publishes one entry.
    pub(super) fn publish(
        &mut self,
        at: Instant,
        kind: EntryKind,
        whose: (Option<&AgentId>, Option<String>),
        text: String,
    ) {
        let (agent, figures) = whose;
        let entry = LogEntry {
            id: self.state.log.entries.len() as u64 + 1,
            at_ms: at,
            kind,
            agent: agent.cloned(),
            text,
            figures,
        };
        self.out.rows.push(entry.row());
        self.state.log.entries.push(entry);
    }

    /// Closes the day that ends at `at`: a report for every living agent, with the platform's figures (E27).
    pub(super) fn close_day(&mut self, at: Instant) -> Result<(), Fault> {
        let day = at.plus_ms(-DAY_MS).day();
        let living: Vec<AgentId> = self
            .state
            .agents
            .values()
            .filter(|agent| matches!(agent.life, Life::Alive | Life::Condemned { .. }))
            .map(|agent| agent.id.clone())
            .collect();
        let looked_back = at.plus_ms(-2 * self.rules.cull.period_ms());
        for id in living {
            self.agent_mut(&id)?.earned.retain(|earned| earned.at_ms >= looked_back);
            let figures = self.day_figures(&id, day, at);
            let shown = self.state.settings.judge.reports_shown;
            let written = self.state.agents.get_mut(&id).and_then(|agent| {
                agent.report_versions = 0;
                let report = agent.report.take()?;
                agent.reports.push(report.clone());
                let extra = agent.reports.len().saturating_sub(shown);
                agent.reports.drain(..extra);
                Some(report)
            });
            if let Some(text) = written {
                self.publish(at, EntryKind::Report, (Some(&id), Some(figures.attached())), text);
            } else {
                let line = format!("No report. {}", figures.sentence());
                self.publish(at, EntryKind::NoReport, (Some(&id), None), line);
            }
        }
        Ok(())
    }

    /// An agent's figures of one day.
    pub(super) fn day_figures(&self, id: &AgentId, day: i64, at: Instant) -> DayFigures {
        let Some(agent) = self.state.agents.get(id) else { return DayFigures::default() };
        let flow = agent.days.get(&day).copied().unwrap_or_default();
        DayFigures {
            income_nano: flow.income_nano,
            costs_nano: flow.costs_nano,
            profit_nano: flow.profit_nano(),
            lifetime_nano: agent.lifetime.profit_nano(),
            balance_nano: self.balance(id).posted_nano,
            tier: self.tier(id, at).0,
        }
    }
}

/// What the platform says of one agent's day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DayFigures {
    pub income_nano: Money,
    pub costs_nano: Money,
    pub profit_nano: Money,
    pub lifetime_nano: Money,
    pub balance_nano: Money,
    pub tier: u32,
}

impl DayFigures {
    /// What stands beside an agent's own words (E27).
    pub(super) fn attached(&self) -> String {
        format!("{} Tier {}.", self.sentence(), self.tier)
    }

    /// As E27 words it.
    pub(super) fn sentence(&self) -> String {
        format!(
            "Income {}, costs {}, profit {}; lifetime {}; balance {}.",
            self.income_nano, self.costs_nano, self.profit_nano, self.lifetime_nano, self.balance_nano
        )
    }
}

impl LogEntry {
    /// The entry for a reader that must not take its text for an instruction: the platform's line, then the
    /// quotation.
    pub fn quoted(&self, sigil: &Sigil) -> String {
        let whose = self.agent.as_ref().map_or("the platform", AgentId::as_str);
        let figures = self.figures.as_deref().map(|figures| format!(" {figures}")).unwrap_or_default();
        format!(
            "{}: {} of {whose}.{figures}\n{}\n",
            self.at_ms,
            self.kind.word(),
            quote(self.kind.word(), &self.text, sigil)
        )
    }

    fn row(&self) -> Row {
        Row::new(
            Table::WorkLog,
            [
                self.id.into(),
                self.at_ms.into(),
                self.kind.word().into(),
                self.agent.as_ref().map(AgentId::as_str).into(),
                self.text.as_str().into(),
                self.figures.as_deref().into(),
            ],
        )
    }
}
