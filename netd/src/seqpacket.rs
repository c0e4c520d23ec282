//! One JSON frame and its descriptors a packet, over `SOCK_SEQPACKET`.
//!
//! A packet is at most [`FRAME_BYTES_MAX`] bytes and carries at most [`DESCRIPTORS_MAX`] descriptors. What is
//! longer, carries more or is no frame is an error, never a part of one: the kernel keeps packets apart.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 4096;
/// Most descriptors in one packet.
pub const DESCRIPTORS_MAX: usize = 8;

/// Most that the kernel passes in one packet (`SCM_MAX_FD`). Room for all of them, since descriptors that do
/// not fit are cut off and the others of that packet would be ours without our knowing.
const KERNEL_DESCRIPTORS_MAX: usize = 253;

/// Why a packet was not sent or not taken. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The socket's own error.
    #[error("use the socket")]
    Socket(#[source] Errno),
    /// The other end is gone.
    #[error("go on: the other end closed the connection")]
    Closed,
    /// Over [`FRAME_BYTES_MAX`] or [`DESCRIPTORS_MAX`].
    #[error("take a packet of more than {FRAME_BYTES_MAX} bytes or {DESCRIPTORS_MAX} descriptors")]
    TooLong,
    /// No frame that we know: the reason names the place.
    #[error("read the frame: {0}")]
    Malformed(String),
    /// Our own value does not fit a frame.
    #[error("write the frame")]
    Encode(#[source] serde_json::Error),
}

impl PacketError {
    /// Whether the call would only have had to wait.
    pub fn would_block(&self) -> bool {
        matches!(self, Self::Socket(Errno::EAGAIN))
    }
}

/// One packet as received: the frame's bytes and what came with it.
#[derive(Debug)]
pub struct Packet {
    /// The JSON text.
    pub bytes: Vec<u8>,
    /// The descriptors, in the sender's order, close-on-exec.
    pub descriptors: Vec<OwnedFd>,
}

impl Packet {
    /// Reads the frame.
    ///
    /// # Errors
    /// [`PacketError::Malformed`] with the place in the text.
    pub fn frame<T: DeserializeOwned>(&self) -> Result<T, PacketError> {
        serde_json::from_slice(&self.bytes).map_err(|error| PacketError::Malformed(error.to_string()))
    }
}

/// Writes a frame as text.
///
/// # Errors
/// [`PacketError::TooLong`] or [`PacketError::Encode`].
pub fn encode<T: Serialize>(frame: &T) -> Result<Vec<u8>, PacketError> {
    let bytes = serde_json::to_vec(frame).map_err(PacketError::Encode)?;
    if bytes.len() > FRAME_BYTES_MAX { Err(PacketError::TooLong) } else { Ok(bytes) }
}

/// Sends one packet; a signal that interrupts it starts it again.
///
/// # Errors
/// [`PacketError`]; [`PacketError::would_block`] where the socket does not wait and its queue is full.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], with: &[BorrowedFd<'_>]) -> Result<(), PacketError> {
    if bytes.len() > FRAME_BYTES_MAX || with.len() > DESCRIPTORS_MAX {
        return Err(PacketError::TooLong);
    }
    let raw: Vec<RawFd> = with.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    loop {
        let sent =
            sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_NOSIGNAL, None);
        match sent {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(PacketError::Closed),
            Err(errno) => return Err(PacketError::Socket(errno)),
        }
    }
}

/// Takes one packet; a signal that interrupts it starts it again.
///
/// # Errors
/// [`PacketError`]; [`PacketError::would_block`] where the socket does not wait and nothing is there.
pub fn receive(socket: BorrowedFd<'_>) -> Result<Packet, PacketError> {
    let mut bytes = vec![0_u8; FRAME_BYTES_MAX];
    let mut control = nix::cmsg_space!([RawFd; KERNEL_DESCRIPTORS_MAX]);
    let (length, flags, descriptors) = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Ok(message) => {
                // Owned before anything is judged: whatever is refused below is closed, not leaked.
                let mut descriptors = Vec::new();
                for part in message.cmsgs().map_err(PacketError::Socket)? {
                    if let ControlMessageOwned::ScmRights(raw) = part {
                        descriptors.extend(crate::sys::own_received(&raw));
                    }
                }
                break (message.bytes, message.flags, descriptors);
            }
            Err(Errno::EINTR) => {}
            Err(Errno::ECONNRESET) => return Err(PacketError::Closed),
            Err(errno) => return Err(PacketError::Socket(errno)),
        }
    };
    if length == 0 {
        // No frame is empty, so an empty packet and the end of the connection may look the same.
        return Err(PacketError::Closed);
    }
    if flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) || descriptors.len() > DESCRIPTORS_MAX {
        return Err(PacketError::TooLong);
    }
    bytes.truncate(length);
    Ok(Packet { bytes, descriptors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use std::os::fd::AsFd;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    #[test]
    fn packets_keep_their_borders_and_their_descriptors() {
        let (a, b) = pair();
        send(a.as_fd(), b"one", &[]).unwrap();
        send(a.as_fd(), b"two", &[a.as_fd(), b.as_fd()]).unwrap();
        let (first, second) = (receive(b.as_fd()).unwrap(), receive(b.as_fd()).unwrap());
        assert_eq!((first.bytes.as_slice(), first.descriptors.len()), (b"one".as_slice(), 0));
        assert_eq!((second.bytes.as_slice(), second.descriptors.len()), (b"two".as_slice(), 2));
    }

    #[test]
    fn a_packet_over_the_limit_is_refused_at_both_ends() {
        let (a, b) = pair();
        let long = vec![b' '; FRAME_BYTES_MAX + 1];
        assert!(matches!(send(a.as_fd(), &long, &[]), Err(PacketError::TooLong)));
        nix::sys::socket::send(a.as_raw_fd(), &long, MsgFlags::empty()).unwrap();
        assert!(matches!(receive(b.as_fd()), Err(PacketError::TooLong)));
    }

    #[test]
    fn descriptors_over_the_limit_are_refused_and_closed() {
        let (a, b) = pair();
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let raw = vec![a.as_raw_fd(); 40];
        let parts = [IoSlice::new(b"x")];
        sendmsg::<()>(a.as_raw_fd(), &parts, &[ControlMessage::ScmRights(&raw)], MsgFlags::empty(), None)
            .unwrap();
        let before = open();
        assert!(matches!(receive(b.as_fd()), Err(PacketError::TooLong)));
        assert!(open() <= before, "descriptors of a refused packet stayed open");
    }

    #[test]
    fn the_end_of_the_connection_is_told_from_a_packet() {
        let (a, b) = pair();
        drop(a);
        assert!(matches!(receive(b.as_fd()), Err(PacketError::Closed)));
        assert!(matches!(send(b.as_fd(), b"x", &[]), Err(PacketError::Closed)));
    }
}
