//! Ways out that an agent tries, as root of its namespace, each with eight bytes by which it is known.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::libc;
use nix::net::if_::if_nametoindex;
use policy::confinement::Class;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use crate::sniffer::nonce;

/// How something is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `connect(2)`.
    Tcp,
    /// `sendto(2)` of a datagram.
    Udp,
    /// An echo request by a raw socket.
    Icmp,
    /// A protocol that nobody knows (253), by a raw socket.
    RawIp,
    /// A frame of a private ethertype, past the whole IP stack, on every link there is.
    Frame,
    /// An IPv4 packet to 9.9.9.9 in a frame, past the rules for output, on every link there is.
    PacketInFrame,
}

/// A refusal comes within a millisecond; a twin's SYN has left long before this.
const CONNECT_PATIENCE: Duration = Duration::from_millis(60);

/// One way out.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Its name in the table.
    pub name: &'static str,
    /// How.
    pub way: Way,
    /// Where to; the low bits of some are replaced by the nonce.
    to: &'static str,
    port: u16,
    /// The class that counts it; none: the IP rules never see it.
    pub class: Option<Class>,
}

/// What came of one.
#[derive(Debug)]
pub struct Shot {
    /// Eight bytes that stand in its packet and in no other.
    pub needle: [u8; 8],
    /// What the system said to the sender.
    pub outcome: io::Result<()>,
    /// How long that took.
    pub took: Duration,
}

const fn attack(name: &'static str, way: Way, to: &'static str, port: u16, class: Option<Class>) -> Attack {
    Attack { name, way, to, port, class }
}

/// All of them.
pub const ATTACKS: &[Attack] = &[
    attack("TCP v4", Way::Tcp, "198.18.0.9", 443, Some(Class::DirectAttempt)),
    attack("TCP v6", Way::Tcp, "2600:9::", 443, Some(Class::DirectAttempt)),
    attack("UDP v4", Way::Udp, "198.18.0.9", 4433, Some(Class::DirectAttempt)),
    attack("UDP v6", Way::Udp, "2600:9::", 4433, Some(Class::DirectAttempt)),
    attack("UDP v4 broadcast", Way::Udp, "255.255.255.255", 67, Some(Class::DirectAttempt)),
    attack("UDP v6 multicast", Way::Udp, "ff02::fb", 5353, Some(Class::DirectAttempt)),
    attack("ICMP v4", Way::Icmp, "198.18.0.9", 0, Some(Class::IcmpAttempt)),
    attack("ICMP v6", Way::Icmp, "2600:9::9", 0, Some(Class::IcmpAttempt)),
    attack("DNS to 127.0.0.11 over UDP", Way::Udp, "127.0.0.11", 53, Some(Class::DnsAttempt)),
    attack("DNS to 127.0.0.11 over TCP", Way::Tcp, "127.0.0.11", 53, Some(Class::DnsAttempt)),
    attack("DNS outside over UDP", Way::Udp, "9.9.9.9", 53, Some(Class::DnsAttempt)),
    attack("DNS outside over TCP", Way::Tcp, "9.9.9.9", 53, Some(Class::DnsAttempt)),
    attack("DNS outside over UDP v6", Way::Udp, "2620:fe::fe", 53, Some(Class::DnsAttempt)),
    attack("metadata 169.254.169.254", Way::Tcp, "169.254.169.254", 80, Some(Class::MetadataProbe)),
    attack("metadata fd00:ec2::254", Way::Tcp, "fd00:ec2::254", 80, Some(Class::MetadataProbe)),
    attack("metadata 100.100.100.200", Way::Udp, "100.100.100.200", 80, Some(Class::MetadataProbe)),
    attack("host address 172.17.0.1", Way::Tcp, "172.17.0.1", 22, Some(Class::LanProbe)),
    attack("host address fd00::1", Way::Udp, "fd00::1", 8080, Some(Class::LanProbe)),
    attack("another agent's network", Way::Tcp, "10.88.0.7", 3128, Some(Class::LanProbe)),
    attack("raw IP protocol 253", Way::RawIp, "198.18.0.9", 0, Some(Class::RawAttempt)),
    attack("raw frame 0x88b5", Way::Frame, "0.0.0.0", 0, None),
    attack("IPv4 packet in a raw frame", Way::PacketInFrame, "9.9.9.9", 0, None),
];

impl Attack {
    /// The one of a name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self> {
        ATTACKS
            .iter()
            .find(|attack| attack.name == name)
            .copied()
            .with_context(|| format!("no attack {name}"))
    }

    /// Whether it aims at the namespace's own loopback, where a sniffer sees refusals too: a receiver is the
    /// better witness there.
    pub fn is_local(&self) -> bool {
        self.to == "127.0.0.11"
    }

    /// Where a receiver would have to stand.
    ///
    /// # Errors
    /// Never, the texts are constants.
    pub fn target(&self) -> Result<SocketAddr> {
        Ok(SocketAddr::new(self.to.parse()?, self.port))
    }

    /// Tries it from the calling thread's namespace.
    ///
    /// # Errors
    /// When the attempt cannot even be made: what the system refuses is an outcome.
    pub fn fire(&self) -> Result<Shot> {
        let mark = nonce()?;
        let to = self.target()?;
        let started = Instant::now();
        let (needle, outcome) = match self.way {
            Way::Tcp => tcp(to, mark)?,
            Way::Udp => (mark, udp(to, &mark)),
            Way::Icmp => (mark, icmp(to, mark)),
            Way::RawIp => (mark, raw_ip(to, &mark)),
            Way::Frame => (mark, frames(0x88b5, &mark)),
            Way::PacketInFrame => (mark, frames(0x0800, &packet(mark))),
        };
        Ok(Shot { needle, outcome, took: started.elapsed() })
    }
}

