//! Income: announced, clearing, cleared; internal where the payer is one of ours (E5).

use policy::{AgentId, Instant, Money};

use super::input::Input;
use super::ledger::Account;
use super::lives::{missing, over_limit, unknown_agent};
use super::reply::{Refusal, Reply};
use super::state::{Clearing, Due, Earned, Flow, Income, Life, Stage};
use super::{Core, Fault};

/// Longest source, project and payer, in characters.
const NAME_CHARS_MAX: usize = 128;

impl Core {
    pub(super) fn income(&mut self, now: Instant, input: &Input) -> Result<Reply, Fault> {
        let Input::Income { key, agent, source, project, payer, amount_nano } = input else {
            return Err(missing("the income"));
        };
        if let Some(refusal) = self.income_refusal(input) {
            return Ok(refusal.into());
        }
        if !self.state.agents.contains_key(agent) {
            return Ok(unknown_agent(agent));
        }
        let internal = self.is_ours(payer);
        if internal {
            self.flag_internal(now, agent, key, *amount_nano);
        }
        let mut clearing = Clearing {
            agent: agent.clone(),
            source: source.clone(),
            project: project.clone(),
            internal,
            amount_nano: *amount_nano,
            key: key.clone(),
            transfer: 0,
        };
        let span = self.state.settings.money.clearing_ms;
        if span == 0 {
            return self.credit(now, &Account::Income(source.clone()), &clearing).map(|()| Reply::Done);
        }
        let accounts = (Account::Income(source.clone()), Account::Clearing(source.clone()));
        self.post(now, accounts, *amount_nano, "clearing", key)?;
        clearing.transfer = self.state.ledger.transfers();
        self.note_clearing(agent, *amount_nano)?;
        self.state.clearings_made += 1;
        let id = self.state.clearings_made;
        self.keep_income(&clearing, Stage::Clearing { id });
        self.state.clearing.insert(id, clearing);
        self.due_at(now.plus_ms(span), Due::Clears(id));
        Ok(Reply::Done)
    }

    /// Income that has cleared; one that was reversed meanwhile never does.
    pub(super) fn income_clears(&mut self, at: Instant, id: u64) -> Result<(), Fault> {
        let Some(clearing) = self.state.clearing.remove(&id) else { return Ok(()) };
        let less = clearing.amount_nano.checked_neg().ok_or(Fault::Overflow { what: "clearing income" })?;
        self.note_clearing(&clearing.agent, less)?;
        self.credit(at, &Account::Clearing(clearing.source.clone()), &clearing)
    }

    /// Income becomes the agent's, and counts; what comes for a dead one is the treasury's and listed (E24).
    fn credit(&mut self, at: Instant, from: &Account, income: &Clearing) -> Result<(), Fault> {
        let agent = self.state.agents.get(&income.agent);
        let agent = agent.ok_or_else(|| missing(&format!("agent {}", income.agent)))?;
        if matches!(agent.life, Life::Dead { .. }) {
            let accounts = (from.clone(), Account::Treasury);
            self.announce(format!(
                "{} came for {}, which is dead: the treasury has it",
                income.amount_nano, income.agent
            ));
            self.post(at, accounts, income.amount_nano, "income-after-death", &income.key)?;
            self.keep_income(income, Stage::Treasury { transfer: self.state.ledger.transfers() });
            return Ok(());
        }
        let kind = if income.internal { "internal-income" } else { "income" };
        let accounts = (from.clone(), Account::Agent(income.agent.clone()));
        self.post(at, accounts, income.amount_nano, kind, &income.key)?;
        let transfer = self.state.ledger.transfers();
        self.keep_income(income, Stage::Credited { at_ms: at, transfer });
        self.count_income(at, income, transfer)
    }

    fn count_income(&mut self, at: Instant, income: &Clearing, transfer: u64) -> Result<(), Fault> {
        let agent = self.agent_mut(&income.agent)?;
        if income.internal {
            agent.internal_nano = plus(agent.internal_nano, income.amount_nano)?;
            return Ok(());
        }
        let flow = Flow { income_nano: income.amount_nano, costs_nano: Money::ZERO };
        let day = agent.days.entry(at.day()).or_default();
        *day = day.plus(flow);
        agent.lifetime = agent.lifetime.plus(flow);
        agent.earned.push(Earned {
            at_ms: at,
            source: income.source.clone(),
            project: income.project.clone(),
            amount_nano: income.amount_nano,
            transfer,
        });
        Ok(())
    }

    fn keep_income(&mut self, income: &Clearing, stage: Stage) {
        let kept = Income {
            agent: income.agent.clone(),
            source: income.source.clone(),
            internal: income.internal,
            amount_nano: income.amount_nano,
            stage,
        };
        self.state.incomes.insert(income.key.clone(), kept);
    }

    fn income_refusal(&self, input: &Input) -> Option<Refusal> {
        let Input::Income { source, project, payer, amount_nano, .. } = input else { return None };
        if !amount_nano.is_positive() {
            return Some(Refusal::Invalid {
                what: format!("the amount is {amount_nano}, and must be more than $0.00"),
            });
        }
        for (what, text) in [("source", source), ("project", project), ("payer", payer)] {
            if text.trim().is_empty() {
                return Some(Refusal::Invalid { what: format!("the {what} is blank") });
            }
            if let Some(refusal) = over_limit(what, text, NAME_CHARS_MAX) {
                return Some(refusal);
            }
        }
        // Every balance stays within what came in: so no sum of the ledger's can leave 64 bits.
        let inflow: i128 = self
            .state
            .ledger
            .accounts()
            .map(|(_, balance)| i128::from(balance.posted_nano.nano()).min(0))
            .sum();
        let fits = i128::from(amount_nano.nano()) - inflow <= i128::from(i64::MAX / 4);
        (!fits).then(|| Refusal::Invalid {
            what: format!("the amount {amount_nano} is more than the books can hold"),
        })
    }

    fn is_ours(&self, payer: &str) -> bool {
        let payer = payer.trim();
        AgentId::parse(&payer.to_ascii_lowercase()).is_ok_and(|id| self.state.agents.contains_key(&id))
            || self.state.agents.values().any(|agent| agent.name.trim().eq_ignore_ascii_case(payer))
    }

    pub(super) fn note_clearing(&mut self, id: &AgentId, more: Money) -> Result<(), Fault> {
        let agent = self.state.agents.get_mut(id).ok_or_else(|| missing(&format!("agent {id}")))?;
        agent.clearing_nano = plus(agent.clearing_nano, more)?;
        Ok(())
    }
}

fn plus(one: Money, more: Money) -> Result<Money, Fault> {
    one.checked_add(more).ok_or(Fault::Overflow { what: "income" })
}
