//! One small TLS server on hyper, shared by the demo's sites and its provider.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Largest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Why a server of the demo's own could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Its certificate or key is not there or is none.
    #[error("read the certificate or key of {stem}")]
    Certificate {
        /// Which.
        stem: String,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// TLS does not take them.
    #[error("serve TLS")]
    Tls(#[source] rustls::Error),
    /// A socket or file failed.
    #[error("{what}")]
    Io {
        /// What was being done.
        what: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A request with its body read.
pub type Asked = Request<Bytes>;
/// An answer.
pub type Answer = Response<Full<Bytes>>;

/// What answers requests.
pub trait Site: Send + Sync + 'static {
    /// Its name, for the witness.
    fn name(&self) -> &str;
    /// Called for each TCP connection, before TLS.
    fn connected(&self, from: std::net::SocketAddr);
    /// Answers one request.
    fn answer(&self, asked: Asked) -> impl Future<Output = Answer> + Send;
}

/// Reads `STEM.pem` and `STEM.key` from `folder`.
///
/// # Errors
/// [`ServerError`].
pub fn acceptor(folder: &Path, stem: &str) -> Result<TlsAcceptor, ServerError> {
    let failed = |source| ServerError::Certificate { stem: stem.to_owned(), source };
    let certificate = CertificateDer::from_pem_file(folder.join(format!("{stem}.pem"))).map_err(failed)?;
    let key = PrivateKeyDer::from_pem_file(folder.join(format!("{stem}.key"))).map_err(failed)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ServerError::Tls)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(ServerError::Tls)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves `site` for ever; one task a connection.
///
/// # Errors
/// When accepting fails.
pub async fn serve<S: Site>(listener: TcpListener, tls: TlsAcceptor, site: Arc<S>) -> io::Result<()> {
    loop {
        let (stream, from) = listener.accept().await?;
        site.connected(from);
        tokio::spawn(connection(stream, tls.clone(), Arc::clone(&site)));
    }
}

async fn connection<S: Site>(stream: TcpStream, tls: TlsAcceptor, site: Arc<S>) {
    let stream = match tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(site = site.name(), %error, "no TLS session");
            return;
        }
    };
    let service = service_fn(|request: Request<Incoming>| {
        let site = Arc::clone(&site);
        async move { Ok::<Answer, std::convert::Infallible>(answer(&*site, request).await) }
    });
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(site = site.name(), %error, "connection ended");
    }
}

async fn answer<S: Site>(site: &S, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => site.answer(Request::from_parts(head, body.to_bytes())).await,
        Err(error) => text(StatusCode::BAD_REQUEST, &format!("the body could not be read: {error}")),
    }
}

/// A plain text answer.
pub fn text(status: StatusCode, text: &str) -> Answer {
    with_type(status, "text/plain; charset=utf-8", Bytes::from(text.to_owned()))
}

/// A JSON answer.
pub fn json(status: StatusCode, value: &serde_json::Value) -> Answer {
    with_type(status, "application/json", Bytes::from(value.to_string()))
}

fn with_type(status: StatusCode, media_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(media_type));
    answer
}