/// A SYN carries no data: it is known by destination and ports, which stand side by side in an IPv4 packet;
/// over IPv6 the nonce is half of the address.
fn tcp(to: SocketAddr, mark: [u8; 8]) -> Result<([u8; 8], io::Result<()>)> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    let unspecified: IpAddr =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    socket.bind(&SockAddr::from(SocketAddr::new(unspecified, 0)))?;
    let from = socket.local_addr()?.as_socket().context("a port")?.port();
    let (to, needle) = match to.ip() {
        IpAddr::V4(v4) => (to, joined(&v4.octets(), from, to.port())),
        IpAddr::V6(v6) if v6.octets().ends_with(&[0; 8]) => {
            let mut bytes = v6.octets();
            for (place, byte) in bytes.iter_mut().skip(8).zip(mark) {
                *place = byte;
            }
            (SocketAddr::new(Ipv6Addr::from(bytes).into(), to.port()), mark)
        }
        IpAddr::V6(v6) => (to, joined(v6.octets().get(12..).unwrap_or_default(), from, to.port())),
    };
    let outcome = socket.connect_timeout(&SockAddr::from(to), CONNECT_PATIENCE);
    Ok((needle, outcome))
}

fn joined(end_of_address: &[u8], from: u16, to: u16) -> [u8; 8] {
    let mut needle = [0; 8];
    let bytes = end_of_address.iter().copied().chain(from.to_be_bytes()).chain(to.to_be_bytes());
    for (place, byte) in needle.iter_mut().zip(bytes) {
        *place = byte;
    }
    needle
}

fn udp(to: SocketAddr, mark: &[u8]) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None)?;
    socket.set_broadcast(true)?;
    let to = match to {
        // Link-local multicast needs a link.
        SocketAddr::V6(mut v6) if v6.ip().is_multicast() => {
            v6.set_scope_id(if_nametoindex("eth0").unwrap_or(0));
            SocketAddr::V6(v6)
        }
        v4_or_unicast @ (SocketAddr::V4(_) | SocketAddr::V6(_)) => v4_or_unicast,
    };
    socket.connect(&SockAddr::from(to))?;
    socket.send(mark)?;
    // The refusal of a datagram comes back as the next call's error.
    socket.set_read_timeout(Some(Duration::from_millis(5)))?;
    let mut nothing = [MaybeUninit::uninit(); 1];
    match socket.recv(&mut nothing) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(()),
        other => other.map(drop),
    }
}

fn icmp(to: SocketAddr, mark: [u8; 8]) -> io::Result<()> {
    let (domain, protocol, kind) = if to.is_ipv4() {
        (Domain::IPV4, Protocol::ICMPV4, 8)
    } else {
        (Domain::IPV6, Protocol::ICMPV6, 128)
    };
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    // The kernel fills the checksum in over IPv6 alone; a wrong one leaves all the same.
    let mut message = vec![kind, 0, 0, 0, 0, 1, 0, 1];
    message.extend(mark);
    socket.send_to(&message, &SockAddr::from(SocketAddr::new(to.ip(), 0))).map(drop)
}

fn raw_ip(to: SocketAddr, mark: &[u8]) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(253)))?;
    socket.send_to(mark, &SockAddr::from(SocketAddr::new(to.ip(), 0))).map(drop)
}

/// IPv4, 28 bytes, UDP to 9.9.9.9 by its header; the mark is its payload.
fn packet(mark: [u8; 8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 9, 9, 9, 9];
    packet.extend(mark);
    packet
}

/// To everybody, on every link.
fn frames(ethertype: u16, body: &[u8]) -> io::Result<()> {
    let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
    let mut sent = Err(io::Error::from(io::ErrorKind::NotFound));
    for name in ["eth0", "lo"] {
        let Ok(index) = if_nametoindex(name) else { continue };
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1]);
        frame.extend(ethertype.to_be_bytes());
        frame.extend(body);
        frame.resize(frame.len().max(60), 0);
        sent = socket.send_to(&frame, &link_address(index, ethertype)).map(drop);
    }
    sent
}

/// Of packet(7): a link and a protocol, which is all that sending a whole frame needs.
#[expect(unsafe_code, reason = "no crate here makes a link-layer address from an index")]
fn link_address(index: u32, ethertype: u16) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is plain data that is valid when zeroed, and no longer than sockaddr_storage.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = 17;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index.cast_signed();
    let length = 20;
    // SAFETY: the storage holds a sockaddr_ll of 20 bytes (packet(7)), filled in just above.
    unsafe { SockAddr::new(storage, length) }
}
