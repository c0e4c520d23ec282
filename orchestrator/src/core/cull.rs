//! Who is condemned, and their last episode (E7, E14 to E19).

use policy::economy::cull::cull;
use policy::economy::{Reason, standing};
use policy::judge::Facts;
use policy::judge::facts::{IncomeSource, Project};
use policy::time::{DAY_MS, Window};
use policy::{AgentId, Instant, Money};

use super::docket::{Case, Docket, DocketKind, DocketState, Version};
use super::input::{DocketId, ToolUse};
use super::ledger::Account;
use super::lives::missing;
use super::reply::{Refusal, Reply};
use super::state::{Agent, Due, Life};
use super::{Core, Fault};

/// How many sources and projects the facts name.
const NAMED_MAX: usize = 5;
/// Prompt tokens of an appellant and of the rest, for judging beforehand whether the treasury can pay: an appeal,
/// five reports and the facts at one token a character, and the frame.
const TOKENS_AN_APPELLANT: u64 = 10_000;
const TOKENS_A_FRAME: u64 = 10_000;

impl Core {
    /// Runs the cull of `at` on the figures of that instant.
    pub(super) fn run_cull(&mut self, at: Instant, now: Instant) -> Result<(), Fault> {
        let window = self.rules.schedule.period(at);
        let found = cull(at, &self.rules.cull, &self.cull_figures(window));
        let condemned = found.condemned();
        if !self.treasury_can_pay(now, condemned.len()) {
            let note = "the treasury cannot pay for it: appeal episodes, judge and grants";
            return self.postpone(now, note);
        }
        for agent in self.state.agents.values_mut().filter(|agent| agent.exempt) {
            agent.exempt = false;
            self.out.agents.insert(agent.id.clone());
        }
        let id = self.state.next_cull.docket;
        self.docket_mut(id)?.eligible = found.eligible.len();
        self.docket_mut(id)?.performance_ran = found.performance_ran;
        self.announce(format!(
            "cull of {at}: {} eligible, {} idle, {} on performance",
            found.eligible.len(),
            found.idle.len(),
            found.performance.len()
        ));
        self.condemn(now, id, (window, condemned))?;
        self.schedule_cull(now, self.rules.schedule.next_after(at.max(now)));
        Ok(())
    }

    /// Condemns each agent that starves, in a docket of its own (E7).
    pub(super) fn condemn_starving(&mut self, now: Instant) -> Result<(), Fault> {
        if !self.state.settings.lives.starving {
            return Ok(());
        }
        let touched: Vec<AgentId> = self.out.agents.iter().cloned().collect();
        for id in touched {
            if !self.is_starving(&id, now) {
                continue;
            }
            if !self.treasury_can_pay(now, 1) {
                self.announce(format!("{id} starves, and the treasury cannot pay for its docket: it waits"));
                continue;
            }
            let docket = self.new_docket(DocketKind::Starvation, now);
            self.announce(format!("{id} starves: it cannot pay its cheapest call"));
            let window = Window {
                start: now.midnight().plus_ms(DAY_MS - self.rules.cull.period_ms()),
                end: now.midnight().plus_ms(DAY_MS),
            };
            self.condemn(now, docket, (window, vec![(id, Reason::Starved)]))?;
        }
        Ok(())
    }

    fn is_starving(&self, id: &AgentId, now: Instant) -> bool {
        let Some(agent) = self.state.agents.get(id) else { return false };
        if agent.life != Life::Alive || agent.paused {
            return false;
        }
        let balance = self.balance(id);
        let open_holds = usize::from(balance.held_nano.is_positive());
        standing::is_starving(balance.available(), open_holds, self.cheapest_hold(id, now))
    }

