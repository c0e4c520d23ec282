//! The shell round the core, on a virtual clock: a queue of events, each answered at an instant of its own.

mod upsets;

use std::collections::BTreeMap;

use policy::judge::reader::REASONING_CHARS_MAX;
use policy::signal::{Severity, Signal, Source};
use policy::time::HOUR_MS;
use policy::{AgentId, Instant, Money};

use super::checks::{Check, Checks};
use super::fault::{Mood, Upset};
use super::kind::{Act, Kind, Temper};
use super::streams::Stream;
use super::words::{self, OwnFigures};
use super::{Options, SimulateError};
use crate::core::effect::{Effect, StartEpisode};
use crate::core::input::{EpisodeEnd, EpisodeId, Input, ToolUse, Usage};
use crate::core::reply::{Refusal, Reply};
use crate::core::{Core, Step};
use crate::demo::stand_in;
use crate::journal::{self, Head};

/// One cent.
const CENT_NANO: i64 = Money::DOLLAR.nano() / 100;
/// How many agents a wash-trader has pay it, in turn.
const FRIENDS: usize = 8;
/// Which models agents call: the dearer and the cheaper one.
const LARGE: &str = "claude-sonnet-5-5";
const SMALL: &str = "claude-haiku-5-5";

/// Something that happens at its instant.
#[derive(Debug)]
pub(super) enum Event {
    /// A run is up.
    Started(EpisodeId),
    /// An agent does the next thing of its episode.
    Next(EpisodeId),
    /// Anything that reaches the core as it is.
    Arrives(Input),
    /// Income that reaches the core; with `again` its sender did not see the answer and sends it again.
    Pays { input: Input, again: Again },
    /// The judge answers a batch.
    Judged { docket: u64, batch: u32, user: String },
    /// The digest's model answers.
    Digested { day: i64, user: String },
    /// Something goes wrong.
    Upset(Upset),
    /// What went wrong is over.
    Over(Recovery),
}

/// What a sender of income does besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Nothing.
    No,
    /// It sends the same again.
    Same,
    /// It sends another amount under the same key.
    Other,
}

/// What ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recovery {
    /// The judge's mood.
    Judge,
    /// A clock that was behind.
    Clock,
    /// An agent that an admin had paused.
    Resume(AgentId),
}

/// One confined run.
#[derive(Debug)]
struct Episode {
    agent: AgentId,
    acts: std::vec::IntoIter<Act>,
    /// Whether it can pay for no more calls.
    spent: bool,
}

/// One stand-in agent.
#[derive(Debug)]
struct Actor {
    temper: Temper,
    stream: Stream,
    born_ms: Instant,
}

/// A row, as whoever writes a journal needs it.
pub(super) type Written = (Instant, Input, Step);

/// The shell.
#[derive(Debug)]
pub(super) struct World {
    pub core: Core,
    pub head: Head,
    pub checks: Checks,
    pub events: u64,
    /// Steps that changed something, for whoever takes them; empty where nobody does.
    pub written: Vec<Written>,
    keeps_written: bool,
    /// True time; the host's clock may show less.
    now: Instant,
    behind_ms: i64,
    queue: BTreeMap<(Instant, u64), Event>,
    queued: u64,
    runs: BTreeMap<EpisodeId, Episode>,
    actors: BTreeMap<AgentId, Actor>,
    mood: Mood,
    faults: bool,
    /// Every row so far, for rebuilding the core; kept only where faults are made.
    rows: Vec<(Instant, Input)>,
    stream: Stream,
    seed: u64,
    /// Numbers of calls and payments: a run that is made again makes new ones.
    keys_made: u64,
}

