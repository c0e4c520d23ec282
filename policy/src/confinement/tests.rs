use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::class::{ICMP, ICMPV6, TCP, UDP};
use super::*;

fn around() -> Surroundings {
    Surroundings {
        decoy_v4: Ipv4Addr::new(192, 0, 2, 1),
        decoy_v6: "2001:db8::1".parse().unwrap(),
        metadata: vec!["169.254.169.254".parse().unwrap(), "fd00:ec2::254".parse().unwrap()],
        lan: vec![Prefix::parse("10.0.0.0/8").unwrap(), Prefix::parse("fc00::/7").unwrap()],
        log_group: 1,
    }
}

/// Worked out by hand: this is what an operator reads.
const TEXT: &str = r#"table inet darwin {
	flags owner,persist

	chain output {
		type filter hook output priority filter; policy drop;
		oif "lo" ip daddr 127.0.0.1 accept
		oif "lo" ip6 daddr ::1 accept
		oif "lo" ip daddr 192.0.2.1 accept
		oif "lo" ip6 daddr 2001:db8::1 accept
		oif "lo" meta l4proto tcp tcp flags & rst == rst accept
		oif "lo" meta nfproto ipv4 meta l4proto icmp icmp type destination-unreachable accept
		oif "lo" meta nfproto ipv6 meta l4proto icmpv6 icmpv6 type destination-unreachable accept
		goto refuse
	}

	chain input {
		type filter hook input priority filter; policy drop;
		iif "lo" ip daddr 127.0.0.1 accept
		iif "lo" ip6 daddr ::1 accept
		iif "lo" ip daddr 192.0.2.1 accept
		iif "lo" ip6 daddr 2001:db8::1 accept
		iif "lo" meta l4proto tcp tcp flags & rst == rst accept
		iif "lo" meta nfproto ipv4 meta l4proto icmp icmp type destination-unreachable accept
		iif "lo" meta nfproto ipv6 meta l4proto icmpv6 icmpv6 type destination-unreachable accept
		goto refuse
	}

	chain forward {
		type filter hook forward priority filter; policy drop;
		goto refuse
	}

	chain refuse {
		ip daddr 169.254.169.254 goto metadata_probe
		ip6 daddr fd00:ec2::254 goto metadata_probe
		meta l4proto udp th dport 53 goto dns_attempt
		meta l4proto tcp th dport 53 goto dns_attempt
		meta nfproto ipv4 meta l4proto icmp goto icmp_attempt
		meta nfproto ipv6 meta l4proto icmpv6 goto icmp_attempt
		ip daddr 10.0.0.0/8 goto lan_probe
		ip6 daddr fc00::/7 goto lan_probe
		meta l4proto tcp goto direct_attempt
		meta l4proto udp goto direct_attempt
		goto raw_attempt
	}

	chain metadata_probe {
		counter
		limit rate 20/second burst 40 packets log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
	}

	chain dns_attempt {
		counter
		limit rate 20/second burst 40 packets log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
	}

	chain icmp_attempt {
		counter
		limit rate 10/second burst 20 packets log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
	}

	chain lan_probe {
		counter
		limit rate 20/second burst 40 packets log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
	}

	chain direct_attempt {
		counter
		limit rate 20/second burst 40 packets log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
	}

	chain raw_attempt {
		counter
		limit rate 10/second burst 20 packets log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
	}
}
"#;

#[test]
fn the_text_is_the_one_worked_out_by_hand() {
    assert_eq!(Ruleset::new(&around()).render(&["owner", "persist"]), TEXT);
}

#[test]
fn without_flags_the_text_has_no_line_of_flags() {
    assert_eq!(Ruleset::new(&around()).render(&[]), TEXT.replace("\tflags owner,persist\n\n", ""));
}

/// A packet as the rules see it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    loopback: bool,
    to: Attempt,
    reset: bool,
    unreachable: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Accepted,
    Rejected(Class),
    Dropped,
}

