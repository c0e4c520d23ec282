//! `darwin-netd selftest`: confines a scratch namespace of its own on this host and tries to get out of it.
//!
//! A quick answer to "does it hold here?", without the daemon and without a link. The namespace suite is the
//! proof; this is what an operator runs on the machine at hand.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use caps::Capability;
use nix::sched::{CloneFlags, setns, unshare};
use policy::confinement::Class;
use policy::{AgentId, ProfileName};
use serde::Serialize;

use crate::config::Config;
use crate::hand;
use crate::head::{Confinement, Name};
use crate::privilege::{self, PrivilegeError};
use crate::protocol::{Refusal, Role};

const OWN: &str = "/proc/thread-self/ns/net";
/// What a refusal may take before it is a time-out, which is what a broken wall gives.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Why nothing could be tried. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum SelftestError {
    /// Rights.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The scratch namespace.
    #[error("make a scratch namespace")]
    Scratch(#[source] std::io::Error),
    /// The confinement itself.
    #[error("confine the scratch namespace")]
    Confine(#[source] Refusal),
}

/// One thing that was tried.
#[derive(Debug, Serialize)]
pub struct Probe {
    /// What.
    pub probe: &'static str,
    /// Whether it went as it must.
    pub held: bool,
    /// What was seen.
    pub seen: String,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// What came of all.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether every probe went as it must.
    pub held: bool,
    /// Whether the kernel keeps others from changing the rules.
    pub owner: bool,
    /// Whether the rules outlive netd.
    pub persist: bool,
    /// How long confining took, in microseconds.
    pub confine_us: u64,
    /// The probes.
    pub probes: Vec<Probe>,
}

impl Report {
    /// As text.
    pub fn text(&self) -> String {
        let line = |probe: &Probe| {
            let word = if probe.held { "held" } else { "BROKEN" };
            format!("{:38}{word:8}{:>8} us  {}\n", probe.probe, probe.took_us, probe.seen)
        };
        let owner =
            if self.owner { "taken" } else { "missing: root inside can change the rules, not the wall" };
        let persist =
            if self.persist { "taken" } else { "missing: the rules go when netd goes, the wall does not" };
        let lines: String = self.probes.iter().map(line).collect();
        format!("{lines}table owner: {owner}\ntable persist: {persist}\nconfined in {} us\n", self.confine_us)
    }
}

/// Runs all probes. Leaves nothing: the scratch namespace ends with this call.
///
/// # Errors
/// [`SelftestError`]: nothing could be tried. A wall that does not hold is in the report.
pub fn run(config: &Config) -> Result<Report, SelftestError> {
    privilege::require(&[Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN])?;
    let host_cookie = hand::own_cookie().map_err(|errno| SelftestError::Scratch(errno.into()))?;
    let scratch = scratch()?;
    let copy = scratch.try_clone().map_err(SelftestError::Scratch)?;
    let around = config.surroundings();

    let started = Instant::now();
    let plan = hand::Plan::new(config, host_cookie);
    let opened = hand::enter(copy.into(), plan).map_err(|(refusal, _)| SelftestError::Confine(refusal))?;
    let mut confinement = Confinement::put_up(name()?, opened, &around).map_err(SelftestError::Confine)?;
    let confine_us = micros(started.elapsed());

    let mut probes = Vec::new();
    for (probe, to, class) in refused() {
        probes.push(try_refused(&scratch, &mut confinement, probe, to, class));
    }
    probes.push(try_door(&scratch, &confinement, config.proxy_port));
    probes.push(try_verify(&mut confinement));
    let (owner, persist) = confinement.flags();
    for failed in confinement.end() {
        probes.push(Probe { probe: "release", held: false, seen: failed, took_us: 0 });
    }
    Ok(Report { held: probes.iter().all(|probe| probe.held), owner, persist, confine_us, probes })
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

fn name() -> Result<Name, SelftestError> {
    let bad = |why: policy::ident::IdentError| SelftestError::Scratch(std::io::Error::other(why));
    Ok(Name {
        agent: AgentId::parse("selftest").map_err(bad)?,
        profile: ProfileName::parse("none").map_err(bad)?,
        generation: 0,
        held_by: None,
    })
}

/// On a thread of its own, as always.
fn inside<T: Send>(netns: &File, what: impl FnOnce() -> std::io::Result<T> + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(netns, CloneFlags::CLONE_NEWNET)?;
            what()
        });
        thread.join().unwrap_or_else(|_panic| Err(std::io::Error::other("the thread panicked")))
    })
}

