//! The head: model, encoder, API. It has `CAP_NET_ADMIN` and a user of its own, and never enters a namespace.
//!
//! One loop, one thread: a client's packet, a namespace's log, a signal to stop. A confinement belongs to the
//! connection that asked for it, unless it was asked to last, and is released when that connection ends.

mod api;
mod attempt;
mod confinement;
mod connection;
mod spool;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{getsockopt, sockopt};
use policy::AgentId;
use policy::confinement::{Surroundings, classify};
use policy::signal::{Detail, Severity};

pub(crate) use self::confinement::{Confinement, Name};
use self::connection::Connection;
use self::spool::Spool;
use crate::config::Config;
use crate::protocol::Notice;
use crate::seqpacket::PacketError;

/// Descriptors that the head needs for itself and its clients.
const DESCRIPTORS_APART: u64 = 256;
/// Descriptors of one confinement: two listeners, three netlink sockets, and one on its way to a subscriber.
const DESCRIPTORS_EACH: u64 = 6;
/// Connections of all users together that the configuration does not name.
const STRANGERS_MAX: usize = 64;
const EVENTS_A_TURN: usize = 64;
/// The kernel fills one buffer for one packet that is logged.
const LOG_BYTES: usize = 64 << 10;

/// Why the head ended other than by being told to. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// Waiting for events.
    #[error("wait for events")]
    Wait(#[source] Errno),
    /// The hand is gone or speaks nonsense: nothing can be confined any more.
    #[error("go on without the hand")]
    Hand(#[source] PacketError),
    /// Watching something.
    #[error("watch a descriptor")]
    Watch(#[source] Errno),
}

/// What the head was given before it gave up its rights.
pub(crate) struct Given {
    pub(crate) config: Config,
    pub(crate) listener: UnixListener,
    pub(crate) hand: OwnedFd,
    pub(crate) stop: SignalFd,
    pub(crate) spool: File,
    /// Tells this netd from every other: microseconds since 1970 at its start.
    pub(crate) run: u64,
    /// The limit on open files.
    pub(crate) files_max: u64,
}

/// What an event is about.
#[derive(Debug, Clone)]
enum Watched {
    Listener,
    Hand,
    Stop,
    Connection,
    Log(AgentId),
}

/// The head's state.
struct Head {
    around: Surroundings,
    config: Config,
    hand: OwnedFd,
    epoll: Epoll,
    watched: BTreeMap<u64, Watched>,
    next_token: u64,
    next_generation: u64,
    connections: BTreeMap<u64, Connection>,
    confinements: BTreeMap<AgentId, Confinement>,
    confinements_max: usize,
    spool: Spool,
    log_buffer: Vec<u8>,
}

/// Serves until a signal to stop or a failure. Either way the doors are shut then, and the walls left as they are.
pub(crate) fn serve(given: Given) -> Result<(), HeadError> {
    let Given { config, listener, hand, stop, spool, run, files_max } = given;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(HeadError::Watch)?;
    let fit = files_max.saturating_sub(DESCRIPTORS_APART) / DESCRIPTORS_EACH;
    let mut head = Head {
        around: config.surroundings(),
        spool: Spool::new(spool, config.spool_bytes_max, run),
        config,
        hand,
        epoll,
        watched: BTreeMap::new(),
        next_token: 0,
        next_generation: run,
        connections: BTreeMap::new(),
        confinements: BTreeMap::new(),
        confinements_max: usize::try_from(fit).unwrap_or(usize::MAX),
        log_buffer: vec![0; LOG_BYTES],
    };
    head.watch(&listener, Watched::Listener)?;
    let hand_too = head.hand.try_clone().map_err(|_error| HeadError::Watch(Errno::EMFILE))?;
    head.watch(&hand_too, Watched::Hand)?;
    head.watch(&stop, Watched::Stop)?;
    let ran = head.run(&listener, &stop);
    head.stop();
    ran
}

impl Head {
    fn watch(&mut self, what: &impl AsFd, as_what: Watched) -> Result<u64, HeadError> {
        let token = self.next_token;
        self.next_token += 1;
        self.epoll.add(what, EpollEvent::new(EpollFlags::EPOLLIN, token)).map_err(HeadError::Watch)?;
        self.watched.insert(token, as_what);
        Ok(token)
    }

    fn unwatch(&self, what: BorrowedFd<'_>) {
        if let Err(errno) = self.epoll.delete(what) {
            crate::say(&format!("cannot end a watch: {errno}"));
        }
    }

    fn run(&mut self, listener: &UnixListener, stop: &SignalFd) -> Result<(), HeadError> {
        let mut events = vec![EpollEvent::empty(); EVENTS_A_TURN];
        loop {
            let patience = match self.spool.settle(Instant::now()) {
                // Rounded up, or the loop would turn for the last millisecond.
                Some(left) => {
                    EpollTimeout::try_from(left.as_millis().saturating_add(1)).unwrap_or(EpollTimeout::NONE)
                }
                None => EpollTimeout::NONE,
            };
            let count = match self.epoll.wait(&mut events, patience) {
                Ok(count) => count,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(HeadError::Wait(errno)),
            };
            for event in events.iter().take(count) {
                let token = event.data();
                match self.watched.get(&token).cloned() {
                    // Its watch ended earlier in this turn.
                    None => {}
                    Some(Watched::Listener) => self.accept(listener)?,
                    Some(Watched::Hand) => return Err(HeadError::Hand(PacketError::Closed)),
                    Some(Watched::Stop) => {
                        if matches!(stop.read_signal(), Ok(Some(_))) {
                            return Ok(());
                        }
                    }
                    Some(Watched::Connection) => self.serve_connection(token)?,
                    Some(Watched::Log(agent)) => self.read_log(&agent),
                }
            }
        }
    }

    fn accept(&mut self, listener: &UnixListener) -> Result<(), HeadError> {
        let socket = match listener.accept() {
            Ok((socket, _address)) => socket,
            Err(error) => {
                // It may be the client's fault, or a want of descriptors that passes.
                if error.kind() != std::io::ErrorKind::WouldBlock {
                    crate::say(&format!("cannot accept a client: {error}"));
                }
                return Ok(());
            }
        };
        if let Err(error) = socket.set_nonblocking(true) {
            crate::say(&format!("cannot accept a client: {error}"));
            return Ok(());
        }
        match getsockopt(&socket, sockopt::PeerCredentials) {
            Ok(peer) if !self.has_room_for(peer.uid()) => {}
            Ok(peer) => {
                let token = self.watch(&socket, Watched::Connection)?;
                self.connections.insert(token, Connection::new(socket.into(), peer.uid()));
            }
            Err(errno) => crate::say(&format!("cannot tell who a client is: {errno}")),
        }
        Ok(())
    }

    /// Users that may ask nothing are told so, but cannot keep the others out.
    fn has_room_for(&self, uid: u32) -> bool {
        let strange = self.connections.values().filter(|known| !self.config.clients.name(known.uid)).count();
        self.config.clients.name(uid) || strange < STRANGERS_MAX
    }

    /// Sends what waits, and asks to be told when the rest can be sent.
    fn flush(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let interest = match connection.flush() {
            Ok(true) => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            Ok(false) => EpollFlags::EPOLLIN,
            Err(_gone) => return self.hang_up(token),
        };
        let mut event = EpollEvent::new(interest, token);
        if self.epoll.modify(connection.socket(), &mut event).is_err() {
            self.hang_up(token);
        }
    }

    /// Ends a connection and what belongs to it.
    fn hang_up(&mut self, token: u64) {
        self.watched.remove(&token);
        if let Some(connection) = self.connections.remove(&token) {
            self.unwatch(connection.socket());
        }
        let theirs: Vec<AgentId> = self
            .confinements
            .values()
            .filter(|confinement| confinement.name.held_by == Some(token))
            .map(|confinement| confinement.name.agent.clone())
            .collect();
        for agent in theirs {
            self.release(&agent);
        }
    }

    /// Ends a confinement; false if there is none.
    fn release(&mut self, agent: &AgentId) -> bool {
        let Some(confinement) = self.confinements.remove(agent) else { return false };
        self.watched.retain(|_, watched| !matches!(watched, Watched::Log(whose) if whose == agent));
        self.unwatch(confinement.log());
        let generation = confinement.name.generation;
        // What the log still holds is the agent's last word.
        self.take_log(&confinement);
        self.spool.forget(agent);
        for failed in confinement.end() {
            crate::say(&format!("{agent}: {failed}"));
        }
        self.tell_subscribers(&Notice::Released { agent: agent.clone(), generation });
        true
    }

    fn tell_subscribers(&mut self, notice: &Notice) {
        let tokens: Vec<u64> = self.connections.keys().copied().collect();
        for token in tokens {
            let Some(connection) = self.connections.get_mut(&token) else { continue };
            if connection.role.is_some() {
                match connection.tell(notice, None) {
                    Ok(()) => self.flush(token),
                    Err(_slow) => self.hang_up(token),
                }
            }
        }
    }

    fn read_log(&mut self, agent: &AgentId) {
        let Some(confinement) = self.confinements.remove(agent) else { return };
        self.take_log(&confinement);
        self.confinements.insert(agent.clone(), confinement);
    }

    fn take_log(&mut self, confinement: &Confinement) {
        let (agent, now) = (&confinement.name.agent, Instant::now());
        let (spool, around) = (&mut self.spool, &self.around);
        let read = confinement.read_log(&mut self.log_buffer, |packet| {
            let attempt = attempt::read(packet);
            let class =
                attempt.map_or(policy::confinement::Class::RawAttempt, |attempt| classify(&attempt, around));
            spool.attempt(agent, class, attempt.as_ref(), now);
        });
        match read {
            Ok(false) => {}
            Ok(true) => {
                let why = Detail::Text("the log ran over; the counters are exact".to_owned());
                spool.note(agent, "signals_lost", Severity::Info, &[("why", why)]);
            }
            Err(error) => crate::say(&format!("{agent}: cannot read the log: {error}")),
        }
    }

    /// Stopping opens nothing: the doors are shut, the rules and the decoys stay with their namespaces.
    fn stop(&mut self) {
        for (agent, confinement) in std::mem::take(&mut self.confinements) {
            self.take_log(&confinement);
            self.spool.forget(&agent);
            for failed in confinement.shut_doors() {
                crate::say(&format!("{agent}: {failed}"));
            }
            let generation = confinement.name.generation;
            self.tell_subscribers(&Notice::Released { agent, generation });
        }
    }
}
