//! The hand: enters a namespace, opens sockets there, hands them out. It does nothing else.
//!
//! It holds `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` and therefore reads nothing that comes from outside: its one
//! request is a descriptor from the head, and what it parses is the kernel's. It ends when the head ends.

mod decoy;
mod enter;
pub(crate) mod inspect;

pub(crate) use enter::on_a_thread as enter;
pub use enter::own_cookie;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::protocol::Refusal;
use crate::seqpacket::{self, PacketError};

/// The one request there is.
const ENTER: &[u8] = b"enter";

/// What to make in every namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Port of the proxy's listener.
    pub(crate) proxy_port: u16,
    /// Port of the gateway's listener.
    pub(crate) gateway_port: u16,
    /// The decoy's IPv4 address.
    pub(crate) decoy_v4: Ipv4Addr,
    /// The decoy's IPv6 address.
    pub(crate) decoy_v6: Ipv6Addr,
    /// The cookie of the namespace that netd itself is in.
    pub(crate) host_cookie: u64,
}

impl Plan {
    /// As the configuration says.
    pub(crate) fn new(config: &Config, host_cookie: u64) -> Self {
        let around = config.surroundings();
        Self {
            proxy_port: config.proxy_port,
            gateway_port: config.gateway_port,
            decoy_v4: around.decoy_v4,
            decoy_v6: around.decoy_v6,
            host_cookie,
        }
    }
}

/// What was opened in a namespace.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The namespace's cookie.
    pub(crate) cookie: u64,
    /// The proxy's listener.
    pub(crate) proxy: OwnedFd,
    /// The gateway's listener.
    pub(crate) gateway: OwnedFd,
    /// A netlink socket for `nf_tables`: it will own the table.
    pub(crate) nft: OwnedFd,
    /// A netlink socket for NFLOG.
    pub(crate) log: OwnedFd,
    /// A netlink socket for links, addresses and routes.
    pub(crate) route: OwnedFd,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "hand", rename_all = "snake_case", deny_unknown_fields)]
enum Said {
    Opened { cookie: u64 },
    Refused { refusal: Refusal, cookie: Option<u64> },
}

/// Serves the head until it is gone.
pub(crate) fn serve(head: BorrowedFd<'_>, plan: Plan) -> Result<(), PacketError> {
    loop {
        let packet = match seqpacket::receive(head) {
            Ok(packet) => packet,
            Err(PacketError::Closed) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut descriptors = packet.descriptors.into_iter();
        let outcome = match (packet.bytes.as_slice(), descriptors.next(), descriptors.next()) {
            (ENTER, Some(netns), None) => enter::on_a_thread(netns, plan),
            _ => Err((Refusal::Malformed { why: "the hand knows one request".to_owned() }, None)),
        };
        answer(head, outcome)?;
    }
}

/// A refusal, and the cookie of the namespace if it got that far.
pub(crate) type Turned = (Refusal, Option<u64>);

fn answer(head: BorrowedFd<'_>, outcome: Result<Opened, Turned>) -> Result<(), PacketError> {
    match outcome {
        Ok(opened) => {
            let all = [&opened.proxy, &opened.gateway, &opened.nft, &opened.log, &opened.route];
            let said = Said::Opened { cookie: opened.cookie };
            seqpacket::send(head, &seqpacket::encode(&said)?, &all.map(AsFd::as_fd))
        }
        Err((refusal, cookie)) => {
            seqpacket::send(head, &seqpacket::encode(&Said::Refused { refusal, cookie })?, &[])
        }
    }
}

/// The head's side: has a namespace entered.
///
/// # Errors
/// The hand's refusal; any failure of the hand itself is the outer error, and the end of netd.
pub(crate) fn have_entered(
    hand: BorrowedFd<'_>,
    netns: BorrowedFd<'_>,
) -> Result<Result<Opened, Turned>, PacketError> {
    seqpacket::send(hand, ENTER, &[netns])?;
    let packet = seqpacket::receive(hand)?;
    let cookie = match packet.frame()? {
        Said::Refused { refusal, cookie } => return Ok(Err((refusal, cookie))),
        Said::Opened { cookie } => cookie,
    };
    let [proxy, gateway, nft, log, route] = <[OwnedFd; 5]>::try_from(packet.descriptors)
        .map_err(|got| PacketError::Malformed(format!("the hand gave {} descriptors", got.len())))?;
    Ok(Ok(Opened { cookie, proxy, gateway, nft, log, route }))
}
