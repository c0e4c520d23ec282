//! Reading the hello off the client's socket; its bytes are kept until they are judged.

use std::time::Duration;

use policy::egress::{Code, Hello, HelloError, HelloReader, HelloStep};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

const PIECE_BYTES: usize = 4096;

/// Reads one hello within `limit`. `wire` holds the tunnel's first bytes and takes those that come; nothing of it
/// has gone anywhere when this returns.
pub(crate) async fn read(client: &mut TcpStream, wire: &mut Vec<u8>, limit: Duration) -> Result<Hello, Code> {
    let mut reader = HelloReader::new();
    match timeout(limit, read_whole(client, wire, &mut reader)).await {
        Ok(result) => result,
        Err(_elapsed) if wire.is_empty() => Err(Code::NoClientBytes),
        Err(_elapsed) => Err(Code::HelloTimeout),
    }
}

async fn read_whole(
    client: &mut TcpStream,
    wire: &mut Vec<u8>,
    reader: &mut HelloReader,
) -> Result<Hello, Code> {
    let mut pushed = 0;
    loop {
        let fresh = wire.get(pushed..).unwrap_or_default();
        if let HelloStep::Done(hello) = reader.push(fresh).map_err(HelloError::code)? {
            return Ok(hello);
        }
        pushed = wire.len();
        wire.reserve(PIECE_BYTES);
        match client.read_buf(wire).await {
            Ok(0) if wire.is_empty() => return Err(Code::NoClientBytes),
            Ok(0) => return Err(Code::HelloMalformed),
            Ok(_) => {}
            Err(_reset) => return Err(Code::ClientGone),
        }
    }
}
