//! The tunnel: bytes both ways, each end's close passed on as what it was.
//!
//! Both directions are one task. A direction holds a buffer only while it has bytes; an idle tunnel holds none.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use policy::egress::Cleared;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};

/// Bytes that a direction moves at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// How a tunnel ended, or which side began to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    ClientFin,
    ClientReset,
    TargetFin,
    TargetReset,
    Idle,
    HalfClosed,
    Policy,
    Released,
    Drain,
}

impl Ended {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ClientFin => "client_fin",
            Self::ClientReset => "client_rst",
            Self::TargetFin => "target_fin",
            Self::TargetReset => "target_rst",
            Self::Idle => "idle",
            Self::HalfClosed => "half_closed",
            Self::Policy => "policy",
            Self::Released => "released",
            Self::Drain => "drain",
        }
    }
}

/// Bytes of one direction, counted as they are accepted by the kernel on the far side.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
    /// Microseconds from the tunnel's start to the target's first byte, plus one; zero: none yet.
    pub(crate) first_byte_us: AtomicU64,
}

/// One tunnel that may be opened: its first bytes were judged.
#[derive(Debug)]
pub(crate) struct Tunnel<'a> {
    pub(crate) client: TcpStream,
    pub(crate) target: TcpStream,
    /// First bytes from the client.
    pub(crate) first: Vec<u8>,
    pub(crate) idle: Duration,
    pub(crate) half_closed: Duration,
    pub(crate) counters: &'a Counters,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// From the client to the target.
    Up,
    /// From the target to the client.
    Down,
}

/// How one direction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The reader saw a FIN, which was passed on.
    Fin,
    /// The reader saw a reset.
    FromReset,
    /// The far side takes no more; what still comes is read and dropped, so that closing does not reset.
    ToGone,
}

/// When bytes last moved, in milliseconds since the start.
struct Activity {
    start: Instant,
    last_ms: AtomicU64,
    one_way: AtomicBool,
}

impl Activity {
    fn touch(&self) {
        let ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }
}

