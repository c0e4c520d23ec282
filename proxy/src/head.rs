//! Reading the head off the client's socket.

use std::time::Duration;

use policy::egress::{Code, Head, HeadReader, HeadStep};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes taken from the socket at once: most heads are far shorter.
const PIECE_BYTES: usize = 2048;
/// Bytes of a malformed target that are kept for the log.
const RAW_TARGET_BYTES: usize = 128;

/// A head that was refused, and what it asked for as the client wrote it.
#[derive(Debug)]
pub(crate) struct BadHead {
    pub(crate) code: Code,
    pub(crate) raw_target: Vec<u8>,
}

/// Reads one head within `limit`; the bytes after it are the tunnel's first.
pub(crate) async fn read(client: &mut TcpStream, limit: Duration) -> Result<(Head, Vec<u8>), BadHead> {
    let mut reader = HeadReader::new();
    let code = match timeout(limit, read_whole(client, &mut reader)).await {
        Ok(Ok(whole)) => return Ok(whole),
        Ok(Err(code)) => code,
        Err(_elapsed) => Code::HeadTimeout,
    };
    Err(BadHead { code, raw_target: reader.raw_target(RAW_TARGET_BYTES).to_vec() })
}

async fn read_whole(client: &mut TcpStream, reader: &mut HeadReader) -> Result<(Head, Vec<u8>), Code> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    loop {
        piece.clear();
        match client.read_buf(&mut piece).await {
            Ok(0) | Err(_) => return Err(Code::ClientGone),
            Ok(_) => {}
        }
        match reader.push(&piece).map_err(|error| error.code())? {
            HeadStep::More => {}
            HeadStep::Done { head, early } => return Ok((head, early)),
        }
    }
}
