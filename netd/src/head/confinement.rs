//! One confinement as the head holds it: made, watched, verified, ended.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{NetlinkDeserializable, NetlinkPayload};
use netlink_packet_netfilter::nflog::{
    ConfigCmd, ConfigMode, ConfigNla, PacketNla, ULogMessage, config_request,
};
use netlink_packet_netfilter::{NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt};
use policy::confinement::{Class, Ruleset, Surroundings};
use policy::{AgentId, Instant, ProfileName};

use super::spool::wall_clock;
use crate::hand::{Opened, inspect};
use crate::netlink::{self, Channel, NetlinkError};
use crate::nft::{Table, TableError};
use crate::protocol::{Refusal, Role, State, Status};

/// Whose confinement it is and which.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) agent: AgentId,
    pub(crate) profile: ProfileName,
    pub(crate) generation: u64,
    /// The connection that it belongs to; none: it stays until it is released.
    pub(crate) held_by: Option<u64>,
}

/// A confinement that is up.
pub(crate) struct Confinement {
    pub(crate) name: Name,
    pub(crate) cookie: u64,
    since: Instant,
    proxy: OwnedFd,
    gateway: OwnedFd,
    table: Table,
    log: OwnedFd,
    route: Channel,
}

impl Confinement {
    /// Programs the rules, reads them back, starts to listen to the log. What fails leaves nothing behind.
    pub(crate) fn put_up(name: Name, opened: Opened, around: &Surroundings) -> Result<Self, Refusal> {
        let Opened { cookie, proxy, gateway, nft, log, route } = opened;
        // Where it fails the listeners close: nobody else has a copy yet. The decoy leads nowhere.
        let (table, log, route) = Self::assemble(nft, log, route, around)?;
        Ok(Self { name, cookie, since: wall_clock(), proxy, gateway, table, log, route })
    }

    fn assemble(
        nft: OwnedFd,
        log: OwnedFd,
        route: OwnedFd,
        around: &Surroundings,
    ) -> Result<(Table, OwnedFd, Channel), Refusal> {
        let route = channel(route)?;
        // Before the rules, so that the first packet that they refuse is seen.
        let log = listen(log, around.log_group)?;
        let mut table = Table::write(channel(nft)?, Ruleset::new(around)).map_err(|error| refused(&error))?;
        let found = table.differences().map_err(|error| refused(&error))?;
        match found.into_iter().next() {
            None => Ok((table, log, route)),
            Some(what) => {
                if let Err(error) = table.delete() {
                    crate::say(&refused(&error).to_string());
                }
                Err(Refusal::ReadBack { what })
            }
        }
    }

