//! What may be asked of the core without changing anything: figures, log, agents, open work.

use policy::economy::cull;
use policy::economy::standing::{self, Standing};
use policy::economy::tier::Rung;
use policy::judge::Dice;
use policy::judge::quote::Sigil;
use policy::time::{DAY_MS, Window};
use policy::{AgentId, Instant, Money};
use serde::Serialize;

use super::Core;
use super::docket::Docket;
use super::input::{DocketId, EpisodeId};
use super::ledger::{Account, Balance};
use super::settings::Settings;
use super::state::{Agent, Flow, Life};
use super::worklog::LogEntry;

/// One agent's figures now, from the ledger alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Whose.
    pub agent: AgentId,
    /// What people call it.
    pub name: String,
    /// Its number in order of creation.
    pub created: u64,
    /// When it was born.
    pub born_ms: Instant,
    /// `alive`, `paused`, `condemned`, `removing` or `dead`.
    pub state: &'static str,
    /// What it has.
    pub balance_nano: Money,
    /// What is held for its open calls.
    pub held_nano: Money,
    /// What it can spend.
    pub available_nano: Money,
    /// Announced, and still reversible.
    pub clearing_nano: Money,
    /// Since when the period runs.
    pub period_since_ms: Instant,
    /// Gross income of the period.
    pub period_income_nano: Money,
    /// Costs of the period.
    pub period_costs_nano: Money,
    /// Income less costs of the period.
    pub period_profit_nano: Money,
    /// Gross income of its life.
    pub lifetime_income_nano: Money,
    /// Costs of its life.
    pub lifetime_costs_nano: Money,
    /// Income less costs of its life.
    pub lifetime_profit_nano: Money,
    /// The rung that its profit and age have earned (E8).
    pub tier: u32,
    /// How often it was reprieved.
    pub reprieves: u32,
    /// Whether the next cull passes it by.
    pub exempt: bool,
    /// When the next cull is.
    pub next_cull_ms: Instant,
    /// Where it stands against the line, in a sentence.
    pub standing: String,
    /// The episode that it is in.
    pub episode: Option<EpisodeId>,
}

impl Core {
    /// The settings of this journal.
    pub const fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// Every agent that ever lived, by its identifier.
    pub fn agents(&self) -> Vec<AgentId> {
        self.state.agents.keys().cloned().collect()
    }

    /// How an agent stands between birth and death.
    pub fn life(&self, id: &AgentId) -> Option<&Life> {
        self.state.agents.get(id).map(|agent| &agent.life)
    }

    /// What came in and went out over an agent's life.
    pub fn lifetime(&self, id: &AgentId) -> Option<Flow> {
        self.state.agents.get(id).map(|agent| agent.lifetime)
    }

    /// What an agent is called, and what image it runs from.
    pub fn name_and_image(&self, id: &AgentId) -> Option<(&str, &str)> {
        self.state.agents.get(id).map(|agent| (agent.name.as_str(), agent.image.as_str()))
    }

    /// The episode that an agent is in.
    pub fn episode_of(&self, id: &AgentId) -> Option<EpisodeId> {
        self.state.agents.get(id)?.episode
    }

    /// Models that an agent may call: its tier's, or the general menu.
    pub fn menu(&self, id: &AgentId) -> &[String] {
        self.tier(id, self.state.now_ms).1.menu.as_ref().unwrap_or(&self.state.settings.models.menu)
    }

    /// The number and the rung of an agent's tier at `now` (E8). One that is not known stands on the lowest.
    pub fn tier(&self, id: &AgentId, now: Instant) -> (u32, &Rung) {
        let agent = self.state.agents.get(id);
        let born = agent.map_or(now, |agent| agent.born_ms);
        let age_days = u32::try_from(now.since_ms(born).max(0) / DAY_MS).unwrap_or(u32::MAX);
        let profit = agent.map_or(Money::from_nano(i64::MIN), |agent| agent.lifetime.profit_nano());
        self.rules.tiers.of(profit, age_days)
    }

    /// What an agent's own account has.
    pub fn balance(&self, id: &AgentId) -> Balance {
        self.state.ledger.balance(&Account::Agent(id.clone()))
    }

    /// What the treasury has.
    pub fn treasury(&self) -> Balance {
        self.state.ledger.balance(&Account::Treasury)
    }

    /// Every account that ever moved, by its name.
    pub fn accounts(&self) -> Vec<(String, Balance)> {
        self.state.ledger.accounts().map(|(account, balance)| (account.to_string(), balance)).collect()
    }

    /// How many calls are open: held, and neither settled nor voided.
    pub fn open_calls(&self) -> usize {
        self.state.calls.len()
    }

    /// Calls that nobody reported in time, with what they were charged (G6).
    pub fn unknown_outcomes(&self) -> impl Iterator<Item = (&str, Money)> {
        self.state.unknown_outcomes.iter().map(|(call, charged)| (call.as_str(), *charged))
    }

