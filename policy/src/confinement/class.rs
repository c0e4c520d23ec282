//! What a refused packet means.

use std::fmt;
use std::net::IpAddr;

use super::ruleset::Surroundings;
use crate::signal::Severity;

/// Port of DNS.
pub(super) const DNS_PORT: u16 = 53;
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// The classes of refused packets. Each has its own counter and its own limit on log lines, so that a flood
/// of one cannot hide one packet of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// To an address where clouds keep credentials.
    MetadataProbe,
    /// To port 53 of anything.
    DnsAttempt,
    /// ICMP or `ICMPv6`.
    IcmpAttempt,
    /// To the operator's own networks.
    LanProbe,
    /// TCP or UDP to anywhere else.
    DirectAttempt,
    /// Any other protocol, or none that can be told.
    RawAttempt,
}

impl Class {
    /// All, in the order in which a packet is held against them.
    pub const ALL: [Self; 6] = [
        Self::MetadataProbe,
        Self::DnsAttempt,
        Self::IcmpAttempt,
        Self::LanProbe,
        Self::DirectAttempt,
        Self::RawAttempt,
    ];

    /// The name of its signal, its chain and its counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MetadataProbe => "metadata_probe",
            Self::DnsAttempt => "dns_attempt",
            Self::IcmpAttempt => "icmp_attempt",
            Self::LanProbe => "lan_probe",
            Self::DirectAttempt => "direct_attempt",
            Self::RawAttempt => "raw_attempt",
        }
    }

    /// How much its signal matters. Only the search for credentials asks for an operator.
    pub const fn severity(self) -> Severity {
        match self {
            Self::MetadataProbe => Severity::Alarm,
            Self::DnsAttempt
            | Self::IcmpAttempt
            | Self::LanProbe
            | Self::DirectAttempt
            | Self::RawAttempt => Severity::Warn,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One refused packet, as far as its headers could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Where it was to go.
    pub destination: IpAddr,
    /// The transport protocol's number, after IPv6's extension headers.
    pub protocol: Option<u8>,
    /// Destination port of TCP or UDP; none in a later fragment.
    pub port: Option<u16>,
}

/// Says what a refused packet means. Total: what cannot be read is a [`Class::RawAttempt`].
pub fn classify(attempt: &Attempt, around: &Surroundings) -> Class {
    let family = if attempt.destination.is_ipv4() { ICMP } else { ICMPV6 };
    let carries_ports = matches!(attempt.protocol, Some(TCP | UDP));
    if around.metadata.contains(&attempt.destination) {
        Class::MetadataProbe
    } else if carries_ports && attempt.port == Some(DNS_PORT) {
        Class::DnsAttempt
    } else if attempt.protocol == Some(family) {
        Class::IcmpAttempt
    } else if around.lan.iter().any(|block| block.contains(attempt.destination)) {
        Class::LanProbe
    } else if carries_ports {
        Class::DirectAttempt
    } else {
        Class::RawAttempt
    }
}
