//! The demo's stand-in for a model provider: the Messages API over TLS on loopback, without a model behind it.
//!
//! It says so in everything that it answers. As the agents' model it gives back a paragraph that depends on the
//! question alone; as the digest's model it counts reports; as the judge it scores by a formula over the verified
//! facts and never reads an appeal. What it reports as usage is counted from the texts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use super::https::{self, Answer, Asked, ServerError, Site};
use super::stand_in;
use super::witness::{Sighting, Witness};

/// The provider's name in what the witness notes.
const NAME: &str = "provider";
/// Characters in one token, as this provider counts.
const TOKEN_CHARS: usize = 4;

/// Serves on a free port of loopback until the socket fails; calls `ready` with the address.
///
/// # Errors
/// [`ServerError`].
pub async fn serve(folder: PathBuf, ready: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |source| ServerError::Io { what, source }
    };
    let seen = folder.join("provider.jsonl");
    let witness = Witness::open(&seen).map_err(failed("open the provider's notes"))?;
    let tls = https::acceptor(&folder, "provider")?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed("serve models"))?;
    ready(listener.local_addr().map_err(failed("serve models"))?);
    https::serve(listener, tls, Arc::new(Provider { witness })).await.map_err(failed("go on serving"))
}

struct Provider {
    witness: Witness,
}

impl Site for Provider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn connected(&self, from: SocketAddr) {
        self.witness.saw(&Sighting::Connection { site: NAME.to_owned(), from: from.ip().to_string() });
    }

    async fn answer(&self, asked: Asked) -> Answer {
        let line = format!("{} {}", asked.method(), asked.uri().path());
        let answer = if asked.method() == Method::POST && asked.uri().path() == "/v1/messages" {
            messages(asked.body())
        } else {
            error(StatusCode::NOT_FOUND, "not_found_error", "this stand-in serves POST /v1/messages alone")
        };
        let status = answer.status().as_u16();
        self.witness.saw(&Sighting::Request { site: NAME.to_owned(), line, status });
        answer
    }
}

fn messages(body: &[u8]) -> Answer {
    let Ok(asked) = serde_json::from_slice::<Value>(body) else {
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", "the body is not JSON");
    };
    let (Some(model), Some(max_tokens)) =
        (asked.get("model").and_then(Value::as_str), asked.get("max_tokens").and_then(Value::as_u64))
    else {
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", "model and max_tokens are required");
    };
    let system = text_of(asked.get("system"));
    let user = asked.get("messages").and_then(Value::as_array).map(|messages| {
        messages.iter().map(|message| text_of(message.get("content"))).collect::<Vec<_>>().join("\n")
    });
    let Some(user) = user else {
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", "messages are required");
    };
    let text = if asked.get("output_config").is_some() {
        stand_in::judge(&user)
    } else if user.contains("WRITE AT LENGTH") {
        at_length(max_tokens)
    } else if max_tokens > 0 && stand_in::is_digest(&system) {
        stand_in::digest(&user)
    } else {
        thought(&user)
    };
    reply(model, max_tokens, tokens(&system) + tokens(&user), text)
}

fn reply(model: &str, max_tokens: u64, input_tokens: u64, mut text: String) -> Answer {
    let whole = tokens(&text);
    let output_tokens = whole.min(max_tokens);
    let stop_reason = if whole > max_tokens { "max_tokens" } else { "end_turn" };
    if whole > max_tokens {
        let kept = usize::try_from(max_tokens).unwrap_or(usize::MAX).saturating_mul(TOKEN_CHARS);
        text = text.chars().take(kept).collect();
    }
    let id = format!("msg_standin_{}", fingerprint(&text));
    https::json(
        StatusCode::OK,
        &json!({
            "id": id, "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {"input_tokens": input_tokens, "output_tokens": output_tokens},
        }),
    )
}

fn error(status: StatusCode, kind: &str, message: &str) -> Answer {
    https::json(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
}

/// The text of a content field: a string, or the text blocks of a list.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn tokens(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(TOKEN_CHARS)).unwrap_or(u64::MAX)
}

fn fingerprint(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let head: [u8; 8] = std::array::from_fn(|at| digest.get(at).copied().unwrap_or(0));
    format!("{:016x}", u64::from_be_bytes(head))
}

fn thought(user: &str) -> String {
    format!(
        "(A stand-in's reply, not a model's.) I have read {} characters, fingerprint {}. Do one small job well, \
         deliver it, and write down what it brought in.",
        user.chars().count(),
        fingerprint(user)
    )
}

/// As many tokens of text as were asked for.
fn at_length(max_tokens: u64) -> String {
    let words = "(stand-in text) ";
    let chars = usize::try_from(max_tokens).unwrap_or(0).saturating_mul(TOKEN_CHARS);
    words.chars().cycle().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn ask(body: &Value) -> (StatusCode, Value) {
        let answer = messages(body.to_string().as_bytes());
        let status = answer.status();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn the_same_question_gets_the_same_answer_and_says_what_it_is() {
        let body =
            json!({"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}]});
        let (status, first) = ask(&body);
        assert_eq!(status, StatusCode::OK);
        assert_eq!(first, ask(&body).1);
        let text = first["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("stand-in"), "{text}");
        assert_eq!(first["usage"]["output_tokens"], tokens(text));
    }

    #[test]
    fn a_long_answer_uses_what_was_allowed_and_no_more() {
        let content = [json!({"type": "text", "text": "WRITE AT LENGTH"})];
        let body =
            json!({"model": "m", "max_tokens": 900, "messages": [{"role": "user", "content": content}]});
        let (_status, answer) = ask(&body);
        assert_eq!(answer["usage"]["output_tokens"], 900);
        assert_eq!(answer["content"][0]["text"].as_str().unwrap().len(), 3_600);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(ask(&json!({"model": "m"})).0, StatusCode::BAD_REQUEST);
        assert_eq!(ask(&json!([])).0, StatusCode::BAD_REQUEST);
    }
}