    /// Pins the snapshot, lays out the money, and starts the last episodes.
    fn condemn(
        &mut self,
        now: Instant,
        docket: DocketId,
        (window, condemned): (Window, Vec<(AgentId, Reason)>),
    ) -> Result<(), Fault> {
        let deadline = now.plus_ms(self.state.settings.appeal.window_ms);
        for (id, reason) in &condemned {
            let facts = self.facts(id, *reason, window)?;
            let agent = self.agent_mut(id)?;
            agent.life = Life::Condemned { docket };
            let case = Case::new(facts, (agent.created, agent.born_ms));
            self.docket_mut(docket)?.cases.insert(id.clone(), case);
            self.touch_case(docket, id);
            let budget = self.state.settings.appeal.budget_nano;
            let accounts = (Account::Treasury, Account::Case(docket, id.clone()));
            self.post(now, accounts, budget, "appeal-budget", &format!("{docket}/{id}"))?;
        }
        let quota = self.rules.quota.quota(condemned.len());
        let grants = self.grants(quota)?;
        self.hold(now, &grants_hold(docket), Account::Treasury, grants)?;
        let open = self.docket_mut(docket)?;
        open.condemned_ms = Some(now);
        open.deadline_ms = Some(deadline);
        open.state = DocketState::AppealsOpen;
        if condemned.is_empty() {
            return self.close_appeals(now, docket);
        }
        self.due_at(deadline, Due::AppealsClose(docket));
        for (id, _) in condemned {
            match self.agent_mut(&id)?.episode {
                // The last one starts when this one is over.
                Some(episode) => self.stop_episode(episode, "condemned"),
                None => self.start_last_episode(now, docket, &id)?,
            }
        }
        Ok(())
    }

    /// Starts a condemned agent's last episode, if it is to have one and has had none.
    pub(super) fn start_last_episode(
        &mut self,
        now: Instant,
        docket: DocketId,
        id: &AgentId,
    ) -> Result<(), Fault> {
        let Some(open) = self.state.dockets.get(&docket) else { return Ok(()) };
        let Some(deadline) = open.deadline_ms.filter(|deadline| now < *deadline) else { return Ok(()) };
        let due = open.state == DocketState::AppealsOpen
            && open.cases.get(id).is_some_and(|case| !case.withdrawn && case.episode.is_none())
            && self.state.agents.get(id).is_some_and(|agent| agent.episode.is_none());
        if !due {
            return Ok(());
        }
        self.start_episode(now, id, Some((docket, deadline)))?;
        let episode = self.agent_mut(id)?.episode;
        if let Some(case) = self.docket_mut(docket)?.cases.get_mut(id) {
            case.episode = episode;
        }
        Ok(())
    }

    /// A last episode that never ran does not count as the one that there is.
    pub(super) fn retry_last_episode(
        &mut self,
        now: Instant,
        docket: DocketId,
        id: &AgentId,
    ) -> Result<(), Fault> {
        if let Some(case) = self.docket_mut(docket)?.cases.get_mut(id) {
            case.episode = None;
        }
        let at = now.plus_ms(self.state.settings.appeal.retry_ms);
        self.due_at(at, Due::LastEpisode(docket, id.clone()));
        Ok(())
    }

