//! One client's connection: who it is, and what is still to be sent to it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::Serialize;

use crate::protocol::Role;
use crate::seqpacket::{self, PacketError};

/// Most packets that wait for one client; one that is this slow is cut off and connects again.
const WAITING_MAX: usize = 16_384;

/// A client.
pub(crate) struct Connection {
    socket: OwnedFd,
    /// Its user, by `SO_PEERCRED`.
    pub(crate) uid: u32,
    /// The role that it subscribed to.
    pub(crate) role: Option<Role>,
    waiting: VecDeque<(Vec<u8>, Option<OwnedFd>)>,
}

impl Connection {
    /// Over a socket that does not wait.
    pub(crate) fn new(socket: OwnedFd, uid: u32) -> Self {
        Self { socket, uid, role: None, waiting: VecDeque::new() }
    }

    /// The socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Queues a frame.
    ///
    /// # Errors
    /// [`PacketError`]: the connection is of no more use.
    pub(crate) fn tell<T: Serialize>(&mut self, frame: &T, with: Option<OwnedFd>) -> Result<(), PacketError> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(PacketError::TooLong);
        }
        self.waiting.push_back((seqpacket::encode(frame)?, with));
        Ok(())
    }

    /// Sends what can be sent without waiting; true if something is left.
    ///
    /// # Errors
    /// [`PacketError`]: the connection is of no more use.
    pub(crate) fn flush(&mut self) -> Result<bool, PacketError> {
        while let Some((bytes, with)) = self.waiting.front() {
            let with: Vec<BorrowedFd<'_>> = with.iter().map(AsFd::as_fd).collect();
            match seqpacket::send(self.socket.as_fd(), bytes, &with) {
                Ok(()) => drop(self.waiting.pop_front()),
                Err(error) if error.would_block() => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
