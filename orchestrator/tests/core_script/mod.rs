//! A scripted shell round the core: it answers each effect the same way whenever it comes, as the real one would.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::get_unwrap,
    clippy::allow_attributes,
    clippy::missing_panics_doc,
    reason = "test code, of which each binary uses its own part"
)]

use std::collections::{BTreeMap, VecDeque};

use orchestrator::core::Core;
use orchestrator::core::docket::{Docket, DocketKind};
use orchestrator::core::effect::{Effect, StartEpisode};
use orchestrator::core::input::{EpisodeEnd, Input, ToolUse, Usage};
use orchestrator::core::reply::Reply;
use orchestrator::core::settings::Settings;
use policy::time::DAY_MS;
use policy::{AgentId, Instant, Money};

/// A midnight.
pub const START: Instant = Instant::from_ms(20_800 * DAY_MS);

pub fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

/// What one agent does in every episode.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Income of each ordinary episode, in cents.
    pub cents: i64,
    /// Calls of each episode.
    pub calls: u32,
    /// Whom the income comes from.
    pub payer: Option<String>,
    pub report: Option<String>,
    pub appeal: Option<String>,
    pub death_report: Option<String>,
}

/// How the judge's model behaves.
#[derive(Debug, Clone)]
pub enum Judge {
    /// Scores each appellant by the number in `promise N` of its section.
    Honest,
    /// Answers these bytes, whatever it is asked.
    Says(String),
    /// Stops for this reason, whatever it is asked.
    Stops(String),
    /// Cannot be reached.
    Away,
    /// Answers nothing, and may bill it all the same.
    Mute,
    /// Writes nonsense to several at once, and an honest reply to one alone.
    HonestAlone,
}

/// The shell, its cast, and the journal so far.
#[derive(Debug, Clone)]
pub struct Shell {
    pub core: Core,
    pub now: Instant,
    pub cast: BTreeMap<String, Part>,
    pub judge: Judge,
    pub rows: Vec<(Instant, Input)>,
    pub announced: Vec<String>,
    pub asked: u32,
    queue: VecDeque<Effect>,
}

impl Shell {
    /// A platform that starts at `START` with these settings and this cast, everyone born at once.
    pub fn new(settings: Settings, cast: BTreeMap<String, Part>) -> Self {
        let mut shell = Self {
            core: Core::new(),
            now: START,
            cast,
            judge: Judge::Honest,
            rows: Vec::new(),
            announced: Vec::new(),
            asked: 0,
            queue: VecDeque::new(),
        };
        let reply = shell.submit(Input::Genesis { settings: Box::new(settings), seed: "ab".repeat(32) });
        assert_eq!(reply, Reply::Done);
        let names: Vec<String> = shell.cast.keys().cloned().collect();
        for name in names {
            let input = Input::CreateAgent {
                key: name.clone(),
                agent: agent(&name),
                name: format!("name of {name}"),
                image: "sample".to_owned(),
                brief: "earn".to_owned(),
            };
            assert_eq!(shell.submit(input), Reply::Created { agent: agent(&name) });
        }
        shell
    }

    /// The same shell after a crash that left the first `rows` rows.
    pub fn crashed(&self, rows: usize) -> Self {
        let mut core = Core::new();
        let kept = self.rows.get(..rows).unwrap().to_vec();
        for (at, input) in &kept {
            core.step(*at, input).unwrap();
        }
        let queue = core.open_effects().into();
        let now = kept.last().map_or(START, |(at, _)| *at);
        Self { core, now, rows: kept, queue, announced: Vec::new(), ..self.clone() }
    }

    pub fn submit(&mut self, input: Input) -> Reply {
        let step = self.core.step(self.now, &input).unwrap();
        self.core.check().unwrap();
        if step.changed {
            self.rows.push((self.now, input));
        } else {
            assert!(
                step.effects.is_empty() && step.rows.is_empty(),
                "a step that changed nothing has no effects"
            );
        }
        self.queue.extend(step.effects);
        step.reply
    }