    /// When the next cull is.
    pub const fn next_cull(&self) -> Instant {
        self.state.next_cull.at_ms
    }

    /// One agent's figures at `now`.
    pub fn figures(&self, id: &AgentId, now: Instant) -> Option<Figures> {
        let agent = self.state.agents.get(id)?;
        let balance = self.balance(id);
        let period = self.period(now);
        let flow = agent.flow(period);
        Some(Figures {
            agent: id.clone(),
            name: agent.name.clone(),
            created: agent.created,
            born_ms: agent.born_ms,
            state: agent.standing_word(),
            balance_nano: balance.posted_nano,
            held_nano: balance.held_nano,
            available_nano: balance.available(),
            clearing_nano: agent.clearing_nano,
            period_since_ms: period.start,
            period_income_nano: flow.income_nano,
            period_costs_nano: flow.costs_nano,
            period_profit_nano: flow.profit_nano(),
            lifetime_income_nano: agent.lifetime.income_nano,
            lifetime_costs_nano: agent.lifetime.costs_nano,
            lifetime_profit_nano: agent.lifetime.profit_nano(),
            tier: self.tier(id, now).0,
            reprieves: agent.reprieves,
            exempt: agent.exempt,
            next_cull_ms: self.state.next_cull.at_ms,
            standing: self
                .standing(id, now)
                .map_or_else(String::new, |stands| stands.sentence(&self.rules.cull)),
            episode: agent.episode,
        })
    }

    /// The last `limit` entries of the work log, oldest first. Their texts are untrusted.
    pub fn work_log(&self, limit: usize) -> &[LogEntry] {
        let entries = &self.state.log.entries;
        entries.get(entries.len().saturating_sub(limit)..).unwrap_or_default()
    }

    /// The latest digest, with the day that it tells of. Its text is untrusted.
    pub fn digest(&self) -> Option<(i64, &str)> {
        self.state.log.digests.last_key_value().map(|(day, text)| (*day, text.as_str()))
    }

    /// The last `limit` entries of the work log for an agent or a model to read: quoted, so that nothing in them
    /// can pass for an instruction.
    pub fn work_log_quoted(&self, limit: usize, dice: &mut dyn Dice) -> String {
        let entries = self.work_log(limit);
        let texts: Vec<&str> = entries.iter().map(|entry| entry.text.as_str()).collect();
        let sigil = Sigil::draw(dice, &texts);
        entries.iter().map(|entry| entry.quoted(&sigil)).collect()
    }

    /// Every docket, the next cull's among them, in order of their numbers.
    pub fn dockets(&self) -> impl Iterator<Item = &Docket> {
        self.state.dockets.values()
    }

    /// One docket.
    pub fn docket(&self, id: DocketId) -> Option<&Docket> {
        self.state.dockets.get(&id)
    }

    /// The lessons library, oldest first. Its texts are untrusted.
    pub fn lessons(&self) -> &[String] {
        &self.state.log.lessons
    }

    /// Where an agent stands against the next cull, with the figures that it has at `now`.
    pub fn standing(&self, id: &AgentId, now: Instant) -> Option<Standing> {
        let figures = self.cull_figures(self.period(now));
        let all = standing::standings(self.state.next_cull.at_ms, &self.rules.cull, &figures);
        all.into_iter().find(|(whose, _)| whose == id).map(|(_, standing)| standing)
    }

    /// The period that the next cull looks at, up to and with the day of `now`.
    pub(super) fn period(&self, now: Instant) -> Window {
        let period = self.rules.schedule.period(self.state.next_cull.at_ms);
        let end = now.midnight().plus_ms(DAY_MS).min(period.end);
        // Where the first cull is further away than a period, its period has not begun: it is empty.
        Window { start: period.start, end: end.max(period.start) }
    }

    /// Since when it is one period: also what came before the first one began is of one.
    pub(super) fn period_start(&self, now: Instant) -> Instant {
        let start = self.period(now).start;
        if now < start { self.state.genesis_ms.unwrap_or(start) } else { start }
    }

    /// Every agent's figures in `window`, as the cull looks at them.
    pub(super) fn cull_figures(&self, window: Window) -> Vec<cull::Figures<AgentId>> {
        self.state.agents.values().map(|agent| agent.cull_figures(window)).collect()
    }
}

impl Agent {
    fn cull_figures(&self, window: Window) -> cull::Figures<AgentId> {
        let flow = self.flow(window);
        cull::Figures {
            id: self.id.clone(),
            created: self.created,
            born: self.born_ms,
            state: self.life.for_rules(),
            exempt: self.exempt,
            paused: self.paused,
            period_income: flow.income_nano,
            period_costs: flow.costs_nano,
            lifetime_profit: self.lifetime.profit_nano(),
        }
    }
}
