//! What an address is, before anything is sent to it.
//!
//! The ranges are IANA's special-purpose registries (RFC 6890 and what updated it); what they do not call globally
//! reachable is not public here. IPv6 outside `2000::/3` is closed by default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::published::METADATA_ADDRESSES;

/// The one class of an address that says most against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressClass {
    /// Globally reachable unicast.
    Public,
    /// A cloud's metadata service: never dialled, whatever a rule says.
    Metadata,
    /// 0.0.0.0/8 and `::`.
    Unspecified,
    /// 127.0.0.0/8 and `::1`.
    Loopback,
    /// RFC 1918.
    Private,
    /// 169.254.0.0/16 and `fe80::/10`.
    LinkLocal,
    /// 100.64.0.0/10 (RFC 6598).
    CarrierNat,
    /// 198.18.0.0/15 and `2001:2::/48`.
    Benchmark,
    /// The documentation ranges, `2001:db8::/32` and `3fff::/20` among them.
    Documentation,
    /// Multicast of either family.
    Multicast,
    /// `fc00::/7`.
    UniqueLocal,
    /// `fec0::/10`, deprecated.
    SiteLocal,
    /// `100::/64` and `100:0:0:1::/64`.
    Discard,
    /// IPv4 written as IPv6 in a form that no public host is reached by: mapped, compatible, translated, `64:ff9b:1::/48`.
    Ipv4InIpv6,
    /// Everything else that no registry calls globally reachable.
    Reserved,
}

impl AddressClass {
    /// Its name in logs and refusals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Metadata => "metadata",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::CarrierNat => "carrier-nat",
            Self::Benchmark => "benchmark",
            Self::Documentation => "documentation",
            Self::Multicast => "multicast",
            Self::UniqueLocal => "unique-local",
            Self::SiteLocal => "site-local",
            Self::Discard => "discard",
            Self::Ipv4InIpv6 => "ipv4-in-ipv6",
            Self::Reserved => "reserved",
        }
    }

    /// Whether a rule may pin a name to it: a host that somebody can own, in whatever range.
    pub const fn is_pinnable(self) -> bool {
        match self {
            Self::Public
            | Self::Loopback
            | Self::Private
            | Self::CarrierNat
            | Self::Benchmark
            | Self::Documentation
            | Self::UniqueLocal => true,
            Self::Metadata
            | Self::Unspecified
            | Self::LinkLocal
            | Self::Multicast
            | Self::SiteLocal
            | Self::Discard
            | Self::Ipv4InIpv6
            | Self::Reserved => false,
        }
    }
}

/// The class of an address, with every IPv4 address inside an IPv6 one judged as well.
pub fn classify(address: IpAddr) -> AddressClass {
    if is_metadata_address(address) {
        return AddressClass::Metadata;
    }
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// Whether it is a metadata service's address, in whatever form an IPv6 address carries it.
pub fn is_metadata_address(address: IpAddr) -> bool {
    let listed = |address: IpAddr| METADATA_ADDRESSES.contains(&address);
    match address {
        IpAddr::V4(_) => listed(address),
        IpAddr::V6(v6) => {
            listed(address) || embedded(v6).into_iter().flatten().any(|v4| listed(IpAddr::V4(v4)))
        }
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [169, 254, ..] => AddressClass::LinkLocal,
        [100, 64..=127, ..] => AddressClass::CarrierNat,
        [198, 18..=19, ..] => AddressClass::Benchmark,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        [224..=239, ..] => AddressClass::Multicast,
        // 192.88.99.0/24 was the 6to4 relays' anycast range, deprecated by RFC 7526.
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let own = classify_v6_itself(address);
    if own != AddressClass::Public {
        return own;
    }
    embedded(address)
        .into_iter()
        .flatten()
        .map(classify_v4)
        .find(|&class| class != AddressClass::Public)
        .unwrap_or(AddressClass::Public)
}

fn classify_v6_itself(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, 1, ..] => {
            AddressClass::Ipv4InIpv6
        }
        [0x100, 0, 0, 0 | 1, ..] => AddressClass::Discard,
        [0x2001, 2, 0, ..] => AddressClass::Benchmark,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        // The rest of 2001::/23 but Teredo is for protocols, not for hosts (RFC 2928).
        [0x2001, 1..=0x1ff, ..] => AddressClass::Reserved,
        [0xfc00..=0xfdff, ..] => AddressClass::UniqueLocal,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xfec0..=0xfeff, ..] => AddressClass::SiteLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // NAT64's well-known prefix (RFC 6052) is public as far as what it carries is.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] | [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

/// Every IPv4 address that an IPv6 address carries, by each of the ways there are; a Teredo address has two.
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    let inner = match address.segments() {
        // Compatible, mapped, translated (RFC 4291, 2765), NAT64 (RFC 6052) and its local range (RFC 8215),
        // 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => [v4(high, low), None],
        // Teredo (RFC 4380): the server plain, the client with every bit turned.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            [v4(server_high, server_low), v4(!high, !low)]
        }
        _ => [None, None],
    };
    match (address.segments(), inner) {
        // ISATAP (RFC 5214): the interface identifier 0:5efe or 200:5efe under any prefix, 6to4 too.
        ([_, _, _, _, 0 | 0x200, 0x5efe, high, low], [first, _]) => [first, v4(high, low)],
        (_, inner) => inner,
    }
}

