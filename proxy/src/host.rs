//! The machine that the proxy runs on: its own addresses, its clock.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::ifaddrs::getifaddrs;
use policy::Instant;

/// Every address of the host's interfaces.
pub(crate) fn own_addresses() -> nix::Result<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    for address in getifaddrs()?.filter_map(|interface| interface.address) {
        addresses.extend(address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip())));
        addresses.extend(address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())));
    }
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// The instant now.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
