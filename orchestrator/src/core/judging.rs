//! From closed appeals to decisions: the judge is asked and read, the code decides (E20 to E22, E26, J8 to J10).

use policy::economy::quota::{self, Appellant, Decision};
use policy::judge::frame::{self, AgentWords, Batch, Setup};
use policy::judge::reader::{self, Judgement, Reading, UNREADABLE_REASONING};
use policy::judge::{prompt, sanitise};
use policy::signal::{Severity, Source};
use policy::{AgentId, Instant, Money};

use super::docket::{Ask, DocketState, Score, Verdict, Why, json};
use super::effect::Effect;
use super::input::{DocketId, Input, Usage};
use super::ledger::Account;
use super::lives::missing;
use super::reply::{Refusal, Reply};
use super::row::{Row, Table};
use super::state::Due;
use super::{Core, Fault};
use crate::judge::dice::SeededDice;

/// What a rendered batch is asked for.
#[derive(Clone, Copy)]
struct Purpose {
    docket: DocketId,
    pass: u32,
    again: bool,
    refused: bool,
}

impl Core {
    /// The deadline: no appeal counts any more, and the judge is asked about those that there are.
    pub(super) fn close_appeals(&mut self, now: Instant, id: DocketId) -> Result<(), Fault> {
        let docket = self.docket_mut(id)?;
        if docket.state != DocketState::AppealsOpen {
            return Ok(());
        }
        docket.state = DocketState::AppealsClosed;
        let appellants: Vec<AgentId> = docket.appellants().map(|(agent, _)| agent.clone()).collect();
        let episodes: Vec<_> = docket.cases.values().filter_map(|case| case.episode).collect();
        for episode in episodes {
            self.stop_episode(episode, "the deadline for appeals has passed");
        }
        if appellants.is_empty() || !self.state.settings.judge.enabled {
            return self.decide(now, id);
        }
        self.docket_mut(id)?.state = DocketState::Judging;
        self.announce(format!("docket {id}: {} appeals go to the judge", appellants.len()));
        for pass in 1..=self.rules.quota.settings().passes {
            let purpose = Purpose { docket: id, pass, again: false, refused: false };
            self.ask(now, purpose, &appellants)?;
        }
        Ok(())
    }

    /// Every last episode is over: nothing more can come, and the docket does not wait for its deadline. One that was
    /// lost, or waits to be started, is not over.
    pub(super) fn close_if_over(&mut self, now: Instant, id: DocketId) -> Result<(), Fault> {
        let ended = |episode: &u64| !self.state.episodes.contains_key(episode);
        let over = self.state.dockets.get(&id).is_some_and(|docket| {
            let mut cases = docket.cases.values();
            docket.state == DocketState::AppealsOpen
                && cases.all(|case| case.withdrawn || case.episode.as_ref().is_some_and(ended))
        });
        if over { self.close_appeals(now, id) } else { Ok(()) }
    }

    /// The judge answered: what its words are worth is for the strict reader to say.
    pub(super) fn judge_answered(&mut self, now: Instant, input: &Input) -> Result<Reply, Fault> {
        let Input::JudgeAnswered { docket: id, batch, stop_reason, text, usage, .. } = input else {
            return Err(missing("the judge's answer"));
        };
        let Some(ask) = self.take_ask(*id, *batch) else { return Ok(self.no_such_batch(*id, *batch)) };
        let cost = self.settle_platform(now, &ask_hold(*id, *batch), usage, &self.judge_model())?;
        let docket = self.docket_mut(*id)?;
        docket.outage_ms = None;
        let whole = matches!(stop_reason.as_str(), "end_turn" | "stop_sequence");
        let reading = whole.then(|| reader::read(&ask.seats, text.as_bytes()));
        self.record(now, input, (&ask, cost, reading.as_ref()));
        let purpose = Purpose { docket: *id, pass: ask.pass, again: ask.again, refused: ask.refused };
        match reading {
            Some(reading) => self.take_reading(now, purpose, reading)?,
            None => self.refused(now, purpose, &ask)?,
        }
        self.decide_if_read(now, *id)?;
        Ok(Reply::Done)
    }

