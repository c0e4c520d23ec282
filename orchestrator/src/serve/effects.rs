//! Carries out what the core wants done: each effect at least once, a second time as a no-op.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use policy::AgentId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{ServeError, archive, inherit};
use crate::config::{Config, Image};
use crate::core::effect::{Effect, StartEpisode};
use crate::core::input::{EpisodeEnd, EpisodeId, Input, Usage};
use crate::engine::Engine;
use crate::episode::audit::Audits;
use crate::episode::host::{self, Order, Site, Stop};
use crate::gateway::usage;
use crate::provider::{Answered, NoAnswer, Provider};

/// The protocol's version that the platform's own calls speak.
const VERSION: &str = "2023-06-01";

/// The runs under way.
#[derive(Debug, Default)]
pub(super) struct Runs {
    running: Mutex<HashMap<EpisodeId, (AgentId, Stop)>>,
    ended: tokio::sync::Notify,
}

/// Carries effects out; clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Performer {
    inner: Arc<Inner>,
    runs: Arc<Runs>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    site: Site,
    images: BTreeMap<String, Image>,
    audits: Audits,
    judge: Provider,
    digest: Provider,
    /// Keys of effects that are being carried out.
    busy: Mutex<HashSet<String>>,
    closed: std::sync::atomic::AtomicBool,
}

