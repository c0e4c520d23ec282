//! The one client of a Messages API: the gateway's upstream, the judge's and the digest's.
//!
//! Its keys live here and in the configuration, and nowhere else. It tells apart what cannot have been billed from
//! what may have been: only the first is ever tried again (G7).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use crate::config::{ApiKey, Endpoint};

/// Most bytes of one answer.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// How often one request is sent at most.
const TRIES_MAX: u32 = 3;
/// Longest that the provider may have us wait between tries.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// Too busy, in the Messages protocol's own number.
const OVERLOADED: u16 = 529;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// A root certificate.
    #[error("trust a root certificate")]
    Root(#[source] rustls::Error),
    /// No root at all.
    #[error("find the host's root certificates: name a ca_file")]
    NoRoots,
    /// The TLS library.
    #[error("set TLS up")]
    Tls(#[source] rustls::Error),
    /// Base and path make no address.
    #[error("build the address of /v1/messages")]
    Address(#[source] hyper::http::Error),
    /// The key is no header value.
    #[error("put the key into a header")]
    Key(#[source] hyper::header::InvalidHeaderValue),
}

/// A whole answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, untouched.
    pub body: Bytes,
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The request never left: nothing can have been billed.
    #[error("reach the provider: {0}")]
    NotSent(String),
    /// It may have left, and may have been billed.
    #[error("read the provider's answer: {0}")]
    Unknown(String),
}

/// A client of one endpoint; clones share its connections.
#[derive(Debug, Clone)]
pub struct Provider {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    messages: Uri,
    key: Option<HeaderValue>,
    timeout: Duration,
}

impl Provider {
    /// Makes one; nothing is sent.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub fn new(endpoint: &Endpoint) -> Result<Self, ProviderError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls(endpoint)?)
            .https_only()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(https);
        let key = endpoint.api_key.as_ref().map(key_header).transpose()?;
        Ok(Self { client, messages: messages_uri(&endpoint.base)?, key, timeout: endpoint.timeout })
    }

    /// Sends one `POST /v1/messages` and reads the answer to its end; tries again only what cannot have been billed.
    ///
    /// # Errors
    /// [`NoAnswer`] says whether it can have been billed.
    pub async fn messages(&self, version: &str, body: Bytes) -> Result<Answered, NoAnswer> {
        let mut tries = 0;
        loop {
            tries += 1;
            let answered = self.once(version, body.clone()).await;
            let wait = wait_before_next(&answered, tries);
            match wait.filter(|_| tries < TRIES_MAX) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return answered,
            }
        }
    }

    async fn once(&self, version: &str, body: Bytes) -> Result<Answered, NoAnswer> {
        let request = self.request(version, body).map_err(|error| NoAnswer::NotSent(error.to_string()))?;
        let whole = async {
            let answer = self.client.request(request).await.map_err(|error| {
                let why = crate::cli::with_causes(&error);
                if error.is_connect() { NoAnswer::NotSent(why) } else { NoAnswer::Unknown(why) }
            })?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| NoAnswer::Unknown(error.to_string()))?.to_bytes();
            Ok(Answered { status: head.status, headers: head.headers, body })
        };
        match tokio::time::timeout(self.timeout, whole).await {
            Ok(answered) => answered,
            Err(_elapsed) => Err(NoAnswer::Unknown(format!("none came within {:?}", self.timeout))),
        }
    }

    fn request(&self, version: &str, body: Bytes) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.messages.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("anthropic-version", version);
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key.clone());
        }
        request.body(Full::new(body))
    }
}

/// How long to wait before another try, if another try is right at all.
fn wait_before_next(answered: &Result<Answered, NoAnswer>, tries: u32) -> Option<Duration> {
    let backoff = Duration::from_millis(200) * 2_u32.pow(tries.min(6));
    match answered {
        Err(NoAnswer::NotSent(_)) => Some(backoff),
        Err(NoAnswer::Unknown(_)) => None,
        Ok(answered) => {
            let asked = answered.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let asked = asked.map(Duration::from_secs);
            match answered.status.as_u16() {
                429 => asked.filter(|wait| *wait <= WAIT_MAX),
                503 | OVERLOADED => Some(asked.unwrap_or(backoff)).filter(|wait| *wait <= WAIT_MAX),
                _ => None,
            }
        }
    }
}

fn tls(endpoint: &Endpoint) -> Result<ClientConfig, ProviderError> {
    let mut roots = RootCertStore::empty();
    if endpoint.roots.is_empty() {
        // One bad certificate among the host's many is no reason to trust none.
        let (added, _skipped) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if added == 0 {
            return Err(ProviderError::NoRoots);
        }
    }
    for root in &endpoint.roots {
        roots.add(root.clone()).map_err(ProviderError::Root)?;
    }
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(ProviderError::Tls)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn messages_uri(base: &Uri) -> Result<Uri, ProviderError> {
    let mut parts = base.clone().into_parts();
    let path = format!("{}/v1/messages", base.path().trim_end_matches('/'));
    parts.path_and_query = Some(
        path.parse().map_err(|error: hyper::http::uri::InvalidUri| ProviderError::Address(error.into()))?,
    );
    Uri::from_parts(parts).map_err(|error| ProviderError::Address(error.into()))
}

fn key_header(key: &ApiKey) -> Result<HeaderValue, ProviderError> {
    let mut value = HeaderValue::from_str(key.expose()).map_err(ProviderError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry_after: Option<&'static str>) -> Answered {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
        }
        Answered { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::new() }
    }

    #[test]
    fn only_what_cannot_have_been_billed_is_tried_again() {
        assert!(wait_before_next(&Err(NoAnswer::NotSent(String::new())), 1).is_some());
        for (status, retry_after) in [(503, None), (529, None), (429, Some("1"))] {
            assert!(wait_before_next(&Ok(answered(status, retry_after)), 1).is_some(), "{status}");
        }
        assert!(wait_before_next(&Err(NoAnswer::Unknown(String::new())), 1).is_none());
        for (status, retry_after) in [
            (200, None),
            (400, None),
            (429, None),
            (429, Some("3600")),
            (500, None),
            (502, None),
            (504, None),
        ] {
            assert!(wait_before_next(&Ok(answered(status, retry_after)), 1).is_none(), "{status}");
        }
    }

    #[test]
    fn a_base_with_a_path_keeps_it() {
        let at = |base: &'static str| messages_uri(&Uri::from_static(base)).unwrap().to_string();
        assert_eq!(at("https://a.example"), "https://a.example/v1/messages");
        assert_eq!(at("https://a.example:8443/llm/"), "https://a.example:8443/llm/v1/messages");
    }
}
