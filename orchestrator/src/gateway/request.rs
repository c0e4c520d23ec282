//! One Messages request: what of it is let through, what it can cost at most, and how it leaves.
//!
//! Closed by default (G2): a field, a tool, a content block or a key of one that is not named here is refused before
//! any contact with the provider. Only an agent's own values are taken as they are: what it gives a tool, a tool's
//! schema, the format of a reply, citations. What leaves is written anew from what was read, so that nothing that was not looked at
//! leaves, and what was priced is what is sent.

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::shape::Wrong;

/// Most tokens that one image can come to.
const IMAGE_TOKENS_MAX: u64 = 5_000;
/// What the provider adds of its own: the tools' system prompt and the frame of each message.
const FRAME_TOKENS_MAX: u64 = 1_000;
/// Cache breakpoints that one request may have.
const BREAKPOINTS_MAX: usize = 4;
/// Deepest nesting of content that is looked through.
const DEPTH_MAX: usize = 8;

const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];
const FIELDS: [&str; 14] = [
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_p",
];
const TOOL_FIELDS: [&str; 6] = ["cache_control", "description", "input_schema", "name", "strict", "type"];

const MESSAGE_FIELDS: [&str; 2] = ["content", "role"];
const CACHE_FIELDS: [&str; 2] = ["ttl", "type"];
/// Objects at the top, with their keys.
const OBJECTS: [(&str, &[&str]); 4] = [
    ("metadata", &["user_id"]),
    ("output_config", &["effort", "format"]),
    ("thinking", &["budget_tokens", "display", "type"]),
    ("tool_choice", &["disable_parallel_tool_use", "name", "type"]),
];
/// Content blocks, with their keys.
const BLOCKS: [(&str, &[&str]); 7] = [
    ("document", &["cache_control", "citations", "context", "source", "title", "type"]),
    ("image", &["cache_control", "source", "type"]),
    ("redacted_thinking", &["data", "type"]),
    ("text", &["cache_control", "citations", "text", "type"]),
    ("thinking", &["signature", "thinking", "type"]),
    ("tool_result", &["cache_control", "content", "is_error", "tool_use_id", "type"]),
    ("tool_use", &["cache_control", "id", "input", "name", "type"]),
];
const SOURCE_FIELDS: [&str; 3] = ["data", "media_type", "type"];

/// A request that may be asked for its hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The model as asked for.
    pub model: String,
    /// The one token limit.
    pub max_tokens: u64,
    /// More tokens than the prompt can have.
    pub input_tokens_max: u64,
    version: String,
    body: Map<String, Value>,
}

impl Call {
    /// Reads a request and puts the constitution before it.
    ///
    /// # Errors
    /// [`Wrong`], in the protocol's shape.
    pub fn parse(headers: &HeaderMap, body: &[u8], constitution: &str) -> Result<Self, Wrong> {
        let version = check_headers(headers)?;
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| Wrong::request(format!("the body is not JSON: {error}")))?;
        let Value::Object(mut body) = value else {
            return Err(Wrong::request("the body is not a JSON object"));
        };
        let (model, max_tokens) = check_fields(&body)?;
        let mut seen = Seen::default();
        check_tools(&body, &mut seen)?;
        check_messages(&body, &mut seen)?;
        govern(&mut body, constitution, &mut seen)?;
        let bytes = Value::Object(body.clone()).to_string().len() as u64;
        // A token is at least one byte of text, but an image's bytes say nothing of its tokens.
        let input_tokens_max = bytes + FRAME_TOKENS_MAX + seen.images * IMAGE_TOKENS_MAX;
        Ok(Self { model, max_tokens, input_tokens_max, version, body })
    }

    /// What is sent, with the token limit that the hold covers.
    pub fn sent(&self, max_tokens: u64) -> Bytes {
        let mut body = self.body.clone();
        body.insert("max_tokens".to_owned(), max_tokens.into());
        body.remove("stream");
        Bytes::from(Value::Object(body).to_string())
    }

    /// The protocol's version that the agent asked for.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// What was met on the way through a request.
#[derive(Debug, Default)]
struct Seen {
    images: u64,
    breakpoints: usize,
}

impl Seen {
    fn cache_control(&mut self, object: &Map<String, Value>, place: &str) -> Result<(), Wrong> {
        let Some(control) = object.get("cache_control").filter(|control| !control.is_null()) else {
            return Ok(());
        };
        self.breakpoints += 1;
        check_object(control, &format!("{place}.cache_control"), &CACHE_FIELDS)
    }
}

