//! What a decision does: reprieves and deaths, each one step (E23 to E25).

use policy::judge::sanitise;
use policy::time::DAY_MS;
use policy::{AgentId, Instant, Money};

use super::cull::grants_hold;
use super::docket::{DocketState, Overturned};
use super::effect::Effect;
use super::input::{DocketId, Input};
use super::ledger::Account;
use super::lives::{missing, unknown_agent};
use super::reply::{Refusal, Reply};
use super::state::{Due, Event, Life};
use super::worklog::{DayFigures, EntryKind};
use super::{Core, Fault};

/// Longest piece of a death report in the lessons library, in characters.
const LESSON_CHARS_MAX: usize = 300;

impl Core {
    /// An admin overturns a decision within its hold window.
    pub(super) fn override_decision(&mut self, input: &Input) -> Result<Reply, Fault> {
        let Input::Override { docket: id, agent, reprieve, reason, actor } = input else {
            return Err(missing("the override"));
        };
        let Some(docket) = self.state.dockets.get(id) else {
            return Ok(Refusal::Unknown { what: format!("docket {id}") }.into());
        };
        if docket.state != DocketState::Held {
            return Ok(Refusal::WrongState { state: docket.state.word().to_owned() }.into());
        }
        let Some(case) = docket.cases.get(agent).filter(|case| !case.withdrawn) else {
            return Ok(Refusal::Unknown { what: format!("case of {agent} in docket {id}") }.into());
        };
        let now_spared = docket.cases.values().filter(|case| case.is_reprieved()).count();
        let spared = now_spared - usize::from(case.is_reprieved()) + usize::from(*reprieve);
        let (grants, name) = (self.grants(spared)?, grants_hold(*id));
        let held = self.state.ledger.hold(&name).map_or(Money::ZERO, |hold| hold.amount_nano);
        let more = grants.checked_sub(held).unwrap_or(Money::ZERO);
        let available_nano = self.treasury().available();
        if more > available_nano {
            return Ok(Refusal::NoMoney { available_nano }.into());
        }
        if more.is_positive() {
            let opened = self.release(&name)?.opened_ms;
            self.hold(opened, &name, Account::Treasury, grants)?;
        }
        if let Some(case) = self.docket_mut(*id)?.cases.get_mut(agent) {
            case.overturned =
                Some(Overturned { reprieved: *reprieve, reason: format!("{reason} ({actor})") });
        }
        self.touch_case(*id, agent);
        Ok(Reply::Done)
    }

    /// Carries a docket's decisions out: reprieves at once, deaths when everything that runs is gone.
    pub(super) fn execute(&mut self, now: Instant, id: DocketId) -> Result<(), Fault> {
        let docket = self.docket_mut(id)?;
        if !matches!(docket.state, DocketState::Decided | DocketState::Held) {
            return Ok(());
        }
        docket.state = DocketState::Executing;
        let cases: Vec<(AgentId, bool, bool)> = docket
            .cases
            .iter()
            .map(|(agent, case)| (agent.clone(), case.is_reprieved(), case.withdrawn || case.done))
            .collect();
        self.release(&grants_hold(id))?;
        for (agent, reprieved, over) in cases {
            match (over, reprieved) {
                (true, _) => {}
                (false, true) => self.reprieve(now, id, &agent)?,
                (false, false) => self.deny(id, &agent)?,
            }
        }
        self.finish_docket(id)
    }

    /// Everything that ran for an agent is gone: now its death may be published.
    pub(super) fn agent_removed(&mut self, now: Instant, id: &AgentId) -> Result<Reply, Fault> {
        let Some(agent) = self.state.agents.get(id) else { return Ok(unknown_agent(id)) };
        match agent.life.clone() {
            Life::Dead { .. } => Ok(Reply::Done),
            Life::Removing { cause, docket } => self.die(now, id, (&cause, docket)).map(|()| Reply::Done),
            Life::Alive | Life::Condemned { .. } => {
                Ok(Refusal::WrongState { state: agent.life.word().to_owned() }.into())
            }
        }
    }

    /// E23, in one step.
    fn reprieve(&mut self, now: Instant, docket: DocketId, id: &AgentId) -> Result<(), Fault> {
        self.close_case(now, docket, id)?;
        let grant = self.state.settings.judge.reprieve_grant_nano;
        let accounts = (Account::Treasury, Account::Agent(id.clone()));
        self.post(now, accounts, grant, "reprieve-grant", &format!("{docket}/{id}"))?;
        let case = self.docket_mut(docket)?.cases.get(id);
        let reasoning = case.and_then(|case| case.reasoning()).unwrap_or_default().to_owned();
        let agent = self.agent_mut(id)?;
        agent.life = Life::Alive;
        agent.reprieves = agent.reprieves.saturating_add(1);
        agent.exempt = true;
        agent.events.push(Event {
            text: format!(
                "You were reprieved, got {grant}, and are exempt from the next cull. The judge wrote:"
            ),
            quoted: Some(("the judge's reasoning".to_owned(), reasoning.clone())),
        });
        self.state.wanting.insert(id.clone());
        self.publish(now, EntryKind::Reprieve, (Some(id), None), reasoning);
        self.announce(format!("{id} is reprieved"));
        Ok(())
    }

