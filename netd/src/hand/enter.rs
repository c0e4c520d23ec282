//! Into a namespace and out again, on a thread of its own.
//!
//! A thread that has entered a namespace is never used for anything else: it ends, and with it the way in.
#![expect(clippy::wildcard_enum_match_arm, reason = "errno is an open set")]

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, getsockopt, socket};
use nix::sys::statfs::{NSFS_MAGIC, fstatfs};

use super::{Opened, Plan, Turned, decoy, inspect};
use crate::netlink::{self, Channel, NetlinkError};
use crate::protocol::Refusal;
use crate::sys::NetnsCookie;

/// What netd needs, said where it turns out to be missing.
const RIGHTS: &str =
    "start netd as root, or in a user namespace that owns the agents' with CAP_SYS_ADMIN and CAP_NET_ADMIN";

pub(super) fn failed(doing: &str, why: impl std::fmt::Display) -> Refusal {
    Refusal::Failed { doing: doing.to_owned(), why: why.to_string() }
}

/// A netlink failure as a refusal: a missing right is named as such.
pub(super) fn netlink_failed(doing: &str, error: &NetlinkError) -> Refusal {
    match error.errno() {
        Some(Errno::EPERM | Errno::EACCES) => {
            Refusal::MissingRight { what: doing.to_owned(), remedy: RIGHTS.to_owned() }
        }
        Some(errno) => failed(doing, errno),
        None => failed(doing, error),
    }
}

/// The cookie of the calling thread's network namespace (`SO_NETNS_COOKIE`, Linux 5.14).
///
/// # Errors
/// `ENOPROTOOPT` on a kernel that has none.
pub fn own_cookie() -> Result<u64, Errno> {
    let probe = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    getsockopt(&probe, NetnsCookie)
}

pub(crate) fn on_a_thread(netns: OwnedFd, plan: Plan) -> Result<Opened, Turned> {
    let thread = std::thread::Builder::new()
        .name("enter".to_owned())
        .spawn(move || enter(netns, plan))
        .map_err(|error| (failed("make a thread", error), None))?;
    thread.join().map_err(|_panic| (failed("enter the namespace", "the thread panicked"), None))?
}

fn enter(netns: OwnedFd, plan: Plan) -> Result<Opened, Turned> {
    let cookie = go_in(netns).map_err(|refusal| (refusal, None))?;
    open_all(cookie, plan).map_err(|refusal| (refusal, Some(cookie)))
}

fn go_in(netns: OwnedFd) -> Result<u64, Refusal> {
    // setns(2) takes a process's descriptor as well, and a pid is no way to name a namespace.
    let of_namespaces =
        fstatfs(netns.as_fd()).is_ok_and(|filesystem| filesystem.filesystem_type() == NSFS_MAGIC);
    if !of_namespaces {
        return Err(Refusal::NoNamespace {});
    }
    setns(netns, CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
        Errno::EINVAL => Refusal::NoNamespace {},
        Errno::EPERM => {
            Refusal::MissingRight { what: "enter the namespace".to_owned(), remedy: RIGHTS.to_owned() }
        }
        other => failed("enter the namespace", other),
    })?;
    cookie()
}

fn open_all(cookie: u64, plan: Plan) -> Result<Opened, Refusal> {
    if cookie == plan.host_cookie {
        return Err(Refusal::HostNamespace {});
    }
    let mut route = channel(SockProtocol::NetlinkRoute)?;
    // All checks come before the first change: what is refused is left as it was found.
    let left_over = inspect::links(&mut route)?;
    inspect::sockets()?;
    if let Some(index) = left_over {
        decoy::remove(&mut route, index)?;
    }
    decoy::raise_loopback(&mut route)?;
    let proxy = listen(plan.proxy_port)?;
    let gateway = listen(plan.gateway_port)?;
    decoy::make(&mut route, &plan)?;
    Ok(Opened {
        cookie,
        proxy,
        gateway,
        nft: open(SockProtocol::NetlinkNetFilter)?,
        log: open(SockProtocol::NetlinkNetFilter)?,
        route: route.into_socket(),
    })
}

fn cookie() -> Result<u64, Refusal> {
    own_cookie().map_err(|errno| match errno {
        Errno::ENOPROTOOPT => Refusal::MissingFeature {
            feature: "SO_NETNS_COOKIE".to_owned(),
            remedy: "use Linux 5.14 or later".to_owned(),
        },
        other => failed("tell the namespace from others", other),
    })
}

fn open(protocol: SockProtocol) -> Result<OwnedFd, Refusal> {
    netlink::open(protocol).map_err(|errno| match errno {
        Errno::EPROTONOSUPPORT => Refusal::MissingFeature {
            feature: "netfilter's netlink".to_owned(),
            remedy:
                "use a kernel with CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET and CONFIG_NETFILTER_NETLINK_LOG"
                    .to_owned(),
        },
        other => failed("open a netlink socket", other),
    })
}

pub(super) fn channel(protocol: SockProtocol) -> Result<Channel, Refusal> {
    Channel::new(open(protocol)?).map_err(|error| netlink_failed("open a netlink socket", &error))
}

/// A door. No `SO_REUSEPORT`: nobody inside can listen beside it.
fn listen(port: u16) -> Result<OwnedFd, Refusal> {
    let doing = format!("listen at 127.0.0.1:{port} inside");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| failed(&doing, error))?;
    listener.set_nonblocking(true).map_err(|error| failed(&doing, error))?;
    Ok(listener.into())
}