fn holds(condition: Match, seen: &Seen) -> bool {
    let family = Family::of(seen.to.destination);
    match condition {
        Match::OutLoopback | Match::InLoopback => seen.loopback,
        Match::Destination(block) => block.contains(seen.to.destination),
        Match::Protocol(Protocol::Tcp) => seen.to.protocol == Some(TCP),
        Match::Protocol(Protocol::Udp) => seen.to.protocol == Some(UDP),
        Match::Protocol(Protocol::Icmp(Family::V4)) => family == Family::V4 && seen.to.protocol == Some(ICMP),
        Match::Protocol(Protocol::Icmp(Family::V6)) => {
            family == Family::V6 && seen.to.protocol == Some(ICMPV6)
        }
        Match::DestinationPort(port) => seen.to.port == Some(port),
        Match::Reset => seen.reset,
        Match::Unreachable(_) => seen.unreachable,
    }
}

/// What `nf_tables` does with the rules: the first verdict counts, `goto` does not come back.
fn run(rules: &Ruleset, from: ChainName, seen: &Seen) -> Fate {
    let chain = rules.chains().iter().find(|chain| chain.name == from).expect("a chain that exists");
    for rule in &chain.rules {
        if !rule.matches.iter().all(|&condition| holds(condition, seen)) {
            continue;
        }
        for act in &rule.acts {
            match act {
                Act::Accept => return Fate::Accepted,
                Act::Goto(next) => return run(rules, *next, seen),
                Act::RejectReset | Act::RejectProhibited => {
                    let ChainName::Class(class) = from else { panic!("a reject outside a class: {from:?}") };
                    return Fate::Rejected(class);
                }
                Act::Count | Act::Within(_) | Act::Log { .. } => {}
            }
        }
    }
    Fate::Dropped
}

fn address() -> impl Strategy<Value = IpAddr> {
    let known: [&'static str; 7] =
        ["169.254.169.254", "fd00:ec2::254", "127.0.0.1", "127.0.0.11", "::1", "192.0.2.1", "10.1.2.3"];
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
        proptest::sample::select(known.to_vec()).prop_map(|text| text.parse().unwrap()),
    ]
}

fn seen() -> impl Strategy<Value = Seen> {
    let protocol = prop_oneof![
        Just(Some(TCP)),
        Just(Some(UDP)),
        Just(Some(ICMP)),
        Just(Some(ICMPV6)),
        any::<Option<u8>>()
    ];
    let port = prop_oneof![Just(Some(53)), any::<Option<u16>>()];
    (any::<bool>(), address(), protocol, port, any::<bool>(), any::<bool>()).prop_map(
        |(loopback, destination, protocol, port, reset, unreachable)| {
            let port = if matches!(protocol, Some(TCP | UDP)) { port } else { None };
            Seen { loopback, to: Attempt { destination, protocol, port }, reset, unreachable }
        },
    )
}

