//! The demo's little internet, in a namespace of its own: a name server, a market that pays and a library.
//!
//! The market announces income to the control plane by a signed webhook (Standard Webhooks) whose id is made of
//! agent and day: work that is delivered twice is paid once.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::Sha256;
use tokio::net::{TcpListener, UdpSocket, UnixStream};

use super::dns::{self, Zone};
use super::https::{self, Answer, Asked, ServerError, Site};
use super::witness::{Sighting, Witness};

/// The market's name.
pub const MARKET: &str = "market.example.test";
/// The library's name.
pub const LIBRARY: &str = "library.example.test";
/// What the market pays for one delivered unit of work: five cents.
pub const UNIT_NANO: i64 = 50_000_000;
/// Most units that the market takes from one agent on one day.
pub const UNITS_MAX: i64 = 40;

/// Where the world is and whom it tells.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    /// The folder with certificates, `webhook.secret`, and where `world.jsonl` is written.
    pub folder: PathBuf,
    /// The name server's address, on port 53.
    pub dns: Ipv4Addr,
    /// The market's address, on port 443.
    pub market: Ipv4Addr,
    /// The library's address, on port 443.
    pub library: Ipv4Addr,
    /// The control plane's API socket.
    pub api: PathBuf,
}

/// Serves until a socket fails; calls `ready` once all are open.
///
/// # Errors
/// [`ServerError`] with what failed.
pub async fn serve(config: WorldConfig, ready: impl FnOnce()) -> Result<(), ServerError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |source| ServerError::Io { what, source }
    };
    let seen = config.folder.join("world.jsonl");
    let witness = Arc::new(Witness::open(&seen).map_err(failed("open the world's notes"))?);
    let udp = UdpSocket::bind((config.dns, 53)).await.map_err(failed("serve names"))?;
    let market_socket = TcpListener::bind((config.market, 443)).await.map_err(failed("serve the market"))?;
    let library_socket =
        TcpListener::bind((config.library, 443)).await.map_err(failed("serve the library"))?;
    let secret = std::fs::read_to_string(config.folder.join("webhook.secret"))
        .map_err(failed("read the webhook's secret"))?;
    let market = Market { api: config.api, secret: secret.trim().to_owned(), witness: Arc::clone(&witness) };
    let library = Library { witness: Arc::clone(&witness) };
    let zones =
        [Zone { name: MARKET, address: config.market }, Zone { name: LIBRARY, address: config.library }];
    let market_tls = https::acceptor(&config.folder, "market")?;
    let library_tls = https::acceptor(&config.folder, "library")?;
    ready();
    tokio::try_join!(
        dns::serve(udp, &zones, &witness),
        https::serve(market_socket, market_tls, Arc::new(market)),
        https::serve(library_socket, library_tls, Arc::new(library)),
    )
    .map_err(failed("go on serving"))?;
    Ok(())
}

/// One delivery of work, as an agent posts it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Who.
    pub agent: String,
    /// The UTC day it is for, counted from 1970.
    pub day: i64,
    /// How many units.
    pub units: i64,
}

struct Market {
    api: PathBuf,
    secret: String,
    witness: Arc<Witness>,
}

impl Site for Market {
    fn name(&self) -> &'static str {
        MARKET
    }

    fn connected(&self, from: SocketAddr) {
        self.witness.saw(&Sighting::Connection { site: MARKET.to_owned(), from: from.ip().to_string() });
    }

    async fn answer(&self, asked: Asked) -> Answer {
        let line = format!("{} {}", asked.method(), asked.uri().path());
        let answer = if asked.method() == Method::POST && asked.uri().path() == "/jobs" {
            self.take(asked.body()).await
        } else {
            https::text(
                StatusCode::OK,
                "Deliver counted words by POST /jobs. Five cents a unit, once a day.\n",
            )
        };
        self.witness.saw(&Sighting::Request {
            site: MARKET.to_owned(),
            line,
            status: answer.status().as_u16(),
        });
        answer
    }
}

