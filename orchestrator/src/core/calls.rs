//! Model calls: held, then settled, voided or charged their bound (E3, G3, G4, G6).

use policy::economy::price::{self, Affordable, PriceRow};
use policy::{AgentId, Instant, Money};

use super::input::{EpisodeId, Input, Usage};
use super::ledger::Account;
use super::lives::missing;
use super::reply::{Refusal, Reply};
use super::state::{Call, Due, Flow, Life};
use super::{Core, Fault};

/// A call that may be made, before its money is held.
struct Wanted {
    payer: Account,
    hold_nano: Money,
    max_tokens: u64,
}

impl Core {
    /// Holds the most that a call can cost, or says why not.
    pub(super) fn call_wanted(&mut self, now: Instant, input: &Input) -> Result<Reply, Fault> {
        let Input::CallWanted { call, agent, episode, model, .. } = input else {
            return Err(missing("the call"));
        };
        let wanted = match self.wanted(now, input) {
            Ok(wanted) => wanted,
            Err(refusal) => return Ok(refusal.into()),
        };
        self.hold(now, &hold_name(call), wanted.payer, wanted.hold_nano)?;
        let limit_ms = now.plus_ms(self.state.settings.money.call_limit_ms);
        self.due_at(limit_ms, Due::CallLimit(call.clone()));
        self.spend(*episode, Money::ZERO, wanted.hold_nano)?;
        self.state.calls.insert(
            call.clone(),
            Call {
                agent: agent.clone(),
                episode: *episode,
                model: model.clone(),
                hold_nano: wanted.hold_nano,
                limit_ms,
            },
        );
        Ok(Reply::Held { hold_nano: wanted.hold_nano, max_tokens: wanted.max_tokens })
    }

    /// Settles a call on what it used.
    pub(super) fn call_settled(&mut self, now: Instant, id: &str, usage: &Usage) -> Result<Reply, Fault> {
        let Some(call) = self.state.calls.get(id) else { return Ok(not_open(id)) };
        let Some(cost) = self.rules.prices.at(&call.model, now).and_then(|row| row.cost(usage.into())) else {
            // No such usage exists: the hold stays until its time limit, and is charged then.
            return Ok(Refusal::Invalid { what: "a usage whose cost fits no amount".to_owned() }.into());
        };
        self.end_call(now, id, cost)?;
        Ok(Reply::Done)
    }

    /// Gives a call's hold back.
    pub(super) fn call_voided(&mut self, id: &str) -> Result<Reply, Fault> {
        let Some(call) = self.forget_call(id) else { return Ok(not_open(id)) };
        if self.state.ledger.hold(&hold_name(id)).is_some() {
            self.release(&hold_name(id))?;
        }
        self.spend(call.episode, call.hold_nano, Money::ZERO)?;
        self.out.agents.insert(call.agent);
        Ok(Reply::Done)
    }

    /// Nobody reported the call in time: it is charged its hold and listed (G6).
    pub(super) fn call_limit(&mut self, at: Instant, id: &str) -> Result<(), Fault> {
        let Some(call) = self.state.calls.get(id) else { return Ok(()) };
        let bound = call.hold_nano;
        self.state.unknown_outcomes.insert(id.to_owned(), bound);
        self.announce(format!("call {id} was never reported: charged its bound of {bound}"));
        self.end_call(at, id, bound)
    }

    /// Voids every hold on a dying agent's own purse (E24). The calls stay known: what the provider still bills
    /// for them is the platform's shortfall.
    pub(super) fn void_holds(&mut self, account: &Account) -> Result<(), Fault> {
        let names: Vec<String> = self
            .state
            .ledger
            .holds()
            .filter(|(_, hold)| hold.account == *account)
            .map(|(name, _)| name.to_owned())
            .collect();
        names.iter().try_for_each(|name| self.release(name).map(|_hold| ()))
    }

    /// The cheapest hold on an agent's menu, as E7 means it.
    pub(super) fn cheapest_hold(&self, id: &AgentId, now: Instant) -> Option<Money> {
        self.rules.prices.cheapest_hold(self.menu(id), now, self.state.settings.models.prompt_tokens_min)
    }

    fn wanted(&self, now: Instant, input: &Input) -> Result<Wanted, Refusal> {
        let Input::CallWanted { agent, episode, model, input_tokens_max, max_tokens, .. } = input else {
            return Err(Refusal::Unknown { what: "call".to_owned() });
        };
        let payer = self.payer(agent, *episode)?;
        let menu = self.menu(agent);
        let row = self.rules.prices.at(model, now).filter(|_| menu.contains(model));
        let Some(row) = row else {
            return Err(Refusal::ModelNotOnMenu { model: model.clone(), menu: menu.to_vec() });
        };
        if *max_tokens == 0 {
            return Err(Refusal::Invalid { what: "max_tokens is 0, and must be 1 or more".to_owned() });
        }
        let (hold_nano, max_tokens) =
            self.affordable(&payer, *episode, row, (*input_tokens_max, *max_tokens))?;
        Ok(Wanted { payer, hold_nano, max_tokens })
    }

