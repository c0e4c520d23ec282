//! The platform's side door: model calls, and tools by MCP.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Answer, Ask};

/// Longest wait for the gateway.
const PATIENCE: Duration = Duration::from_mins(2);

/// The gateway, at its address in this namespace.
#[derive(Debug)]
pub(crate) struct Gateway {
    address: SocketAddr,
    host: String,
    session: Option<String>,
    calls: u64,
}

impl Gateway {
    /// Opens the session for tools.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let mut gateway = Self { address, host: address.to_string(), session: None, calls: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "darwin-sample-agent", "version": env!("CARGO_PKG_VERSION")},
        });
        gateway.rpc("initialize", &hello)?;
        gateway.post("/mcp", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(gateway)
    }

    /// One model call; the status and the text of the answer.
    pub(crate) fn think(&self, model: &str, max_tokens: u64, question: &str) -> io::Result<(u16, String)> {
        let body = json!({
            "model": model,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": question}],
        });
        let answer = self.post("/v1/messages", &body)?;
        let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let text =
            value.pointer("/content/0/text").and_then(Value::as_str).unwrap_or(&answer.body).to_owned();
        Ok((answer.status, text))
    }

    /// The names of the tools that work now.
    pub(crate) fn tools(&mut self) -> io::Result<Vec<String>> {
        let listed = self.rpc("tools/list", &json!({}))?;
        let tools = listed.pointer("/result/tools").and_then(Value::as_array);
        let names = tools.into_iter().flatten().filter_map(|tool| tool.get("name")?.as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// Uses a tool; what it says.
    pub(crate) fn use_tool(&mut self, name: &str, arguments: &Value) -> io::Result<String> {
        let said = self.rpc("tools/call", &json!({"name": name, "arguments": arguments}))?;
        let text = said.pointer("/result/content/0/text").or_else(|| said.pointer("/error/message"));
        Ok(text.and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    fn rpc(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.calls += 1;
        let body = json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        let answer = self.post("/mcp", &body)?;
        if self.session.is_none() {
            self.session = answer.session;
        }
        // A server may answer by an event stream of one message: the JSON is on its `data:` line.
        let json_text =
            answer.body.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or(&answer.body);
        serde_json::from_str(json_text).map_err(io::Error::from)
    }

    fn post(&self, path: &str, body: &Value) -> io::Result<Answer> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut headers = vec![
            ("accept", "application/json, text/event-stream"),
            ("anthropic-version", "2023-06-01"),
            ("mcp-protocol-version", "2025-06-18"),
        ];
        if let Some(session) = &self.session {
            headers.push(("mcp-session-id", session));
        }
        let ask = Ask { method: "POST", path, host: &self.host, headers: &headers, body: &body.to_string() };
        http::exchange(stream, &ask)
    }
}
