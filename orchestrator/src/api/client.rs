//! The other end of the interface, for this program's own commands: one request over the Unix socket.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("reach the control plane at {path}: is `darwin serve` running, and may this user connect?")]
    Connect {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The request or its answer broke off.
    #[error("talk to the control plane")]
    Talk(#[source] hyper::Error),
    /// The request makes no HTTP.
    #[error("write the request")]
    Write(#[source] hyper::http::Error),
    /// The answer is no JSON.
    #[error("read the control plane's answer")]
    Read(#[source] serde_json::Error),
    /// No runtime.
    #[error("start")]
    Runtime(#[source] std::io::Error),
}

/// Asks once and waits.
///
/// # Errors
/// [`AskError`]; an answer of any status is none.
pub fn ask(
    socket: &Path,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(StatusCode, Value), AskError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(AskError::Runtime)?;
    runtime.block_on(async {
        let stream = tokio::net::UnixStream::connect(socket)
            .await
            .map_err(|source| AskError::Connect { path: socket.to_owned(), source })?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(AskError::Talk)?;
        let driver = tokio::spawn(connection);
        let body = Full::new(body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string())));
        let request = Request::builder().method(method).uri(path).header("host", "darwin").body(body);
        let answered =
            sender.send_request(request.map_err(AskError::Write)?).await.map_err(AskError::Talk)?;
        let status = answered.status();
        let body = answered.into_body().collect().await.map_err(AskError::Talk)?.to_bytes();
        driver.abort();
        Ok((status, serde_json::from_slice(&body).map_err(AskError::Read)?))
    })
}