    /// No judgement could be had: the batch waits and is asked again; nobody dies of it (E26).
    pub(super) fn judge_unavailable(
        &mut self,
        now: Instant,
        (id, batch): (DocketId, u32),
        why: &str,
        maybe_billed: bool,
    ) -> Result<Reply, Fault> {
        let Some(mut ask) = self.take_ask(id, batch) else { return Ok(self.no_such_batch(id, batch)) };
        self.end_unanswered(now, &ask_hold(id, batch), maybe_billed)?;
        ask.tries += 1;
        self.put_off(now, (id, batch), ask, why)?;
        Ok(Reply::Done)
    }

    /// An admin has every waiting batch asked again at once.
    pub(super) fn retry_judge(&mut self, now: Instant, id: DocketId) -> Result<Reply, Fault> {
        let waiting: Vec<u32> = match self.state.dockets.get(&id) {
            Some(docket) => {
                docket.batches.iter().filter(|(_, ask)| ask.waiting).map(|(number, _)| *number).collect()
            }
            None => return Ok(Refusal::Unknown { what: format!("docket {id}") }.into()),
        };
        let docket = self.docket_mut(id)?;
        (docket.waits_for_admin, docket.outage_ms) = (false, None);
        waiting.into_iter().try_for_each(|batch| self.ask_again(now, id, batch))?;
        Ok(Reply::Done)
    }

    /// Asks a batch that waits: the same frame under a new number.
    pub(super) fn ask_again(&mut self, now: Instant, id: DocketId, batch: u32) -> Result<(), Fault> {
        let docket = self.docket_mut(id)?;
        if docket.waits_for_admin || docket.batches.get(&batch).is_none_or(|ask| !ask.waiting) {
            return Ok(());
        }
        match docket.batches.remove(&batch) {
            Some(ask) => self.send(now, id, ask),
            None => Ok(()),
        }
    }

    /// Puts appellants to the judge in rendered batches.
    fn ask(&mut self, now: Instant, purpose: Purpose, agents: &[AgentId]) -> Result<(), Fault> {
        let appellants = self.appellants(purpose.docket, agents)?;
        let made = self.docket_mut(purpose.docket)?.batches_made;
        let stream = format!("docket/{}/pass/{}/batch/{made}", purpose.docket, purpose.pass);
        let mut dice = SeededDice::new(self.state.seed.as_bytes(), &stream);
        let batch_max = usize::try_from(self.state.settings.judge.batch_max).unwrap_or(1);
        let setup = Setup { batch_max, ..Setup::default() };
        for batch in frame::render(&appellants, &setup, &mut dice) {
            self.flag_tricks(now, purpose.docket, &batch);
            let least = self.state.settings.judge.max_tokens;
            let ask = Ask {
                pass: purpose.pass,
                max_tokens: batch.reply_tokens_max().max(least),
                schema: prompt::schema(&batch.order),
                seats: batch.order,
                system: batch.system,
                user: batch.user,
                tries: 0,
                again: purpose.again,
                refused: purpose.refused,
                waiting: false,
            };
            self.send(now, purpose.docket, ask)?;
        }
        Ok(())
    }

