//! Requests over one netlink socket, answered one after the other.
//!
//! Answers are told apart by sequence number, since another kernel's acknowledgement may come late or
//! twice; a dump that changed under our hands is taken again; a lost answer is an error of its own, for the
//! caller to find out by reading back.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    DecodeError, DoneBuffer, DoneMessage, ErrorBuffer, ErrorMessage, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR,
    NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable, Parseable,
};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// The kernel's dump buffers are at most 32 KiB.
const RECEIVE_BYTES: usize = 64 << 10;
/// The kernel answers while we send; this only keeps a broken one from stopping the loop.
const ANSWER_S: i64 = 5;
/// How often a dump that changed while it was taken is taken again.
const DUMP_TRIES: u32 = 8;

/// Why a request failed. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetlinkError {
    /// The socket's own error.
    #[error("use the netlink socket")]
    Socket(#[source] Errno),
    /// The kernel's answer.
    #[error("have the kernel do it")]
    Kernel(#[source] Errno),
    /// Answers were lost: whether it was done is unknown.
    #[error("read the kernel's answer: the socket's buffer ran over")]
    Overrun,
    /// The answer is none that we know.
    #[error("read the kernel's answer: {0}")]
    Malformed(String),
    /// A dump changed every time it was taken.
    #[error("take a consistent dump")]
    Unsettled,
}

impl NetlinkError {
    /// The kernel's answer, where it gave one.
    pub(crate) fn errno(&self) -> Option<Errno> {
        match self {
            Self::Kernel(errno) | Self::Socket(errno) => Some(*errno),
            Self::Overrun | Self::Malformed(_) | Self::Unsettled => None,
        }
    }
}

impl From<DecodeError> for NetlinkError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// One answered message, its payload not yet read: what others left in the kernel need not be legible.
#[derive(Debug)]
pub(crate) struct Answer {
    header: NetlinkHeader,
    /// What follows the netlink header.
    pub(crate) payload: Vec<u8>,
}

impl Answer {
    /// Reads the payload.
    pub(crate) fn read<M>(&self) -> Result<M, NetlinkError>
    where
        M: NetlinkDeserializable,
    {
        M::deserialize(&self.header, &self.payload)
            .map_err(|error| NetlinkError::Malformed(error.to_string()))
    }
}

/// A netlink socket and its sequence.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    sequence: u32,
}

