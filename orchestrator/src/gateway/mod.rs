//! The gateway: every model call passes here and is paid (G1 to G11).
//!
//! It serves the listeners that netd made inside the agents' namespaces. The descriptor that a connection came in
//! on *is* the caller: nothing that a request says about who sends it is read. Everything but the routes below is
//! refused before any contact with the provider.

mod call;
mod mcp;
pub mod request;
pub mod shape;
pub mod usage;

use std::convert::Infallible;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use policy::AgentId;
use policy::judge::Dice;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::core::input::EpisodeId;
use crate::engine::Engine;
use crate::provider::Provider;
use shape::{Answer, Wrong};

/// Connections of one agent at a time; further ones wait in the backlog.
const CONNECTIONS_MAX: usize = 128;
/// Most bytes of one request's body.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a head may take, and then a body.
const HEAD: Duration = Duration::from_secs(10);
const BODY: Duration = Duration::from_secs(30);

/// Whose connections a listener's are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The agent whose namespace the listener is in.
    pub agent: AgentId,
    /// The episode that the namespace was made for.
    pub episode: EpisodeId,
}

/// The gateway; clones are the same one.
#[derive(Debug, Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    provider: Provider,
    constitution: String,
    /// Names of calls are unique over restarts too.
    life: String,
    calls: AtomicU64,
    /// Calls that go on although whoever made them may have hung up.
    open: TaskTracker,
}

impl Gateway {
    /// A gateway that serves nothing yet.
    ///
    /// # Errors
    /// The host's random source.
    pub fn new(engine: Engine, provider: Provider, constitution: String) -> std::io::Result<Self> {
        let life = format!("{:016x}", HostDice::open()?.next_u64());
        let (calls, open) = (AtomicU64::new(1), TaskTracker::new());
        Ok(Self { inner: Arc::new(Inner { engine, provider, constitution, life, calls, open }) })
    }

    /// Serves one listener until `end`, or until the listener is shut.
    pub async fn serve(&self, listener: tokio::net::TcpListener, caller: Caller, end: CancellationToken) {
        let caller = Arc::new(caller);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = end.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _inside)) => {
                    let connection = self.clone().connection(stream, Arc::clone(&caller), end.clone());
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                // A listener that netd has shut accepts no more; any other error of one connection is its own.
                Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => return,
                Err(error) => {
                    tracing::warn!(agent = %caller.agent, "cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Resolves when every call that was dispatched is settled; new ones are still taken.
    pub async fn drained(&self) {
        self.inner.open.close();
        self.inner.open.wait().await;
    }

    async fn connection(self, stream: tokio::net::TcpStream, caller: Arc<Caller>, end: CancellationToken) {
        let service = service_fn(move |request| {
            let (gateway, caller) = (self.clone(), Arc::clone(&caller));
            async move { Ok::<_, Infallible>(gateway.answer(&caller, request).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES_MAX);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            () = end.cancelled() => {}
            // How a client ends its connection is its own affair.
            _ended = connection => {}
        }
    }

    async fn answer(&self, caller: &Caller, request: Request<Incoming>) -> Answer {
        let route = (request.method().clone(), request.uri().path(), request.uri().query());
        let answered = match route {
            (Method::POST, "/v1/messages", None) => self.messages(caller, request).await,
            (Method::POST, "/mcp", None) => self.tools(caller, request).await,
            (_, "/v1/messages" | "/mcp", None) => Err(Wrong::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "invalid_request_error",
                "only POST is served here",
            )),
            (method, path, query) => {
                let query = query.map_or_else(String::new, |query| format!("?{query}"));
                Err(Wrong::no_route(&format!("{method} {path}{query}")))
            }
        };
        answered.unwrap_or_else(|wrong| wrong.answer())
    }

    fn next_call(&self, caller: &Caller) -> String {
        let number = self.inner.calls.fetch_add(1, Ordering::Relaxed);
        format!("{}/{}/{number}", caller.episode, self.inner.life)
    }
}

/// Dice from the host's random source: what they mark is shown once and replayed by nobody.
pub(crate) struct HostDice(ChaCha20Rng);

impl HostDice {
    pub(crate) fn open() -> std::io::Result<Self> {
        let mut seed = [0_u8; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
        Ok(Self(ChaCha20Rng::from_seed(seed)))
    }
}

impl Dice for HostDice {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Reads a body, within its limits.
async fn whole(request: Request<Incoming>) -> Result<Bytes, Wrong> {
    let reading = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the body is over {BODY_BYTES_MAX} bytes");
            Err(Wrong::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message))
        }
        Ok(Err(error)) => Err(Wrong::request(format!("the body cannot be read: {error}"))),
        Err(_elapsed) => {
            let message = format!("the body did not come within {BODY:?}");
            Err(Wrong::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message))
        }
    }
}
