//! What operators ask and do: JSON under `/api/v1`.

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use policy::{AgentId, Instant, Money};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::reply::{Answer, Wrong, answer};
use super::webhook::{Announced, Reversed};
use super::{Api, whole};
use crate::core::Core;
use crate::core::input::{DocketId, Input};
use crate::core::query::Figures;

/// Entries of the work log that one answer holds.
const LOG_ENTRIES: usize = 1_000;

/// What an agent is made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAgent {
    key: Option<String>,
    agent: AgentId,
    name: String,
    image: String,
    #[serde(default)]
    brief: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    key: String,
    event: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Closing {
    signal: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Overruling {
    agent: AgentId,
    decision: Decision,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Reprieve,
    Deny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyedIncome {
    key: String,
    agent: AgentId,
    source: String,
    project: String,
    payer: String,
    amount_nano: Money,
    #[serde(default)]
    currency: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyedReversal {
    key: Option<String>,
    income: String,
    reason: String,
}

/// How the platform stands.
#[derive(Debug, Serialize)]
struct Standing {
    now_ms: Instant,
    simulated: bool,
    busy: bool,
    next_cull_ms: Instant,
    treasury_nano: Money,
    open_calls: usize,
    agents: usize,
}

/// One appellant's judgement and decision.
#[derive(Debug, Serialize)]
struct Judgement<'a> {
    docket: DocketId,
    agent: &'a AgentId,
    is_appellant: bool,
    promise: u32,
    reasoning: Option<&'a str>,
    reprieved: bool,
    done: bool,
}

impl Api {
    pub(super) async fn operate(&self, uid: u32, request: Request<Incoming>) -> Result<Answer, Wrong> {
        let path = request.uri().path().to_owned();
        let Some(rest) = path.strip_prefix("/api/v1/") else { return Err(no_route(&request)) };
        let segments: Vec<&str> = rest.split('/').collect();
        match (request.method().clone(), segments.as_slice()) {
            (Method::GET, ["agents", agent]) => self.agent(agent),
            (Method::GET, segments) => self.look(segments).ok_or_else(|| no_route(&request)),
            (Method::POST, ["agents"]) => self.create(request).await,
            (Method::POST, ["agents", agent, act]) => self.act(uid, agent, act, request).await,
            (Method::POST, ["income"]) => {
                let keyed: KeyedIncome = read(request).await?;
                let KeyedIncome { key, agent, source, project, payer, amount_nano, currency } = keyed;
                let announced = Announced { agent, source, project, payer, amount_nano, currency };
                self.done(announced.input(key)?).await
            }
            (Method::POST, ["income", "reverse"]) => {
                let KeyedReversal { key, income, reason } = read(request).await?;
                // An income is reversed once: its own key will do.
                let key = key.unwrap_or_else(|| income.clone());
                self.done(Reversed { income, reason }.input(key, actor(uid))).await
            }
            (Method::POST, ["flags", "close"]) => {
                let Closing { signal, reason } = read(request).await?;
                self.done(Input::CloseFlag { signal, reason, actor: actor(uid) }).await
            }
            (Method::POST, ["dockets", docket, "retry"]) => {
                let docket = docket.parse().map_err(|_error| no_route(&request))?;
                self.done(Input::RetryJudge { docket, actor: actor(uid) }).await
            }
            (Method::POST, ["dockets", docket, "override"]) => {
                let docket = docket.parse().map_err(|_error| no_route(&request))?;
                let Overruling { agent, decision, reason } = read(request).await?;
                let reprieve = decision == Decision::Reprieve;
                self.done(Input::Override { docket, agent, reprieve, reason, actor: actor(uid) }).await
            }
            _ => Err(no_route(&request)),
        }
    }

    fn agent(&self, name: &str) -> Result<Answer, Wrong> {
        let figures = AgentId::parse(name)
            .ok()
            .and_then(|agent| self.inner.engine.read(|core, now| core.figures(&agent, now)));
        let unknown = || Wrong::new(StatusCode::NOT_FOUND, "unknown", format!("there is no agent {name:?}"));
        figures.map(|figures| answer(StatusCode::OK, &figures)).ok_or_else(unknown)
    }

    /// What can be looked at; `None` where there is nothing of that name.
    fn look(&self, segments: &[&str]) -> Option<Answer> {
        let ok = StatusCode::OK;
        let engine = &self.inner.engine;
        match segments {
            ["status"] => {
                let simulated = engine.clock().is_simulated();
                Some(answer(ok, &engine.read(|core, now| standing(core, now, simulated))))
            }
            ["agents"] => Some(answer(ok, &engine.read(all_figures))),
            ["dockets" | "culls"] => {
                Some(engine.read(|core, _now| answer(ok, &core.docket_views().collect::<Vec<_>>())))
            }
            ["judgements"] => Some(engine.read(|core, _now| answer(ok, &judgements(core)))),
            ["log"] => Some(engine.read(|core, _now| answer(ok, &core.work_log(LOG_ENTRIES)))),
            ["lessons"] => Some(engine.read(|core, _now| answer(ok, &core.lessons()))),
            ["digest"] => Some(engine.read(|core, _now| {
                answer(ok, &core.digest().map(|(day, text)| json!({"day": day, "text": text})))
            })),
            ["flags"] => Some(engine.read(|core, _now| {
                let flags = core.flags().map(|(signal, flag)| json!({"signal": signal, "flag": flag}));
                answer(ok, &flags.collect::<Vec<_>>())
            })),
            ["accounts"] => Some(engine.read(|core, _now| {
                let accounts = core.accounts().into_iter().map(|(name, balance)| {
                    json!({"account": name, "posted_nano": balance.posted_nano, "held_nano": balance.held_nano})
                });
                answer(ok, &accounts.collect::<Vec<_>>())
            })),
            _ => None,
        }
    }

    async fn create(&self, request: Request<Incoming>) -> Result<Answer, Wrong> {
        let NewAgent { key, agent, name, image, brief } = read(request).await?;
        if !self.inner.images.contains(&image) {
            let message = format!("image {image} is not configured; these are: {:?}", self.inner.images);
            return Err(Wrong::new(StatusCode::BAD_REQUEST, "invalid", message));
        }
        let key = key.unwrap_or_else(|| agent.to_string());
        self.done(Input::CreateAgent { key, agent, name, image, brief }).await
    }

    async fn act(
        &self,
        uid: u32,
        agent: &str,
        act: &str,
        request: Request<Incoming>,
    ) -> Result<Answer, Wrong> {
        let agent = AgentId::parse(agent).map_err(|error| {
            Wrong::new(StatusCode::NOT_FOUND, "unknown", format!("no such agent: {error}"))
        })?;
        let actor = actor(uid);
        let input = match act {
            "wake" => {
                let Event { key, event } = read(request).await?;
                Input::Wake { key, agent, event }
            }
            "pause" => Input::Pause { agent, reason: read::<Why>(request).await?.reason, actor },
            "resume" => Input::Resume { agent, reason: read::<Why>(request).await?.reason, actor },
            "kill" => Input::Kill { agent, reason: read::<Why>(request).await?.reason, actor },
            _ => return Err(no_route(&request)),
        };
        self.done(input).await
    }
}

fn actor(uid: u32) -> String {
    format!("uid {uid}")
}

fn no_route(request: &Request<Incoming>) -> Wrong {
    let message = format!("{} {} is not served here", request.method(), request.uri().path());
    Wrong::new(StatusCode::NOT_FOUND, "unknown", message)
}

async fn read<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Wrong> {
    let body = whole(request).await?;
    serde_json::from_slice(&body).map_err(|error| {
        Wrong::new(StatusCode::BAD_REQUEST, "malformed", format!("the body does not fit: {error}"))
    })
}

fn standing(core: &Core, now: Instant, simulated: bool) -> Standing {
    Standing {
        now_ms: now,
        simulated,
        busy: core.is_busy(),
        next_cull_ms: core.next_cull(),
        treasury_nano: core.treasury().posted_nano,
        open_calls: core.open_calls(),
        agents: core.agents().len(),
    }
}

fn all_figures(core: &Core, now: Instant) -> Vec<Figures> {
    core.agents().iter().filter_map(|agent| core.figures(agent, now)).collect()
}

fn judgements(core: &Core) -> Vec<Judgement<'_>> {
    let cases = core.dockets().flat_map(|docket| docket.cases.iter().map(|case| (docket.id, case)));
    cases
        .map(|(docket, (agent, case))| Judgement {
            docket,
            agent,
            is_appellant: case.is_appellant(),
            promise: case.promise(),
            reasoning: case.reasoning(),
            reprieved: case.is_reprieved(),
            done: case.done,
        })
        .collect()
}