#[cfg(test)]
mod tests {
    use AddressClass as Class;
    use proptest::prelude::*;

    use super::*;

    fn class(text: &str) -> Class {
        classify(text.parse().unwrap())
    }

    #[test]
    fn public_hosts_are_public() {
        for text in [
            "1.1.1.1",
            "9.9.9.9",
            "8.8.8.8",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:4860::8888",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:0:808:808::f7f7:f7f7",
            "2a00::5efe:808:808",
        ] {
            assert_eq!(class(text), Class::Public, "{text}");
        }
    }

    #[test]
    fn everything_else_has_its_class() {
        for (text, expected) in [
            ("0.0.0.0", Class::Unspecified),
            ("0.255.0.1", Class::Unspecified),
            ("::", Class::Unspecified),
            ("127.0.0.1", Class::Loopback),
            ("127.255.255.255", Class::Loopback),
            ("::1", Class::Loopback),
            ("10.0.0.0", Class::Private),
            ("172.16.0.0", Class::Private),
            ("172.31.255.255", Class::Private),
            ("192.168.0.0", Class::Private),
            ("169.254.0.1", Class::LinkLocal),
            ("fe80::1", Class::LinkLocal),
            ("febf::1", Class::LinkLocal),
            ("100.64.0.0", Class::CarrierNat),
            ("100.127.0.1", Class::CarrierNat),
            ("198.18.0.0", Class::Benchmark),
            ("198.19.255.255", Class::Benchmark),
            ("2001:2::1", Class::Benchmark),
            ("192.0.2.1", Class::Documentation),
            ("198.51.100.1", Class::Documentation),
            ("203.0.113.1", Class::Documentation),
            ("2001:db8::1", Class::Documentation),
            ("3fff::1", Class::Documentation),
            ("3fff:fff::1", Class::Documentation),
            ("192.0.0.8", Class::Reserved),
            ("192.88.99.1", Class::Reserved),
            ("240.0.0.1", Class::Reserved),
            ("255.255.255.255", Class::Reserved),
            ("224.0.0.1", Class::Multicast),
            ("ff02::1", Class::Multicast),
            ("fc00::1", Class::UniqueLocal),
            ("fdff::1", Class::UniqueLocal),
            ("fec0::1", Class::SiteLocal),
            ("100::1", Class::Discard),
            ("100:0:0:1::1", Class::Discard),
            ("64:ff9b:1::808:808", Class::Ipv4InIpv6),
            ("::ffff:8.8.8.8", Class::Ipv4InIpv6),
            ("::ffff:0:808:808", Class::Ipv4InIpv6),
            ("::808:808", Class::Ipv4InIpv6),
            ("2001:20::1", Class::Reserved),
            ("4000::1", Class::Reserved),
            ("5f00::1", Class::Reserved),
            ("64:ff9b:0:1::1", Class::Reserved),
            ("1::1", Class::Reserved),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn ipv4_inside_ipv6_is_judged() {
        for (text, expected) in [
            ("64:ff9b::a00:1", Class::Private),
            ("2002:7f00:1::", Class::Loopback),
            ("2001:0:808:808::f5ff:fffe", Class::Private), // the obfuscated client 10.0.0.1
            ("2001:0:a00:1::f7f7:f7f7", Class::Private),   // the server 10.0.0.1
            ("2a00::5efe:a00:1", Class::Private),
            ("2a00::200:5efe:c0a8:1", Class::Private),
            ("2002:808:808::5efe:7f00:1", Class::Loopback),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn metadata_is_found_in_every_form() {
        for text in [
            "169.254.169.254",
            "fd00:ec2::254",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "2a00::5efe:a9fe:a9fe",
            "::a9fe:a9fe",
        ] {
            assert_eq!(class(text), Class::Metadata, "{text}");
        }
        assert_eq!(class("169.254.169.252"), Class::LinkLocal);
        assert_eq!(class("168.63.129.17"), Class::Public);
    }

    proptest! {
        #[test]
        fn no_embedding_makes_a_bad_address_public(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from(bits);
            let [_, _, _, _, _, _, a, b] = v4.to_ipv6_mapped().segments();
            for v6 in [
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b), Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0x808, 0x808, 0, 0, !a, !b), Ipv6Addr::new(0x2a00, 0, 0, 0, 0, 0x5efe, a, b),
                v4.to_ipv6_mapped(), Ipv6Addr::new(0, 0, 0, 0, 0, 0, a, b),
            ] {
                let bad = classify(IpAddr::V4(v4)) != Class::Public;
                prop_assert!(!bad || classify(IpAddr::V6(v6)) != Class::Public, "{v6}");
            }
        }
    }
}