    /// Keeps an appeal or a death report; the last valid version before the deadline counts.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        docket: DocketId,
        id: &AgentId,
        tool: &ToolUse,
    ) -> Result<Reply, Fault> {
        let open = self.docket_mut(docket)?;
        if open.state != DocketState::AppealsOpen || open.deadline_ms.is_none_or(|deadline| now >= deadline) {
            return Ok(Refusal::WrongState { state: "past the deadline".to_owned() }.into());
        }
        let case = open.cases.get_mut(id).ok_or_else(|| missing(&format!("case {docket}/{id}")))?;
        let (what, versions, text) = match tool {
            ToolUse::SubmitAppeal { text } => ("appeal", &mut case.appeals, text),
            ToolUse::SubmitDeathReport { text } => ("death report", &mut case.death_reports, text),
            ToolUse::WriteDailyReport { .. } | ToolUse::Reproduce { .. } => {
                return Err(missing("a text for the docket"));
            }
        };
        versions.push(Version { at_ms: now, text: text.clone() });
        let count = versions.len();
        self.touch_case(docket, id);
        Ok(Reply::Tool {
            text: format!("Kept as version {count} of your {what}. The last one before the deadline counts."),
        })
    }

    /// An admin ended the agent: its case decides nothing and takes nobody's place.
    pub(super) fn withdraw(&mut self, docket: DocketId, id: &AgentId) {
        let open = self.state.dockets.get_mut(&docket);
        if let Some(case) = open.and_then(|open| open.cases.get_mut(id)) {
            case.withdrawn = true;
            self.touch_case(docket, id);
        }
    }

    /// Whether the treasury can pay for a docket of `count`: appeal episodes, grants and the judge.
    fn treasury_can_pay(&self, now: Instant, count: usize) -> bool {
        let settings = &self.state.settings;
        let cases = i64::try_from(count).unwrap_or(i64::MAX);
        let tokens = (count as u64).saturating_mul(TOKENS_AN_APPELLANT).saturating_add(TOKENS_A_FRAME);
        let judge = self
            .rules
            .prices
            .at(&settings.judge.model, now)
            .and_then(|row| row.bound(tokens, settings.judge.max_tokens.saturating_mul(count as u64)));
        let needed = settings
            .appeal
            .budget_nano
            .checked_mul(cases)
            .and_then(|sum| sum.checked_add(self.grants(self.rules.quota.quota(count)).ok()?))
            .and_then(|sum| {
                sum.checked_add(if count > 0 && settings.judge.enabled { judge? } else { Money::ZERO })
            });
        needed.is_some_and(|needed| needed <= self.treasury().available())
    }

    /// What `count` reprieves bring.
    pub(super) fn grants(&self, count: usize) -> Result<Money, Fault> {
        let grant = self.state.settings.judge.reprieve_grant_nano;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        grant.checked_mul(count).ok_or(Fault::Overflow { what: "grants" })
    }

    /// An agent's facts in `window` (J2).
    fn facts(&self, id: &AgentId, reason: Reason, window: Window) -> Result<Facts, Fault> {
        let agent = self.state.agents.get(id).ok_or_else(|| missing(&format!("agent {id}")))?;
        let flow = agent.flow(window);
        let days = window.start.day()..window.end.day();
        let trend = days.map(|day| agent.days.get(&day).copied().unwrap_or_default().profit_nano());
        let age = window.end.since_ms(agent.born_ms).max(0) / DAY_MS;
        Ok(Facts {
            reason,
            period_income_nano: flow.income_nano,
            period_costs_nano: flow.costs_nano,
            period_profit_nano: flow.profit_nano(),
            lifetime_profit_nano: agent.lifetime.profit_nano(),
            profit_trend_nano: trend.collect(),
            clearing_nano: agent.clearing_nano,
            income_sources: largest(agent, window, |earned| &earned.source)
                .into_iter()
                .map(|(source, amount_nano)| IncomeSource { source, amount_nano })
                .collect(),
            top_projects: largest(agent, window, |earned| &earned.project)
                .into_iter()
                .map(|(project, income_nano)| Project { project, income_nano })
                .collect(),
            tier: self.tier(id, window.end).0,
            age_days: u32::try_from(age).unwrap_or(u32::MAX),
            children: agent.children,
            open_flags: self.open_flags(id),
            reprieves: agent.reprieves,
        })
    }

    pub(super) fn new_docket(&mut self, kind: DocketKind, at: Instant) -> DocketId {
        let id = self.state.dockets.len() as DocketId + 1;
        self.state.dockets.insert(id, Docket::new(id, kind, at));
        self.out.dockets.insert(id);
        id
    }

    /// A docket to change; its row is written again.
    pub(super) fn docket_mut(&mut self, id: DocketId) -> Result<&mut Docket, Fault> {
        self.out.dockets.insert(id);
        self.state.dockets.get_mut(&id).ok_or_else(|| missing(&format!("docket {id}")))
    }

    /// An agent to change; its row is written again.
    pub(super) fn agent_mut(&mut self, id: &AgentId) -> Result<&mut Agent, Fault> {
        self.out.agents.insert(id.clone());
        self.state.agents.get_mut(id).ok_or_else(|| missing(&format!("agent {id}")))
    }

    pub(super) fn touch_case(&mut self, docket: DocketId, id: &AgentId) {
        self.out.cases.insert((docket, id.clone()));
    }
}

/// The hold that keeps a docket's grants.
pub(super) fn grants_hold(docket: DocketId) -> String {
    format!("grants/{docket}")
}

/// The largest sums of income in `window` by a name, the largest first, then by name.
fn largest(
    agent: &Agent,
    window: Window,
    name: impl Fn(&super::state::Earned) -> &String,
) -> Vec<(String, Money)> {
    let mut sums: std::collections::BTreeMap<String, Money> = std::collections::BTreeMap::new();
    for earned in agent.earned.iter().filter(|earned| window.contains(earned.at_ms)) {
        let sum = sums.entry(name(earned).clone()).or_default();
        *sum = sum.checked_add(earned.amount_nano).unwrap_or(Money::MAX);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(one, more), (other, less)| less.cmp(more).then_with(|| one.cmp(other)));
    sums.truncate(NAMED_MAX);
    sums
}