    /// Holds what a request can cost and issues it; a treasury that cannot pay is an outage.
    fn send(&mut self, now: Instant, id: DocketId, mut ask: Ask) -> Result<(), Fault> {
        let docket = self.docket_mut(id)?;
        docket.batches_made += 1;
        let batch = docket.batches_made;
        let model = self.judge_model();
        // A token is at least one byte.
        let tokens = (ask.system.len() + ask.user.len() + ask.schema.len()) as u64;
        let row = self.rules.prices.at(&model, now);
        let bound = row.and_then(|row| row.bound(tokens, ask.max_tokens));
        let Some(bound) = bound.filter(|bound| *bound <= self.treasury().available()) else {
            ask.tries += 1;
            return self.put_off(now, (id, batch), ask, "the treasury cannot pay for the judge");
        };
        self.hold(now, &ask_hold(id, batch), Account::Treasury, bound)?;
        ask.waiting = false;
        let effect = Effect::AskJudge {
            docket: id,
            batch,
            model,
            system: ask.system.clone(),
            user: ask.user.clone(),
            schema: ask.schema.clone(),
            max_tokens: ask.max_tokens,
        };
        self.docket_mut(id)?.batches.insert(batch, ask);
        self.emit(effect);
        Ok(())
    }

    /// Lets a batch wait, each time twice as long; after the longest outage only an admin has it asked again.
    fn put_off(
        &mut self,
        now: Instant,
        (id, batch): (DocketId, u32),
        mut ask: Ask,
        why: &str,
    ) -> Result<(), Fault> {
        let settings = &self.state.settings.judge;
        let doublings = ask.tries.saturating_sub(1).min(30);
        let wait = settings.retry_first_ms.saturating_mul(1_i64 << doublings).min(settings.retry_longest_ms);
        let outage = settings.outage_ms;
        ask.waiting = true;
        let docket = self.docket_mut(id)?;
        let since = *docket.outage_ms.get_or_insert(now);
        docket.batches.insert(batch, ask);
        docket.waits_for_admin = now.since_ms(since) >= outage;
        docket.note = format!("the judge is out of reach since {since}: {why}");
        if docket.waits_for_admin {
            self.announce(format!("docket {id} waits for an admin: the judge is out of reach since {since}"));
        } else {
            self.due_at(now.plus_ms(wait), Due::JudgeRetry(id, batch));
        }
        Ok(())
    }

    /// Keeps the scores that could be read; the others are asked again once, alone (J9).
    fn take_reading(&mut self, now: Instant, purpose: Purpose, reading: Reading) -> Result<(), Fault> {
        for judgement in reading.judgements {
            let agent = AgentId::parse(&judgement.id).map_err(|_gone| missing("the judged agent"))?;
            if judgement.scores.is_err() && !purpose.again {
                self.ask(now, Purpose { again: true, ..purpose }, &[agent])?;
            } else {
                self.keep_score(purpose, &agent, score(&judgement))?;
            }
        }
        Ok(())
    }

    /// A refusal or a reply that was cut off is no judgement: split, then alone once more, then unreadable (J10).
    fn refused(&mut self, now: Instant, purpose: Purpose, ask: &Ask) -> Result<(), Fault> {
        let agents: Result<Vec<AgentId>, _> = ask.seats.iter().map(|seat| AgentId::parse(&seat.id)).collect();
        let agents = agents.map_err(|_gone| missing("the judged agent"))?;
        match agents.as_slice() {
            [alone] if purpose.refused => {
                self.keep_score(purpose, alone, unreadable("the judge refused it, alone, twice"))
            }
            [alone] => self.ask(now, Purpose { refused: true, ..purpose }, std::slice::from_ref(alone)),
            several => {
                let (one, other) = several.split_at(several.len() / 2);
                self.ask(now, purpose, one)?;
                self.ask(now, purpose, other)
            }
        }
    }

    fn keep_score(&mut self, purpose: Purpose, agent: &AgentId, score: Score) -> Result<(), Fault> {
        let case = self.docket_mut(purpose.docket)?.cases.get_mut(agent);
        case.ok_or_else(|| missing(&format!("case of {agent}")))?.scores.insert(purpose.pass, score);
        self.touch_case(purpose.docket, agent);
        Ok(())
    }

    fn decide_if_read(&mut self, now: Instant, id: DocketId) -> Result<(), Fault> {
        let docket = self.docket_mut(id)?;
        if docket.state == DocketState::Judging && docket.batches.is_empty() {
            docket.note.clear();
            return self.decide(now, id);
        }
        Ok(())
    }

