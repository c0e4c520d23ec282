//! The rules as a value: a closed set of matches and acts, nothing that could be written by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::class::{Class, DNS_PORT};
use super::prefix::Prefix;

/// What the rules need to know of where they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The decoy's own IPv4 address.
    pub decoy_v4: Ipv4Addr,
    /// The decoy's own IPv6 address.
    pub decoy_v6: Ipv6Addr,
    /// Addresses whose probing is a [`Class::MetadataProbe`].
    pub metadata: Vec<IpAddr>,
    /// Networks whose probing is a [`Class::LanProbe`].
    pub lan: Vec<Prefix>,
    /// The NFLOG group, of the namespace's own 65536.
    pub log_group: u16,
}

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// A transport protocol that the rules tell from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP over IPv4 or `ICMPv6` over IPv6.
    Icmp(Family),
}

/// Where a base chain hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// What a process of the namespace sends.
    Output,
    /// What arrives for it.
    Input,
    /// What would pass through it.
    Forward,
}

/// A chain's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainName {
    /// A base chain.
    Base(Hook),
    /// Where every packet ends that no rule accepts: sorts it into a class.
    Refuse,
    /// Counts, logs and rejects one class.
    Class(Class),
}

impl ChainName {
    /// The name in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base(Hook::Output) => "output",
            Self::Base(Hook::Input) => "input",
            Self::Base(Hook::Forward) => "forward",
            Self::Refuse => "refuse",
            Self::Class(class) => class.name(),
        }
    }
}

/// One condition; a rule's conditions must all hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// It leaves by `lo`.
    OutLoopback,
    /// It came in by `lo`.
    InLoopback,
    /// It goes to an address of the block; also says its family.
    Destination(Prefix),
    /// It is of the protocol.
    Protocol(Protocol),
    /// Its destination port, after [`Match::Protocol`] of one that has ports.
    DestinationPort(u16),
    /// It is a reset, after [`Match::Protocol`] of [`Protocol::Tcp`].
    Reset,
    /// It is an unreachable, after [`Match::Protocol`] of [`Protocol::Icmp`] of the same family.
    Unreachable(Family),
}

/// At most so many a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    /// Packets a second, in the long run.
    pub per_s: u32,
    /// Packets at once.
    pub burst: u32,
}

/// What a rule does, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// Count packets and bytes.
    Count,
    /// Go on only within the limit.
    Within(Limit),
    /// Copy to the NFLOG group, at once and no more than its headers.
    Log {
        /// The group.
        group: u16,
    },
    /// Let it pass.
    Accept,
    /// Go on in another chain, not to come back.
    Goto(ChainName),
    /// Drop it and answer with a TCP reset.
    RejectReset,
    /// Drop it and answer that it is administratively prohibited.
    RejectProhibited,
}

/// Conditions and acts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// All must hold; none: it always holds.
    pub matches: Vec<Match>,
    /// Done in order.
    pub acts: Vec<Act>,
}

/// Rules in order. A base chain drops what comes to its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    /// Its name, which also says whether it is a base chain.
    pub name: ChainName,
    /// Its rules.
    pub rules: Vec<Rule>,
}

impl Chain {
    /// Where it hangs, if it does.
    pub const fn hook(&self) -> Option<Hook> {
        match self.name {
            ChainName::Base(hook) => Some(hook),
            ChainName::Refuse | ChainName::Class(_) => None,
        }
    }
}

/// The rules of one confinement: table `inet darwin`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ruleset {
    chains: Vec<Chain>,
}

impl Ruleset {
    /// The table's name; its family is `inet`, so that no rule speaks of one family alone.
    pub const TABLE: &'static str = "darwin";
    /// The priority of its base chains (`filter`). An `accept` in a chain of another priority changes
    /// nothing: a drop is final, an accept is not.
    pub const PRIORITY: i32 = 0;
    /// Bytes of a packet that are logged: the longest headers that say where it was to go.
    pub const LOGGED_BYTES: u32 = 128;