impl Runs {
    /// Ends all of them.
    pub(super) fn stop_all(&self) {
        for (_, stop) in self.lock().values() {
            stop.stop();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<EpisodeId, (AgentId, Stop)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, start: &StartEpisode, stop: &Stop) -> bool {
        let mut running = self.lock();
        let new = !running.contains_key(&start.episode);
        if new {
            running.insert(start.episode, (start.agent.clone(), stop.clone()));
        }
        new
    }

    fn end(&self, episode: EpisodeId) {
        self.lock().remove(&episode);
        self.ended.notify_waiters();
    }

    /// Resolves when none is under way.
    pub(super) async fn emptied(&self) {
        loop {
            let ended = self.ended.notified();
            if self.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Ends every run of an agent and waits until none is left.
    async fn clear(&self, agent: &AgentId) {
        loop {
            let ended = self.ended.notified();
            let stops: Vec<Stop> = self
                .lock()
                .values()
                .filter(|(whose, _)| whose == agent)
                .map(|(_, stop)| stop.clone())
                .collect();
            if stops.is_empty() {
                return;
            }
            stops.iter().for_each(Stop::stop);
            ended.await;
        }
    }
}

impl Performer {
    pub(super) fn new(engine: Engine, config: &Config, site: Site) -> Result<Self, ServeError> {
        let inner = Inner {
            engine,
            site,
            images: config.images.clone(),
            audits: super::audits(config),
            judge: Provider::new(&config.judge)?,
            digest: Provider::new(&config.digest)?,
            busy: Mutex::default(),
            closed: std::sync::atomic::AtomicBool::new(false),
        };
        Ok(Self { inner: Arc::new(inner), runs: Arc::default() })
    }

    pub(super) const fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Nothing is begun or reported any more, and the runs under way are ended.
    pub(super) fn close(&self) {
        self.inner.closed.store(true, std::sync::atomic::Ordering::SeqCst);
        self.runs.stop_all();
    }

    fn is_closed(&self) -> bool {
        self.inner.closed.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Takes effects until the engine stops.
    pub(super) async fn perform(&self, mut effects: mpsc::UnboundedReceiver<Effect>) {
        while let Some(effect) = effects.recv().await {
            if !self.is_closed() {
                self.one(effect);
            }
        }
    }

    fn one(&self, effect: Effect) {
        let key = effect.key();
        match effect {
            Effect::Announce { text } => tracing::info!("{text}"),
            Effect::StartEpisode(start) => self.start(start),
            Effect::StopEpisode { episode, why, .. } => self.stop(episode, &why),
            Effect::RemoveAgent { agent } => self.once(key, |this| async move { this.remove(agent).await }),
            ask @ (Effect::AskJudge { .. } | Effect::AskDigest { .. }) => {
                self.once(key, |this| async move {
                    let answer = this.ask(ask).await;
                    this.tell(answer).await;
                });
            }
        }
    }

    /// Runs it on a task of its own, unless one with this key is under way.
    fn once<F: Future<Output = ()> + Send + 'static>(
        &self,
        key: Option<String>,
        act: impl FnOnce(Self) -> F,
    ) {
        let key = key.unwrap_or_default();
        if !self.busy().insert(key.clone()) {
            return;
        }
        let doing = act(self.clone());
        let this = self.clone();
        tokio::spawn(async move {
            doing.await;
            this.busy().remove(&key);
        });
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.inner.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the core. It can be gone only when the process is about to be.
    async fn tell(&self, input: Input) {
        if self.is_closed() {
            return;
        }
        if let Err(error) = self.inner.engine.submit(input).await {
            tracing::error!("cannot {}", crate::cli::with_causes(&error));
        }
    }

    fn start(&self, start: StartEpisode) {
        let stop = Stop::default();
        if !self.runs.begin(&start, &stop) {
            return;
        }
        let this = self.clone();
        let runtime = tokio::runtime::Handle::current();
        let name = format!("episode-{}", start.episode);
        let episode = start.episode;
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let end = this.run(&start, &stop, &runtime);
            this.runs.end(episode);
            runtime.block_on(this.tell(Input::EpisodeEnded { episode, end }));
        });
        if let Err(error) = thread {
            self.runs.end(episode);
            let end = EpisodeEnd::Failed { why: format!("cannot start its thread: {error}") };
            let this = self.clone();
            tokio::spawn(async move { this.tell(Input::EpisodeEnded { episode, end }).await });
        }
    }

    /// On the run's own thread, from start to end.
    fn run(&self, start: &StartEpisode, stop: &Stop, runtime: &tokio::runtime::Handle) -> EpisodeEnd {
        let Some(image) = self.inner.images.get(&start.image) else {
            return EpisodeEnd::Failed { why: format!("image {} is not configured", start.image) };
        };
        if let Err(rejected) = self.inner.audits.pass(&start.image, image) {
            return EpisodeEnd::Failed { why: format!("cannot {rejected}") };
        }
        if let Some(parent) = &start.inherits
            && let Err(error) = inherit::copy(&self.inner.site.state_dir, parent, &start.agent)
        {
            return EpisodeEnd::Failed { why: format!("cannot {}", crate::cli::with_causes(&error)) };
        }
        let order = Order {
            episode: start.episode,
            agent: start.agent.clone(),
            image: image.clone(),
            profile: start.profile.clone(),
            wake: start.wake.clone(),
        };
        let started = || runtime.block_on(self.tell(Input::EpisodeStarted { episode: start.episode }));
        host::run(&self.inner.site, &order, stop, started)
    }

    /// A run that is not here any more has ended already: the core is told so.
    fn stop(&self, episode: EpisodeId, why: &str) {
        let running = self.runs.lock().get(&episode).map(|(_, stop)| stop.clone());
        match running {
            Some(stop) => {
                tracing::info!(episode, "stopped: {why}");
                stop.stop();
            }
            None => self.once(Some(format!("stop-episode/{episode}")), |this| async move {
                this.tell(Input::EpisodeEnded { episode, end: EpisodeEnd::Stopped }).await;
            }),
        }
    }

    /// What runs for the agent goes, with its confinement; then its state is put where nothing writes to it. Its
    /// death is published even where the state cannot be moved: no run of it is left that could write there.
    async fn remove(&self, agent: AgentId) {
        self.runs.clear(&agent).await;
        archive::keep(&self.inner.site, &agent).await;
        self.tell(Input::AgentRemoved { agent }).await;
    }

    async fn ask(&self, ask: Effect) -> Input {
        match ask {
            Effect::AskJudge { docket, batch, model, system, user, schema, max_tokens } => {
                let format =
                    json!({"type": "json_schema", "schema": serde_json::from_str::<Value>(&schema).ok()});
                let mut body = question(&model, &system, &user, max_tokens);
                body["output_config"] = json!({ "format": format });
                match answer(&self.inner.judge, &body).await {
                    Ok(told) => Input::JudgeAnswered {
                        docket,
                        batch,
                        model: told.model,
                        stop_reason: told.stop_reason,
                        text: told.text,
                        usage: told.usage,
                    },
                    Err(Untold { why, maybe_billed }) => {
                        Input::JudgeUnavailable { docket, batch, why, maybe_billed }
                    }
                }
            }
            Effect::AskDigest { day, model, system, user, max_tokens } => {
                match answer(&self.inner.digest, &question(&model, &system, &user, max_tokens)).await {
                    Ok(told) => Input::DigestAnswered { day, text: told.text, usage: told.usage },
                    Err(Untold { why, maybe_billed }) => Input::DigestUnavailable { day, why, maybe_billed },
                }
            }
            Effect::StartEpisode(_)
            | Effect::StopEpisode { .. }
            | Effect::RemoveAgent { .. }
            | Effect::Announce { .. } => Input::Tick,
        }
    }
}

fn question(model: &str, system: &str, user: &str, max_tokens: u64) -> Value {
    json!({
        "model": model,
        "max_tokens": max_tokens,
        "system": system,
        "messages": [{"role": "user", "content": user}],
    })
}

/// What a model said.
struct Told {
    model: String,
    stop_reason: String,
    text: String,
    usage: Usage,
}

/// Why a model said nothing that counts.
#[derive(Debug, PartialEq, Eq)]
struct Untold {
    why: String,
    /// Whether the provider may bill it all the same.
    maybe_billed: bool,
}

impl Untold {
    fn free(why: impl Into<String>) -> Self {
        Self { why: why.into(), maybe_billed: false }
    }

    fn billed(why: impl Into<String>) -> Self {
        Self { why: why.into(), maybe_billed: true }
    }
}

/// One call of the platform's own.
async fn answer(provider: &Provider, body: &Value) -> Result<Told, Untold> {
    told(&provider.messages(VERSION, Bytes::from(body.to_string())).await)
}

/// What is no whole answer (an error, a status, no usage) is not one: the core waits and asks again (J10, E26).
/// What of it may have been billed is told apart as the gateway does for an agent's call. Whether an answer is a
/// judgement is for its reader to say.
fn told(answered: &Result<Answered, NoAnswer>) -> Result<Told, Untold> {
    let answered = match answered {
        Ok(answered) => answered,
        Err(error @ NoAnswer::NotSent(_)) => return Err(Untold::free(format!("cannot {error}"))),
        Err(error @ NoAnswer::Unknown(_)) => return Err(Untold::billed(format!("cannot {error}"))),
    };
    match answered.status.as_u16() {
        200 => {}
        // Something between us and the provider gave up waiting; the provider may have gone on.
        status @ (502 | 504) => return Err(Untold::billed(format!("the provider answered {status}"))),
        status => return Err(Untold::free(format!("the provider answered {status}"))),
    }
    let value: Value = serde_json::from_slice(&answered.body)
        .map_err(|error| Untold::billed(format!("the answer is no JSON: {error}")))?;
    match value.get("type").and_then(Value::as_str) {
        Some("message") => {}
        Some("error") => return Err(Untold::free("the provider answered 200 with an error")),
        Some(_) | None => return Err(Untold::billed("the provider answered 200 with something else")),
    }
    let usage = usage::read(&value).ok_or_else(|| Untold::billed("the answer tells no usage"))?;
    let word = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let blocks = value.get("content").and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| Untold::billed("the answer has no content"))?;
    let texts = blocks.iter().filter(|block| block.get("type").is_some_and(|kind| kind == "text"));
    let text = texts.filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
    Ok(Told { model: word("model"), stop_reason: word("stop_reason"), text, usage })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &Value) -> Answered {
        let status = hyper::StatusCode::from_u16(status).unwrap();
        Answered { status, headers: hyper::HeaderMap::new(), body: Bytes::from(body.to_string()) }
    }

