//! The deterministic machine: `Core::step(now, input) -> Step`.
//!
//! No threads, clock, randomness, files or sockets: the same inputs at the same instants give the same state, the
//! same effects and the same rows, on every machine. It decides nothing that `policy` decides; it keeps the books,
//! asks `policy`, and does what that says.

mod calls;
mod cull;
mod digest;
pub mod docket;
pub mod effect;
mod execution;
mod income;
pub mod input;
mod judging;
pub mod ledger;
mod lives;
pub mod query;
pub mod reply;
mod reproduction;
mod reversal;
pub mod row;
pub mod rules;
mod schedule;
pub mod settings;
mod signals;
pub mod state;
mod timers;
mod tools;
pub mod view;
mod wake;
pub mod worklog;

use std::collections::BTreeSet;

use policy::{AgentId, Instant, Money};
use sha2::{Digest as _, Sha256};

use effect::Effect;
use input::{DocketId, Input};
use ledger::{Account, LedgerError, Posting};
use reply::{Refusal, Reply};
use row::{Row, Table};
use rules::Rules;
use state::{Answered, Due, State};

/// The control plane's whole state and rules.
#[derive(Debug, Clone, Default)]
pub struct Core {
    state: State,
    rules: Rules,
    out: Out,
}

/// What one input led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What whoever brought the input is told, once the step is in the journal.
    pub reply: Reply,
    /// What is to be done, once the step is in the journal.
    pub effects: Vec<Effect>,
    /// What people read of it.
    pub rows: Vec<Row>,
    /// Whether anything changed: a step that changed nothing needs no row in the journal.
    pub changed: bool,
}

/// A promise of the core's own that broke: a bug of ours, never the caller's fault. The core is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The ledger refused what the rules had found right.
    #[error("the ledger refused a movement that the rules allow: {0}")]
    Ledger(#[from] LedgerError),
    /// Something that must be there is not.
    #[error("{what} is gone from the state")]
    Missing {
        /// What.
        what: String,
    },
    /// A sum that the door should have kept out.
    #[error("a sum of {what} does not fit 64 bits")]
    Overflow {
        /// Of what.
        what: &'static str,
    },
    /// The ledger's own check failed.
    #[error("{what}")]
    Unbalanced {
        /// What is wrong.
        what: String,
    },
}

/// What the step that is going on has produced so far.
#[derive(Debug, Clone, Default)]
struct Out {
    effects: Vec<Effect>,
    rows: Vec<Row>,
    accounts: BTreeSet<Account>,
    agents: BTreeSet<AgentId>,
    dockets: BTreeSet<DocketId>,
    cases: BTreeSet<(DocketId, AgentId)>,
}

impl Core {
    /// A core that waits for its genesis row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one input at `now`. Whatever was due by then is done first, each thing for the instant at which it
    /// was due.
    ///
    /// # Errors
    /// [`Fault`]: the core must not be used again, and nothing of this step may be kept.
    pub fn step(&mut self, now: Instant, input: &Input) -> Result<Step, Fault> {
        let now = now.max(self.state.now_ms);
        let was_due = self.run_due(now)?;
        let answer = input.key().map(|key| (key, body(input)));
        let known = answer.as_ref().and_then(|(key, body)| self.recall(key, body));
        let is_new = known.is_none() && !matches!(input, Input::Tick);
        let reply = match known {
            Some(reply) => reply,
            None => self.apply(now, input)?,
        };
        let refused = matches!(reply, Reply::Refused(_));
        if let (Some((key, body)), false) = (answer, refused) {
            self.state.answered.entry(key).or_insert_with(|| Answered { body, reply: reply.clone() });
        }
        self.settle_up(now)?;
        let changed = was_due || is_new && !refused;
        if changed {
            self.state.now_ms = now;
        }
        Ok(self.finish(reply, changed))
    }

    /// When the core wants the next tick, if anything is due at all.
    pub fn next_due(&self) -> Option<Instant> {
        self.state.due.first().map(|(at, _)| *at)
    }

