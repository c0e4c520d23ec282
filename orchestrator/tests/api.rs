//! The interface over real sockets: webhooks from anywhere by their signature, operators by who they are.
#![expect(clippy::unwrap_used, reason = "a test's own helpers: a panic is the report")]

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use orchestrator::api::{Api, ApiError, Listener};
use orchestrator::clock::Clock;
use orchestrator::config::{Config, Listen};
use orchestrator::engine::{Engine, EngineConfig};
use policy::AgentId;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::{TcpStream, UnixStream};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct House {
    _folder: tempfile::TempDir,
    engine: Engine,
    socket: PathBuf,
    port: u16,
}

async fn house() -> House {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("secret"), SECRET).unwrap();
    let text = format!(
        "journal = \"{journal}\"\nstate_dir = \"{dir}\"\nrun_dir = \"{dir}\"\n[netd]\nsocket = \"{journal}\"\n\
         [provider]\nbase_url = \"https://localhost\"\n[webhooks]\nsecret_file = \"{secret}\"\n\
         [images.sample]\nrootfs = \"{dir}\"\ncommand = [\"/agent\"]\n",
        journal = at("journal.sqlite").display(),
        dir = folder.path().display(),
        secret = at("secret").display(),
    );
    let config = Config::parse(&text, &|_| None).unwrap();
    let (engine, effects, task) = Engine::open(EngineConfig {
        journal_path: config.journal.clone(),
        settings: config.settings.clone(),
        seed: None,
        clock: Clock::real(),
    })
    .await
    .unwrap();
    tokio::spawn(async move {
        let _held = effects;
        task.run().await.unwrap();
    });
    let socket = at("api.sock");
    let api = Api::new(engine.clone(), &config);
    tokio::spawn(api.clone().serve(Listener::open(&Listen::Unix(socket.clone())).await.unwrap()));
    let loopback = Listener::open(&Listen::Loopback("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let port = match &loopback {
        Listener::Loopback(tcp) => tcp.local_addr().unwrap().port(),
        Listener::Unix(_) => unreachable!("a loopback address makes a loopback listener"),
    };
    tokio::spawn(api.serve(loopback));
    House { _folder: folder, engine, socket, port }
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> (u16, Value)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

fn request(method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::from(body.to_string()));
    Request::builder().method(method).uri(path).header("host", "darwin").body(body).unwrap()
}