    /// Applies the quota. The judge's words end here.
    fn decide(&mut self, now: Instant, id: DocketId) -> Result<(), Fault> {
        let judged = self.state.settings.judge.enabled;
        let rules = self.rules.quota.clone();
        let docket = self.docket_mut(id)?;
        let appellants: Vec<Appellant<AgentId>> = docket
            .appellants()
            .filter(|_| judged)
            .map(|(agent, case)| Appellant {
                id: agent.clone(),
                created: case.created,
                born: case.born_ms,
                promise: case.promise(),
                lifetime_profit: case.facts.lifetime_profit_nano,
                reprieves: case.facts.reprieves,
            })
            .collect();
        let decisions = quota::decide(&appellants, &rules);
        docket.quota = decisions.quota;
        for case in docket.cases.values_mut() {
            case.decision =
                Some(Verdict { reprieved: false, why: without_appeal(case.withdrawn, judged), rank: None });
        }
        for decided in decisions.decisions {
            let reprieved = decided.decision == Decision::Reprieved;
            if let Some(case) = docket.cases.get_mut(&decided.id) {
                case.decision = Some(Verdict { reprieved, why: decided.reason.into(), rank: decided.rank });
            }
        }
        docket.state = DocketState::Decided;
        let agents: Vec<AgentId> = docket.cases.keys().cloned().collect();
        for agent in &agents {
            self.touch_case(id, agent);
        }
        let window = self.state.settings.schedule.hold_window_ms;
        if window == 0 {
            return self.execute(now, id);
        }
        self.docket_mut(id)?.state = DocketState::Held;
        self.due_at(now.plus_ms(window), Due::HoldWindow(id));
        Ok(())
    }

    /// What is shown of each appellant: facts, its last reports, its appeal; captured reasoning has no place here.
    fn appellants(&self, id: DocketId, agents: &[AgentId]) -> Result<Vec<frame::Appellant>, Fault> {
        let docket = self.state.dockets.get(&id).ok_or_else(|| missing(&format!("docket {id}")))?;
        let one = |agent: &AgentId| {
            let case = docket.cases.get(agent)?;
            let known = self.state.agents.get(agent)?;
            Some(frame::Appellant {
                id: agent.to_string(),
                name: known.name.clone(),
                facts: case.facts.clone(),
                agent_words: AgentWords { daily_reports: known.reports.clone(), ..AgentWords::default() },
                appeal: case.appeal()?.to_owned(),
            })
        };
        let shown: Option<Vec<_>> = agents.iter().map(one).collect();
        shown.ok_or_else(|| missing("an appellant"))
    }

    /// What the sanitiser found in an appellant's words is a signal against it.
    fn flag_tricks(&mut self, now: Instant, docket: DocketId, batch: &Batch) {
        for (agent, report) in &batch.sanitised {
            let Ok(id) = AgentId::parse(agent) else { continue };
            if report.severity() == Severity::Info {
                continue;
            }
            let found = (report.dropped() + report.folded() + report.phrases.len()).max(1) as u64;
            let flag = format!("judge/{docket}/{agent}");
            self.own_flag(now, (&id, Source::Judge), &flag, ("words_dressed_up", found));
        }
    }

    fn take_ask(&mut self, id: DocketId, batch: u32) -> Option<Ask> {
        let docket = self.state.dockets.get_mut(&id)?;
        if docket.batches.get(&batch)?.waiting {
            return None;
        }
        self.state.open.remove(&format!("ask-judge/{id}/{batch}"));
        docket.batches.remove(&batch)
    }

    /// A batch that was answered before is no error: effects are carried out at least once.
    fn no_such_batch(&self, id: DocketId, batch: u32) -> Reply {
        let made = self.state.dockets.get(&id).map_or(0, |docket| docket.batches_made);
        if (1..=made).contains(&batch) {
            return Reply::Done;
        }
        Refusal::Unknown { what: format!("batch {batch} of docket {id}") }.into()
    }