    /// Makes the rules.
    pub fn new(around: &Surroundings) -> Self {
        let mut chains = vec![
            Chain { name: ChainName::Base(Hook::Output), rules: local(around, Match::OutLoopback) },
            Chain { name: ChainName::Base(Hook::Input), rules: local(around, Match::InLoopback) },
            Chain { name: ChainName::Base(Hook::Forward), rules: vec![always(Act::Goto(ChainName::Refuse))] },
            Chain { name: ChainName::Refuse, rules: sorting(around) },
        ];
        chains.extend(
            Class::ALL.map(|class| Chain {
                name: ChainName::Class(class),
                rules: refusing(class, around.log_group),
            }),
        );
        Self { chains }
    }

    /// The chains; one that is gone to stands after the one that goes there.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }
}

fn always(act: Act) -> Rule {
    Rule { matches: Vec::new(), acts: vec![act] }
}

/// Accepts what stays on loopback and ends at one of four addresses. Not all of `lo`, and not "local
/// addresses": both let a resolver at 127.0.0.11 through.
fn local(around: &Surroundings, by: Match) -> Vec<Rule> {
    let own = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V4(around.decoy_v4),
        IpAddr::V6(around.decoy_v6),
    ];
    let own = own.map(|address| vec![by, Match::Destination(Prefix::host(address))]);
    // What our own rejects answer, to whichever local address the packet came from: a default drop eats
    // these, and then every refusal is a time-out.
    let answers = [
        vec![by, Match::Protocol(Protocol::Tcp), Match::Reset],
        vec![by, Match::Protocol(Protocol::Icmp(Family::V4)), Match::Unreachable(Family::V4)],
        vec![by, Match::Protocol(Protocol::Icmp(Family::V6)), Match::Unreachable(Family::V6)],
    ];
    let mut rules: Vec<Rule> =
        own.into_iter().chain(answers).map(|matches| Rule { matches, acts: vec![Act::Accept] }).collect();
    rules.push(always(Act::Goto(ChainName::Refuse)));
    rules
}

/// The same order as [`super::classify`].
fn sorting(around: &Surroundings) -> Vec<Rule> {
    let to = |class, matches| Rule { matches, acts: vec![Act::Goto(ChainName::Class(class))] };
    let protocol = Match::Protocol;
    let mut rules = Vec::new();
    for &address in &around.metadata {
        rules.push(to(Class::MetadataProbe, vec![Match::Destination(Prefix::host(address))]));
    }
    for carrier in [Protocol::Udp, Protocol::Tcp] {
        rules.push(to(Class::DnsAttempt, vec![protocol(carrier), Match::DestinationPort(DNS_PORT)]));
    }
    for family in [Family::V4, Family::V6] {
        rules.push(to(Class::IcmpAttempt, vec![protocol(Protocol::Icmp(family))]));
    }
    for &block in &around.lan {
        rules.push(to(Class::LanProbe, vec![Match::Destination(block)]));
    }
    for carrier in [Protocol::Tcp, Protocol::Udp] {
        rules.push(to(Class::DirectAttempt, vec![protocol(carrier)]));
    }
    rules.push(to(Class::RawAttempt, Vec::new()));
    rules
}

/// The counter stands before the limit: it stays exact under a flood.
fn refusing(class: Class, group: u16) -> Vec<Rule> {
    vec![
        always(Act::Count),
        Rule { matches: Vec::new(), acts: vec![Act::Within(log_limit(class)), Act::Log { group }] },
        Rule { matches: vec![Match::Protocol(Protocol::Tcp)], acts: vec![Act::RejectReset] },
        always(Act::RejectProhibited),
    ]
}

/// Log lines of one class. Few are needed to name a kind of attempt; the counters say how many there were.
const fn log_limit(class: Class) -> Limit {
    match class {
        Class::MetadataProbe | Class::DnsAttempt | Class::LanProbe | Class::DirectAttempt => {
            Limit { per_s: 20, burst: 40 }
        }
        Class::IcmpAttempt | Class::RawAttempt => Limit { per_s: 10, burst: 20 },
    }
}
