//! Income that is taken back (E5).
//!
//! While it clears it simply never clears. Later the agent's purse gives back what it has, and the platform's
//! shortfall the rest: a balance is never below zero, and an agent never owes. The income of a dead agent is given
//! back by the platform, and its figures stand as they were published.

use policy::economy::reversal::{self, Counts, Credited};
use policy::{AgentId, Instant, Money};

use super::input::{Input, Key};
use super::ledger::Account;
use super::lives::{missing, over_limit};
use super::reply::{Refusal, Reply};
use super::state::{Event, Flow, Income, Life, Stage};
use super::{Core, Fault};

/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

impl Core {
    /// Takes one income back, once.
    pub(super) fn reverse_income(&mut self, now: Instant, input: &Input) -> Result<Reply, Fault> {
        let Input::ReverseIncome { income: key, reason, .. } = input else {
            return Err(missing("the reversal"));
        };
        if reason.trim().is_empty() {
            return Ok(Refusal::Invalid { what: "the reason is blank".to_owned() }.into());
        }
        if let Some(refusal) = over_limit("reason", reason, REASON_CHARS_MAX) {
            return Ok(refusal.into());
        }
        let Some(income) = self.state.incomes.get(key).cloned() else {
            return Ok(Refusal::Unknown { what: format!("income {key}") }.into());
        };
        match income.stage {
            Stage::Reversed => return Ok(Refusal::Reversed { income: key.clone() }.into()),
            Stage::Clearing { id } => self.never_clears(now, (key, id), reason)?,
            Stage::Credited { at_ms, transfer } => {
                self.take_back(now, &income, (at_ms, transfer), (key, reason))?;
            }
            Stage::Treasury { transfer } => {
                let reference = named(key, transfer, reason);
                self.give_back(now, (Account::Treasury, income.amount_nano), &income, &reference)?;
            }
        }
        self.tell_reversed(&income, reason);
        self.announce(format!("income {key} of {} for {} is reversed", income.amount_nano, income.agent));
        if let Some(income) = self.state.incomes.get_mut(key) {
            income.stage = Stage::Reversed;
        }
        Ok(Reply::Done)
    }

    fn never_clears(&mut self, now: Instant, (key, id): (&Key, u64), reason: &str) -> Result<(), Fault> {
        let clearing = self.state.clearing.remove(&id).ok_or_else(|| missing("the income that clears"))?;
        let less = clearing.amount_nano.checked_neg().ok_or(Fault::Overflow { what: "clearing income" })?;
        self.note_clearing(&clearing.agent, less)?;
        let accounts = (Account::Clearing(clearing.source.clone()), Account::Income(clearing.source));
        self.post(now, accounts, clearing.amount_nano, "reversal", &named(key, clearing.transfer, reason))
    }

    fn take_back(
        &mut self,
        now: Instant,
        income: &Income,
        (at, transfer): (Instant, u64),
        (key, reason): (&Key, &str),
    ) -> Result<(), Fault> {
        let credited = Credited { amount: income.amount_nano, at, internal: income.internal };
        let purse = self.balance(&income.agent).available();
        let taken = reversal::reverse(credited, purse, self.period_start(now));
        if !matches!(self.agent_mut(&income.agent)?.life, Life::Dead { .. }) {
            self.count_reversal(now, income, (at, transfer), taken.counts)?;
        }
        let payer = (Account::Agent(income.agent.clone()), taken.paid);
        self.give_back(now, payer, income, &named(key, transfer, reason))
    }

    /// What `payer` can give goes back to the source, and the platform's shortfall gives the rest.
    fn give_back(
        &mut self,
        now: Instant,
        (payer, most): (Account, Money),
        income: &Income,
        reference: &str,
    ) -> Result<(), Fault> {
        let source = Account::Income(income.source.clone());
        let paid = most.min(self.state.ledger.balance(&payer).available());
        let rest = income.amount_nano.checked_sub(paid).ok_or(Fault::Overflow { what: "a reversal" })?;
        self.post(now, (payer, source.clone()), paid, "reversal", reference)?;
        self.fall_short(now, source, rest, reference)
    }

    fn count_reversal(
        &mut self,
        now: Instant,
        income: &Income,
        (at, transfer): (Instant, u64),
        counts: Counts,
    ) -> Result<(), Fault> {
        let agent = self.agent_mut(&income.agent)?;
        let less = |sum: Money| {
            sum.checked_sub(income.amount_nano).ok_or(Fault::Overflow { what: "income that is taken back" })
        };
        match counts {
            Counts::LessIncome => {
                let day = agent.days.entry(at.day()).or_default();
                day.income_nano = less(day.income_nano)?;
                agent.lifetime.income_nano = less(agent.lifetime.income_nano)?;
                agent.earned.retain(|earned| earned.transfer != transfer);
            }
            Counts::Cost => {
                let cost = Flow { income_nano: Money::ZERO, costs_nano: income.amount_nano };
                let day = agent.days.entry(now.day()).or_default();
                *day = day.plus(cost);
                agent.lifetime = agent.lifetime.plus(cost);
            }
            Counts::Nothing => agent.internal_nano = less(agent.internal_nano)?,
        }
        Ok(())
    }

    /// The reason is whoever reversed it's own words: quoted, as others' words always are.
    fn tell_reversed(&mut self, income: &Income, reason: &str) {
        let told = format!("Income of {} from {} was reversed:", income.amount_nano, clean(&income.source));
        if let Some(agent) = self.living(&income.agent) {
            agent.events.push(Event { text: told, quoted: Some(("reason".to_owned(), reason.to_owned())) });
        }
    }

    fn living(&mut self, id: &AgentId) -> Option<&mut super::state::Agent> {
        let agent = self.state.agents.get_mut(id)?;
        matches!(agent.life, Life::Alive | Life::Condemned { .. }).then_some(agent)
    }
}

/// A correction names the transfer that it takes back, and has a reason (E2).
fn named(key: &str, transfer: u64, reason: &str) -> String {
    format!("reverses transfer {transfer} ({key}): {reason}")
}

/// A source's name is its own words: cleaned before it stands in a line of ours.
fn clean(source: &str) -> String {
    policy::judge::sanitise::sanitise_line(source, 128).0.as_str().to_owned()
}