    fn record(&mut self, now: Instant, input: &Input, (ask, cost, reading): (&Ask, Money, Option<&Reading>)) {
        let Input::JudgeAnswered { docket, batch, model, stop_reason, text, usage } = input else { return };
        let read: Vec<_> = reading.map_or_else(Vec::new, |reading| {
            reading
                .judgements
                .iter()
                .map(|judgement| (judgement.label.clone(), judgement.id.clone(), score(judgement)))
                .collect()
        });
        self.out.rows.push(Row::new(
            Table::Judgements,
            [
                format!("{docket}/{batch}").into(),
                (*docket).into(),
                (*batch).into(),
                now.into(),
                model.as_str().into(),
                stop_reason.as_str().into(),
                ask.system.as_str().into(),
                ask.user.as_str().into(),
                text.as_str().into(),
                json(usage).into(),
                cost.into(),
                json(&read).into(),
            ],
        ));
    }

    /// Settles a hold of the treasury's own on what was used, and says what that cost.
    pub(super) fn settle_platform(
        &mut self,
        now: Instant,
        name: &str,
        usage: &Usage,
        model: &str,
    ) -> Result<Money, Fault> {
        let hold = self.release(name)?;
        // A usage whose cost fits no amount is charged what was held.
        let cost = self.rules.prices.at(model, now).and_then(|row| row.cost(usage.into()));
        let cost = cost.unwrap_or(hold.amount_nano);
        let provider = Account::Provider(self.state.settings.models.provider.clone());
        let paid = cost.min(hold.amount_nano);
        self.post(now, (Account::Treasury, provider.clone()), paid, "platform-call", name)?;
        let rest = cost.checked_sub(paid).unwrap_or(Money::ZERO);
        self.fall_short(now, provider, rest, name)?;
        Ok(cost)
    }

    /// Ends a hold of the treasury's own on a call that got no answer: back, or at its bound and listed where the
    /// provider may bill it all the same (G6).
    pub(super) fn end_unanswered(
        &mut self,
        now: Instant,
        name: &str,
        maybe_billed: bool,
    ) -> Result<(), Fault> {
        let bound = self.release(name)?.amount_nano;
        if !maybe_billed {
            return Ok(());
        }
        self.state.unknown_outcomes.insert(name.to_owned(), bound);
        self.announce(format!("call {name} has an unknown outcome: charged its bound of {bound}"));
        let provider = Account::Provider(self.state.settings.models.provider.clone());
        self.post(now, (Account::Treasury, provider), bound, "platform-call", name)
    }

    fn judge_model(&self) -> String {
        self.state.settings.judge.model.clone()
    }
}

fn without_appeal(withdrawn: bool, judged: bool) -> Why {
    match (withdrawn, judged) {
        (true, _) => Why::Withdrawn,
        (false, true) => Why::NoAppeal,
        (false, false) => Why::NoJudge,
    }
}

fn ask_hold(docket: DocketId, batch: u32) -> String {
    format!("judge/{docket}/{batch}")
}

fn score(judgement: &Judgement) -> Score {
    match &judgement.scores {
        Ok(scores) => Score {
            traction: scores.traction,
            plan: scores.plan,
            cost_discipline: scores.cost_discipline,
            learning: scores.learning,
            risk: scores.risk,
            promise: scores.promise,
            reasoning: scores.reasoning.as_str().to_owned(),
            unreadable: None,
        },
        Err(why) => unreadable(&why.to_string()),
    }
}

fn unreadable(why: &str) -> Score {
    Score {
        traction: 0,
        plan: 0,
        cost_discipline: 0,
        learning: 0,
        risk: 0,
        promise: 0,
        reasoning: UNREADABLE_REASONING.to_owned(),
        unreadable: Some(sanitise::sanitise_line(why, 200).0.as_str().to_owned()),
    }
}
