//! Blocks of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a text is no block of addresses. Texts read after the text itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// Not `ADDRESS` or `ADDRESS/LENGTH`.
    #[error("is neither an address nor an address with a length, as in `10.0.0.0/8`")]
    Form,
    /// The length is over 32 or 128.
    #[error("has a length over {limit}")]
    Length {
        /// The most that its family allows.
        limit: u8,
    },
    /// Bits after the length are set: which block was meant cannot be told.
    #[error("has bits set after its length; write {meant}")]
    HostBits {
        /// The block that its first address and length make.
        meant: Prefix,
    },
}

/// A block of addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The block of one address.
    pub const fn host(address: IpAddr) -> Self {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Self { address, length }
    }

    /// The first address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// How many leading bits its addresses share.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether it is the block of one address.
    pub const fn is_host(self) -> bool {
        self.length == Self::host(self.address).length
    }

    /// Whether an address is in it. One of the other family is not, also where it is written as mapped.
    pub fn contains(self, address: IpAddr) -> bool {
        masked(address, self.length) == self.address
    }

    /// The netmask, in network order: 4 or 16 bytes.
    pub fn mask(self) -> Vec<u8> {
        match self.address {
            IpAddr::V4(_) => mask_v4(self.length).to_be_bytes().to_vec(),
            IpAddr::V6(_) => mask_v6(self.length).to_be_bytes().to_vec(),
        }
    }

    /// Parses `ADDRESS` or `ADDRESS/LENGTH`.
    ///
    /// # Errors
    /// [`PrefixError`]; host bits that are set are an error, not cleared.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let (address, length) = match text.split_once('/') {
            None => (text, None),
            Some((address, length)) => (address, Some(length)),
        };
        let address: IpAddr = address.parse().map_err(|_bad| PrefixError::Form)?;
        let limit = Self::host(address).length;
        let length = match length {
            None => limit,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_over| PrefixError::Length { limit })?
            }
            Some(_) => return Err(PrefixError::Form),
        };
        if length > limit {
            return Err(PrefixError::Length { limit });
        }
        let meant = Self { address: masked(address, length), length };
        if meant.address == address { Ok(meant) } else { Err(PrefixError::HostBits { meant }) }
    }
}

fn mask_v4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

fn mask_v6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0)
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask_v4(length))),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask_v6(length))),
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_host() {
            return write!(f, "{}", self.address);
        }
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;
    fn try_from(text: String) -> Result<Self, PrefixError> {
        Self::parse(&text)
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.to_string()
    }
}
