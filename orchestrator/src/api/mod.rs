//! The interface for operators and for whoever announces income: HTTP on a Unix socket and on loopback.
//!
//! Webhooks are believed for their signature, from anywhere. Operators are believed for who they are: the kernel
//! names the peer of a Unix socket, and root, our own user and the configured ones may operate. Nothing else is
//! served, and the agents reach none of it: their namespaces hold no way here.

pub mod client;
mod operator;
pub mod reply;
pub mod webhook;

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, UnixListener};

use crate::config::{Config, Listen, WebhookSecret};
use crate::core::input::Input;
use crate::core::reply::Reply;
use crate::engine::Engine;
use reply::{Answer, Wrong, answer};

/// Most bytes of one body.
const BODY_BYTES_MAX: usize = 256 << 10;
/// How long a head may take, and then a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interface; clones are the same one.
#[derive(Debug, Clone)]
pub struct Api {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    secrets: Vec<WebhookSecret>,
    operators: Vec<u32>,
    images: Vec<String>,
}

/// One place where it listens.
#[derive(Debug)]
pub enum Listener {
    /// Operators and webhooks.
    Unix(UnixListener),
    /// Webhooks alone.
    Loopback(TcpListener),
}

/// Why it does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Another one is there, and answers.
    #[error("listen at {0}: another control plane answers there")]
    Taken(PathBuf),
    /// The host.
    #[error("listen at {place}")]
    Listen {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Who asks, as far as the socket tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// A user who may operate.
    Operator(u32),
    /// Anybody else.
    Stranger,
}

/// What may be announced by whoever has the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Webhook {
    /// Income.
    Income,
    /// Income that is taken back.
    Reversal,
}

impl Webhook {
    fn at(path: &str) -> Option<Self> {
        match path {
            "/webhooks/income" => Some(Self::Income),
            "/webhooks/reversal" => Some(Self::Reversal),
            _ => None,
        }
    }
}

impl Listener {
    /// Opens one. A socket file that a dead process left is taken over.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn open(listen: &Listen) -> Result<Self, ApiError> {
        match listen {
            Listen::Loopback(address) => {
                let failed = |source| ApiError::Listen { place: address.to_string(), source };
                TcpListener::bind(address).await.map(Self::Loopback).map_err(failed)
            }
            Listen::Unix(path) => {
                let failed = |source| ApiError::Listen { place: path.display().to_string(), source };
                if tokio::net::UnixStream::connect(path).await.is_ok() {
                    return Err(ApiError::Taken(path.clone()));
                }
                remove_socket(path).map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                // Anybody may connect: who may do what is decided by who it is, below.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(failed)?;
                Ok(Self::Unix(listener))
            }
        }
    }
}

fn remove_socket(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_other) => {
            Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, "a file that is no socket is there"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl Api {
    /// The interface of a configuration.
    pub fn new(engine: Engine, config: &Config) -> Self {
        let mut operators = config.api.operators.clone();
        operators.extend([0, nix::unistd::geteuid().as_raw()]);
        let images = config.images.keys().cloned().collect();
        let secrets = config.webhook_secrets.clone();
        Self { inner: Arc::new(Inner { engine, secrets, operators, images }) }
    }

    /// Serves one listener; ends with the task that it runs in.
    pub async fn serve(self, listener: Listener) {
        loop {
            let accepted = match &listener {
                Listener::Unix(unix) => unix.accept().await.map(|(stream, _address)| {
                    let peer = self.peer(&stream);
                    tokio::spawn(self.clone().connection(TokioIo::new(stream), peer));
                }),
                Listener::Loopback(tcp) => tcp.accept().await.map(|(stream, _address)| {
                    tokio::spawn(self.clone().connection(TokioIo::new(stream), Peer::Stranger));
                }),
            };
            if let Err(error) = accepted {
                tracing::warn!("cannot accept a connection of the interface: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    fn peer(&self, stream: &tokio::net::UnixStream) -> Peer {
        match stream.peer_cred() {
            Ok(credentials) if self.inner.operators.contains(&credentials.uid()) => {
                Peer::Operator(credentials.uid())
            }
            Ok(_) | Err(_) => Peer::Stranger,
        }
    }

    async fn connection<S>(self, stream: TokioIo<S>, peer: Peer)
    where
        TokioIo<S>: hyper::rt::Read + hyper::rt::Write + Unpin,
    {
        let service = service_fn(move |request| {
            let api = self.clone();
            async move { Ok::<_, Infallible>(api.answer(peer, request).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        // How a client ends its connection is its own affair.
        drop(builder.serve_connection(stream, service).await);
    }

    async fn answer(&self, peer: Peer, request: Request<Incoming>) -> Answer {
        let webhook = (request.method() == Method::POST).then(|| Webhook::at(request.uri().path())).flatten();
        let answered = match (webhook, peer) {
            (Some(webhook), _) => self.webhook(webhook, request).await,
            (None, Peer::Operator(uid)) => self.operate(uid, request).await,
            (None, Peer::Stranger) => Err(Wrong::new(
                StatusCode::FORBIDDEN,
                "forbidden",
                "only POST /webhooks/income and /webhooks/reversal are served here; operators use the Unix socket, as root or a configured user",
            )),
        };
        answered.unwrap_or_else(|wrong| wrong.answer())
    }

    async fn webhook(&self, webhook: Webhook, request: Request<Incoming>) -> Result<Answer, Wrong> {
        let (head, body) = request.into_parts();
        let body = whole(Request::from_parts(head.clone(), body)).await?;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
        let id = webhook::verify(&self.inner.secrets, &head.headers, &body, now_s)?;
        // Neither body is ever the other's: a signature for one is none for the other.
        let input = match webhook {
            Webhook::Income => webhook::Announced::parse(&body)?.input(id)?,
            Webhook::Reversal => webhook::Reversed::parse(&body)?.input(id, "webhook".to_owned()),
        };
        self.done(input).await
    }

    /// Hands an input in and answers what the core says.
    async fn done(&self, input: Input) -> Result<Answer, Wrong> {
        let replied = self.inner.engine.submit(input).await.map_err(|error| {
            tracing::error!("cannot {}", crate::cli::with_causes(&error));
            Wrong::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "stopped",
                "the platform's books are closed; try again later",
            )
        })?;
        match replied {
            Reply::Refused(refusal) => Err(refusal.into()),
            replied @ Reply::Created { .. } => Ok(answer(StatusCode::CREATED, &replied)),
            replied @ (Reply::Done | Reply::Held { .. } | Reply::Tool { .. }) => {
                Ok(answer(StatusCode::OK, &replied))
            }
        }
    }
}

/// Reads a body, within its limits.
async fn whole(request: Request<Incoming>) -> Result<Bytes, Wrong> {
    let reading = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => {
            let message = format!("the body cannot be read, or is over {BODY_BYTES_MAX} bytes: {error}");
            Err(Wrong::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message))
        }
        Err(_elapsed) => Err(Wrong::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            format!("no body came within {PATIENCE:?}"),
        )),
    }
}
