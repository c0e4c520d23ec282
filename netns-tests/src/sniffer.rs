//! Witnesses: packet sockets that see every frame of a namespace, and know when they have seen enough.

use std::io::{IoSliceMut, Read};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::ns::Namespace;

/// `ETH_P_ALL` in network order, as packet(7) wants it.
const EVERY_PROTOCOL: i32 = (3_u16.to_be()) as i32;
/// The fence comes within microseconds; this only ends a test that is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// What may wait to be read; frames that do not fit are counted, and then the witness says that it is worthless.
const BUFFER_BYTES: usize = 64 << 20;

/// Sees every frame on every link of a namespace.
#[derive(Debug)]
pub struct Sniffer<'n> {
    netns: &'n Namespace,
    socket: Socket,
    /// Where it stands, for reports.
    pub place: &'static str,
}

/// 64 random bits.
///
/// # Errors
/// Without `/dev/urandom`.
pub fn nonce() -> Result<[u8; 8]> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl<'n> Sniffer<'n> {
    /// Starts to look.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` there.
    pub fn new(netns: &'n Namespace, place: &'static str) -> Result<Self> {
        let socket = netns.run(|| {
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(EVERY_PROTOCOL)))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            // Beyond the host's limit: other tests talk over the same loopback while this one looks.
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)?;
            setsockopt(&socket, sockopt::RxqOvfl, &1)?;
            Ok(socket)
        })?;
        Ok(Self { netns, socket, place })
    }

    /// Whether a frame with `needle` in it was seen since the last call.
    ///
    /// A fence is sent over the namespace's own loopback, and everything before it is read: what was on its
    /// way when this was called has been seen when it returns.
    ///
    /// # Errors
    /// When the fence itself is not seen, which makes the witness worthless.
    pub fn saw(&mut self, needle: &[u8]) -> Result<bool> {
        let fence = nonce()?;
        self.netns.run(|| {
            let from = UdpSocket::bind("127.0.0.1:0")?;
            from.send_to(&fence, from.local_addr()?)?;
            Ok(())
        })?;
        let (mut found, mut frame) = (false, vec![0; 1 << 16]);
        loop {
            let length =
                self.frame(&mut frame).with_context(|| format!("the sniffer of {} is blind", self.place))?;
            let seen = frame.get(..length).unwrap_or_default();
            found |= contains(seen, needle);
            if contains(seen, &fence) {
                return Ok(found);
            }
        }
    }

    /// The next frame's length.
    fn frame(&mut self, frame: &mut [u8]) -> Result<usize> {
        let mut space = nix::cmsg_space!(u32);
        let mut into = [IoSliceMut::new(frame)];
        let received =
            recvmsg::<()>(self.socket.as_raw_fd(), &mut into, Some(&mut space), MsgFlags::empty())?;
        for message in received.cmsgs()? {
            if let ControlMessageOwned::RxqOvfl(lost) = message {
                ensure!(lost == 0, "it lost {lost} frames");
            }
        }
        Ok(received.bytes)
    }
}

fn contains(frame: &[u8], needle: &[u8]) -> bool {
    frame.windows(needle.len()).any(|window| window == needle)
}
