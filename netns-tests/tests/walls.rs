//! What a confined agent tries as root of its namespace, one test a claim. Every test also fires the same
//! probe from a namespace with a link and sees it arrive there: a dead probe cannot look like a wall.
#![expect(clippy::unwrap_used, reason = "a test's helper fails its test")]

use std::io::ErrorKind;
use std::time::Duration;

use netns_tests::arena::Arena;
use netns_tests::attack::{ATTACKS, Attack};
use netns_tests::ns::Namespace;
use netns_tests::sniffer::Sniffer;
use netns_tests::table::{self, State};
use netns_tests::{links, may_run};

/// Fires and expects: seen nowhere, counted by its class, refused in words the sender understands.
fn holds(name: &str) {
    if !may_run(name) {
        return;
    }
    let attack = Attack::named(name).unwrap();
    let mut arena = Arena::new().unwrap();
    let verdict = arena.attack(&attack).unwrap();
    assert!(verdict.twin_seen, "{name}: the probe is dead: {verdict:?}");
    assert!(verdict.leaks.is_empty(), "{name}: {verdict:?}");
    assert!(!verdict.reached_inside, "{name}: {verdict:?}");
    if attack.class.is_some() {
        assert_eq!(verdict.counted, Some(true), "{name}: no rule saw it: {verdict:?}");
    }
}

macro_rules! claims {
    ($($test:ident: $attack:literal),+ $(,)?) => {$(
        #[test]
        fn $test() {
            holds($attack);
        }
    )+};
}

claims! {
    tcp_over_ipv4_does_not_leave: "TCP v4",
    tcp_over_ipv6_does_not_leave: "TCP v6",
    udp_over_ipv4_does_not_leave: "UDP v4",
    udp_over_ipv6_does_not_leave: "UDP v6",
    broadcast_does_not_leave: "UDP v4 broadcast",
    multicast_does_not_leave: "UDP v6 multicast",
    icmp_does_not_leave: "ICMP v4",
    icmpv6_does_not_leave: "ICMP v6",
    dns_to_127_0_0_11_over_udp_is_refused: "DNS to 127.0.0.11 over UDP",
    dns_to_127_0_0_11_over_tcp_is_refused: "DNS to 127.0.0.11 over TCP",
    dns_outside_over_udp_does_not_leave: "DNS outside over UDP",
    dns_outside_over_tcp_does_not_leave: "DNS outside over TCP",
    dns_outside_over_ipv6_does_not_leave: "DNS outside over UDP v6",
    the_metadata_address_is_not_reached: "metadata 169.254.169.254",
    the_ipv6_metadata_address_is_not_reached: "metadata fd00:ec2::254",
    the_third_metadata_address_is_not_reached: "metadata 100.100.100.200",
    a_host_address_is_not_reached: "host address 172.17.0.1",
    a_host_ipv6_address_is_not_reached: "host address fd00::1",
    another_agents_network_is_not_reached: "another agent's network",
    a_raw_ip_protocol_does_not_leave: "raw IP protocol 253",
    a_raw_frame_does_not_leave: "raw frame 0x88b5",
    a_packet_in_a_raw_frame_does_not_leave: "IPv4 packet in a raw frame",
}

#[test]
fn the_whole_table_holds_in_every_state() {
    if !may_run("the_whole_table_holds_in_every_state") {
        return;
    }
    let cells = table::run().unwrap();
    let faults = cells.iter().filter(|cell| cell.fault().is_some()).count();
    assert_eq!(faults, 0, "\n{}", table::text(&cells));
    let counted = cells.iter().filter(|cell| cell.verdict.counted == Some(true)).count();
    assert!(counted > State::ALL.len(), "hardly anything was counted\n{}", table::text(&cells));
}

#[test]
fn a_refused_connect_fails_within_five_milliseconds() {
    if !may_run("a_refused_connect_fails_within_five_milliseconds") {
        return;
    }
    let arena = Arena::new().unwrap();
    for name in ["TCP v4", "TCP v6", "DNS to 127.0.0.11 over TCP", "metadata 169.254.169.254"] {
        let attack = Attack::named(name).unwrap();
        let mut took: Vec<Duration> = (0..21)
            .map(|_| {
                let shot = arena.agent.run(|| attack.fire()).unwrap();
                let error = shot.outcome.expect_err("it connected");
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{name}: {error}");
                shot.took
            })
            .collect();
        took.sort();
        // The middle one: what a busy machine adds to some of them is not the wall's.
        assert!(took[10] <= Duration::from_millis(5), "{name}: {took:?}");
    }
}

#[test]
fn a_refused_datagram_is_told_to_its_sender() {
    if !may_run("a_refused_datagram_is_told_to_its_sender") {
        return;
    }
    let arena = Arena::new().unwrap();
    for name in ["UDP v4", "UDP v6", "DNS outside over UDP"] {
        let shot = arena.agent.run(|| Attack::named(name).unwrap().fire()).unwrap();
        let error = shot.outcome.expect_err("the sender was told nothing");
        assert!(
            matches!(error.kind(), ErrorKind::HostUnreachable | ErrorKind::PermissionDenied),
            "{name}: {error:?}"
        );
    }
}

#[test]
fn a_link_put_in_later_carries_no_ip_packet_and_verify_tells() {
    if !may_run("a_link_put_in_later_carries_no_ip_packet_and_verify_tells") {
        return;
    }
    let mut arena = Arena::new().unwrap();
    let beyond = Namespace::new().unwrap();
    arena.agent.run(|| links::delete("eth0")).unwrap();
    links::wire(&arena.agent, &beyond).unwrap();
    let mut witness = Sniffer::new(&beyond, "beyond the new link").unwrap();
    for attack in ATTACKS.iter().filter(|attack| attack.class.is_some() && !attack.is_local()) {
        let shot = arena.agent.run(|| attack.fire()).unwrap();
        assert!(!witness.saw(&shot.needle).unwrap(), "{}: {shot:?}", attack.name);
    }
    // The allow twin, and the limit of rules for IP: a raw frame does go over such a link.
    let frame = Attack::named("raw frame 0x88b5").unwrap();
    let shot = arena.agent.run(|| frame.fire()).unwrap();
    assert!(witness.saw(&shot.needle).unwrap(), "the link is dead, so the test proves nothing");
    let found = arena.client.as_mut().unwrap().verify(None).unwrap();
    assert!(found.iter().any(|one| one.what.contains("eth0")), "{found:?}");
}

#[test]
fn a_quiet_namespace_raises_no_attempts_of_its_own() {
    if !may_run("a_quiet_namespace_raises_no_attempts_of_its_own") {
        return;
    }
    let mut arena = Arena::new().unwrap();
    // The kernel's own packets (multicast reports, solicitations) come within the first second.
    let patience = Duration::from_millis(1500);
    let silent = std::os::unix::net::UnixDatagram::unbound().unwrap();
    silent.set_read_timeout(Some(patience)).unwrap();
    drop(silent.recv(&mut [0]));
    let drops = arena.drops().unwrap().unwrap();
    assert_eq!(drops.len(), 6, "a counter is missing: {drops:?}");
    assert!(drops.values().all(|&count| count == 0), "{drops:?}");
}
