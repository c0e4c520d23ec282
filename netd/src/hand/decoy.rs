//! The decoy: a link that leads nowhere, so that what tries to leave reaches the rules and is seen.
//!
//! Without it a direct attempt ends as "network unreachable" before any rule: refused, and unseen. It speaks
//! for nobody: no address of its own making, no duplicate-address detection, no router solicitation, no
//! group joined, since what the kernel itself sends would look like the agent's doing.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use super::Plan;
use super::enter::{failed, netlink_failed};
use crate::netlink::{Channel, NetlinkError};
use crate::protocol::Refusal;

/// What marks a link as ours.
pub(super) const ALIAS: &str = "darwin decoy";
/// What an agent's programs expect to find.
const NAME: &str = "eth0";
/// `lo` is the first link of every namespace.
const LOOPBACK_INDEX: u32 = 1;

/// Brings `lo` up; with it come 127.0.0.1 and `::1`.
pub(super) fn raise_loopback(route: &mut Channel) -> Result<(), Refusal> {
    let mut link = LinkMessage::default();
    link.header.index = LOOPBACK_INDEX;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    change(route, RouteNetlinkMessage::SetLink(link), 0, "bring lo up")
}

/// Removes a decoy that an earlier netd left.
pub(crate) fn remove(route: &mut Channel, index: u32) -> Result<(), Refusal> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    change(route, RouteNetlinkMessage::DelLink(link), 0, "remove an old decoy")
}

/// Makes the decoy, its addresses and its default routes.
pub(super) fn make(route: &mut Channel, plan: &Plan) -> Result<(), Refusal> {
    create(route)?;
    let index = if_nametoindex(NAME).map_err(|errno| failed("find the decoy", errno))?;
    silence(route, index)?;
    address(route, index, IpAddr::V4(plan.decoy_v4))?;
    default_route(route, index, AddressFamily::Inet)?;
    // A kernel without IPv6, or with it switched off here, sends none of it either.
    match address(route, index, IpAddr::V6(plan.decoy_v6)) {
        Err(refusal) if !has_ipv6() => {
            drop(refusal);
            Ok(())
        }
        Err(refusal) => Err(refusal),
        Ok(()) => default_route(route, index, AddressFamily::Inet6),
    }
}

fn has_ipv6() -> bool {
    let switched_off = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    switched_off.is_ok_and(|text| text.trim() == "0")
}

/// The first kind that the kernel has. None of them sends what it is given anywhere.
fn create(route: &mut Channel) -> Result<(), Refusal> {
    for kind in [InfoKind::Dummy, InfoKind::Ifb, InfoKind::Bridge] {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(NAME.to_owned()));
        link.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)]));
        match route.change(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL) {
            Ok(()) => return Ok(()),
            Err(NetlinkError::Kernel(Errno::EOPNOTSUPP)) => {}
            Err(error) => return Err(netlink_failed("make the decoy", &error)),
        }
    }
    Err(Refusal::MissingFeature {
        feature: "a link that leads nowhere (dummy, ifb or bridge)".to_owned(),
        remedy: "load one of these modules: modprobe dummy".to_owned(),
    })
}

/// Marks it and takes its voice away *before* it comes up.
fn silence(route: &mut Channel, index: u32) -> Result<(), Refusal> {
    let mut marked = LinkMessage::default();
    marked.header.index = index;
    marked.attributes.push(LinkAttribute::IfAlias(ALIAS.to_owned()));
    change(route, RouteNetlinkMessage::SetLink(marked), 0, "mark the decoy")?;

    let mut mute = LinkMessage::default();
    mute.header.index = index;
    let generated = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    mute.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![generated])]));
    match route.change(RouteNetlinkMessage::SetLink(mute), 0) {
        Err(error) if has_ipv6() => return Err(netlink_failed("silence the decoy", &error)),
        Ok(()) | Err(_) => {}
    }

    let mut up = LinkMessage::default();
    up.header.index = index;
    up.header.flags = LinkFlags::Up | LinkFlags::Noarp;
    up.header.change_mask = LinkFlags::Up | LinkFlags::Noarp | LinkFlags::Multicast;
    change(route, RouteNetlinkMessage::SetLink(up), 0, "bring the decoy up")
}

fn address(route: &mut Channel, index: u32, address: IpAddr) -> Result<(), Refusal> {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute));
    let doing = format!("give the decoy {address}");
    change(route, RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL, &doing)
}

fn default_route(route: &mut Channel, index: u32, family: AddressFamily) -> Result<(), Refusal> {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope =
        if family == AddressFamily::Inet { RouteScope::Link } else { RouteScope::Universe };
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Oif(index));
    change(route, RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL, "route to the decoy")
}

fn change(route: &mut Channel, message: RouteNetlinkMessage, flags: u16, doing: &str) -> Result<(), Refusal> {
    route.change(message, flags).map_err(|error| netlink_failed(doing, &error))
}