proptest! {
    #[test]
    fn what_does_not_stay_on_loopback_is_rejected_in_the_class_that_classify_names(
        seen in seen(), hook in proptest::sample::select(vec![Hook::Output, Hook::Input, Hook::Forward]),
    ) {
        let seen = Seen { loopback: false, ..seen };
        let expected = Fate::Rejected(classify(&seen.to, &around()));
        prop_assert_eq!(run(&Ruleset::new(&around()), ChainName::Base(hook), &seen), expected);
    }

    #[test]
    fn loopback_accepts_four_addresses_and_answers_and_nothing_else(seen in seen()) {
        let seen = Seen { loopback: true, ..seen };
        let own = ["127.0.0.1", "::1", "192.0.2.1", "2001:db8::1"]
            .contains(&seen.to.destination.to_string().as_str());
        let icmp = if seen.to.destination.is_ipv4() { ICMP } else { ICMPV6 };
        let answer = (seen.reset && seen.to.protocol == Some(TCP))
            || (seen.unreachable && seen.to.protocol == Some(icmp));
        for hook in [Hook::Output, Hook::Input] {
            let fate = run(&Ruleset::new(&around()), ChainName::Base(hook), &seen);
            prop_assert_eq!(fate == Fate::Accepted, own || answer);
        }
        prop_assert_ne!(run(&Ruleset::new(&around()), ChainName::Base(Hook::Forward), &seen), Fate::Accepted);
    }

    #[test]
    fn a_block_reads_back_as_itself(address in address(), length in 0_u8..=128) {
        match Prefix::parse(&format!("{address}/{length}")) {
            Ok(block) => {
                prop_assert_eq!(Prefix::parse(&block.to_string()), Ok(block));
                prop_assert!(block.contains(address));
            }
            Err(PrefixError::HostBits { meant }) => prop_assert!(meant.contains(address)),
            Err(PrefixError::Length { limit }) => prop_assert!(length > limit),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn no_text_panics_the_reader_of_blocks(text in ".{0,40}") {
        drop(Prefix::parse(&text));
    }
}

#[test]
fn the_resolver_at_127_0_0_11_is_refused_as_dns_and_127_0_0_1_is_not() {
    let to = |text: &str| Seen {
        loopback: true,
        to: Attempt { destination: text.parse().unwrap(), protocol: Some(UDP), port: Some(53) },
        reset: false,
        unreachable: false,
    };
    let rules = Ruleset::new(&around());
    let output = ChainName::Base(Hook::Output);
    assert_eq!(run(&rules, output, &to("127.0.0.11")), Fate::Rejected(Class::DnsAttempt));
    assert_eq!(run(&rules, output, &to("127.0.0.1")), Fate::Accepted);
}

#[test]
fn classes_come_in_order_of_what_they_say() {
    let class = |to: &str, protocol, port| {
        classify(&Attempt { destination: to.parse().unwrap(), protocol, port }, &around())
    };
    assert_eq!(class("169.254.169.254", Some(UDP), Some(53)), Class::MetadataProbe);
    assert_eq!(class("10.0.0.1", Some(TCP), Some(53)), Class::DnsAttempt);
    assert_eq!(class("10.0.0.1", Some(ICMP), None), Class::IcmpAttempt);
    assert_eq!(class("10.0.0.1", Some(TCP), Some(22)), Class::LanProbe);
    assert_eq!(class("10.0.0.1", Some(132), None), Class::LanProbe);
    assert_eq!(class("9.9.9.9", Some(TCP), Some(443)), Class::DirectAttempt);
    assert_eq!(class("9.9.9.9", Some(UDP), None), Class::DirectAttempt);
    assert_eq!(class("9.9.9.9", Some(132), None), Class::RawAttempt);
    assert_eq!(class("9.9.9.9", Some(ICMPV6), None), Class::RawAttempt);
    assert_eq!(class("9.9.9.9", None, None), Class::RawAttempt);
    assert_eq!(class("2001:db8::9", Some(ICMPV6), None), Class::IcmpAttempt);
}

#[test]
fn blocks_that_say_something_else_than_they_mean_are_refused() {
    let meant = Prefix::parse("10.0.0.0/8").unwrap();
    assert_eq!(Prefix::parse("10.1.0.0/8"), Err(PrefixError::HostBits { meant }));
    assert_eq!(Prefix::parse("10.0.0.0/33"), Err(PrefixError::Length { limit: 32 }));
    assert_eq!(Prefix::parse("::/129"), Err(PrefixError::Length { limit: 128 }));
    assert_eq!(Prefix::parse("::/999"), Err(PrefixError::Length { limit: 128 }));
    for text in ["", "10", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8", "a/8", " 10.0.0.0/8"] {
        assert_eq!(Prefix::parse(text), Err(PrefixError::Form), "{text:?}");
    }
    assert_eq!(Prefix::parse("0.0.0.0/0").map(|all| all.contains("9.9.9.9".parse().unwrap())), Ok(true));
}
