//! One model call: state, request, hold, dispatch, settle, answer (G3).
//!
//! From the hold on it is a task of its own, so that it is settled on what the provider counted also when the agent
//! has hung up (G6).

use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;

use super::request::Call;
use super::shape::{Answer, Wrong};
use super::{Caller, Gateway, usage, whole};
use crate::core::input::{Input, Usage};
use crate::core::reply::Reply;
use crate::provider::{Answered, NoAnswer};

/// Headers of the provider's answer that are passed on; the others tell of the platform's account.
const PASSED: [&str; 2] = ["request-id", "retry-after"];
/// Said where the balance paid for a lower limit than was asked for (G3).
const LOWERED: HeaderName = HeaderName::from_static("darwin-max-tokens");

/// What is known of the bill once the provider was asked.
enum Bill {
    /// The provider's own count.
    Counted(Usage),
    /// It may have been billed and nobody says how much: ours, never more than the hold.
    Estimated(Usage),
    /// Certainly nothing.
    Nothing(String),
}

impl Gateway {
    pub(super) async fn messages(
        &self,
        caller: &Caller,
        request: Request<Incoming>,
    ) -> Result<Answer, Wrong> {
        self.inner.engine.read(|core, _now| core.may_call(&caller.agent, caller.episode))?;
        let (head, body) = request.into_parts();
        let body = whole(Request::from_parts(head.clone(), body)).await?;
        let call = Call::parse(&head.headers, &body, &self.inner.constitution)?;
        let (gateway, caller) = (self.clone(), caller.clone());
        let paid = self.inner.open.spawn(async move { gateway.paid(&caller, &call).await });
        paid.await.map_err(|_panicked| Wrong::ours("the call broke off"))?
    }

    async fn paid(&self, caller: &Caller, call: &Call) -> Result<Answer, Wrong> {
        let id = self.next_call(caller);
        let max_tokens = self.hold(&id, caller, call).await?;
        let answered = self.inner.provider.messages(call.version(), call.sent(max_tokens)).await;
        self.settle(&id, bill(&answered, call, max_tokens)).await?;
        let mut answer = match answered {
            Ok(answered) => passed_on(answered)?,
            Err(error) => {
                tracing::warn!(agent = %caller.agent, call = id, "cannot {error}");
                return Err(Wrong::new(StatusCode::BAD_GATEWAY, "api_error", "the provider gave no answer"));
            }
        };
        if max_tokens < call.max_tokens {
            answer.headers_mut().insert(LOWERED, HeaderValue::from(max_tokens));
        }
        Ok(answer)
    }

    /// Holds the most that it can cost; gives the token limit that the hold covers.
    async fn hold(&self, id: &str, caller: &Caller, call: &Call) -> Result<u64, Wrong> {
        let wanted = Input::CallWanted {
            call: id.to_owned(),
            agent: caller.agent.clone(),
            episode: caller.episode,
            model: call.model.clone(),
            input_tokens_max: call.input_tokens_max,
            max_tokens: call.max_tokens,
        };
        match self.submit(wanted).await? {
            Reply::Held { max_tokens, .. } => Ok(max_tokens),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Done | Reply::Created { .. } | Reply::Tool { .. } => {
                Err(Wrong::ours("the hold is unclear"))
            }
        }
    }

    async fn settle(&self, id: &str, bill: Bill) -> Result<(), Wrong> {
        let call = id.to_owned();
        let settled = match bill {
            Bill::Counted(usage) => Input::CallSettled { call, usage, estimated: false },
            Bill::Estimated(usage) => Input::CallSettled { call, usage, estimated: true },
            Bill::Nothing(why) => Input::CallVoided { call, why },
        };
        match self.submit(settled).await? {
            Reply::Refused(refusal) => {
                // The hold stands until its time limit and is charged then: closed, and listed.
                tracing::error!(call = id, "cannot settle a call: {refusal}");
                Ok(())
            }
            Reply::Done | Reply::Created { .. } | Reply::Held { .. } | Reply::Tool { .. } => Ok(()),
        }
    }

    pub(super) async fn submit(&self, input: Input) -> Result<Reply, Wrong> {
        self.inner.engine.submit(input).await.map_err(|error| {
            tracing::error!("cannot {}", crate::cli::with_causes(&error));
            Wrong::ours("the platform's books are closed")
        })
    }
}

fn bill(answered: &Result<Answered, NoAnswer>, call: &Call, max_tokens: u64) -> Bill {
    let estimated = |output_tokens: u64| {
        let usage = Usage { input_tokens: call.input_tokens_max, output_tokens, ..Usage::default() };
        Bill::Estimated(usage)
    };
    let answered = match answered {
        Ok(answered) => answered,
        Err(NoAnswer::NotSent(why)) => return Bill::Nothing(why.clone()),
        Err(NoAnswer::Unknown(_)) => return estimated(max_tokens),
    };
    match answered.status.as_u16() {
        200 => {
            let body: Value = serde_json::from_slice(&answered.body).unwrap_or(Value::Null);
            // An error in a 200 is an error (G5).
            if body.get("type").is_some_and(|kind| kind == "error") {
                return Bill::Nothing("the provider answered 200 with an error".to_owned());
            }
            match usage::read(&body) {
                Some(usage) => Bill::Counted(usage),
                None => estimated(max_tokens.min(answered.body.len() as u64)),
            }
        }
        // Something between us and the provider gave up waiting; the provider may have gone on.
        502 | 504 => estimated(max_tokens),
        status => Bill::Nothing(format!("the provider answered {status}")),
    }
}

/// The provider's answer, its bytes untouched.
fn passed_on(answered: Answered) -> Result<Answer, Wrong> {
    if matches!(
        answered.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PAYMENT_REQUIRED
    ) {
        // That is between the platform and its provider: the agent could do nothing about it.
        tracing::error!(
            status = answered.status.as_u16(),
            "cannot use the provider: it refuses the platform's key"
        );
        return Err(Wrong::ours("the provider refuses the platform"));
    }
    let overloaded = answered.status == StatusCode::OK && is_error(&answered.body);
    let mut answer = Response::new(Full::new(answered.body));
    *answer.status_mut() = answered.status;
    if overloaded {
        *answer.status_mut() = StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    }
    for name in PASSED {
        if let Some(value) = answered.headers.get(name) {
            answer.headers_mut().insert(HeaderName::from_static(name), value.clone());
        }
    }
    let kind = answered.headers.get(CONTENT_TYPE).cloned();
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, kind.unwrap_or_else(|| HeaderValue::from_static("application/json")));
    Ok(answer)
}

fn is_error(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    body.get("type").is_some_and(|kind| kind == "error")
}
