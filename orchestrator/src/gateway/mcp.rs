//! The platform's tools by MCP: streamable HTTP with whole answers, no session, no stream of the server's own (G10).
//!
//! Which tools work is the core's answer at that moment, for listing and for calling alike.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use policy::judge::quote::{Sigil, quote};
use serde_json::{Value, json};

use super::shape::{Answer, Wrong, json_answer};
use super::{Caller, Gateway, whole};
use crate::core::input::{Input, ToolUse};
use crate::core::reply::Reply;

/// Versions of the protocol that are spoken; the last one is offered where another is asked for.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Entries of the work log that one reading shows.
const LOG_ENTRIES: usize = 30;
/// Lessons that one reading shows.
const LESSONS: usize = 50;

/// A JSON-RPC error.
struct RpcError(i32, String);

const PARSE: i32 = -32_700;
const INVALID: i32 = -32_600;
const NO_METHOD: i32 = -32_601;
const PARAMS: i32 = -32_602;
const INTERNAL: i32 = -32_603;

impl Gateway {
    pub(super) async fn tools(&self, caller: &Caller, request: Request<Incoming>) -> Result<Answer, Wrong> {
        let body = whole(request).await?;
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            return Ok(rpc(&Value::Null, Err(RpcError(PARSE, "the body is not JSON".to_owned()))));
        };
        let id = message.get("id").cloned();
        let method = message.get("method").and_then(Value::as_str);
        let valid = message.get("jsonrpc").is_some_and(|version| version == "2.0")
            && id.as_ref().is_none_or(|id| id.is_string() || id.is_i64() || id.is_u64());
        let (Some(method), true) = (method, valid) else {
            let what = "not one JSON-RPC 2.0 request (batches are not taken)".to_owned();
            return Ok(rpc(&Value::Null, Err(RpcError(INVALID, what))));
        };
        let Some(id) = id else {
            // A notification: taken, and nothing depends on it.
            let mut taken = Response::new(Full::new(Bytes::new()));
            *taken.status_mut() = StatusCode::ACCEPTED;
            return Ok(taken);
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        Ok(rpc(&id, self.method(caller, method, params).await))
    }

    async fn method(&self, caller: &Caller, method: &str, params: &Value) -> Result<Value, RpcError> {
        match method {
            "initialize" => Ok(initialize(params)),
            "ping" => Ok(json!({})),
            "tools/list" => {
                Ok(json!({ "tools": self.working(caller).iter().map(|name| tool(name)).collect::<Vec<_>>() }))
            }
            "tools/call" => self.use_tool(caller, params).await,
            other => Err(RpcError(NO_METHOD, format!("there is no method {other}"))),
        }
    }

    /// The tools that work for this caller now: none for an episode that is over.
    fn working(&self, caller: &Caller) -> Vec<&'static str> {
        self.inner.engine.read(|core, _now| {
            let current = core.episode_of(&caller.agent) == Some(caller.episode);
            if current { core.tools(&caller.agent) } else { Vec::new() }
        })
    }

    async fn use_tool(&self, caller: &Caller, params: &Value) -> Result<Value, RpcError> {
        let asked = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(name) = self.working(caller).into_iter().find(|name| *name == asked) else {
            return Err(RpcError(
                PARAMS,
                format!("there is no tool {asked} now; tools/list names those that work"),
            ));
        };
        let text =
            params.get("arguments").and_then(|arguments| arguments.get("text")).and_then(Value::as_str);
        let written = |text: Option<&str>| {
            text.map(str::to_owned).ok_or_else(|| RpcError(PARAMS, format!("{name} takes one text, `text`")))
        };
        let tool = match name {
            "write_daily_report" => ToolUse::WriteDailyReport { text: written(text)? },
            "reproduce" => ToolUse::Reproduce { text: written(text)? },
            "submit_appeal" => ToolUse::SubmitAppeal { text: written(text)? },
            "submit_death_report" => ToolUse::SubmitDeathReport { text: written(text)? },
            reading => return self.read(caller, reading),
        };
        let used = Input::ToolUsed { agent: caller.agent.clone(), episode: caller.episode, tool };
        match self.submit(used).await {
            Ok(Reply::Tool { text }) => Ok(content(&text, false)),
            Ok(Reply::Refused(refusal)) => Ok(content(&refusal.to_string(), true)),
            Ok(Reply::Done | Reply::Created { .. } | Reply::Held { .. }) => Ok(content("done", false)),
            Err(wrong) => Err(RpcError(INTERNAL, wrong.message)),
        }
    }

    /// The tools that change nothing. What others wrote is quoted, so that no line of it can pass for ours (E29).
    fn read(&self, caller: &Caller, name: &str) -> Result<Value, RpcError> {
        let mut dice = super::HostDice::open().map_err(|error| RpcError(INTERNAL, error.to_string()))?;
        let text = self.inner.engine.read(|core, now| match name {
            "my_figures" => serde_json::to_string_pretty(&core.figures(&caller.agent, now)).ok(),
            "read_work_log" => Some(core.work_log_quoted(LOG_ENTRIES, &mut dice)),
            "read_digest" => Some(core.digest().map_or_else(
                || "There is no digest yet.".to_owned(),
                |(_day, text)| quote("digest", text, &Sigil::draw(&mut dice, &[text])),
            )),
            "read_lessons" => {
                let lessons = core.lessons();
                let from = lessons.len().saturating_sub(LESSONS);
                let text = lessons.iter().skip(from).cloned().collect::<Vec<_>>().join("\n");
                Some(quote("lessons", &text, &Sigil::draw(&mut dice, &[&text])))
            }
            _ => None,
        });
        text.map(|text| content(&text, false))
            .ok_or_else(|| RpcError(INTERNAL, format!("{name} reads nothing")))
    }
}

fn initialize(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let spoken = VERSIONS.into_iter().find(|version| *version == asked).unwrap_or("2025-11-25");
    json!({
        "protocolVersion": spoken,
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": {"name": "darwin", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tool(name: &str) -> Value {
    let (description, writes) = match name {
        "my_figures" => {
            ("Your figures now, from the platform's ledger: balance, period, lifetime, next cull.", false)
        }
        "read_work_log" => ("The last entries of the work log: what others reported, for reading.", false),
        "read_digest" => ("The latest digest of a day across Darwin.", false),
        "read_lessons" => ("The lessons library: what dead agents left to learn from.", false),
        "write_daily_report" => {
            ("Your report of today: one paragraph, at most 1,000 characters. The last version counts.", true)
        }
        "reproduce" => (
            "Have a child: you give it its first money, `text` is its brief, at most 1,000 characters. It gets a copy of \
             your history.md and lessons.md. One a period.",
            true,
        ),
        "submit_appeal" => ("Your appeal, at most 2,000 characters. The last version counts.", true),
        "submit_death_report" => (
            "Your death report, one to three paragraphs, at most 3,000 characters. The last version counts.",
            true,
        ),
        _ => ("A tool of the platform.", false),
    };
    let schema = if writes {
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
               "additionalProperties": false})
    } else {
        json!({"type": "object", "properties": {}})
    };
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn content(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

fn rpc(id: &Value, result: Result<Value, RpcError>) -> Answer {
    let body = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError(code, message)) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    };
    json_answer(StatusCode::OK, &body)
}