    fn whole() -> Value {
        json!({
            "type": "message", "model": "m", "stop_reason": "end_turn", "content": [{"type": "text", "text": "yes"}],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        })
    }

    #[test]
    fn a_whole_answer_is_told() {
        assert_eq!(told(&Ok(answered(200, &whole()))).unwrap().text, "yes");
    }

    #[test]
    fn what_may_have_been_billed_is_told_apart_from_what_cannot_have_been() {
        let mut no_usage = whole();
        no_usage["usage"] = Value::Null;
        let mut no_content = whole();
        no_content["content"] = Value::Null;
        for (answered, billed) in [
            (Err(NoAnswer::Unknown("late".to_owned())), true),
            (Ok(answered(502, &json!({}))), true),
            (Ok(answered(504, &json!({}))), true),
            (Ok(answered(200, &no_usage)), true),
            (Ok(answered(200, &no_content)), true),
            (Ok(answered(200, &json!([]))), true),
            (Err(NoAnswer::NotSent("refused".to_owned())), false),
            (Ok(answered(200, &json!({"type": "error"}))), false),
            (Ok(answered(429, &json!({}))), false),
            (Ok(answered(500, &json!({}))), false),
        ] {
            let untold = told(&answered).err().map(|untold| untold.maybe_billed);
            assert_eq!(untold, Some(billed), "{answered:?}");
        }
    }
}