    /// Whose purse pays: the agent's, or its case's in its last episode.
    fn payer(&self, id: &AgentId, episode: EpisodeId) -> Result<Account, Refusal> {
        let agent =
            self.state.agents.get(id).ok_or_else(|| Refusal::Unknown { what: format!("agent {id}") })?;
        let wrong = |state: &str| Refusal::WrongState { state: state.to_owned() };
        if agent.paused {
            return Err(wrong("paused"));
        }
        let docket = match agent.life {
            Life::Alive => None,
            Life::Condemned { docket } => Some(docket),
            Life::Removing { .. } | Life::Dead { .. } => return Err(wrong(agent.life.word())),
        };
        let current = agent.episode.filter(|current| *current == episode);
        let Some(open) = current.and_then(|current| self.state.episodes.get(&current)) else {
            return Err(wrong("not in this episode"));
        };
        if open.stop.is_some() || open.docket != docket {
            return Err(wrong("at the end of this episode"));
        }
        Ok(docket.map_or_else(|| Account::Agent(id.clone()), |docket| Account::Case(docket, id.clone())))
    }

    fn affordable(
        &self,
        payer: &Account,
        episode: EpisodeId,
        row: &PriceRow,
        (input_tokens_max, max_tokens): (u64, u64),
    ) -> Result<(Money, u64), Refusal> {
        let balance = self.state.ledger.balance(payer);
        let left = self.state.episodes.get(&episode).map_or(Money::ZERO, |open| {
            open.start.spend_limit_nano.checked_sub(open.spent_nano).unwrap_or(Money::ZERO)
        });
        let short = Refusal::NoMoney { available_nano: balance.available() };
        let input_bound = row.input_bound(input_tokens_max).ok_or_else(|| short.clone())?;
        let ask =
            |purse| price::affordable(purse, input_bound, row.output_nano(input_tokens_max), max_tokens);
        if let Affordable::Call { hold, max_tokens } = ask(balance.available().min(left)) {
            return Ok((hold, max_tokens));
        }
        let affords = |purse| matches!(ask(purse), Affordable::Call { .. });
        Err(if affords(balance.available()) {
            Refusal::SpendLimit
        } else if affords(balance.posted_nano) {
            Refusal::MoneyHeld { held_nano: balance.held_nano }
        } else {
            short
        })
    }

    /// Ends a call: the payer pays up to its hold, the platform the rest (E3).
    fn end_call(&mut self, at: Instant, id: &str, cost: Money) -> Result<(), Fault> {
        let call = self.forget_call(id).ok_or_else(|| missing(&format!("call {id}")))?;
        let provider = Account::Provider(self.state.settings.models.provider.clone());
        let name = hold_name(id);
        let paid = if self.state.ledger.hold(&name).is_some() {
            let hold = self.release(&name)?;
            let paid = cost.min(hold.amount_nano);
            let own = matches!(hold.account, Account::Agent(_));
            self.post(at, (hold.account, provider.clone()), paid, "call", id)?;
            if own {
                self.note_cost(at, &call.agent, paid)?;
            }
            paid
        } else {
            Money::ZERO
        };
        let rest = cost.checked_sub(paid).unwrap_or(Money::ZERO);
        self.fall_short(at, provider, rest, id)?;
        self.spend(call.episode, call.hold_nano, paid)?;
        self.out.agents.insert(call.agent);
        Ok(())
    }

    /// What a call cost beyond its hold: out of `shortfall`, which the treasury covers as far as it can.
    pub(super) fn fall_short(
        &mut self,
        at: Instant,
        provider: Account,
        rest: Money,
        reference: &str,
    ) -> Result<(), Fault> {
        let cover = rest.min(self.state.ledger.balance(&Account::Treasury).available());
        self.post(at, (Account::Treasury, Account::Shortfall), cover, "cover", reference)?;
        self.post(at, (Account::Shortfall, provider), rest, "shortfall", reference)
    }

    fn note_cost(&mut self, at: Instant, id: &AgentId, paid: Money) -> Result<(), Fault> {
        let agent = self.state.agents.get_mut(id).ok_or_else(|| missing(&format!("agent {id}")))?;
        let cost = Flow { income_nano: Money::ZERO, costs_nano: paid };
        let day = agent.days.entry(at.day()).or_default();
        *day = day.plus(cost);
        agent.lifetime = agent.lifetime.plus(cost);
        Ok(())
    }

    /// Counts money against an episode's limit: `less` of it is no longer held, `more` is.
    fn spend(&mut self, episode: EpisodeId, less: Money, more: Money) -> Result<(), Fault> {
        let Some(open) = self.state.episodes.get_mut(&episode) else { return Ok(()) };
        let spent = open.spent_nano.checked_sub(less).and_then(|left| left.checked_add(more));
        open.spent_nano = spent.ok_or(Fault::Overflow { what: "an episode's spending" })?;
        Ok(())
    }

    fn forget_call(&mut self, id: &str) -> Option<Call> {
        let call = self.state.calls.remove(id)?;
        self.state.due.remove(&(call.limit_ms, Due::CallLimit(id.to_owned())));
        Some(call)
    }

    /// Whether an agent may call at all in this episode: the gateway's first look.
    ///
    /// # Errors
    /// `WrongState` or `Unknown`, as the call itself would be refused.
    pub fn may_call(&self, agent: &AgentId, episode: EpisodeId) -> Result<(), Refusal> {
        self.payer(agent, episode).map(|_payer| ())
    }
}

fn hold_name(call: &str) -> String {
    format!("call/{call}")
}

fn not_open(id: &str) -> Reply {
    Refusal::Unknown { what: format!("open call {id}") }.into()
}

impl From<&Usage> for price::Usage {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cache_write_5m_tokens: usage.cache_write_5m_tokens,
            cache_write_1h_tokens: usage.cache_write_1h_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}
