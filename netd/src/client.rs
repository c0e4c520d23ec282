//! netd's clients: blocking, one connection each, no privilege needed.
//!
//! A confinement made by [`Client::confine`] belongs to the connection: when it ends, however it ends, netd
//! releases what was confined over it, so that a caller that died leaves nothing behind.
//! [`Client::confine_lasting`] makes one that stays until somebody releases it.

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt};
use nix::sys::time::TimeVal;
use policy::{AgentId, ProfileName};

pub use crate::protocol::{Confined, Difference, Refusal, Role, State, Status};
use crate::protocol::{Notice, Reply, Request};
use crate::seqpacket::{self, PacketError};

/// How long a request may take before the client gives up, in seconds; netd answers in milliseconds.
const ANSWER_S: i64 = 30;

/// Why a request came to nothing. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens there, or we may not connect.
    #[error("reach netd at {}: is `darwin-netd serve` running, and may this user connect?", path.display())]
    Connect {
        /// Where.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: Errno,
    },
    /// The connection failed.
    #[error("talk to netd")]
    Packet(#[source] PacketError),
    /// netd did not do it, and says why.
    #[error("have it done by netd")]
    Refused(#[source] Refusal),
    /// An answer that does not belong to the question.
    #[error("understand netd's answer: it is a reply to something else")]
    Unexpected,
    /// A listener came without its descriptor.
    #[error("take the listener: it came with {got} descriptors")]
    NoListener {
        /// How many came.
        got: usize,
    },
}

impl From<PacketError> for ClientError {
    fn from(error: PacketError) -> Self {
        Self::Packet(error)
    }
}

impl ClientError {
    /// netd's own reason, where it gave one.
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }
}

fn open(path: &Path) -> Result<OwnedFd, ClientError> {
    let failed = |source| ClientError::Connect { path: path.to_owned(), source };
    let end =
        socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).map_err(failed)?;
    let address = UnixAddr::new(path).map_err(failed)?;
    connect(end.as_raw_fd(), &address).map_err(failed)?;
    Ok(end)
}

/// One connection that asks.
#[derive(Debug)]
pub struct Client {
    end: OwnedFd,
}

impl Client {
    /// Connects to netd's socket.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        let end = open(path.as_ref())?;
        let patience = TimeVal::new(ANSWER_S, 0);
        setsockopt(&end, sockopt::ReceiveTimeout, &patience).map_err(PacketError::Socket)?;
        Ok(Self { end })
    }

    /// Confines a namespace for as long as this connection lives. Returns once it is up: rules read back,
    /// listeners handed to the subscribers present.
    ///
    /// # Errors
    /// [`ClientError::Refused`] names what is wrong with the request or the namespace.
    pub fn confine(
        &mut self,
        netns: BorrowedFd<'_>,
        agent: &AgentId,
        profile: &ProfileName,
    ) -> Result<Confined, ClientError> {
        self.confine_as(netns, agent, profile, false)
    }

    /// Confines a namespace until somebody releases it, also beyond this connection.
    ///
    /// # Errors
    /// As [`Client::confine`].
    pub fn confine_lasting(
        &mut self,
        netns: BorrowedFd<'_>,
        agent: &AgentId,
        profile: &ProfileName,
    ) -> Result<Confined, ClientError> {
        self.confine_as(netns, agent, profile, true)
    }

    fn confine_as(
        &mut self,
        netns: BorrowedFd<'_>,
        agent: &AgentId,
        profile: &ProfileName,
        lasting: bool,
    ) -> Result<Confined, ClientError> {
        let request = Request::Confine { agent: agent.clone(), profile: profile.clone(), lasting };
        self.ask(&request, &[netns])?;
        let Reply::Confined(confined) = self.reply()? else { return Err(ClientError::Unexpected) };
        Ok(confined)
    }

    /// Ends an agent's confinement: its listeners accept no more, nothing of it is left.
    ///
    /// # Errors
    /// [`Refusal::UnknownAgent`] where there is none.
    pub fn release(&mut self, agent: &AgentId) -> Result<(), ClientError> {
        self.ask(&Request::Release { agent: agent.clone() }, &[])?;
        let Reply::Released {} = self.reply()? else { return Err(ClientError::Unexpected) };
        Ok(())
    }

    /// All confinements, by agent.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn list(&mut self) -> Result<Vec<Status>, ClientError> {
        self.ask(&Request::List {}, &[])?;
        self.items(|reply| if let Reply::Status(status) = reply { Some(status) } else { None })
    }

    /// Compares the kernel's state with the model, of one agent or of all. Empty: they are the same.
    ///
    /// # Errors
    /// [`Refusal::UnknownAgent`] where there is no such confinement.
    pub fn verify(&mut self, agent: Option<&AgentId>) -> Result<Vec<Difference>, ClientError> {
        self.ask(&Request::Verify { agent: agent.cloned() }, &[])?;
        self.items(|reply| if let Reply::Difference(difference) = reply { Some(difference) } else { None })
    }

    /// An agent's rules as nft text.
    ///
    /// # Errors
    /// [`Refusal::UnknownAgent`] where there is no such confinement.
    pub fn render(&mut self, agent: &AgentId) -> Result<String, ClientError> {
        self.ask(&Request::Render { agent: agent.clone() }, &[])?;
        Ok(self.items(|reply| if let Reply::Text { text } = reply { Some(text) } else { None })?.concat())
    }

    fn ask(&mut self, request: &Request, with: &[BorrowedFd<'_>]) -> Result<(), ClientError> {
        Ok(seqpacket::send(self.end.as_fd(), &seqpacket::encode(request)?, with)?)
    }

    fn reply(&mut self) -> Result<Reply, ClientError> {
        let reply = seqpacket::receive(self.end.as_fd())?.frame()?;
        if let Reply::Refused { refusal } = reply { Err(ClientError::Refused(refusal)) } else { Ok(reply) }
    }

    fn items<T>(&mut self, item: impl Fn(Reply) -> Option<T>) -> Result<Vec<T>, ClientError> {
        let mut items = Vec::new();
        loop {
            let reply = self.reply()?;
            if reply == (Reply::End {}) {
                return Ok(items);
            }
            items.push(item(reply).ok_or(ClientError::Unexpected)?);
        }
    }
}

