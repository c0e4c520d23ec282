//! The dial: only destinations that `policy` made, in a race with a head start (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use policy::egress::{Code, Destination};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// How long an attempt has for itself before the next one starts (RFC 8305 section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first destination that answers; all together have `limit`.
pub(crate) async fn dial(destinations: &[Destination], limit: Duration) -> Result<TcpStream, Code> {
    match timeout(limit, race(in_turn(destinations))).await {
        Ok(result) => result,
        Err(_elapsed) => Err(Code::DialTimeout),
    }
}

/// The families in turn, the first answer's first (RFC 8305 section 4).
fn in_turn(destinations: &[Destination]) -> Vec<SocketAddr> {
    let addresses = destinations.iter().map(|destination| destination.address());
    let (v6, v4): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses.partition(SocketAddr::is_ipv6);
    let mut turns = Vec::with_capacity(destinations.len());
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    loop {
        let (a, b) = (v6.next(), v4.next());
        if a.is_none() && b.is_none() {
            return turns;
        }
        turns.extend(a.into_iter().chain(b));
    }
}

async fn race(addresses: Vec<SocketAddr>) -> Result<TcpStream, Code> {
    let mut waiting = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut worst = Code::DialFailed;
    let mut next_start = Instant::now();
    loop {
        tokio::select! {
            () = sleep_until(next_start), if waiting.len() > 0 => {
                if let Some(address) = waiting.next() {
                    attempts.spawn(connect(address));
                }
                next_start = Instant::now() + HEAD_START;
            }
            Some(ended) = attempts.join_next(), if !attempts.is_empty() => match ended {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => {
                    worst = code_of(&error);
                    next_start = Instant::now();
                }
                Err(_panicked) => worst = Code::ProxyBusy,
            },
            else => return Err(worst),
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // What was judged is what was reached, whatever sits in between on this host.
    if stream.peer_addr()? != address {
        return Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn code_of(error: &io::Error) -> Code {
    use nix::libc::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
    match error.raw_os_error() {
        Some(EMFILE | ENFILE | ENOBUFS | ENOMEM) => Code::ProxyBusy,
        _ if error.kind() == io::ErrorKind::TimedOut => Code::DialTimeout,
        _ => Code::DialFailed,
    }
}