    /// Every effect whose answer is not in yet, to be carried out again after a restart.
    pub fn open_effects(&self) -> Vec<Effect> {
        self.state.open.values().cloned().collect()
    }

    /// Whether something is under way that the shell will report on: an episode, a call, a question.
    pub fn is_busy(&self) -> bool {
        !self.state.open.is_empty() || !self.state.calls.is_empty()
    }

    /// The instant of the last input that changed anything.
    pub const fn last_instant(&self) -> Instant {
        self.state.now_ms
    }

    /// Whether the genesis row was stepped.
    pub const fn is_born(&self) -> bool {
        self.state.genesis_ms.is_some()
    }

    /// SHA-256 of the whole state: the same journal gives the same one.
    ///
    /// # Errors
    /// Where the state has no JSON, which would be a bug of ours.
    pub fn state_hash(&self) -> Result<String, serde_json::Error> {
        Ok(hex(&Sha256::digest(serde_json::to_vec(&self.state)?)))
    }

    /// Checks the ledger's promises: the sum is zero and nobody is below zero.
    ///
    /// # Errors
    /// `Unbalanced` names what is wrong.
    pub fn check(&self) -> Result<(), Fault> {
        self.state.ledger.broken().map_or(Ok(()), |what| Err(Fault::Unbalanced { what }))
    }

    fn apply(&mut self, now: Instant, input: &Input) -> Result<Reply, Fault> {
        if let Input::Genesis { settings, seed } = input {
            return self.genesis(now, settings, seed);
        }
        if self.state.genesis_ms.is_none() {
            return Ok(Refusal::Unknown { what: "genesis row yet".to_owned() }.into());
        }
        match input {
            Input::Genesis { .. } | Input::Tick => Ok(Reply::Done),
            Input::CreateAgent { agent, name, image, brief, .. } => {
                self.create_agent(now, agent, [name, image, brief])
            }
            Input::Pause { agent, .. } => Ok(self.pause(agent, true)),
            Input::Resume { agent, .. } => Ok(self.pause(agent, false)),
            Input::Kill { agent, reason, actor } => Ok(self.kill(agent, &format!("{reason} ({actor})"))),
            Input::Income { .. } => self.income(now, input),
            Input::ReverseIncome { .. } => self.reverse_income(now, input),
            Input::Wake { agent, event, .. } => Ok(self.event(agent, event)),
            Input::EpisodeStarted { episode } => Ok(self.episode_started(now, *episode)),
            Input::EpisodeEnded { episode, end } => self.episode_ended(now, *episode, end),
            Input::AgentRemoved { agent } => self.agent_removed(now, agent),
            Input::CallWanted { .. } => self.call_wanted(now, input),
            Input::CallSettled { call, usage, .. } => self.call_settled(now, call, usage),
            Input::CallVoided { call, .. } => self.call_voided(call),
            Input::ToolUsed { agent, episode, tool } => self.tool_used(now, agent, *episode, tool),
            Input::JudgeAnswered { .. } => self.judge_answered(now, input),
            Input::JudgeUnavailable { docket, batch, why, maybe_billed } => {
                self.judge_unavailable(now, (*docket, *batch), why, *maybe_billed)
            }
            Input::RetryJudge { docket, .. } => self.retry_judge(now, *docket),
            Input::Override { .. } => self.override_decision(input),
            Input::DigestAnswered { day, text, usage } => self.digest_answered(now, *day, text, usage),
            Input::DigestUnavailable { day, why, maybe_billed } => {
                self.digest_unavailable(now, *day, why, *maybe_billed)
            }
            Input::SignalSeen { signal } => Ok(self.signal_seen(signal)),
            Input::SpoolRead { spool, offset } => Ok(self.spool_read(spool, *offset)),
            Input::CloseFlag { signal, reason, actor } => {
                Ok(self.close_flag(now, signal, &format!("{reason} ({actor})")))
            }
        }
    }

