//! The way out: a CONNECT through the proxy, and TLS inside it.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::http::{self, Answer, Ask};

/// Where the image keeps the certificates that it trusts.
const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Longest wait for the proxy or a site.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the proxy said to a CONNECT.
#[derive(Debug)]
pub(crate) enum Said {
    /// 200: the tunnel is there.
    Open(TcpStream),
    /// Anything else.
    Refused {
        /// The status.
        status: u16,
        /// The body, which tells why.
        why: String,
    },
}

/// Asks the proxy for a tunnel to `authority`, as it stands.
pub(crate) fn connect(proxy: SocketAddr, authority: &str) -> io::Result<Said> {
    let mut stream = TcpStream::connect_timeout(&proxy, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n").as_bytes())?;
    // One byte at a time up to the blank line: what follows is the tunnel's.
    let mut reader = BufReader::with_capacity(1, &stream);
    let (status, _headers) = http::read_head(&mut reader)?;
    if status == 200 {
        return Ok(Said::Open(stream));
    }
    let mut why = String::new();
    (&stream).take(4096).read_to_string(&mut why)?;
    Ok(Said::Refused { status, why: why.trim().to_owned() })
}

/// Sends one request to an allowed site by TLS.
pub(crate) fn fetch(proxy: SocketAddr, ask: &Ask<'_>) -> io::Result<Answer> {
    match connect(proxy, &format!("{}:443", ask.host))? {
        Said::Open(stream) => {
            let name = ServerName::try_from(ask.host.to_owned()).map_err(io::Error::other)?;
            let session = ClientConnection::new(trust()?, name).map_err(io::Error::other)?;
            http::exchange(StreamOwned::new(session, stream), ask)
        }
        Said::Refused { status, why } => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("the proxy says {status}: {why}")))
        }
    }
}

fn trust() -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(ROOTS).map_err(io::Error::other)? {
        roots.add(root.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
