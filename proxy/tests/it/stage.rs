//! A proxy, a name server and targets, all on loopback, all real; what they saw is read after a drain.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use policy::ProfileName;
use proxy::config::{Config, LogTarget, Policies};
use proxy::server::Server;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Longest wait for anything here: a test that hangs says so.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it took too long")
}

/// A name server that answers from a table and counts what it is asked, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    zone: Arc<Mutex<BTreeMap<String, Vec<IpAddr>>>>,
    asked: Arc<Mutex<Vec<(String, RecordType)>>>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.zone.lock().unwrap().insert(format!("{name}."), addresses);
    }

    pub(crate) fn asked(&self) -> Vec<(String, RecordType)> {
        self.asked.lock().unwrap().clone()
    }

    async fn serve(self, socket: UdpSocket) {
        let mut packet = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut packet).await {
            let answer = self.answer(&Message::from_vec(&packet[..len]).unwrap());
            if let Some(answer) = answer {
                socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
            }
        }
    }

    /// Nothing for a name that begins with `silent`.
    fn answer(&self, query: &Message) -> Option<Message> {
        let question = &query.queries[0];
        let name = question.name().to_ascii().to_ascii_lowercase();
        self.asked.lock().unwrap().push((name.clone(), question.query_type()));
        if name.starts_with("silent") {
            return None;
        }
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.add_query(question.clone());
        let zone = self.zone.lock().unwrap();
        let Some(addresses) = zone.get(&name) else {
            answer.metadata.response_code = ResponseCode::NXDomain;
            return Some(answer);
        };
        for address in addresses {
            let data = match address {
                IpAddr::V4(v4) => RData::A(A(*v4)),
                IpAddr::V6(v6) => RData::AAAA(AAAA(*v6)),
            };
            if data.record_type() == question.query_type() {
                answer.add_answer(Record::from_rdata(question.name().clone(), 60, data));
            }
        }
        Some(answer)
    }
}

/// What the proxy left behind.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) lines: Vec<Value>,
    pub(crate) signals: Vec<Value>,
    pub(crate) asked: Vec<(String, RecordType)>,
    pub(crate) cut: usize,
}

impl Left {
    /// The one line there is.
    pub(crate) fn line(&self) -> &Value {
        assert_eq!(self.lines.len(), 1, "{:#?}", self.lines);
        &self.lines[0]
    }

    pub(crate) fn signal_names(&self) -> Vec<&str> {
        self.signals.iter().map(|signal| signal["name"].as_str().unwrap()).collect()
    }
}

/// One proxy with one caller and the profile `p`.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) names: Names,
    pub(crate) folder: TempDir,
}

impl Stage {
    /// Starts with the rules of the profile `p`, written `host=.. port=.. pin=..` as TOML by the caller.
    pub(crate) async fn new(rules: &str) -> Self {
        Self::tuned(rules, |_| {}).await
    }

    pub(crate) async fn tuned(rules: &str, tune: impl FnOnce(&mut Config)) -> Self {
        let folder = TempDir::new().unwrap();
        let names = Names::default();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config {
            log: LogTarget::File(folder.path().join("log")),
            spool: Some(folder.path().join("spool")),
            policy: folder.path().join("policy.toml"),
            resolvers: vec![socket.local_addr().unwrap()],
            ..Config::default()
        };
        tokio::spawn(names.clone().serve(socket));
        tune(&mut config);
        std::fs::write(&config.policy, policy(rules)).unwrap();
        let policies = Policies::load(&config.policy).unwrap();
        let listen = ("127.0.0.1:0".parse().unwrap(), ProfileName::parse("p").unwrap());
        let server = Server::start(config, policies, &[listen]).await.unwrap();
        let address = server.addresses()[0];
        Self { server, address, names, folder }
    }

    pub(crate) fn write_policy(&self, rules: &str) {
        // Replaced as an editor or a package does it: no reader sees half of it.
        let (fresh, place) = (self.folder.path().join("fresh"), self.folder.path().join("policy.toml"));
        std::fs::write(&fresh, policy(rules)).unwrap();
        std::fs::rename(fresh, place).unwrap();
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads until the proxy closes.
    pub(crate) async fn say(&self, bytes: &[u8]) -> Answer {
        let mut client = self.connect().await;
        client.write_all(bytes).await.unwrap();
        Answer::read(&mut client).await
    }

    /// Asks for a target and reads the answer's head alone; after a 200 the stream is the tunnel.
    pub(crate) async fn ask(&self, target: &str) -> (TcpStream, String) {
        let mut client = self.connect().await;
        client.write_all(head(target).as_bytes()).await.unwrap();
        let answer = read_head(&mut client).await;
        (client, answer)
    }

    /// A tunnel that was opened.
    pub(crate) async fn tunnel(&self, target: &str) -> TcpStream {
        let (client, answer) = self.ask(target).await;
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n", "{target}");
        client
    }

    /// Ends the proxy and reads what it left.
    pub(crate) async fn finish(self) -> Left {
        self.finish_when(std::future::pending()).await
    }

    pub(crate) async fn finish_when(self, at_once: impl Future<Output = ()>) -> Left {
        let cut = within(self.server.drain(at_once)).await;
        let read = |name: &str| -> Vec<Value> {
            let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        // A line is written at a connection's end; tests think in the order of accepts.
        let mut lines = read("log");
        lines.sort_by_key(|line| -> u64 {
            line["id"].as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap()
        });
        Left { lines, signals: read("spool"), asked: self.names.asked(), cut }
    }
}

fn policy(rules: &str) -> String {
    format!("[profiles.p]\n{rules}")
}

/// A rule for a host that stands on this port of loopback.
pub(crate) fn local(host: &str, port: u16) -> String {
    format!(
        "[[profiles.p.rules]]\nhost = \"{host}\"\nports = [{port}]\naction = \"allow\"\npin = [\"127.0.0.1\"]\n"
    )
}

/// The same without a word about what goes through.
pub(crate) fn opaque(host: &str, port: u16) -> String {
    local(host, port) + "tls = \"opaque\"\n"
}

pub(crate) fn head(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

pub(crate) async fn read_head(client: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        match within(client.read_u8()).await {
            Ok(byte) => seen.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(seen).unwrap()
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    async fn read(client: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        within(client.read_to_end(&mut bytes)).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or("")
    }
}

/// A target that records the bytes of each connection until its end; `None` for an end that was a reset.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) port: u16,
    pub(crate) seen: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
}

impl Recorder {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, seen) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let whole = stream.read_to_end(&mut bytes).await.ok().map(|_| bytes);
                    drop(tell.send(whole));
                });
            }
        });
        Self { port, seen }
    }

    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        within(self.seen.recv()).await.unwrap()
    }
}

/// A listener and its port, for targets that a test plays itself.
pub(crate) async fn target() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A TLS site that sends back what it gets, and the root that vouches for it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) port: u16,
    roots: Arc<RootCertStore>,
}

impl Site {
    pub(crate) async fn new(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let (listener, port) = target().await;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let (mut from, mut to) = tokio::io::split(stream);
                        drop(tokio::io::copy(&mut from, &mut to).await);
                        drop(to.shutdown().await);
                    }
                });
            }
        });
        Self { port, roots: Arc::new(roots) }
    }

    pub(crate) fn client(&self) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth()
    }

    /// A handshake through a tunnel.
    pub(crate) async fn handshake(
        &self,
        tunnel: TcpStream,
        name: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        within(TlsConnector::from(Arc::new(self.client())).connect(name, tunnel)).await
    }
}
