//! What must not be in a namespace before it is confined: a link, or a socket.
//!
//! A link leads somewhere. A socket was made by somebody, and that somebody may be a process of the host:
//! a resolver at 127.0.0.11, or at 127.0.0.1:53, is a door, whatever the rules on the link say.
#![expect(clippy::wildcard_enum_match_arm, reason = "a link's attributes are an open set")]

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DecodeError, NLM_F_DUMP, NetlinkHeader, NetlinkSerializable};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};
use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::decoy;
pub(crate) use super::decoy::remove;
use super::enter::{channel, failed, netlink_failed};
use crate::netlink::{Channel, NetlinkError};
use crate::protocol::Refusal;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;

/// Refuses a foreign link; gives the index of a decoy that an earlier netd left.
pub(crate) fn links(route: &mut Channel) -> Result<Option<u32>, Refusal> {
    let every = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = route.dump(&every).map_err(|error| netlink_failed("list the links", &error))?;
    let mut left_over = None;
    for answer in answers {
        let Ok(RouteNetlinkMessage::NewLink(link)) = answer.read() else {
            return Err(Refusal::ForeignLink { link: "(illegible)".to_owned() });
        };
        match judge(&link) {
            Found::Loopback => {}
            Found::Decoy => left_over = Some(link.header.index),
            Found::Foreign(link) => return Err(Refusal::ForeignLink { link }),
        }
    }
    Ok(left_over)
}

enum Found {
    Loopback,
    Decoy,
    Foreign(String),
}

fn judge(link: &LinkMessage) -> Found {
    let (mut name, mut ours, mut leads_nowhere) = (String::new(), false, false);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = text.escape_default().to_string(),
            LinkAttribute::IfAlias(alias) => ours = alias == decoy::ALIAS,
            LinkAttribute::LinkInfo(parts) => leads_nowhere = parts.iter().any(of_a_decoy),
            _ => {}
        }
    }
    // `lo` is link 1 of every namespace and cannot be moved or made.
    if link.header.index == 1 && name == "lo" {
        Found::Loopback
    } else if ours && leads_nowhere {
        Found::Decoy
    } else {
        Found::Foreign(name)
    }
}

/// An alias alone can be put on any link, so its kind must be one of ours as well.
fn of_a_decoy(part: &LinkInfo) -> bool {
    matches!(part, LinkInfo::Kind(InfoKind::Dummy | InfoKind::Ifb | InfoKind::Bridge))
}

/// Refuses any socket that could carry something out.
pub(super) fn sockets() -> Result<(), Refusal> {
    let mut diag = channel(SockProtocol::NetlinkSockDiag)?;
    for (name, protocol) in [("tcp", IPPROTO_TCP), ("udp", IPPROTO_UDP)] {
        for family in [AF_INET, AF_INET6] {
            if let Some(at) = first_socket(&mut diag, family, protocol)? {
                return Err(Refusal::ForeignSocket { socket: format!("{name} {at}") });
            }
        }
    }
    // Kinds that sock_diag does not list on every kernel, by the same kernel's older lists.
    for name in ["raw", "raw6", "icmp", "icmp6", "udplite", "udplite6", "packet", "sctp/eps"] {
        if let Some(line) = first_line(name)? {
            return Err(Refusal::ForeignSocket { socket: format!("{name} {line}") });
        }
    }
    Ok(())
}

/// The first socket of a kind, by its local address.
fn first_socket(diag: &mut Channel, family: u8, protocol: u8) -> Result<Option<String>, Refusal> {
    match diag.ask(DiagRequest { family, protocol }, NLM_F_DUMP) {
        Ok(answers) => {
            let held = answers.iter().find(|answer| is_held(&answer.payload));
            Ok(held.map(|answer| local_address(family, &answer.payload)))
        }
        // Without IPv6 there is nothing of it to list.
        Err(NetlinkError::Kernel(Errno::ENOENT)) if family == AF_INET6 && !has_ipv6() => Ok(None),
        Err(NetlinkError::Kernel(Errno::ENOENT)) => Err(Refusal::MissingFeature {
            feature: "sock_diag for TCP and UDP".to_owned(),
            remedy: "load tcp_diag and udp_diag, or use a kernel with CONFIG_INET_TCP_DIAG and CONFIG_INET_UDP_DIAG"
                .to_owned(),
        }),
        Err(error) => Err(netlink_failed("list the sockets", &error)),
    }
}

fn has_ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

/// `struct inet_diag_req_v2` for every state, extensions none.
#[derive(Clone)]
struct DiagRequest {
    family: u8,
    protocol: u8,
}

impl NetlinkSerializable for DiagRequest {
    fn message_type(&self) -> u16 {
        BY_FAMILY
    }
    fn buffer_len(&self) -> usize {
        56
    }
    fn serialize(&self, buffer: &mut [u8]) {
        buffer.fill(0);
        for (at, byte) in [self.family, self.protocol, 0, 0, 0xff, 0xff, 0xff, 0xff].into_iter().enumerate() {
            if let Some(place) = buffer.get_mut(at) {
                *place = byte;
            }
        }
    }
}

/// Of `struct inet_diag_msg`: the inode at 68. What has none (a connection in TIME-WAIT, one that nobody has
/// accepted) is nobody's: no process can read it. What cannot be read counts as held.
fn is_held(message: &[u8]) -> bool {
    message.get(68..72) != Some(&[0; 4])
}

/// Of `struct inet_diag_msg`: the source port at 4, the source address at 8.
fn local_address(family: u8, message: &[u8]) -> String {
    let port = message.get(4..6).and_then(|bytes| <[u8; 2]>::try_from(bytes).ok()).map(u16::from_be_bytes);
    let address = if family == AF_INET {
        let bytes = message.get(8..12).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        bytes.map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)))
    } else {
        let bytes = message.get(8..24).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
        bytes.map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)))
    };
    match (address, port) {
        (Some(IpAddr::V6(v6)), Some(port)) => format!("[{v6}]:{port}"),
        (Some(address), Some(port)) => format!("{address}:{port}"),
        _ => "(illegible)".to_owned(),
    }
}

/// The first line of a list of sockets after its heading; none where the kernel has no such list.
fn first_line(name: &str) -> Result<Option<String>, Refusal> {
    match std::fs::read_to_string(format!("/proc/thread-self/net/{name}")) {
        Ok(text) => Ok(text.lines().nth(1).map(|line| line.trim().to_owned())),
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && std::path::Path::new("/proc/thread-self/net").exists() =>
        {
            Ok(None)
        }
        Err(error) => Err(failed("read /proc/thread-self/net, which must be mounted", error)),
    }
}

/// Only written, never read.
impl netlink_packet_core::NetlinkDeserializable for DiagRequest {
    type Error = DecodeError;
    fn deserialize(_header: &NetlinkHeader, _payload: &[u8]) -> Result<Self, DecodeError> {
        Err(DecodeError::from("a request is not read"))
    }
}