fn now_s() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn signed(id: &str, at_s: i64, body: &Value) -> Request<Full<Bytes>> {
    let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{at_s}.{body}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let mut request = request(Method::POST, "/webhooks/income", body);
    for (name, value) in
        [("webhook-id", id), ("webhook-timestamp", &at_s.to_string()), ("webhook-signature", &signature)]
    {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    request
}

fn income(agent: &str, amount: impl Into<Value>) -> Value {
    json!({"agent": agent, "source": "shop", "project": "maps", "payer": "a customer", "amount_nano": amount.into()})
}

impl House {
    async fn operate(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        send(UnixStream::connect(&self.socket).await.unwrap(), request(method, path, body)).await
    }

    async fn webhook(&self, id: &str, body: &Value) -> u16 {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        send(stream, signed(id, now_s(), body)).await.0
    }

    async fn reversal(&self, id: &str, body: &Value) -> (u16, Value) {
        let mut request = signed(id, now_s(), body);
        *request.uri_mut() = "/webhooks/reversal".parse().unwrap();
        send(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap(), request).await
    }

    async fn with_agent(self) -> Self {
        let agent = json!({"agent": "ada", "name": "Ada", "image": "sample"});
        assert_eq!(self.operate(Method::POST, "/api/v1/agents", &agent).await.0, 201);
        self
    }

    fn income_nano(&self) -> i64 {
        let agent = AgentId::parse("ada").unwrap();
        self.engine.read(|core, now| core.figures(&agent, now).unwrap().lifetime_income_nano.nano())
    }
}

#[tokio::test]
async fn a_signed_webhook_is_income_once() {
    let house = house().await.with_agent().await;
    let body = income("ada", json!(1_250_000_000));
    assert_eq!(house.webhook("msg_1", &body).await, 200);
    assert_eq!(house.webhook("msg_1", &body).await, 200);
    assert_eq!(house.income_nano(), 1_250_000_000);
    assert_eq!(house.webhook("msg_1", &income("ada", json!(1))).await, 409);
    assert_eq!(house.webhook("msg_2", &body).await, 200);
    assert_eq!(house.income_nano(), 2_500_000_000);
}

#[tokio::test]
async fn what_is_no_income_moves_nothing() {
    let house = house().await.with_agent().await;
    for (body, status) in [
        (income("nobody", json!(1)), 404),
        (income("ada", json!(0)), 400),
        (income("ada", json!(-5)), 400),
        (income("ada", json!(1.5)), 400),
        (income("ada", json!("1")), 400),
        (json!({"agent": "ada"}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(house.webhook(&format!("msg_{body}").replace('"', ""), &body).await, status, "{body}");
    }
    assert_eq!(house.income_nano(), 0);
}

#[tokio::test]
async fn a_webhook_of_yesterday_or_of_another_body_is_refused() {
    let house = house().await.with_agent().await;
    let body = income("ada", json!(1));
    let old = signed("msg_1", now_s() - 86_400, &body);
    let mut changed = signed("msg_1", now_s(), &body);
    *changed.body_mut() = Full::new(Bytes::from(income("ada", json!(9)).to_string()));
    for request in [old, changed] {
        let stream = TcpStream::connect(("127.0.0.1", house.port)).await.unwrap();
        assert_eq!(send(stream, request).await.0, 401);
    }
    assert_eq!(house.income_nano(), 0);
}

#[tokio::test]
async fn loopback_serves_no_operator() {
    let house = house().await.with_agent().await;
    for (method, path) in [
        (Method::GET, "/api/v1/agents"),
        (Method::POST, "/api/v1/agents/ada/kill"),
        (Method::GET, "/"),
        (Method::GET, "/webhooks/income"),
    ] {
        let stream = TcpStream::connect(("127.0.0.1", house.port)).await.unwrap();
        let answer = send(stream, request(method.clone(), path, &json!({"reason": "x"}))).await;
        assert_eq!(answer.0, 403, "{method} {path}");
    }
    let (status, agents) = house.operate(Method::GET, "/api/v1/agents", &json!(null)).await;
    assert_eq!((status, agents[0]["state"].as_str()), (200, Some("alive")));
}

#[tokio::test]
async fn operators_look_and_act() {
    let house = house().await.with_agent().await;
    let again = json!({"agent": "ada", "name": "Ada", "image": "sample"});
    assert_eq!(house.operate(Method::POST, "/api/v1/agents", &again).await.0, 201);
    let other_image = json!({"agent": "bob", "name": "Bob", "image": "none"});
    assert_eq!(house.operate(Method::POST, "/api/v1/agents", &other_image).await.0, 400);
    for path in [
        "status",
        "agents/ada",
        "dockets",
        "culls",
        "judgements",
        "log",
        "lessons",
        "digest",
        "flags",
        "accounts",
    ] {
        assert_eq!(
            house.operate(Method::GET, &format!("/api/v1/{path}"), &json!(null)).await.0,
            200,
            "{path}"
        );
    }
    for (path, body, status) in [
        ("agents/ada/pause", json!({"reason": "a look"}), 200),
        ("agents/ada/resume", json!({"reason": "seen"}), 200),
        ("agents/ada/pause", json!({}), 400),
        ("agents/nobody/kill", json!({"reason": "x"}), 404),
        ("agents/ada/promote", json!({"reason": "x"}), 404),
        ("flags/close", json!({"signal": "none", "reason": "x"}), 404),
        // The core knows the docket, which is not in its hold window.
        ("dockets/1/override", json!({"agent": "ada", "decision": "deny", "reason": "seen"}), 409),
        ("dockets/9/override", json!({"agent": "ada", "decision": "reprieve", "reason": "seen"}), 404),
        ("dockets/1/override", json!({"agent": "ada", "decision": "spare", "reason": "seen"}), 400),
        ("dockets/1/override", json!({"agent": "ada", "decision": "deny"}), 400),
    ] {
        let answer = house.operate(Method::POST, &format!("/api/v1/{path}"), &body).await;
        assert_eq!(answer.0, status, "{path}: {}", answer.1);
    }
}

#[tokio::test]
async fn a_socket_in_use_is_not_taken_and_a_dead_one_is() {
    let house = house().await;
    let listen = Listen::Unix(house.socket.clone());
    assert!(matches!(Listener::open(&listen).await, Err(ApiError::Taken(_))));
    let dead = house.socket.with_extension("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    assert!(Listener::open(&Listen::Unix(dead)).await.is_ok());
}

#[tokio::test]
async fn income_is_reversed_by_a_signed_webhook_and_by_operators_and_once() {
    let house = house().await.with_agent().await;
    assert_eq!(house.webhook("msg_1", &income("ada", json!(1_250_000_000))).await, 200);
    assert_eq!(house.webhook("msg_2", &income("ada", json!(1_000_000_000))).await, 200);
    let reversal = |income: &str| json!({"income": income, "reason": "charged back"});
    assert_eq!(house.reversal("rev_1", &reversal("msg_1")).await.0, 200);
    assert_eq!(house.income_nano(), 1_000_000_000);
    assert_eq!(house.reversal("rev_1", &reversal("msg_1")).await.0, 200);
    assert_eq!(house.reversal("rev_1", &reversal("msg_2")).await.0, 409);
    let (status, answer) = house.reversal("rev_2", &reversal("msg_1")).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (409, Some("reversed")));
    assert_eq!(house.reversal("rev_3", &reversal("none")).await.0, 404);
    assert_eq!(house.reversal("rev_4", &income("ada", json!(1))).await.0, 400);
    for (body, status) in [
        (json!({"income": "msg_2", "reason": " "}), 400),
        (json!({"income": "msg_2"}), 400),
        (json!({"income": "msg_2", "reason": "an error"}), 200),
        (json!({"income": "msg_2", "reason": "an error"}), 200),
        (json!({"income": "msg_2", "reason": "another"}), 409),
    ] {
        let answer = house.operate(Method::POST, "/api/v1/income/reverse", &body).await;
        assert_eq!(answer.0, status, "{body}: {}", answer.1);
    }
    assert_eq!(house.income_nano(), 0);
}

#[tokio::test]
async fn another_currency_is_no_income() {
    let house = house().await.with_agent().await;
    let mut body = income("ada", json!(1));
    body["currency"] = json!("EUR");
    assert_eq!(house.webhook("msg_1", &body).await, 400);
    body["currency"] = json!("USD");
    assert_eq!(house.webhook("msg_1", &body).await, 200);
    assert_eq!(house.income_nano(), 1);
}