    fn genesis(&mut self, now: Instant, settings: &settings::Settings, seed: &str) -> Result<Reply, Fault> {
        if self.state.genesis_ms.is_some() {
            return Ok(Refusal::Invalid { what: "the journal has its genesis row already".to_owned() }.into());
        }
        let rules = match Rules::parse(now, settings, seed) {
            Ok(rules) => rules,
            Err(wrong) => return Ok(Refusal::Invalid { what: wrong.to_string() }.into()),
        };
        self.rules = rules;
        self.state.settings = settings.clone();
        seed.clone_into(&mut self.state.seed);
        self.state.genesis_ms = Some(now);
        self.post(
            now,
            (Account::External, Account::Treasury),
            settings.money.treasury_nano,
            "funding",
            "genesis",
        )?;
        self.first_dues(now);
        Ok(Reply::Done)
    }

    /// The answer given before to the same key: the same again, or a conflict for another body.
    fn recall(&self, key: &str, body: &str) -> Option<Reply> {
        let answered = self.state.answered.get(key)?;
        if answered.body == body {
            return Some(answered.reply.clone());
        }
        Some(Refusal::Conflict { key: key.to_owned() }.into())
    }

    /// What follows from what this step has done: starving agents, and wakes that are possible now.
    fn settle_up(&mut self, now: Instant) -> Result<(), Fault> {
        self.condemn_starving(now)?;
        self.start_wanted(now)
    }

    fn finish(&mut self, reply: Reply, changed: bool) -> Step {
        let Out { effects, mut rows, accounts, agents, dockets, cases } = std::mem::take(&mut self.out);
        for account in accounts {
            let balance = self.state.ledger.balance(&account);
            rows.push(Row::new(
                Table::Accounts,
                [account.to_string().into(), balance.posted_nano.into(), balance.held_nano.into()],
            ));
        }
        rows.extend(agents.iter().filter_map(|agent| self.state.agents.get(agent)).map(state::Agent::row));
        rows.extend(dockets.iter().filter_map(|id| self.state.dockets.get(id)).map(docket::Docket::row));
        rows.extend(cases.iter().filter_map(|(docket, agent)| {
            Some(self.state.dockets.get(docket)?.cases.get(agent)?.row(*docket, agent))
        }));
        Step { reply, effects, rows, changed }
    }

    /// Posts one transfer and notes it for the tables.
    fn post(
        &mut self,
        now: Instant,
        (from, to): (Account, Account),
        amount_nano: Money,
        kind: &'static str,
        reference: &str,
    ) -> Result<(), Fault> {
        if amount_nano == Money::ZERO {
            return Ok(());
        }
        let posting = Posting { from, to, amount_nano, kind, reference: reference.to_owned() };
        let transfer = self.state.ledger.transfer(now, posting)?;
        self.out.rows.push(transfer.row());
        self.out.accounts.extend([transfer.from, transfer.to]);
        Ok(())
    }

    fn hold(&mut self, now: Instant, name: &str, account: Account, amount_nano: Money) -> Result<(), Fault> {
        self.state.ledger.open(now, name, account.clone(), amount_nano)?;
        self.out.accounts.insert(account);
        Ok(())
    }

    fn release(&mut self, name: &str) -> Result<ledger::Hold, Fault> {
        let hold = self.state.ledger.release(name)?;
        self.out.accounts.insert(hold.account.clone());
        Ok(hold)
    }

    /// Issues an effect; one with a key stays open until it is answered.
    fn emit(&mut self, effect: Effect) {
        if let Some(key) = effect.key() {
            self.state.open.insert(key, effect.clone());
        }
        self.out.effects.push(effect);
    }

    fn announce(&mut self, text: String) {
        self.emit(Effect::Announce { text });
    }

    fn due_at(&mut self, at: Instant, due: Due) {
        self.state.due.insert((at, due));
    }
}

/// SHA-256 of an input: two inputs with one key must have the same.
fn body(input: &Input) -> String {
    // An input always has JSON: it is made of text, numbers and maps with text keys.
    hex(&Sha256::digest(serde_json::to_vec(input).unwrap_or_default()))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}
