//! Links for the allow twin: a namespace that has a way out.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use anyhow::{Context, Result, bail};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;

use crate::ns::Namespace;

/// `RTNLGRP_LINK`.
const LINK_CHANGES: u32 = 1;

/// Brings `lo` up in the calling thread's namespace.
///
/// # Errors
/// Without the right to it.
pub fn raise_loopback() -> Result<()> {
    raise(1, LinkFlags::Up)
}

/// Gives `inside` a link `eth0` whose other end is in `outside`, with addresses of the decoy's kind and default routes.
/// Nobody is asked for hardware addresses: what is sent arrives.
///
/// # Errors
/// Without the rights, or without veth in the kernel.
pub fn wire(inside: &Namespace, outside: &Namespace) -> Result<()> {
    outside.run(raise_loopback)?;
    inside.run(|| {
        raise_loopback()?;
        add_veth("eth0", outside)?;
        let index = if_nametoindex("eth0")?;
        raise(index, LinkFlags::Up | LinkFlags::Noarp)?;
        for address in ["192.0.2.1", "2001:db8::1"] {
            add_address(index, address.parse()?)?;
        }
        Ok(())
    })?;
    outside.run(|| raise(if_nametoindex("peer0")?, LinkFlags::Up | LinkFlags::Noarp))?;
    // Routes want a carrier on both ends.
    inside.run(|| {
        let index = if_nametoindex("eth0")?;
        add_default_route(index, AddressFamily::Inet)?;
        add_default_route(index, AddressFamily::Inet6)?;
        await_running(index)
    })?;
    outside.run(|| await_running(if_nametoindex("peer0")?))
}

/// Waits until the kernel has noticed the link's carrier: until then it drops what is sent, and says nothing.
fn await_running(index: u32) -> Result<()> {
    let mut changes = Socket::new(NETLINK_ROUTE)?;
    changes.bind_auto()?;
    changes.add_membership(LINK_CHANGES)?;
    while !is_running(index)? {
        changes.recv_from_full().context("wait for a link's carrier")?;
    }
    Ok(())
}

fn is_running(index: u32) -> Result<bool> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    let answers = ask(RouteNetlinkMessage::GetLink(link), NLM_F_ACK)?;
    Ok(answers.iter().any(|answer| {
        matches!(answer, RouteNetlinkMessage::NewLink(link) if link.header.flags.contains(LinkFlags::Running))
    }))
}

/// A veth pair: one end here, `peer0` there.
///
/// # Errors
/// Without the rights, or without veth in the kernel.
pub fn add_veth(name: &str, there: &Namespace) -> Result<()> {
    let mut peer = LinkMessage::default();
    peer.attributes.push(LinkAttribute::IfName("peer0".to_owned()));
    peer.attributes.push(LinkAttribute::NetNsFd(there.as_fd().as_raw_fd()));
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    link.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    change(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL).context("make a veth pair")
}

/// Deletes a link of the calling thread's namespace.
///
/// # Errors
/// When there is none.
pub fn delete(name: &str) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = if_nametoindex(name)?;
    change(RouteNetlinkMessage::DelLink(link), 0).context("delete a link")
}

/// The names of the links in the calling thread's namespace.
///
/// # Errors
/// When they cannot be listed.
pub fn names() -> Result<Vec<String>> {
    let answers = ask(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
    let name = |answer: RouteNetlinkMessage| {
        let RouteNetlinkMessage::NewLink(link) = answer else { return None };
        link.attributes
            .into_iter()
            .find_map(|attribute| if let LinkAttribute::IfName(name) = attribute { Some(name) } else { None })
    };
    Ok(answers.into_iter().filter_map(name).collect())
}

fn raise(index: u32, flags: LinkFlags) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = flags;
    link.header.change_mask = flags;
    change(RouteNetlinkMessage::SetLink(link), 0).context("bring a link up")
}

fn add_address(index: u32, address: IpAddr) -> Result<()> {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE).context("add an address")
}

fn add_default_route(index: u32, family: AddressFamily) -> Result<()> {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope =
        if family == AddressFamily::Inet { RouteScope::Link } else { RouteScope::Universe };
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Oif(index));
    change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE).context("add a default route")
}

fn change(message: RouteNetlinkMessage, flags: u16) -> Result<()> {
    ask(message, NLM_F_ACK | flags).map(drop)
}

fn ask(message: RouteNetlinkMessage, flags: u16) -> Result<Vec<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut whole = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    whole.finalize();
    let mut bytes = vec![0; whole.buffer_len()];
    whole.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answers = Vec::new();
    loop {
        let (packet, _from) = socket.recv_from_full()?;
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)?;
            let length = usize::try_from(answer.header.length)?.next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
            match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => bail!(error.to_io()),
                NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                NetlinkPayload::InnerMessage(message) => answers.push(message),
                NetlinkPayload::Noop | NetlinkPayload::Overrun(_) | _ => {}
            }
        }
    }
}
