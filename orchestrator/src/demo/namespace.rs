//! The demo's own two network namespaces, and the one link between them.
//!
//! They have no name and no mount: a descriptor is all that holds them, so that they are gone with the process.
//! This module never touches the namespace that the demo was started in: each change happens on a thread of its
//! own that entered a namespace of ours first and ends after it.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};

/// Why a namespace could not be made or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// `unshare` was refused or is not there.
    #[error("make a network namespace (it needs a kernel with CONFIG_NET_NS and CAP_SYS_ADMIN)")]
    Unshare(#[source] nix::Error),
    /// A namespace's descriptor did not open or could not be entered.
    #[error("enter a namespace of the demo's own")]
    Enter(#[source] io::Error),
    /// The kernel refused one message.
    #[error("{what} (it needs CAP_NET_ADMIN, and CONFIG_VETH for the link)")]
    Netlink {
        /// What was being done.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A setting of the namespace did not take.
    #[error("let ordinary users bind low ports in a namespace of the demo's own")]
    Setting(#[source] io::Error),
    /// The thread that did it ended early.
    #[error("hear from the thread that entered a namespace")]
    Thread,
}

/// A network namespace that lives as long as this descriptor, or a process inside.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Namespace {
    /// Makes one, its `lo` up.
    ///
    /// # Errors
    /// [`NamespaceError::Unshare`] where the kernel or the rights of this process do not allow it.
    pub fn make() -> Result<Self, NamespaceError> {
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(NamespaceError::Unshare)?;
            let file = File::open("/proc/thread-self/ns/net").map_err(NamespaceError::Enter)?;
            Netlink::open()?.bring_up("lo")?;
            Ok(Self(OwnedFd::from(file)))
        });
        made.join().map_err(|_panic| NamespaceError::Thread)?
    }

    /// Runs `work` on a thread inside the namespace.
    ///
    /// # Errors
    /// Those of `work`; [`NamespaceError::Enter`] if the namespace cannot be entered.
    pub fn inside<T, F>(&self, work: F) -> Result<T, NamespaceError>
    where
        T: Send,
        F: FnOnce() -> Result<T, NamespaceError> + Send,
    {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(self.as_fd(), CloneFlags::CLONE_NEWNET)
                    .map_err(|errno| NamespaceError::Enter(errno.into()))?;
                work()
            });
            thread.join().map_err(|_panic| NamespaceError::Thread)?
        })
    }

    /// Joins this namespace with `peer` by a pair of virtual Ethernet links and gives each end its addresses.
    ///
    /// # Errors
    /// [`NamespaceError::Netlink`] with the step that the kernel refused.
    pub fn link_with(&self, peer: &Self, here: &End<'_>, there: &End<'_>) -> Result<(), NamespaceError> {
        let peer_fd = peer.as_fd().as_raw_fd();
        self.inside(|| {
            let mut netlink = Netlink::open()?;
            netlink.make_veth(here.name, there.name, peer_fd)?;
            netlink.set_up_end(here)
        })?;
        peer.inside(|| Netlink::open()?.set_up_end(there))
    }

    /// Lets a process without capabilities bind ports such as 443 and 53, in this namespace alone.
    ///
    /// # Errors
    /// [`NamespaceError::Setting`] if the kernel has no such setting or refuses it.
    pub fn open_low_ports(&self) -> Result<(), NamespaceError> {
        self.inside(|| {
            std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
                .map_err(NamespaceError::Setting)
        })
    }
}

/// One end of a link.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// Its addresses.
    pub addresses: &'a [Ipv4Addr],
    /// The length of their common prefix, in bits.
    pub prefix_bits: u8,
}

/// A connection to the routing half of the kernel, in the namespace of the thread that opened it.
struct Netlink {
    socket: Socket,
}

impl Netlink {
    fn open() -> Result<Self, NamespaceError> {
        let failed = |source| NamespaceError::Netlink { what: "open a netlink socket", source };
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        Ok(Self { socket })
    }

    fn make_veth(&mut self, name: &str, peer_name: &str, peer_fd: i32) -> Result<(), NamespaceError> {
        let mut peer = LinkMessage::default();
        peer.attributes = vec![LinkAttribute::IfName(peer_name.to_owned()), LinkAttribute::NetNsFd(peer_fd)];
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ];
        self.ask("make a link between two namespaces", RouteNetlinkMessage::NewLink(link), true)
    }

    fn set_up_end(&mut self, end: &End<'_>) -> Result<(), NamespaceError> {
        for address in end.addresses {
            let mut message = AddressMessage::default();
            message.header.family = AddressFamily::Inet;
            message.header.prefix_len = end.prefix_bits;
            message.header.index = index_of(end.name)?;
            message.attributes = vec![
                AddressAttribute::Local(IpAddr::V4(*address)),
                AddressAttribute::Address(IpAddr::V4(*address)),
            ];
            self.ask("give a link its address", RouteNetlinkMessage::NewAddress(message), true)?;
        }
        self.bring_up(end.name)
    }

    fn bring_up(&mut self, name: &str) -> Result<(), NamespaceError> {
        let mut link = LinkMessage::default();
        link.header.index = index_of(name)?;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask("bring a link up", RouteNetlinkMessage::SetLink(link), false)
    }

    /// Sends one message and waits for its acknowledgement.
    fn ask(
        &mut self,
        what: &'static str,
        message: RouteNetlinkMessage,
        create: bool,
    ) -> Result<(), NamespaceError> {
        let failed = |source| NamespaceError::Netlink { what, source };
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | if create { NLM_F_CREATE | NLM_F_EXCL } else { 0 };
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(failed)?;
        let (answer, _from) = self.socket.recv_from_full().map_err(failed)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(failed(error.to_io())),
            NetlinkPayload::Error(_) => Ok(()),
            NetlinkPayload::Done(_)
            | NetlinkPayload::Noop
            | NetlinkPayload::Overrun(_)
            | NetlinkPayload::InnerMessage(_)
            | _ => Err(failed(io::ErrorKind::InvalidData.into())),
        }
    }
}

fn index_of(name: &str) -> Result<u32, NamespaceError> {
    if_nametoindex(name)
        .map_err(|errno| NamespaceError::Netlink { what: "find a link", source: errno.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 231, 77, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 231, 77, 2);

    fn io_failed(source: io::Error) -> NamespaceError {
        NamespaceError::Netlink { what: "test", source }
    }

    #[test]
    fn two_namespaces_reach_each_other_by_their_link_alone() {
        let (host, world) = (Namespace::make().unwrap(), Namespace::make().unwrap());
        let here = End { name: "world", addresses: &[HERE], prefix_bits: 24 };
        let there = End { name: "host", addresses: &[THERE], prefix_bits: 24 };
        host.link_with(&world, &here, &there).unwrap();
        let listener = world.inside(|| TcpListener::bind((THERE, 443)).map_err(io_failed)).unwrap();
        let sent = host.inside(|| {
            let mut stream = TcpStream::connect((THERE, 443)).map_err(io_failed)?;
            stream.write_all(b"hello").map_err(io_failed)
        });
        sent.unwrap();
        let (mut stream, from) = listener.accept().unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), from.ip()), ("hello", IpAddr::V4(HERE)));
        let third = Namespace::make().unwrap();
        let refused = third.inside(|| TcpStream::connect((THERE, 443)).map(drop).map_err(io_failed));
        assert!(refused.is_err(), "a namespace without the link reaches nothing");
    }
}