impl Tunnel<'_> {
    /// Copies until both sides are done, or `stop` says why not.
    pub(crate) async fn run(self, cleared: Cleared, stop: impl Future<Output = Ended>) -> Ended {
        drop(cleared);
        let activity =
            Activity { start: Instant::now(), last_ms: AtomicU64::new(0), one_way: AtomicBool::new(false) };
        let ended = tokio::select! {
            ended = self.copy(&activity) => ended,
            ended = self.watch(&activity) => ended,
            ended = stop => ended,
        };
        match ended {
            Ended::ClientReset | Ended::TargetReset | Ended::Policy | Ended::Released | Ended::Drain => {
                self.reset();
            }
            Ended::ClientFin | Ended::TargetFin | Ended::Idle | Ended::HalfClosed => {}
        }
        ended
    }

    /// The side that ended first names the end; a reset of either side is passed on at once.
    async fn copy(&self, activity: &Activity) -> Ended {
        let up = self.pump_up(activity);
        let down = self.pump(Direction::Down, activity);
        tokio::pin!(up, down);
        let (mut up_done, mut down_done, mut first) = (false, false, None);
        while !(up_done && down_done) {
            let ended = tokio::select! {
                way = &mut up, if !up_done => {
                    up_done = true;
                    match way {
                        Way::Fin => Ended::ClientFin,
                        Way::FromReset => return first.unwrap_or(Ended::ClientReset),
                        Way::ToGone => Ended::TargetReset,
                    }
                }
                way = &mut down, if !down_done => {
                    down_done = true;
                    match way {
                        Way::Fin => Ended::TargetFin,
                        Way::FromReset => return first.unwrap_or(Ended::TargetReset),
                        Way::ToGone => return first.unwrap_or(Ended::ClientReset),
                    }
                }
            };
            first.get_or_insert(ended);
            activity.one_way.store(true, Ordering::Relaxed);
            activity.touch();
        }
        first.unwrap_or(Ended::ClientFin)
    }

    async fn pump_up(&self, activity: &Activity) -> Way {
        if !self.first.is_empty() && write_all(&self.target, &self.first, &self.counters.up).await.is_err() {
            return sink(&self.client).await;
        }
        self.pump(Direction::Up, activity).await
    }

    async fn pump(&self, direction: Direction, activity: &Activity) -> Way {
        let (from, to, counter) = match direction {
            Direction::Up => (&self.client, &self.target, &self.counters.up),
            Direction::Down => (&self.target, &self.client, &self.counters.down),
        };
        let is_down = direction == Direction::Down;
        loop {
            if from.readable().await.is_err() {
                return Way::FromReset;
            }
            let mut buffer = Vec::with_capacity(BUFFER_BYTES);
            loop {
                buffer.clear();
                match from.try_read_buf(&mut buffer) {
                    Ok(0) => return if finish(to).is_ok() { Way::Fin } else { Way::ToGone },
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_reset) => return Way::FromReset,
                }
                activity.touch();
                if is_down {
                    self.note_first_byte(activity);
                }
                if write_all(to, &buffer, counter).await.is_err() {
                    return if is_down { Way::ToGone } else { sink(from).await };
                }
                activity.touch();
                // Readiness and try_* take no budget: a tunnel that is never idle would outlive its stop.
                consume_budget().await;
            }
        }
    }

    fn note_first_byte(&self, activity: &Activity) {
        if self.counters.first_byte_us.load(Ordering::Relaxed) == 0 {
            let us = u64::try_from(activity.start.elapsed().as_micros()).unwrap_or(u64::MAX - 1);
            self.counters.first_byte_us.store(us + 1, Ordering::Relaxed);
        }
    }

    /// Ends when nothing has moved for the idle time, or for the drain once one side is closed.
    async fn watch(&self, activity: &Activity) -> Ended {
        loop {
            let one_way = activity.one_way.load(Ordering::Relaxed);
            let limit = if one_way { self.half_closed.min(self.idle) } else { self.idle };
            let due = activity.last() + limit;
            if due <= Instant::now() {
                return if one_way { Ended::HalfClosed } else { Ended::Idle };
            }
            // A side that closes shortens the limit: the shorter of both is how often it is looked at.
            sleep_until(due.min(Instant::now() + self.half_closed)).await;
        }
    }

    /// Makes the close of both sockets a reset: what was on its way is cut, not finished.
    fn reset(&self) {
        for stream in [&self.client, &self.target] {
            if let Err(error) = SockRef::from(stream).set_linger(Some(Duration::ZERO)) {
                tracing::debug!(%error, "cannot set a socket to reset");
            }
        }
    }
}

async fn write_all(to: &TcpStream, mut bytes: &[u8], counter: &AtomicU64) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(count) => {
                counter.fetch_add(count as u64, Ordering::Relaxed);
                bytes = bytes.get(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        consume_budget().await;
    }
    Ok(())
}

fn finish(to: &TcpStream) -> io::Result<()> {
    SockRef::from(to).shutdown(Shutdown::Write)
}

/// Reads and drops until the end: bytes left unread would make our close a reset, which can eat a reply's tail.
async fn sink(from: &TcpStream) -> Way {
    let mut buffer = Vec::with_capacity(4096);
    loop {
        if from.readable().await.is_err() {
            return Way::FromReset;
        }
        buffer.clear();
        match from.try_read_buf(&mut buffer) {
            Ok(0) => return Way::ToGone,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_reset) => return Way::FromReset,
        }
        consume_budget().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_writer_that_never_waits_still_gives_way() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (_far, _address) = listener.accept().await.unwrap();
        let (counter, mut turns) = (AtomicU64::new(0), 0);
        // Few enough bytes for the socket's buffer, more than one turn's budget of steps.
        let writing = async {
            for _ in 0..1000 {
                write_all(&to, b"x", &counter).await.unwrap();
            }
        };
        tokio::pin!(writing);
        std::future::poll_fn(|context| {
            turns += 1;
            writing.as_mut().poll(context)
        })
        .await;
        assert_eq!(counter.load(Ordering::Relaxed), 1000);
        assert!(turns > 3, "1000 writes took {turns} turns");
    }
}