/// What a subscriber is given.
#[derive(Debug)]
pub enum Event {
    /// A listener inside an agent's namespace. After a reconnect all that exist come again.
    Listener {
        /// Whose connections it accepts.
        agent: AgentId,
        /// The egress profile's name.
        profile: ProfileName,
        /// Which confinement of the agent this is.
        generation: u64,
        /// The listener; it does not wait (`O_NONBLOCK`).
        listener: TcpListener,
    },
    /// A confinement has ended; the listener of this or a lower generation is dead.
    Released {
        /// Whose.
        agent: AgentId,
        /// Which.
        generation: u64,
    },
}

/// One connection that is told.
#[derive(Debug)]
pub struct Subscription {
    end: OwnedFd,
}

impl Subscription {
    /// Connects and subscribes to all listeners of a role.
    ///
    /// # Errors
    /// [`ClientError::Refused`] where this user may not have them.
    pub fn open(path: impl AsRef<Path>, role: Role) -> Result<Self, ClientError> {
        let mut client = Client::connect(path)?;
        client.ask(&Request::Subscribe { role }, &[])?;
        let Reply::Subscribed {} = client.reply()? else { return Err(ClientError::Unexpected) };
        setsockopt(&client.end, sockopt::ReceiveTimeout, &TimeVal::new(0, 0)).map_err(PacketError::Socket)?;
        Ok(Self { end: client.end })
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// [`PacketError::Closed`] when netd is gone: connect again, everything that exists is told again.
    #[expect(clippy::should_implement_trait, reason = "an error here ends the connection, not a sequence")]
    pub fn next(&mut self) -> Result<Event, ClientError> {
        let packet = seqpacket::receive(self.end.as_fd())?;
        match packet.frame()? {
            Notice::Released { agent, generation } => Ok(Event::Released { agent, generation }),
            Notice::Listener { agent, profile, generation } => {
                let got = packet.descriptors.len();
                let mut descriptors = packet.descriptors.into_iter();
                match (descriptors.next(), descriptors.next()) {
                    (Some(only), None) => {
                        Ok(Event::Listener { agent, profile, generation, listener: TcpListener::from(only) })
                    }
                    _ => Err(ClientError::NoListener { got }),
                }
            }
        }
    }
}

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