    /// A denied agent dies when everything that runs for it is gone.
    fn deny(&mut self, docket: DocketId, id: &AgentId) -> Result<(), Fault> {
        let denied = self.docket_mut(docket)?.cases.get(id);
        let cause = denied.map_or("culled", |denied| denied.reason.as_str()).to_owned();
        self.agent_mut(id)?.life = Life::Removing { cause, docket: Some(docket) };
        self.remove_agent(id);
        Ok(())
    }

    /// E24, in one step.
    fn die(
        &mut self,
        now: Instant,
        id: &AgentId,
        (cause, docket): (&str, Option<DocketId>),
    ) -> Result<(), Fault> {
        if let Some(episode) = self.state.agents.get(id).and_then(|agent| agent.episode) {
            self.forget_episode(episode);
        }
        self.state.open.remove(&Effect::RemoveAgent { agent: id.clone() }.key().unwrap_or_default());
        let purse = Account::Agent(id.clone());
        self.void_holds(&purse)?;
        let left = self.state.ledger.balance(&purse).posted_nano;
        self.post(now, (purse, Account::Treasury), left, "estate", id.as_str())?;
        let report = match docket {
            Some(docket) => {
                self.close_case(now, docket, id)?;
                let left_behind = self.docket_mut(docket)?.cases.get(id);
                left_behind.and_then(|case| case.death_reports.last()).map(|version| version.text.clone())
            }
            None => None,
        };
        let figures = self.life_figures(now, id, left);
        let agent = self.agent_mut(id)?;
        agent.life = Life::Dead { at_ms: now, cause: cause.to_owned() };
        agent.events.clear();
        agent.report = None;
        let (next_wake, age) = (agent.next_wake_ms, now.since_ms(agent.born_ms) / DAY_MS);
        self.state.due.remove(&(next_wake, Due::Wake(id.clone())));
        self.lesson(id, (cause, age), (figures, report.as_deref()));
        if let Some(text) = report {
            self.publish(now, EntryKind::DeathReport, (Some(id), Some(figures.attached())), text);
        } else {
            let line = format!("No death report. {}", figures.sentence());
            self.publish(now, EntryKind::NoDeathReport, (Some(id), None), line);
        }
        self.announce(format!("{id} is dead: {cause}"));
        docket.map_or(Ok(()), |docket| self.finish_docket(docket))
    }

    /// Gives back what is left of a case's money, and marks it done.
    fn close_case(&mut self, now: Instant, docket: DocketId, id: &AgentId) -> Result<(), Fault> {
        let account = Account::Case(docket, id.clone());
        self.void_holds(&account)?;
        let left = self.state.ledger.balance(&account).posted_nano;
        self.post(now, (account, Account::Treasury), left, "case-remainder", &format!("{docket}/{id}"))?;
        if let Some(case) = self.docket_mut(docket)?.cases.get_mut(id) {
            case.done = true;
        }
        self.touch_case(docket, id);
        Ok(())
    }

    fn finish_docket(&mut self, id: DocketId) -> Result<(), Fault> {
        let docket = self.docket_mut(id)?;
        if docket.state != DocketState::Executing || docket.cases.values().any(|case| !case.done) {
            return Ok(());
        }
        docket.state = DocketState::Done;
        let lives = docket.cases.values().filter(|case| case.is_reprieved()).count();
        let dead = docket.cases.len() - lives;
        self.announce(format!("docket {id} is done: {lives} reprieved, {dead} dead"));
        Ok(())
    }

    fn life_figures(&self, now: Instant, id: &AgentId, balance_nano: Money) -> DayFigures {
        let lifetime = self.state.agents.get(id).map(|agent| agent.lifetime).unwrap_or_default();
        DayFigures {
            income_nano: lifetime.income_nano,
            costs_nano: lifetime.costs_nano,
            profit_nano: lifetime.profit_nano(),
            lifetime_nano: lifetime.profit_nano(),
            balance_nano,
            tier: self.tier(id, now).0,
        }
    }

    /// A short post-mortem for the lessons library: our figures, and the first words of its own.
    fn lesson(
        &mut self,
        id: &AgentId,
        (cause, age): (&str, i64),
        (figures, report): (DayFigures, Option<&str>),
    ) {
        let words = report.map_or_else(
            || "It left no report.".to_owned(),
            |text| {
                let start: String = text.chars().take(LESSON_CHARS_MAX).collect();
                format!("It wrote: {}", sanitise::sanitise_line(&start, LESSON_CHARS_MAX).0.as_str())
            },
        );
        let lesson = format!("{id} died at {age} days ({cause}). {} {words}", figures.sentence());
        self.state.log.lessons.push(lesson);
    }
}