impl World {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            core: Core::new(),
            head: Head::empty(),
            checks: Checks::new(super::START, options.faults),
            events: 0,
            written: Vec::new(),
            keeps_written: options.journal.is_some(),
            now: super::START,
            behind_ms: 0,
            queue: BTreeMap::new(),
            queued: 0,
            runs: BTreeMap::new(),
            actors: BTreeMap::new(),
            mood: Mood::Formula,
            faults: options.faults,
            rows: Vec::new(),
            stream: Stream::new(options.seed, "world"),
            seed: options.seed,
            keys_made: 0,
        }
    }

    fn next_key(&mut self) -> u64 {
        self.keys_made += 1;
        self.keys_made
    }

    /// True time.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Has an event happen at an instant.
    pub(super) fn at(&mut self, at: Instant, event: Event) {
        self.queued += 1;
        self.queue.insert((at, self.queued), event);
    }

    /// An agent is born.
    pub(super) fn bear(&mut self, id: &AgentId, temper: Temper) -> Result<Reply, SimulateError> {
        let actor =
            Actor { temper, stream: Stream::new(self.seed, &format!("agent/{id}")), born_ms: self.now };
        self.actors.insert(id.clone(), actor);
        self.submit(Input::CreateAgent {
            key: id.to_string(),
            agent: id.clone(),
            name: format!("Agent {id}"),
            image: "sample".to_owned(),
            brief: "Earn your keep.".to_owned(),
        })
    }

    /// The kind of an agent.
    pub(super) fn kind(&self, id: &AgentId) -> Kind {
        self.actors.get(id).map_or(Kind::Worker, |actor| actor.temper.kind)
    }

    /// Does whatever is next, if it is before `end`; says whether there was anything.
    pub(super) fn step(&mut self, end: Instant) -> Result<bool, SimulateError> {
        // The host waits until its own clock shows what is due.
        let due = self.core.next_due().map(|due| due.plus_ms(self.behind_ms).max(self.now));
        let next = self.queue.first_key_value().map(|((at, _), _)| *at);
        match (due, next) {
            (Some(due), next) if due < end && next.is_none_or(|next| due <= next) => {
                self.now = due;
                self.submit(Input::Tick)?;
                Ok(true)
            }
            (_, Some(next)) if next < end => {
                self.now = self.now.max(next);
                if let Some((_, event)) = self.queue.pop_first() {
                    self.happen(event)?;
                }
                Ok(true)
            }
            (_, _) => Ok(false),
        }
    }

    /// Time passes without anything happening.
    pub(super) fn pass_to(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// Hands an input to the core as the engine does: what is due is a row of its own before it.
    pub(super) fn submit(&mut self, input: Input) -> Result<Reply, SimulateError> {
        let now = self.now.plus_ms(-self.behind_ms).max(self.core.last_instant());
        let is_due = self.core.next_due().is_some_and(|due| due <= now);
        if is_due && input != Input::Tick {
            self.take(now, Input::Tick)?;
        }
        self.take(now, input)
    }

    fn take(&mut self, now: Instant, input: Input) -> Result<Reply, SimulateError> {
        let step = self.core.step(now, &input).map_err(|source| SimulateError::Fault {
            at: now,
            seed: self.seed,
            source,
        })?;
        self.events += 1;
        self.checks.after(&self.core, now, (&input, &step));
        let (reply, effects) = (step.reply.clone(), step.effects.clone());
        if step.changed {
            let record = journal::record(&self.head, now, &input, &step);
            self.head = Head { seq: record.seq, hash: record.hash };
            if self.faults {
                self.rows.push((now, input.clone()));
            }
            if self.keeps_written {
                self.written.push((now, input, step));
            }
        }
        for effect in effects {
            self.perform(effect);
        }
        Ok(reply)
    }

    /// Has an effect's answer come when it would.
    fn perform(&mut self, effect: Effect) {
        let after = |ms| self.now.plus_ms(ms);
        match effect {
            Effect::StartEpisode(start) => self.start(&start),
            Effect::StopEpisode { episode, .. } => {
                self.runs.remove(&episode);
                let end = EpisodeEnd::Stopped;
                self.at(after(800), Event::Arrives(Input::EpisodeEnded { episode, end }));
            }
            Effect::RemoveAgent { agent } => {
                self.runs.retain(|_, run| run.agent != agent);
                self.at(after(2_000), Event::Arrives(Input::AgentRemoved { agent }));
            }
            Effect::AskJudge { docket, batch, user, .. } => {
                self.at(after(25_000), Event::Judged { docket, batch, user });
            }
            Effect::AskDigest { day, user, .. } => self.at(after(9_000), Event::Digested { day, user }),
            Effect::Announce { .. } => {}
        }
    }

    /// Plans a run from what its agent is like.
    fn start(&mut self, start: &StartEpisode) {
        let Some(actor) = self.actors.get_mut(&start.agent) else { return };
        let age_ms = self.now.since_ms(actor.born_ms);
        let acts = if start.last {
            actor.temper.last(&mut actor.stream)
        } else {
            actor.temper.day(age_ms, &mut actor.stream)
        };
        let up_ms = actor.stream.between(900, 4_000);
        let run = Episode { agent: start.agent.clone(), acts: acts.into_iter(), spent: false };
        self.runs.insert(start.episode, run);
        self.at(self.now.plus_ms(up_ms), Event::Started(start.episode));
    }

    fn happen(&mut self, event: Event) -> Result<(), SimulateError> {
        match event {
            Event::Started(episode) => {
                if self.runs.contains_key(&episode) {
                    self.submit(Input::EpisodeStarted { episode })?;
                    self.at(self.now.plus_ms(500), Event::Next(episode));
                }
            }
            Event::Next(episode) => self.next(episode)?,
            Event::Arrives(input) => {
                self.submit(input)?;
            }
            Event::Pays { input, again } => self.pays(input, again)?,
            Event::Judged { docket, batch, user } => {
                let input = self.judgement(docket, batch, &user);
                self.submit(input)?;
            }
            Event::Digested { day, user } => {
                let input = self.told(day, &user);
                self.submit(input)?;
            }
            Event::Upset(upset) => self.upset(upset)?,
            Event::Over(recovery) => self.recover(recovery)?,
        }
        Ok(())
    }

    /// The next thing that a run's agent does.
    fn next(&mut self, episode: EpisodeId) -> Result<(), SimulateError> {
        let Some(run) = self.runs.get_mut(&episode) else { return Ok(()) };
        let agent = run.agent.clone();
        let Some(act) = run.acts.next() else {
            self.runs.remove(&episode);
            self.submit(Input::EpisodeEnded { episode, end: EpisodeEnd::Exit { code: 0 } })?;
            return Ok(());
        };
        let took_ms = match act {
            Act::Call { large, input_tokens, output_tokens } => {
                self.call((episode, &agent), large, (input_tokens, output_tokens))?
            }
            Act::Deliver { cents, pays_after_ms } => self.deliver((episode, &agent), cents, pays_after_ms),
            Act::Misbehave => self.misbehave(&agent)?,
            Act::Report | Act::Appeal | Act::DeathReport => self.write((episode, &agent), &act)?,
        };
        self.at(self.now.plus_ms(took_ms), Event::Next(episode));
        Ok(())
    }

    /// A model call: held now, settled when the provider has answered.
    fn call(
        &mut self,
        (episode, agent): (EpisodeId, &AgentId),
        large: bool,
        (input_tokens, output_tokens): (u64, u64),
    ) -> Result<i64, SimulateError> {
        if self.runs.get(&episode).is_none_or(|run| run.spent && large) {
            return Ok(1);
        }
        let call = format!("call/{}", self.next_key());
        let reply = self.submit(Input::CallWanted {
            call: call.clone(),
            agent: agent.clone(),
            episode,
            model: if large { LARGE } else { SMALL }.to_owned(),
            input_tokens_max: input_tokens + 200,
            max_tokens: 2_000,
        })?;
        let Reply::Held { max_tokens, .. } = reply else {
            let short = matches!(
                reply,
                Reply::Refused(Refusal::NoMoney { .. } | Refusal::MoneyHeld { .. } | Refusal::SpendLimit)
            );
            if let Some(run) = self.runs.get_mut(&episode).filter(|_| short) {
                run.spent = true;
            }
            return Ok(1_000);
        };
        let faults = self.faults;
        let Some(actor) = self.actors.get_mut(agent) else { return Ok(1) };
        let takes_ms = actor.stream.between(2_000, 20_000);
        let overlaps = actor.temper.overlaps && large;
        let fate = actor.stream.below(1_000);
        let input = if fate < 8 {
            Some(Input::CallVoided { call, why: "the provider was overloaded".to_owned() })
        } else if faults && fate < 20 {
            // Nobody ever reports it: the call's own limit ends it.
            None
        } else {
            let usage =
                Usage { input_tokens, output_tokens: output_tokens.min(max_tokens), ..Usage::default() };
            Some(Input::CallSettled { call, usage, estimated: false })
        };
        if let Some(input) = input {
            self.at(self.now.plus_ms(takes_ms), Event::Arrives(input));
        }
        Ok(if overlaps { 700 } else { takes_ms + 500 })
    }

    /// Work that is paid for later, by a customer; a wash-trader's by another agent.
    fn deliver(&mut self, (episode, agent): (EpisodeId, &AgentId), cents: i64, after_ms: i64) -> i64 {
        let (faults, number) = (self.faults, self.next_key());
        let friends = if self.kind(agent) == Kind::WashTrader { FRIENDS } else { 0 };
        let others: Vec<AgentId> = self.actors.keys().take(friends).cloned().collect();
        let Some(actor) = self.actors.get_mut(agent) else { return 1 };
        let payer = match actor.stream.pick(&others) {
            Some(other) => other.to_string(),
            None => format!("customer {}", actor.stream.between(1, 40)),
        };
        let source = ["shop.example", "tasks.example", "print.example"];
        let source = actor.stream.pick(&source).copied().unwrap_or("shop.example");
        let (late, fate) = (faults && actor.stream.chance(30), actor.stream.below(1_000));
        let after_ms = if late { after_ms + actor.stream.between(1, 300) * HOUR_MS } else { after_ms };
        let again = match fate {
            0..=99 if faults => Again::Same,
            100..=129 if faults => Again::Other,
            _ => Again::No,
        };
        let input = Input::Income {
            key: format!("pay/{number}"),
            agent: agent.clone(),
            source: source.to_owned(),
            project: format!("project {}", episode % 7),
            payer,
            amount_nano: Money::from_nano(cents.max(1) * CENT_NANO),
        };
        let back_ms = (faults && actor.stream.chance(40)).then(|| actor.stream.between(1, 360) * HOUR_MS);
        let paid = self.now.plus_ms(after_ms);
        self.at(paid, Event::Pays { input, again });
        if let Some(back_ms) = back_ms {
            let reversal = Input::ReverseIncome {
                key: format!("back/{number}"),
                income: format!("pay/{number}"),
                reason: "the card was stolen".to_owned(),
                actor: "webhook".to_owned(),
            };
            self.at(paid.plus_ms(back_ms), Event::Pays { input: reversal, again });
        }
        60_000
    }

    /// Income arrives; a sender that did not see the answer asks again, and must be told the same.
    fn pays(&mut self, input: Input, again: Again) -> Result<(), SimulateError> {
        let reply = self.submit(input.clone())?;
        let (events, head) = (self.events, self.head.clone());
        match (again, input) {
            (Again::Same, input) => {
                let second = self.submit(input)?;
                let same = second == reply && (self.head == head || self.events > events + 1);
                self.checks.hold(Check::SameKeySameAnswer, same, self.now);
            }
            (Again::Other, Input::Income { key, agent, source, project, payer, amount_nano }) => {
                let amount_nano = amount_nano.checked_mul(2).unwrap_or(amount_nano);
                let other = Input::Income { key, agent, source, project, payer, amount_nano };
                let second = self.submit(other)?;
                let refused = matches!(second, Reply::Refused(Refusal::Conflict { .. }))
                    || matches!(reply, Reply::Refused(_));
                self.checks.hold(Check::SameKeySameAnswer, refused, self.now);
            }
            // A reversal has no amount that could be another.
            (Again::No | Again::Other, _) => {}
        }
        Ok(())
    }

    fn misbehave(&mut self, agent: &AgentId) -> Result<i64, SimulateError> {
        let Some(actor) = self.actors.get_mut(agent) else { return Ok(1) };
        let count = actor.stream.below(40) + 1;
        let (source, name) = if actor.stream.chance(500) {
            (Source::Netd, "direct_attempt")
        } else {
            (Source::Proxy, "deny_burst")
        };
        let signal = Signal {
            time_ms: self.now,
            id: format!("{agent}/{}", self.now.ms()),
            source,
            agent: agent.clone(),
            name: name.to_owned(),
            severity: Severity::Warn,
            count,
            detail: BTreeMap::new(),
        };
        self.submit(Input::SignalSeen { signal })?;
        Ok(2_000)
    }

    fn write(&mut self, (episode, agent): (EpisodeId, &AgentId), act: &Act) -> Result<i64, SimulateError> {
        let lifetime = self.core.lifetime(agent).unwrap_or_default();
        let own = OwnFigures {
            income_nano: lifetime.income_nano,
            costs_nano: lifetime.costs_nano,
            available_nano: self.core.balance(agent).available(),
        };
        let Some(actor) = self.actors.get_mut(agent) else { return Ok(1) };
        let (kind, stream) = (actor.temper.kind, &mut actor.stream);
        let tool = match act {
            Act::Appeal => ToolUse::SubmitAppeal { text: words::appeal(kind, own, stream) },
            Act::DeathReport => ToolUse::SubmitDeathReport { text: words::death_report(own, stream) },
            Act::Report | Act::Call { .. } | Act::Deliver { .. } | Act::Misbehave => {
                ToolUse::WriteDailyReport { text: words::report(kind, own, stream) }
            }
        };
        self.submit(Input::ToolUsed { agent: agent.clone(), episode, tool })?;
        Ok(3_000)
    }

    /// What the judge's model answers: the stand-in's formula over the facts of our own frame, or nothing of use.
    fn judgement(&self, docket: u64, batch: u32, user: &str) -> Input {
        let answers = |stop_reason: &str, text: String| {
            let usage = Usage {
                // About four bytes a token, as models count prose.
                input_tokens: user.len() as u64 / 4,
                output_tokens: text.len() as u64 / 4,
                ..Usage::default()
            };
            Input::JudgeAnswered {
                docket,
                batch,
                model: "stand-in".to_owned(),
                stop_reason: stop_reason.to_owned(),
                text,
                usage,
            }
        };
        let unavailable = |maybe_billed| Input::JudgeUnavailable {
            docket,
            batch,
            why: "no answer".to_owned(),
            maybe_billed,
        };
        match self.mood {
            Mood::Formula => answers("end_turn", stand_in::judge(user)),
            Mood::Away => unavailable(false),
            Mood::Mute => unavailable(true),
            Mood::Refuses => answers("refusal", String::new()),
            Mood::Garbage => answers("end_turn", "{\"A1\": ".repeat(REASONING_CHARS_MAX / 50)),
        }
    }

    fn told(&self, day: i64, user: &str) -> Input {
        match self.mood {
            Mood::Formula | Mood::Garbage => {
                let text = stand_in::digest(user);
                let usage = Usage {
                    input_tokens: user.len() as u64 / 4,
                    output_tokens: text.len() as u64 / 4,
                    ..Usage::default()
                };
                Input::DigestAnswered { day, text, usage }
            }
            Mood::Away | Mood::Refuses | Mood::Mute => Input::DigestUnavailable {
                day,
                why: "no answer".to_owned(),
                maybe_billed: self.mood == Mood::Mute,
            },
        }
    }
}