fn check_keys(object: &Map<String, Value>, place: &str, keys: &[&str]) -> Result<(), Wrong> {
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(unknown) => {
            Err(Wrong::request(format!("{place}.{unknown} is refused: it is not among {keys:?}")))
        }
        None => Ok(()),
    }
}

fn check_object(value: &Value, place: &str, keys: &[&str]) -> Result<(), Wrong> {
    let object = value.as_object().ok_or_else(|| Wrong::request(format!("{place} is not an object")))?;
    check_keys(object, place, keys)
}

fn check_headers(headers: &HeaderMap) -> Result<String, Wrong> {
    if let Some(beta) = headers.get("anthropic-beta") {
        let beta = beta.to_str().unwrap_or("that is not text");
        return Err(Wrong::request(format!("anthropic-beta {beta} is refused: no beta is allowed here")));
    }
    let version =
        headers.get("anthropic-version").map_or(Ok(VERSIONS[0]), hyper::header::HeaderValue::to_str);
    match version {
        Ok(version) if VERSIONS.contains(&version) => Ok(version.to_owned()),
        Ok(_) | Err(_) => Err(Wrong::request(format!("anthropic-version must be one of {VERSIONS:?}"))),
    }
}

fn check_fields(body: &Map<String, Value>) -> Result<(String, u64), Wrong> {
    if let Some(unknown) = body.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(Wrong::request(format!("{unknown} is refused: it is not among {FIELDS:?}")));
    }
    for (key, keys) in OBJECTS {
        if let Some(value) = body.get(key).filter(|value| !value.is_null()) {
            check_object(value, key, keys)?;
        }
    }
    match body.get("stream") {
        None | Some(Value::Bool(false)) => {}
        Some(_) => {
            return Err(Wrong::request(
                "stream is refused: this version answers whole; leave it out or false",
            ));
        }
    }
    if body.get("service_tier").is_some_and(|tier| tier != "standard_only") {
        return Err(Wrong::request("service_tier is refused: standard_only is what is paid for here"));
    }
    let model = body.get("model").and_then(Value::as_str);
    let model = model.ok_or_else(|| Wrong::request("model is missing or no text"))?;
    let max_tokens = body.get("max_tokens").and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    let max_tokens =
        max_tokens.ok_or_else(|| Wrong::request("max_tokens is missing or no whole number over 0"))?;
    Ok((model.to_owned(), max_tokens))
}

fn check_tools(body: &Map<String, Value>, seen: &mut Seen) -> Result<(), Wrong> {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let tools = tools.as_array().ok_or_else(|| Wrong::request("tools is not a list"))?;
    for (at, tool) in tools.iter().enumerate() {
        let tool = tool.as_object().ok_or_else(|| Wrong::request(format!("tools.{at} is not an object")))?;
        let kind = tool.get("type").map_or(Some("custom"), Value::as_str);
        if kind != Some("custom") {
            let message =
                format!("tools.{at} is refused: the provider would run it; only type custom is allowed");
            return Err(Wrong::new(hyper::StatusCode::FORBIDDEN, "permission_error", message));
        }
        let place = format!("tools.{at}");
        check_keys(tool, &place, &TOOL_FIELDS)?;
        seen.cache_control(tool, &place)?;
    }
    Ok(())
}

fn check_messages(body: &Map<String, Value>, seen: &mut Seen) -> Result<(), Wrong> {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| Wrong::request("messages is missing or no list"))?;
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages.{at}");
        check_object(message, &place, &MESSAGE_FIELDS)?;
        let role = message.get("role").and_then(Value::as_str);
        if !matches!(role, Some("user" | "assistant")) {
            return Err(Wrong::request(format!("{place}.role must be user or assistant")));
        }
        let content =
            message.get("content").ok_or_else(|| Wrong::request(format!("{place}.content is missing")))?;
        check_content(content, &place, seen, 0)?;
    }
    Ok(())
}

fn check_content(content: &Value, place: &str, seen: &mut Seen, depth: usize) -> Result<(), Wrong> {
    if content.is_string() {
        return Ok(());
    }
    let blocks = content.as_array().filter(|_| depth < DEPTH_MAX);
    let blocks =
        blocks.ok_or_else(|| Wrong::request(format!("{place}.content is neither text nor blocks")))?;
    for block in blocks {
        let block =
            block.as_object().ok_or_else(|| Wrong::request(format!("{place}.content holds no object")))?;
        check_block(block, place, seen, depth)?;
    }
    Ok(())
}