/// Opens a netlink socket in the calling thread's network namespace.
pub(crate) fn open(protocol: SockProtocol) -> Result<OwnedFd, Errno> {
    let end = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    bind(end.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    Ok(end)
}

impl Channel {
    /// Takes over a socket from [`open`].
    pub(crate) fn new(socket: OwnedFd) -> Result<Self, NetlinkError> {
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(ANSWER_S, 0))
            .map_err(NetlinkError::Socket)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The socket again.
    pub(crate) fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// One change, acknowledged.
    pub(crate) fn change<M: NetlinkSerializable>(
        &mut self,
        message: M,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        self.ask(message, NLM_F_ACK | flags).map(drop)
    }

    /// One request that is answered by messages and an acknowledgement.
    pub(crate) fn ask<M: NetlinkSerializable>(
        &mut self,
        message: M,
        flags: u16,
    ) -> Result<Vec<Answer>, NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let bytes = self.encode(message, flags);
        self.transmit(&bytes)?;
        self.collect(first)
    }

    /// Everything of a kind.
    pub(crate) fn dump<M: NetlinkSerializable + Clone>(
        &mut self,
        message: &M,
    ) -> Result<Vec<Answer>, NetlinkError> {
        for _ in 0..DUMP_TRIES {
            let answers = self.ask(message.clone(), NLM_F_DUMP)?;
            if answers.iter().all(|answer| answer.header.flags & NLM_F_DUMP_INTR == 0) {
                return Ok(answers);
            }
        }
        Err(NetlinkError::Unsettled)
    }

    /// Several messages in one packet, the last but `unanswered` of them acknowledged. Any error is the
    /// whole batch's.
    pub(crate) fn batch<M: NetlinkSerializable>(
        &mut self,
        messages: Vec<(M, u16)>,
        unanswered: usize,
    ) -> Result<(), NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let last = messages.len().saturating_sub(unanswered + 1);
        let mut bytes = Vec::new();
        let mut awaited = first;
        for (at, (message, flags)) in messages.into_iter().enumerate() {
            let ack = if at == last { NLM_F_ACK } else { 0 };
            bytes.extend(self.encode(message, flags | ack));
            if at == last {
                awaited = self.sequence;
            }
        }
        self.transmit(&bytes)?;
        self.collect_until(first, awaited).map(drop)
    }

    fn encode<M: NetlinkSerializable>(&mut self, message: M, flags: u16) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut whole = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        whole.finalize();
        // Aligned, so that another message may follow in the same packet.
        let mut bytes = vec![0; whole.buffer_len().next_multiple_of(4)];
        whole.serialize(&mut bytes);
        bytes
    }

    fn transmit(&self, bytes: &[u8]) -> Result<(), NetlinkError> {
        loop {
            match send(self.socket.as_raw_fd(), bytes, MsgFlags::empty()) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(NetlinkError::Socket(errno)),
            }
        }
    }

    fn collect(&self, only: u32) -> Result<Vec<Answer>, NetlinkError> {
        self.collect_until(only, only)
    }

    fn collect_until(&self, first: u32, last: u32) -> Result<Vec<Answer>, NetlinkError> {
        let mut answers = Vec::new();
        let mut buffer = vec![0_u8; RECEIVE_BYTES];
        loop {
            let length = receive(self.socket.as_fd(), &mut buffer)?;
            let mut rest = buffer.get(..length).unwrap_or_default();
            while let Some((header, payload, after)) = split(rest)? {
                rest = after;
                let ours = header.sequence_number.wrapping_sub(first) <= last.wrapping_sub(first);
                if ours && take(header, payload, last, &mut answers)? {
                    return Ok(answers);
                }
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Takes one message; true when it is the last.
fn take(
    header: NetlinkHeader,
    payload: &[u8],
    last: u32,
    answers: &mut Vec<Answer>,
) -> Result<bool, NetlinkError> {
    match header.message_type {
        NLMSG_ERROR => {
            let error = ErrorMessage::parse(&ErrorBuffer::new_checked(&payload)?)?;
            if let Some(code) = error.code {
                return Err(NetlinkError::Kernel(Errno::from_raw(code.get().saturating_neg())));
            }
            Ok(header.sequence_number == last)
        }
        NLMSG_DONE if payload.is_empty() => Ok(true),
        NLMSG_DONE => {
            let code = DoneMessage::parse(&DoneBuffer::new_checked(&payload)?)?.code;
            if code < 0 {
                return Err(NetlinkError::Kernel(Errno::from_raw(code.saturating_neg())));
            }
            if header.flags & NLM_F_DUMP_INTR != 0 {
                answers.push(Answer { header, payload: Vec::new() });
            }
            Ok(true)
        }
        _ => {
            answers.push(Answer { header, payload: payload.to_vec() });
            Ok(false)
        }
    }
}

/// One packet off a netlink socket.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, NetlinkError> {
    loop {
        match recv(socket.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(length) => return Ok(length),
            Err(Errno::EINTR) => {}
            Err(Errno::ENOBUFS) => return Err(NetlinkError::Overrun),
            Err(errno) => return Err(NetlinkError::Socket(errno)),
        }
    }
}

/// A message's header, its payload, and what follows it in the packet.
type First<'p> = (NetlinkHeader, &'p [u8], &'p [u8]);

/// The first message of a packet.
pub(crate) fn split(bytes: &[u8]) -> Result<Option<First<'_>>, NetlinkError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let buffer = NetlinkBuffer::new_checked(bytes)?;
    let header = NetlinkHeader::parse(&buffer)?;
    let length = buffer.length() as usize;
    let payload =
        bytes.get(16..length).ok_or_else(|| NetlinkError::Malformed("a short message".to_owned()))?;
    Ok(Some((header, payload, bytes.get(length.next_multiple_of(4)..).unwrap_or_default())))
}