impl Market {
    async fn take(&self, body: &Bytes) -> Answer {
        let delivery: Delivery = match serde_json::from_slice(body) {
            Ok(delivery) => delivery,
            Err(error) => return https::text(StatusCode::BAD_REQUEST, &format!("no delivery: {error}\n")),
        };
        if !(1..=UNITS_MAX).contains(&delivery.units) {
            return https::text(StatusCode::BAD_REQUEST, &format!("units: 1 to {UNITS_MAX}\n"));
        }
        match self.announce(&delivery).await {
            Ok(status) if status.is_success() => https::json(
                StatusCode::OK,
                &json!({"paid_nano": delivery.units * UNIT_NANO, "day": delivery.day}),
            ),
            Ok(status) => {
                https::text(StatusCode::BAD_GATEWAY, &format!("the payment was refused: {status}\n"))
            }
            Err(error) => {
                https::text(StatusCode::BAD_GATEWAY, &format!("the payment went astray: {error}\n"))
            }
        }
    }

    async fn announce(&self, delivery: &Delivery) -> Result<StatusCode, AnnounceError> {
        let id = format!("market-{}-{}", delivery.agent, delivery.day);
        let amount_nano = delivery.units * UNIT_NANO;
        let body = json!({
            "agent": delivery.agent,
            "source": MARKET,
            "project": "word counts",
            "payer": "the market's customers",
            "amount_nano": amount_nano,
        })
        .to_string();
        let sent = post_signed(&self.api, &self.secret, &id, body).await;
        let status = sent.as_ref().map_or(0, StatusCode::as_u16);
        let agent = delivery.agent.clone();
        self.witness.saw(&Sighting::Announced { id, agent, amount_nano, status });
        sent
    }
}

/// Why income could not be announced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnnounceError {
    /// The secret is not `whsec_` and base64.
    #[error("the webhook's secret is malformed")]
    Secret,
    /// The control plane's socket did not open.
    #[error("the control plane cannot be reached: {0}")]
    Connect(#[source] std::io::Error),
    /// HTTP failed.
    #[error("the control plane hung up: {0}")]
    Http(#[from] hyper::Error),
    /// The request could not be made.
    #[error("the request is malformed: {0}")]
    Request(#[from] hyper::http::Error),
}

/// Posts a webhook to `/webhooks/income` on a Unix socket, signed by `secret` (`whsec_` and base64).
///
/// # Errors
/// [`AnnounceError`].
pub async fn post_signed(
    socket: &Path,
    secret: &str,
    id: &str,
    body: String,
) -> Result<StatusCode, AnnounceError> {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let signature = sign(secret, id, seconds, &body).ok_or(AnnounceError::Secret)?;
    let stream = UnixStream::connect(socket).await.map_err(AnnounceError::Connect)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driven = tokio::spawn(connection);
    let request = Request::post("/webhooks/income")
        .header("host", "darwin")
        .header("content-type", "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", signature)
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let _read = response.into_body().collect().await?;
    driven.abort();
    Ok(status)
}

/// `v1,` and the base64 of HMAC-SHA256 over `id.seconds.body`, as Standard Webhooks asks.
fn sign(secret: &str, id: &str, seconds: u64, body: &str) -> Option<String> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_")?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

struct Library {
    witness: Arc<Witness>,
}

impl Site for Library {
    fn name(&self) -> &'static str {
        LIBRARY
    }

    fn connected(&self, from: SocketAddr) {
        self.witness.saw(&Sighting::Connection { site: LIBRARY.to_owned(), from: from.ip().to_string() });
    }

    async fn answer(&self, asked: Asked) -> Answer {
        let line = format!("{} {}", asked.method(), asked.uri().path());
        self.witness.saw(&Sighting::Request { site: LIBRARY.to_owned(), line, status: 200 });
        https::text(
            StatusCode::OK,
            "On keeping accounts. Write down what you earned before what you hope to earn.\n",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification; the value was worked out with another implementation too.
    #[test]
    fn signatures_are_those_of_the_specification() {
        let body = r#"{"test": 2432232314}"#;
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(
            sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body).as_deref(),
            Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        );
        assert_eq!(sign("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "id", 0, body), None);
    }
}