    /// The listener of a role.
    pub(crate) fn listener(&self, role: Role) -> BorrowedFd<'_> {
        match role {
            Role::Proxy => self.proxy.as_fd(),
            Role::Gateway => self.gateway.as_fd(),
        }
    }

    /// The log's socket, to wait for.
    pub(crate) fn log(&self) -> BorrowedFd<'_> {
        self.log.as_fd()
    }

    /// The rules as text.
    pub(crate) fn render(&self) -> String {
        self.table.render()
    }

    /// Whether the kernel keeps others from changing the table, and whether it outlives netd.
    pub(crate) fn flags(&self) -> (bool, bool) {
        (self.table.flags().owner, self.table.flags().persist)
    }

    /// How it stands, with the kernel's counters.
    pub(crate) fn status(&mut self) -> Status {
        let (owner, persist) = self.flags();
        let drops = self.table.drops();
        let foreign = self.table.foreign();
        // What cannot be read cannot be called up.
        let state = if drops.is_ok() && foreign.is_ok() { State::Up } else { State::Failed };
        let named = |drops: BTreeMap<Class, u64>| {
            drops.into_iter().map(|(class, count)| (class.name().to_owned(), count)).collect()
        };
        Status {
            agent: self.name.agent.clone(),
            profile: self.name.profile.clone(),
            generation: self.name.generation,
            netns_cookie: self.cookie,
            state,
            since_ms: self.since,
            drops: drops.map(named).unwrap_or_default(),
            owner,
            persist,
            foreign_tables: foreign.unwrap_or_default(),
        }
    }

    /// Where the kernel's state is not what it should be: rules, links, listeners.
    pub(crate) fn differences(&mut self) -> Vec<String> {
        let mut found = match self.table.differences() {
            Ok(found) => found,
            Err(error) => vec![refused(&error).to_string()],
        };
        match inspect::links(&mut self.route) {
            Ok(Some(_decoy)) => {}
            Ok(None) => found.push("the decoy is gone".to_owned()),
            Err(refusal) => found.push(refusal.to_string()),
        }
        for role in Role::ALL {
            if getsockopt(&self.listener(role), sockopt::AcceptConn) != Ok(true) {
                found.push(format!("the {role}'s listener no longer listens"));
            }
        }
        found
    }

    /// Ends it: first the doors, by shutdown, since closing leaves the copies that others hold accepting.
    /// Goes on where a step fails, and says what failed.
    pub(crate) fn end(self) -> Vec<String> {
        let mut failed = self.shut_doors();
        if let Err(error) = self.table.delete() {
            failed.push(refused(&error).to_string());
        }
        // The kernel takes some 30 ms to let go of a link, and nobody else should wait for it.
        let mut route = self.route;
        let remover = std::thread::Builder::new().name("remove-decoy".to_owned());
        let started = remover.spawn(move || {
            if let Ok(Some(decoy)) = inspect::links(&mut route)
                && let Err(refusal) = inspect::remove(&mut route, decoy)
            {
                crate::say(&refusal.to_string());
            }
        });
        if let Err(error) = started {
            failed.push(format!("cannot remove the decoy: {error}"));
        }
        failed
    }

    /// Shuts both doors and leaves the walls as they are.
    pub(crate) fn shut_doors(&self) -> Vec<String> {
        let mut failed = Vec::new();
        for role in Role::ALL {
            match shutdown(self.listener(role).as_raw_fd(), Shutdown::Both) {
                Ok(()) | Err(Errno::ENOTCONN) => {}
                Err(errno) => failed.push(format!("cannot shut the {role}'s listener: {errno}")),
            }
        }
        failed
    }

    /// Takes what the log holds, calls `refused` with each packet; true if some were lost.
    pub(crate) fn read_log(
        &self,
        buffer: &mut [u8],
        mut refused: impl FnMut(&[u8]),
    ) -> Result<bool, NetlinkError> {
        let mut lost = false;
        for _ in 0..LOG_PACKETS_A_TURN {
            let length = match netlink::receive(self.log.as_fd(), buffer) {
                Ok(length) => length,
                Err(NetlinkError::Overrun) => {
                    lost = true;
                    continue;
                }
                Err(NetlinkError::Socket(Errno::EAGAIN)) => break,
                Err(error) => return Err(error),
            };
            let mut rest = buffer.get(..length).unwrap_or_default();
            while let Some((header, payload, after)) = netlink::split(rest)? {
                rest = after;
                if let Ok(message) = NetfilterMessage::deserialize(&header, payload)
                    && let NetfilterMessageInner::ULog(ULogMessage::Packet(parts)) = message.inner
                {
                    for part in parts {
                        if let PacketNla::Payload(packet) = part {
                            refused(&packet);
                        }
                    }
                }
            }
        }
        Ok(lost)
    }
}

/// So that one agent's flood does not keep the others waiting.
const LOG_PACKETS_A_TURN: usize = 64;

fn channel(socket: OwnedFd) -> Result<Channel, Refusal> {
    Channel::new(socket).map_err(|error| failed("take over a socket", &error))
}

fn failed(doing: &str, error: &NetlinkError) -> Refusal {
    let why = error.errno().map_or_else(|| error.to_string(), |errno| errno.to_string());
    Refusal::Failed { doing: doing.to_owned(), why }
}

fn refused(error: &TableError) -> Refusal {
    match error {
        TableError::Missing(_) => Refusal::MissingFeature {
            feature: "nf_tables".to_owned(),
            remedy: "load nf_tables, or use a kernel with CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET"
                .to_owned(),
        },
        TableError::Write(cause) if cause.errno() == Some(Errno::ENOENT) => Refusal::MissingFeature {
            feature: "an nf_tables expression (limit, log, reject, counter, payload, meta or bitwise)"
                .to_owned(),
            remedy: "load nft_limit, nft_log, nft_reject_inet, or use a kernel that has them".to_owned(),
        },
        TableError::Write(cause) | TableError::Read(cause) | TableError::Delete(cause) => {
            failed(&error.to_string(), cause)
        }
    }
}

/// Takes the group. One packet is passed on at once: the kernel's own default would keep it for a second.
fn listen(log: OwnedFd, group: u16) -> Result<OwnedFd, Refusal> {
    let mut channel = channel(log)?;
    let whole = Ruleset::LOGGED_BYTES;
    let steps = [
        vec![ConfigNla::Cmd(ConfigCmd::Bind)],
        vec![ConfigNla::Mode(ConfigMode::new_packet(whole)), ConfigNla::QThresh(1)],
    ];
    for step in steps {
        let message = config_request(NetfilterProtoFamily::Unspec, group, step);
        let NetlinkPayload::InnerMessage(message) = message.payload else { continue };
        channel.change(message, 0).map_err(|error| match error.errno() {
            Some(Errno::ENOENT | Errno::EOPNOTSUPP | Errno::EINVAL) => Refusal::MissingFeature {
                feature: "NFLOG".to_owned(),
                remedy: "load nfnetlink_log, or use a kernel with CONFIG_NETFILTER_NETLINK_LOG".to_owned(),
            },
            _ => failed("listen to the log", &error),
        })?;
    }
    let log = channel.into_socket();
    fcntl(&log, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|errno| Refusal::Failed {
        doing: "make the log's socket not wait".to_owned(),
        why: errno.to_string(),
    })?;
    Ok(log)
}