fn check_block(block: &Map<String, Value>, place: &str, seen: &mut Seen, depth: usize) -> Result<(), Wrong> {
    let kind = block.get("type").and_then(Value::as_str);
    match kind {
        Some("text" | "tool_use" | "thinking" | "redacted_thinking") => {}
        Some("tool_result") => {
            if let Some(inner) = block.get("content") {
                check_content(inner, place, seen, depth + 1)?;
            }
        }
        // An address would be fetched by the provider: a way out that the proxy does not see.
        Some("image") if source_kind(block) == Some("base64") => seen.images += 1,
        Some("document") if source_kind(block) == Some("text") => {}
        _ => {
            let kind = kind.unwrap_or("no type");
            let source = source_kind(block).map_or_else(String::new, |source| format!(" by {source}"));
            let message = format!("{place}.content: {kind}{source} is refused: it is not on the list");
            return Err(Wrong::new(hyper::StatusCode::FORBIDDEN, "permission_error", message));
        }
    }
    let kind = kind.unwrap_or_default();
    let place = format!("{place}.content: {kind}");
    let keys = BLOCKS.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| *keys);
    check_keys(block, &place, keys)?;
    if let Some(source) = block.get("source") {
        check_object(source, &format!("{place}.source"), &SOURCE_FIELDS)?;
    }
    seen.cache_control(block, &place)
}

fn source_kind(block: &Map<String, Value>) -> Option<&str> {
    block.get("source")?.get("type")?.as_str()
}