    /// Does everything that is to be done before `end`.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            if let Some(effect) = self.queue.pop_front() {
                self.perform(effect);
                continue;
            }
            match self.core.next_due() {
                Some(due) if due < end => {
                    self.now = self.now.max(due);
                    self.submit(Input::Tick);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    /// Does everything that is to be done before the judge is asked for the first time.
    pub fn run_until_asked(&mut self) {
        loop {
            match self.queue.front() {
                Some(Effect::AskJudge { .. }) => return,
                Some(_) => {
                    let effect = self.queue.pop_front().unwrap();
                    self.perform(effect);
                }
                None => {
                    self.now = self.now.max(self.core.next_due().unwrap());
                    self.submit(Input::Tick);
                }
            }
        }
    }

    /// Drops what waits to be performed: the shell dies with it.
    pub fn forget_effects(&mut self) {
        self.queue.clear();
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::StartEpisode(start) => self.episode(&start),
            Effect::StopEpisode { episode, .. } => {
                self.submit(Input::EpisodeEnded { episode, end: EpisodeEnd::Stopped });
            }
            Effect::RemoveAgent { agent } => {
                self.submit(Input::AgentRemoved { agent });
            }
            Effect::AskJudge { docket, batch, user, .. } => self.judge(docket, batch, &user),
            Effect::AskDigest { day, .. } => {
                let text = "All worked.".to_owned();
                self.submit(Input::DigestAnswered { day, text, usage: used() });
            }
            Effect::Announce { text } => self.announced.push(text),
        }
    }

    fn episode(&mut self, start: &StartEpisode) {
        let episode = start.episode;
        if self.core.episode_of(&start.agent) != Some(episode) {
            return;
        }
        let part = self.cast.get(start.agent.as_str()).cloned().unwrap_or_default();
        self.submit(Input::EpisodeStarted { episode });
        for number in 0..part.calls {
            let call = format!("{episode}/{number}");
            let reply = self.submit(Input::CallWanted {
                call: call.clone(),
                agent: start.agent.clone(),
                episode,
                model: "claude-haiku-5-5".to_owned(),
                input_tokens_max: 2_000,
                max_tokens: 500,
            });
            if matches!(reply, Reply::Held { .. }) {
                self.submit(Input::CallSettled { call, usage: used(), estimated: false });
            }
        }
        if part.cents > 0 && !start.last {
            self.submit(Input::Income {
                key: format!("income/{episode}"),
                agent: start.agent.clone(),
                source: "shop".to_owned(),
                project: "work".to_owned(),
                payer: part.payer.clone().unwrap_or_else(|| "customer".to_owned()),
                amount_nano: Money::from_nano(part.cents * 10_000_000),
            });
        }
        let texts = if start.last {
            [
                part.appeal.map(|text| ToolUse::SubmitAppeal { text }),
                part.death_report.map(|text| ToolUse::SubmitDeathReport { text }),
            ]
        } else {
            [part.report.map(|text| ToolUse::WriteDailyReport { text }), None]
        };
        for tool in texts.into_iter().flatten() {
            self.submit(Input::ToolUsed { agent: start.agent.clone(), episode, tool });
        }
        self.submit(Input::EpisodeEnded { episode, end: EpisodeEnd::Exit { code: 0 } });
    }

    fn judge(&mut self, docket: u64, batch: u32, user: &str) {
        self.asked += 1;
        let alone = user.matches("<appellant-").count() == 1;
        let (stop_reason, text) = match &self.judge {
            Judge::Honest => ("end_turn", honest(user)),
            Judge::HonestAlone if alone => ("end_turn", honest(user)),
            Judge::HonestAlone => ("end_turn", "I would rather not.".to_owned()),
            Judge::Says(text) => ("end_turn", text.clone()),
            Judge::Stops(reason) => (reason.as_str(), String::new()),
            Judge::Away | Judge::Mute => {
                let (why, maybe_billed) = ("no answer".to_owned(), matches!(self.judge, Judge::Mute));
                self.submit(Input::JudgeUnavailable { docket, batch, why, maybe_billed });
                return;
            }
        };
        let stop_reason = stop_reason.to_owned();
        let model = "judge".to_owned();
        self.submit(Input::JudgeAnswered { docket, batch, model, stop_reason, text, usage: used() });
    }

    /// The dockets that condemned anybody.
    pub fn dockets(&self) -> Vec<Docket> {
        self.core.dockets().filter(|docket| docket.condemned_ms.is_some()).cloned().collect()
    }

    /// The culls that ran.
    pub fn culls(&self) -> Vec<Docket> {
        self.dockets().into_iter().filter(|docket| docket.kind == DocketKind::Cull).collect()
    }

    /// The decisions of every docket: who, whether it lives, why, its place and promise.
    pub fn decisions(&self) -> Vec<String> {
        let of = |docket: &Docket| {
            let cases = docket.cases.iter().map(|(agent, case)| {
                format!("{} {agent} {} {:?} {:?}", docket.id, case.promise(), case.reason, case.decision)
            });
            cases.collect::<Vec<_>>()
        };
        self.dockets().iter().flat_map(of).collect()
    }

    pub fn treasury(&self) -> i64 {
        self.core.treasury().posted_nano.nano()
    }
}

pub fn used() -> Usage {
    Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() }
}

/// An honest reply to a frame: each section's last `promise N`, its label and its key.
pub fn honest(user: &str) -> String {
    let entries: Vec<String> = user
        .split("<appellant-")
        .skip(1)
        .map(|section| {
            let attribute = |name: &str| {
                section.split_once(&format!("{name}=\"")).unwrap().1.split_once('"').unwrap().0.to_owned()
            };
            let said = section.rsplit_once("promise ").map_or("0", |(_, rest)| rest);
            let promise: String = said.chars().take_while(char::is_ascii_digit).collect();
            format!(
                "\"{}\":{{\"key\":\"{}\",\"traction\":1,\"plan\":1,\"cost_discipline\":1,\"learning\":1,\"risk\":1,\
                 \"promise\":{promise},\"reasoning\":\"It said so.\"}}",
                attribute("label"),
                attribute("key")
            )
        })
        .collect();
    format!("{{{}}}", entries.join(","))
}

/// Settings under which agents born at `START` are old enough for the first cull.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.schedule.first_ms = Some(START.plus_ms(11 * DAY_MS));
    settings
}

/// Fourteen agents: four idle, ten that earn, of whom the two that earn least are condemned on performance.
pub fn cast() -> BTreeMap<String, Part> {
    let mut cast = BTreeMap::new();
    for number in 0..4_u32 {
        let part = Part {
            calls: 1,
            appeal: (number > 0).then(|| format!("I will earn. promise {}", 30 + 10 * number)),
            death_report: (number != 2).then(|| format!("I, idle {number}, earned nothing.")),
            ..Part::default()
        };
        cast.insert(format!("idle-{number}"), part);
    }
    for number in 0..10_u32 {
        let part = Part {
            cents: 20 + i64::from(number),
            calls: 1,
            report: Some(format!("I, work {number}, sold something.")),
            appeal: Some(format!("I earn. promise {}", 60 + number)),
            ..Part::default()
        };
        cast.insert(format!("work-{number}"), part);
    }
    cast
}