fn scratch() -> Result<File, SelftestError> {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        File::open(OWN)
    });
    let made = thread.join().unwrap_or_else(|_panic| Err(std::io::Error::other("the thread panicked")));
    made.map_err(SelftestError::Scratch)
}

type Tried = (&'static str, (&'static str, bool), Class);

/// Name, address, whether over TCP, class.
fn refused() -> [Tried; 9] {
    [
        ("TCP outside", ("9.9.9.9:443", true), Class::DirectAttempt),
        ("TCP outside, IPv6", ("[2620:fe::fe]:443", true), Class::DirectAttempt),
        ("UDP outside", ("9.9.9.9:4433", false), Class::DirectAttempt),
        ("UDP outside, IPv6", ("[2620:fe::fe]:4433", false), Class::DirectAttempt),
        ("DNS outside", ("9.9.9.9:53", false), Class::DnsAttempt),
        ("DNS to 127.0.0.11", ("127.0.0.11:53", false), Class::DnsAttempt),
        ("DNS to 127.0.0.11 over TCP", ("127.0.0.11:53", true), Class::DnsAttempt),
        ("metadata address", ("169.254.169.254:80", true), Class::MetadataProbe),
        ("private network", ("10.0.0.1:22", true), Class::LanProbe),
    ]
}

/// It must fail, at once, and be counted: a counter that stands still means that nothing refused it.
fn try_refused(
    netns: &File,
    confinement: &mut Confinement,
    probe: &'static str,
    (to, over_tcp): (&'static str, bool),
    class: Class,
) -> Probe {
    let before = count(confinement, class);
    let started = Instant::now();
    let outcome = inside(netns, || knock(to, over_tcp));
    let took = started.elapsed();
    let counted = count(confinement, class) > before;
    let (held, seen) = match outcome {
        Ok(()) => (false, "it was let through".to_owned()),
        Err(error) if !counted => (false, format!("{error}, but no rule counted it as {class}")),
        Err(error) if took > AT_ONCE => (false, format!("{error}, but not at once")),
        Err(error) => (true, format!("{class}: {error}")),
    };
    Probe { probe, held, seen, took_us: micros(took) }
}

fn count(confinement: &mut Confinement, class: Class) -> u64 {
    confinement.status().drops.get(class.name()).copied().unwrap_or(0)
}

fn knock(to: &str, over_tcp: bool) -> std::io::Result<()> {
    let to: SocketAddr = to.parse().map_err(std::io::Error::other)?;
    if over_tcp {
        return TcpStream::connect_timeout(&to, 2 * AT_ONCE).map(drop);
    }
    let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(to)?;
    // A datagram's refusal is the next call's error; no refusal is a time-out, which is not at once.
    socket.send(b"selftest")?;
    socket.set_read_timeout(Some(2 * AT_ONCE))?;
    socket.recv(&mut [0]).map(drop)
}

/// The allow twin of all the others: what may pass passes.
fn try_door(netns: &File, confinement: &Confinement, port: u16) -> Probe {
    let started = Instant::now();
    let outcome =
        confinement.listener(Role::Proxy).try_clone_to_owned().and_then(|door| through(netns, door, port));
    let (held, seen) = match outcome {
        Ok(()) => (true, "a connection came out of the listener".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    Probe { probe: "the proxy's door", held, seen, took_us: micros(started.elapsed()) }
}

fn through(netns: &File, door: OwnedFd, port: u16) -> std::io::Result<()> {
    let _connected =
        inside(netns, || TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), 2 * AT_ONCE))?;
    TcpListener::from(door).accept().map(drop)
}

fn try_verify(confinement: &mut Confinement) -> Probe {
    let started = Instant::now();
    let found = confinement.differences();
    let seen = if found.is_empty() { "kernel and model are the same".to_owned() } else { found.join("; ") };
    Probe { probe: "read back", held: found.is_empty(), seen, took_us: micros(started.elapsed()) }
}