/// Block 0 of `system` is the constitution, byte for byte the same for a version, so that it is cached (G8).
fn govern(body: &mut Map<String, Value>, constitution: &str, seen: &mut Seen) -> Result<(), Wrong> {
    let own = match body.remove("system") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(Wrong::request("system is neither text nor blocks")),
    };
    for block in &own {
        let block = block.as_object().filter(|block| block.get("type").is_some_and(|kind| kind == "text"));
        let block = block.ok_or_else(|| Wrong::request("system holds something else than text blocks"))?;
        check_keys(block, "system", &["cache_control", "citations", "text", "type"])?;
        seen.cache_control(block, "system")?;
    }
    let mut first = json!({"type": "text", "text": constitution});
    if seen.breakpoints < BREAKPOINTS_MAX {
        first["cache_control"] = json!({"type": "ephemeral"});
    }
    let blocks = std::iter::once(first).chain(own).collect();
    body.insert("system".to_owned(), Value::Array(blocks));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain() -> Value {
        json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut body = plain();
        body[key] = value;
        body
    }

    fn parse(body: &Value) -> Result<Call, Wrong> {
        Call::parse(&HeaderMap::new(), body.to_string().as_bytes(), "1. Be good.")
    }

    fn sent(body: &Value) -> Value {
        let call = parse(body).unwrap();
        serde_json::from_slice(&call.sent(call.max_tokens)).unwrap()
    }

    #[test]
    fn a_plain_call_passes_with_the_constitution_first() {
        let sent = sent(&with("system", json!("You are an agent.")));
        assert_eq!(sent["system"][0]["text"], "1. Be good.");
        assert_eq!(sent["system"][0]["cache_control"]["type"], "ephemeral");
        assert_eq!(sent["system"][1]["text"], "You are an agent.");
        assert_eq!(sent["messages"], plain()["messages"]);
    }

    #[test]
    fn a_fifth_breakpoint_is_never_set() {
        let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        let sent = sent(&with("system", json!([block, block, block, block])));
        assert_eq!(sent["system"][0].get("cache_control"), None);
    }

    #[test]
    fn the_token_limit_is_the_one_that_is_held() {
        let call = parse(&plain()).unwrap();
        let sent: Value = serde_json::from_slice(&call.sent(7)).unwrap();
        assert_eq!(sent["max_tokens"], 7);
    }

    #[test]
    fn what_is_not_on_the_list_is_refused() {
        let url_image =
            json!([{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]);
        let nested = json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [
            {"type": "document", "source": {"type": "url", "url": "x"}}]}]}]);
        let file = json!([{"role": "user", "content": [{"type": "document", "source": {"type": "file"}}]}]);
        for (body, status) in [
            (with("stream", json!(true)), 400),
            (with("mcp_servers", json!([])), 400),
            (with("container", json!("x")), 400),
            (with("max_completion_tokens", json!(1)), 400),
            (with("max_tokens", json!(0)), 400),
            (with("max_tokens", json!("5")), 400),
            (with("service_tier", json!("auto")), 400),
            (with("tools", json!([{"type": "web_search_20260101", "name": "web_search"}])), 403),
            (with("tools", json!([{"name": "t", "input_schema": {}, "defer_loading": true}])), 400),
            (with("messages", url_image), 403),
            (with("messages", nested), 403),
            (with("messages", file), 403),
            (with("messages", json!([{"role": "system", "content": "x"}])), 400),
            (with("system", json!([{"type": "image"}])), 400),
            (with("model", json!(null)), 400),
            (json!([]), 400),
        ] {
            assert_eq!(parse(&body).map_err(|wrong| wrong.status.as_u16()), Err(status), "{body}");
        }
    }

    #[test]
    fn a_key_that_is_not_on_the_list_is_refused_wherever_it_stands() {
        let block = |block: Value| with("messages", json!([{"role": "user", "content": [block]}]));
        let source = json!({"type": "base64", "media_type": "image/png", "data": "AA==", "url": "x"});
        for body in [
            block(json!({"type": "text", "text": "x", "fetch": "y"})),
            block(json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "scope": "y"}})),
            block(json!({"type": "image", "source": source})),
            block(json!({"type": "tool_result", "tool_use_id": "1", "content": [
                {"type": "text", "text": "x", "fetch": "y"}]})),
            block(json!({"type": "tool_use", "id": "1", "name": "t", "input": {}, "server": "y"})),
            with("messages", json!([{"role": "user", "content": "x", "name": "y"}])),
            with("thinking", json!({"type": "enabled", "budget_tokens": 1, "more": true})),
            with("thinking", json!("enabled")),
            with("tool_choice", json!({"type": "auto", "more": true})),
            with("output_config", json!({"more": 1})),
            with("metadata", json!({"more": 1})),
            with("system", json!([{"type": "text", "text": "x", "fetch": "y"}])),
        ] {
            assert_eq!(parse(&body).map_err(|wrong| wrong.status.as_u16()), Err(400), "{body}");
        }
    }

    #[test]
    fn every_block_with_its_own_keys_passes() {
        let cached = json!({"type": "ephemeral", "ttl": "1h"});
        let content = json!([
            {"type": "text", "text": "x", "citations": null, "cache_control": cached},
            {"type": "tool_use", "id": "1", "name": "t", "input": {"any": {"thing": 1}}},
            {"type": "tool_result", "tool_use_id": "1", "is_error": false, "content": [{"type": "text", "text": "x"}]},
            {"type": "thinking", "thinking": "x", "signature": "y"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "document", "title": "x", "source": {"type": "text", "media_type": "text/plain", "data": "y"}},
        ]);
        let mut body = with("messages", json!([{"role": "assistant", "content": content}]));
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 50});
        body["tool_choice"] = json!({"type": "tool", "name": "t", "disable_parallel_tool_use": true});
        body["output_config"] = json!({"effort": "low"});
        body["metadata"] = json!({"user_id": "x"});
        assert!(parse(&body).is_ok());
    }

    #[test]
    fn what_is_on_the_list_passes() {
        let image = json!([{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]}]);
        for body in [
            plain(),
            with("stream", json!(false)),
            with("tools", json!([{"name": "t", "input_schema": {"type": "object"}}])),
            with("service_tier", json!("standard_only")),
            with("messages", image),
        ] {
            assert!(parse(&body).is_ok(), "{body}");
        }
    }

    #[test]
    fn no_beta_passes_and_only_known_versions_do() {
        let parse = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            Call::parse(&headers, plain().to_string().as_bytes(), "")
        };
        assert!(parse("anthropic-beta", "files-api-2025-04-14").is_err());
        assert!(parse("anthropic-version", "2020-01-01").is_err());
        assert!(parse("anthropic-version", "2026-10-21").is_ok());
    }

    #[test]
    fn a_small_image_is_not_a_cheap_image() {
        let image = json!([{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]}]);
        assert!(parse(&with("messages", image)).unwrap().input_tokens_max >= IMAGE_TOKENS_MAX);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body: Vec<u8>) {
            drop(Call::parse(&HeaderMap::new(), &body, "1."));
        }

        #[test]
        fn the_bound_covers_every_byte_that_is_sent(text: String) {
            let body = with("messages", json!([{"role": "user", "content": text}]));
            let call = parse(&body).unwrap();
            prop_assert!(call.input_tokens_max >= call.sent(u64::MAX).len() as u64);
        }
    }
}
