//! Reads a refused packet as NFLOG gives it: an IP header and what follows, cut at
//! [`policy::confinement::Ruleset::LOGGED_BYTES`]. Hostile to the last byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use policy::confinement::Attempt;

/// IPv6 extension headers that are walked over (RFC 8200): hop-by-hop, routing, fragment, destination.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// More extension headers than this are nobody's honest packet.
const EXTENSIONS_MAX: usize = 8;

/// Reads the headers; none: not even a destination can be told.
pub(crate) fn read(packet: &[u8]) -> Option<Attempt> {
    match packet.first()? >> 4 {
        4 => read_v4(packet),
        6 => read_v6(packet),
        _ => None,
    }
}

fn read_v4(packet: &[u8]) -> Option<Attempt> {
    let destination = Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?);
    let protocol = *packet.get(9)?;
    let offset = half(packet, 6)? & 0x1fff;
    let header = usize::from(packet.first()? & 0x0f) * 4;
    // A later fragment has no ports.
    let port = if offset == 0 { port_of(protocol, packet.get(header..)) } else { None };
    Some(Attempt { destination: IpAddr::V4(destination), protocol: Some(protocol), port })
}

fn read_v6(packet: &[u8]) -> Option<Attempt> {
    let destination = IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?));
    let (mut next, mut at) = (*packet.get(6)?, 40);
    for _ in 0..EXTENSIONS_MAX {
        let Some(header) = packet.get(at..).filter(|header| header.len() >= 8) else { break };
        let units = header.get(1).copied().map_or(0, usize::from);
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION => at += (units + 1) * 8,
            FRAGMENT => {
                if half(header, 2)? & 0xfff8 != 0 {
                    return Some(Attempt { destination, protocol: header.first().copied(), port: None });
                }
                at += 8;
            }
            _ => break,
        }
        next = *header.first()?;
    }
    let unwalked = matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION);
    let protocol = if unwalked { None } else { Some(next) };
    Some(Attempt { destination, protocol, port: port_of(next, packet.get(at..)) })
}

fn port_of(protocol: u8, transport: Option<&[u8]>) -> Option<u16> {
    if matches!(protocol, 6 | 17) { half(transport?, 2) } else { None }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(<[u8; 2]>::try_from(bytes.get(at..at + 2)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(protocol: u8, fragment: u16, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 9, 9, 9, 9];
        packet.splice(6..8, fragment.to_be_bytes());
        packet.extend(rest);
        packet
    }

    fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        packet.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend("2001:db8::9".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend(rest);
        packet
    }

    #[test]
    fn ports_are_read_where_there_are_ports() {
        let read = |packet: &[u8]| read(packet).map(|attempt| (attempt.protocol, attempt.port));
        assert_eq!(read(&v4(6, 0, &[1, 2, 0x01, 0xbb])), Some((Some(6), Some(443))));
        assert_eq!(read(&v4(1, 0, &[8, 0, 0, 0])), Some((Some(1), None)));
        assert_eq!(read(&v4(17, 0x2001, &[1, 2, 0, 53])), Some((Some(17), None)), "a later fragment");
        assert_eq!(read(&v4(17, 0x2000, &[1, 2, 0, 53])), Some((Some(17), Some(53))), "a first fragment");
        assert_eq!(read(&v6(17, &[1, 2, 0, 53])), Some((Some(17), Some(53))));
        let behind_options = [17, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 53];
        assert_eq!(read(&v6(HOP_BY_HOP, &behind_options)), Some((Some(17), Some(53))));
        let later = [17, 0, 0, 8, 0, 0, 0, 1];
        assert_eq!(read(&v6(FRAGMENT, &later)), Some((Some(17), None)));
        assert_eq!(read(&v6(HOP_BY_HOP, &[17, 255])), Some((None, None)), "cut off");
    }

    #[test]
    fn what_has_no_destination_is_nothing() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0x45; 19]), None);
        assert_eq!(read(&[0x60; 39]), None);
        assert_eq!(read(&[0x15; 60]), None);
    }

    proptest! {
        #[test]
        fn no_packet_panics_the_reader(packet in proptest::collection::vec(any::<u8>(), 0..160)) {
            let _attempt = read(&packet);
        }

        #[test]
        fn no_chain_of_extension_headers_runs_away(next in any::<u8>(), rest in proptest::collection::vec(any::<u8>(), 0..90)) {
            let _attempt = read(&v6(next, &rest));
        }
    }
}
