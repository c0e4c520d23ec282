//! The target of a CONNECT: a host and a port, nothing else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{HostName, NameError};

/// Why bytes are no port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a port is 1 to 65535 in 1 to 5 digits, without a sign or a leading zero")]
pub struct PortError;

/// A TCP port, 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(u16);

impl Port {
    /// HTTPS.
    pub const HTTPS: Self = Self(443);

    /// A port from a number.
    ///
    /// # Errors
    /// [`PortError`] for zero.
    pub const fn new(number: u16) -> Result<Self, PortError> {
        if number == 0 { Err(PortError) } else { Ok(Self(number)) }
    }

    /// Parses 1 to 5 ASCII digits without a sign or a leading zero.
    ///
    /// # Errors
    /// [`PortError`] for everything else: 84536 must not wrap to 19000.
    pub fn parse(digits: &[u8]) -> Result<Self, PortError> {
        if digits.is_empty() || digits.len() > 5 || digits.starts_with(b"0") {
            return Err(PortError);
        }
        let mut number = 0_u32;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(PortError);
            }
            number = number * 10 + u32::from(digit - b'0');
        }
        u16::try_from(number).map_or(Err(PortError), Self::new)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a client may ask for: a name, or an address in its one accepted spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An IPv4 address in dotted decimal, or an IPv6 address in brackets.
    Address(IpAddr),
}

impl Host {
    /// Parses the part before the port: a name, four decimal octets, or an IPv6 address in brackets without a zone.
    ///
    /// # Errors
    /// [`AuthorityError::BadAddress`] for brackets round anything else, [`AuthorityError::BadName`] otherwise.
    pub fn parse(bytes: &[u8]) -> Result<Self, AuthorityError> {
        if let Some(inner) = bytes.strip_prefix(b"[") {
            let text = inner.strip_suffix(b"]").and_then(|inner| std::str::from_utf8(inner).ok());
            return text
                .and_then(|text| text.parse::<Ipv6Addr>().ok())
                .map_or(Err(AuthorityError::BadAddress), |address| Ok(Self::Address(IpAddr::V6(address))));
        }
        // The standard library's reader takes four plain decimal octets without leading zeros and nothing else.
        if let Some(address) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Ipv4Addr>().ok())
        {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        Ok(Self::Name(HostName::parse(bytes)?))
    }

    /// The name, if it is one.
    pub const fn name(&self) -> Option<&HostName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Why bytes are no authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// A byte below 0x21 or above 0x7e.
    #[error("byte {at} of the target is {byte:#04x}")]
    BadByte {
        /// Offset of the byte, from zero.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// No colon, or nothing after it.
    #[error("the target has no port")]
    NoPort,
    /// A port that is none.
    #[error("the target's port is malformed")]
    BadPort(#[from] PortError),
    /// Brackets round something that is no IPv6 address.
    #[error("the target's brackets hold no IPv6 address")]
    BadAddress,
    /// A host that is no name.
    #[error("the target's host is no name")]
    BadName(#[from] NameError),
}

/// What a CONNECT asks for, in canonical form: this one value is judged, resolved, compared and logged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: Port,
}

impl Authority {
    /// Parses `host ":" port` (RFC 9110 section 7.2, without user information).
    ///
    /// # Errors
    /// [`AuthorityError`] names the first thing that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, AuthorityError> {
        if let Some((at, &byte)) = bytes.iter().enumerate().find(|&(_, b)| !(0x21..=0x7e).contains(b)) {
            return Err(AuthorityError::BadByte { at, byte });
        }
        let colon = bytes.iter().rposition(|&b| b == b':').ok_or(AuthorityError::NoPort)?;
        let (host, port) = bytes.split_at(colon);
        let digits = port.get(1..).unwrap_or_default();
        if digits.is_empty() || (host.starts_with(b"[") && digits.ends_with(b"]")) {
            return Err(AuthorityError::NoPort);
        }
        Ok(Self { host: Host::parse(host)?, port: Port::parse(digits)? })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn authorities_have_one_spelling() {
        for (text, canonical) in [
            ("a.EXAMPLE.com.:443", "a.example.com:443"),
            ("localhost.:1", "localhost:1"),
            ("9.9.9.9:65535", "9.9.9.9:65535"),
            ("[2606:50C0:0::1]:443", "[2606:50c0::1]:443"),
            ("[::ffff:7f00:1]:80", "[::ffff:127.0.0.1]:80"),
        ] {
            assert_eq!(Authority::parse(text.as_bytes()).unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn other_texts_are_no_authorities() {
        for text in [
            "",
            "a",
            "a:",
            ":443",
            "a:0",
            "a:65536",
            "a:84536",
            "a:019000",
            "a:+19000",
            "a:443 ",
            "a:4 3",
            "user@127.0.0.1:443",
            "user:pass@a:443",
            "[localhost]:443",
            "[A]:443",
            "[127.0.0.1]:443",
            "[::1%eth0]:443",
            "[::1%25lo]:443",
            "[::1]",
            "::1:443",
            "[::1:443",
            "127.1:443",
            "2130706433:443",
            "0x7f000001:443",
            "0177.0.0.1:443",
            "169.254.169.254..:443",
            "169.254.169.254.:443",
            "E%00.A:443",
            "a\0b:443",
            "a\u{b}b:443",
            "127。0。0。1:443",
            "http://a:443",
            "a:443/",
            "a:443?x",
            "a:443#x",
            "*:443",
            "1.2.3.4.5:443",
            "a b:443",
            "a:-1",
            "a:00443",
            "a::443",
        ] {
            assert!(Authority::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_prints_as_itself(bytes in "[\\[\\]a-zA-Z0-9:._%@-]{0,40}") {
            if let Ok(authority) = Authority::parse(bytes.as_bytes()) {
                let text = authority.to_string();
                prop_assert_eq!(Authority::parse(text.as_bytes()), Ok(authority));
            }
        }

        #[test]
        fn ports_are_numbers_and_nothing_else(number in 1_u16..) {
            prop_assert_eq!(Port::parse(number.to_string().as_bytes()).unwrap().number(), number);
        }
    }
}
