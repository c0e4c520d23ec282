//! What netd does for its clients, on real namespaces.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helper fails its test")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use netd::client::{Client, ClientError, Event, Refusal, Role, Subscription};
use netns_tests::attack::Attack;
use netns_tests::netd::{Netd, nft};
use netns_tests::ns::Namespace;
use netns_tests::{links, may_run};
use nftables::schema::{NfListObject, NfObject};
use nftables::stmt::{Counter, Statement};
use nftables::types::{NfChainPolicy, NfHook};
use policy::{AgentId, ProfileName};

fn id(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

fn profile() -> ProfileName {
    ProfileName::parse("research").unwrap()
}

/// The listener that comes next, and whose.
fn listener(subscription: &mut Subscription) -> (AgentId, u64, TcpListener) {
    match subscription.next().unwrap() {
        Event::Listener { agent, profile: named, generation, listener } => {
            assert_eq!(named, profile());
            listener.set_nonblocking(false).unwrap();
            (agent, generation, listener)
        }
        Event::Released { agent, .. } => panic!("{agent} was released"),
    }
}

fn connect(netns: &Namespace, port: u16) -> std::io::Result<TcpStream> {
    netns.run(|| Ok(TcpStream::connect(("127.0.0.1", port)))).unwrap()
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> Refusal {
    match outcome {
        Err(ClientError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn both_doors_lead_outside_and_carry_words_both_ways() {
    if !may_run("both_doors_lead_outside_and_carry_words_both_ways") {
        return;
    }
    let netd = Netd::start().unwrap();
    let (mut proxy, mut gateway) =
        (netd.subscribe(Role::Proxy).unwrap(), netd.subscribe(Role::Gateway).unwrap());
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    let confined = netd.confine(&mut client, &netns, &id("a")).unwrap();
    assert_eq!(confined.subscribers, 2);
    for (subscription, port) in [(&mut proxy, 3128), (&mut gateway, 3129)] {
        let (agent, generation, door) = listener(subscription);
        assert_eq!((agent, generation), (id("a"), confined.generation));
        let mut inside = connect(&netns, port).unwrap();
        let (mut outside, _from) = door.accept().unwrap();
        inside.write_all(b"CONNECT").unwrap();
        let mut heard = [0; 7];
        outside.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"CONNECT");
        outside.write_all(b"200").unwrap();
        drop(outside);
        let mut answer = String::new();
        inside.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "200");
    }
    // The host has no such door.
    assert!(TcpStream::connect("127.0.0.1:3128").is_err());
}

#[test]
fn connections_wait_until_somebody_subscribes_and_again_after_it_left() {
    if !may_run("connections_wait_until_somebody_subscribes_and_again_after_it_left") {
        return;
    }
    let netd = Netd::start().unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    assert_eq!(netd.confine(&mut client, &netns, &id("a")).unwrap().subscribers, 0);
    for word in [b"first", b"other"] {
        let mut waiting = connect(&netns, 3128).unwrap();
        waiting.write_all(word).unwrap();
        let mut proxy = netd.subscribe(Role::Proxy).unwrap();
        let (_agent, _generation, door) = listener(&mut proxy);
        let (mut accepted, _from) = door.accept().unwrap();
        let mut heard = [0; 5];
        accepted.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, word);
    }
}

#[test]
fn release_ends_the_copies_too_and_leaves_nothing() {
    if !may_run("release_ends_the_copies_too_and_leaves_nothing") {
        return;
    }
    let netd = Netd::start().unwrap();
    let mut proxy = netd.subscribe(Role::Proxy).unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    let confined = netd.confine(&mut client, &netns, &id("a")).unwrap();
    let (_agent, _generation, door) = listener(&mut proxy);
    drop(connect(&netns, 3128).unwrap());
    let open = || std::fs::read_dir(format!("/proc/{}/fd", netd.pid())).unwrap().count();
    let held = open();

    client.release(&id("a")).unwrap();
    match proxy.next().unwrap() {
        Event::Released { agent, generation } => {
            assert_eq!((agent, generation), (id("a"), confined.generation));
        }
        event @ Event::Listener { .. } => panic!("{event:?}"),
    }
    assert!(connect(&netns, 3128).is_err(), "the door is open still");
    assert!(door.accept().is_err(), "a copy of the door accepts still");
    let rules = netns.run(|| nft(&["list", "ruleset"])).unwrap();
    assert_eq!(String::from_utf8_lossy(&rules.stdout), "", "rules are left");
    wait_until("the decoy is gone", || netns.run(links::names).unwrap() == ["lo"]);
    wait_until("its descriptors are closed", || open() <= held - 5);
    assert_eq!(client.list().unwrap(), []);
    assert_eq!(refusal(client.release(&id("a"))), Refusal::UnknownAgent { agent: id("a") });
    // The same agent and the same namespace may come again, once nobody holds a copy of the old door.
    assert!(matches!(
        refusal(client.confine(netns.as_fd(), &id("a"), &profile())),
        Refusal::ForeignSocket { .. }
    ));
    drop(door);
    let again = netd.confine(&mut client, &netns, &id("a")).unwrap();
    assert!(again.generation > confined.generation);
}

/// The kernel tells nobody when it has let go of a link or a descriptor: it is asked again.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "never happened: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_confinement_ends_with_the_connection_that_asked_for_it() {
    if !may_run("a_confinement_ends_with_the_connection_that_asked_for_it") {
        return;
    }
    let netd = Netd::start().unwrap();
    let mut proxy = netd.subscribe(Role::Proxy).unwrap();
    let (one, two) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let mut client = netd.client().unwrap();
    netd.confine(&mut client, &one, &id("held")).unwrap();
    client.confine_lasting(two.as_fd(), &id("lasting"), &profile()).unwrap();
    let _doors = (listener(&mut proxy), listener(&mut proxy));
    drop(client);
    assert!(matches!(proxy.next().unwrap(), Event::Released { agent, .. } if agent == id("held")));
    assert!(connect(&one, 3128).is_err());
    assert!(connect(&two, 3128).is_ok());
    let left = netd.client().unwrap().list().unwrap();
    assert_eq!(left.iter().map(|status| status.agent.clone()).collect::<Vec<_>>(), [id("lasting")]);
}

#[test]
fn hostile_requests_are_refused_by_name() {
    if !may_run("hostile_requests_are_refused_by_name") {
        return;
    }
    let netd = Netd::start().unwrap();
    let mut client = netd.client().unwrap();
    let mut confine = |netns: std::os::fd::BorrowedFd<'_>, agent: &str| {
        refusal(client.confine(netns, &id(agent), &profile()))
    };
    assert_eq!(confine(Namespace::host().unwrap().as_fd(), "a"), Refusal::HostNamespace {});
    assert_eq!(confine(File::open("/dev/null").unwrap().as_fd(), "a"), Refusal::NoNamespace {});
    assert_eq!(confine(File::open("/proc/self/ns/mnt").unwrap().as_fd(), "a"), Refusal::NoNamespace {});

    let (linked, there) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    linked.run(|| links::add_veth("veth0", &there)).unwrap();
    assert_eq!(confine(linked.as_fd(), "a"), Refusal::ForeignLink { link: "veth0".to_owned() });
    assert_eq!(confine(there.as_fd(), "a"), Refusal::ForeignLink { link: "peer0".to_owned() });

    let netns = Namespace::new().unwrap();
    netd.confine(&mut client, &netns, &id("a")).unwrap();
    let other = Namespace::new().unwrap();
    assert_eq!(
        refusal(client.confine(other.as_fd(), &id("a"), &profile())),
        Refusal::DuplicateAgent { agent: id("a") }
    );
    assert_eq!(
        refusal(client.confine(netns.as_fd(), &id("b"), &profile())),
        Refusal::NamespaceTaken { agent: id("a") }
    );
    // What was refused was left as it was found.
    assert_eq!(other.run(links::names).unwrap(), ["lo"]);
    assert_eq!(linked.run(links::names).unwrap(), ["lo", "veth0"]);
    assert!(netd.confine(&mut client, &other, &id("b")).is_ok());
}

#[test]
fn a_socket_that_exists_already_is_a_door_and_is_refused() {
    if !may_run("a_socket_that_exists_already_is_a_door_and_is_refused") {
        return;
    }
    let netd = Netd::start().unwrap();
    let mut client = netd.client().unwrap();
    let namespace = || {
        let netns = Namespace::new().unwrap();
        netns.run(links::raise_loopback).unwrap();
        netns
    };
    let mut confine = |netns: &Namespace| {
        let refused = refusal(client.confine(netns.as_fd(), &id("a"), &profile()));
        let Refusal::ForeignSocket { socket } = refused else { panic!("{refused}") };
        socket
    };

    let udp = namespace();
    let resolver = udp.run(|| Ok(UdpSocket::bind("127.0.0.11:53")?)).unwrap();
    assert_eq!(confine(&udp), "udp 127.0.0.11:53");
    drop(resolver);

    let tcp = namespace();
    let _resolver = tcp.run(|| Ok(TcpListener::bind("127.0.0.1:53")?)).unwrap();
    assert_eq!(confine(&tcp), "tcp 127.0.0.1:53");

    let v6 = namespace();
    let _resolver = v6.run(|| Ok(TcpListener::bind("[::1]:53")?)).unwrap();
    assert_eq!(confine(&v6), "tcp [::1]:53");

    let raw = namespace();
    let kind = (socket2::Domain::IPV4, socket2::Type::RAW, Some(socket2::Protocol::from(253)));
    let _raw = raw.run(|| Ok(socket2::Socket::new(kind.0, kind.1, kind.2)?)).unwrap();
    assert!(confine(&raw).starts_with("raw "));

    let frames = namespace();
    let _frames = frames
        .run(|| Ok(socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, Some(3.into()))?))
        .unwrap();
    assert!(confine(&frames).starts_with("packet "));

    // The allow twin: the resolver is gone, and so is the refusal.
    assert!(netd.confine(&mut client, &udp, &id("a")).is_ok());
}

#[test]
fn frames_that_are_no_requests_are_refused_and_the_connection_lives() {
    if !may_run("frames_that_are_no_requests_are_refused_and_the_connection_lives") {
        return;
    }
    let netd = Netd::start().unwrap();
    let netns = Namespace::new().unwrap();
    let end = raw_connection(&netd);
    let ask = |text: &str, with: &[std::os::fd::BorrowedFd<'_>]| -> String {
        netd::seqpacket::send(end.as_fd(), text.as_bytes(), with).unwrap();
        String::from_utf8(netd::seqpacket::receive(end.as_fd()).unwrap().bytes).unwrap()
    };
    for hostile in ["a:b", "a\\\"", "a}", "a\\n", "../a", "", &"a".repeat(200)] {
        let text = format!(r#"{{"request":"confine","agent":"{hostile}","profile":"p"}}"#);
        assert!(ask(&text, &[netns.as_fd()]).contains(r#""code":"malformed""#), "{hostile}");
    }
    assert!(ask("nonsense", &[]).contains(r#""code":"malformed""#));
    assert!(ask(r#"{"request":"list","all":true}"#, &[]).contains(r#""code":"malformed""#));
    let confine = r#"{"request":"confine","agent":"a","profile":"p"}"#;
    assert!(ask(confine, &[]).contains(r#""expected":1,"got":0"#));
    assert!(ask(confine, &[netns.as_fd(), netns.as_fd()]).contains(r#""expected":1,"got":2"#));
    assert!(ask(r#"{"request":"list"}"#, &[netns.as_fd()]).contains(r#""expected":0,"got":1"#));
    assert!(ask(confine, &[netns.as_fd()]).contains(r#""reply":"confined""#), "the allow twin");
}

fn raw_connection(netd: &Netd) -> std::os::fd::OwnedFd {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
    let end = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    connect(std::os::fd::AsRawFd::as_raw_fd(&end), &UnixAddr::new(&netd.socket()).unwrap()).unwrap();
    end
}

#[test]
fn a_user_that_the_configuration_does_not_name_may_ask_nothing() {
    if !may_run("a_user_that_the_configuration_does_not_name_may_ask_nothing") {
        return;
    }
    let netd = Netd::start().unwrap();
    let socket = netd.socket();
    // The folder is root's own; the question is what the socket allows.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(socket.parent().unwrap(), open).unwrap();
    let nobody = std::thread::spawn(move || {
        drop_to_user(64124);
        let mut client = Client::connect(&socket).unwrap();
        let asked = refusal(client.list());
        let subscribed = refusal(Subscription::open(&socket, Role::Proxy));
        (asked, subscribed)
    });
    let (asked, subscribed) = nobody.join().unwrap();
    assert!(matches!(asked, Refusal::NotAllowed { uid: 64124, .. }), "{asked}");
    assert!(matches!(subscribed, Refusal::NotAllowed { uid: 64124, .. }), "{subscribed}");
    assert_eq!(netd.client().unwrap().list().unwrap(), [], "the allow twin");
}

/// Sets the calling thread's effective user, as the kernel does it: libc's own call is for all threads.
#[expect(unsafe_code, reason = "there is no safe call that changes one thread's user")]
fn drop_to_user(uid: u32) {
    let keep = u32::MAX;
    // SAFETY: setresuid(2) takes three numbers and touches no memory.
    let done = unsafe { nix::libc::syscall(nix::libc::SYS_setresuid, keep, uid, keep) };
    assert_eq!(done, 0);
}

#[test]
fn killing_netd_leaves_a_closed_namespace_and_a_new_one_can_start() {
    if !may_run("killing_netd_leaves_a_closed_namespace_and_a_new_one_can_start") {
        return;
    }
    let mut netd = Netd::start().unwrap();
    let mut proxy = netd.subscribe(Role::Proxy).unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    let confined = netd.confine(&mut client, &netns, &id("a")).unwrap();
    let (_agent, _generation, door) = listener(&mut proxy);
    netd.kill_9().unwrap();

    let shot = netns.run(|| Attack::named("TCP v4").unwrap().fire()).unwrap();
    assert!(shot.outcome.is_err());
    let rules = netns.run(|| nft(&["list", "table", "inet", "darwin"])).unwrap();
    assert_eq!(
        rules.status.success(),
        confined.persist,
        "the rules outlive netd where the kernel can do that"
    );
    // The proxy holds the door and goes on serving.
    let inside = connect(&netns, 3128).unwrap();
    door.accept().unwrap();

    netd.restart().unwrap();
    let mut client = netd.client().unwrap();
    assert_eq!(client.list().unwrap(), []);
    // With the agent's doors and connections gone, the namespace can be confined anew over what was left in it.
    drop((door, inside, proxy));
    wait_until("the old sockets are gone", || netd.confine(&mut client, &netns, &id("a")).is_ok());
    assert_eq!(client.verify(None).unwrap(), []);
}

#[test]
fn stopping_netd_shuts_the_doors_and_opens_nothing() {
    if !may_run("stopping_netd_shuts_the_doors_and_opens_nothing") {
        return;
    }
    let mut netd = Netd::start().unwrap();
    let mut proxy = netd.subscribe(Role::Proxy).unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    netd.confine(&mut client, &netns, &id("a")).unwrap();
    let (_agent, _generation, _door) = listener(&mut proxy);
    assert!(netd.stop().unwrap().success());
    assert!(matches!(proxy.next().unwrap(), Event::Released { .. }));
    assert!(connect(&netns, 3128).is_err());
    assert!(netns.run(|| Attack::named("TCP v4").unwrap().fire()).unwrap().outcome.is_err());
    assert!(!netd.socket().exists() || Client::connect(netd.socket()).is_err());
}

#[test]
fn strangers_cannot_keep_the_others_out() {
    if !may_run("strangers_cannot_keep_the_others_out") {
        return;
    }
    let netd = Netd::start().unwrap();
    let socket = netd.socket();
    std::fs::set_permissions(socket.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let strangers = std::thread::spawn(move || {
        drop_to_user(64124);
        (0..200).map(|_| Client::connect(&socket).unwrap()).collect::<Vec<_>>()
    });
    let strangers = strangers.join().unwrap();
    assert_eq!(netd.client().unwrap().list().unwrap(), []);
    let open = std::fs::read_dir(format!("/proc/{}/fd", netd.pid())).unwrap().count();
    assert!(open < 100, "{open} descriptors for {} strangers", strangers.len());
}

#[test]
fn the_selftest_of_this_host_holds() {
    if !may_run("the_selftest_of_this_host_holds") {
        return;
    }
    let netd = Netd::start().unwrap();
    let out = netd.command_line(&["selftest", "--json"]).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), &report["held"]), (Some(0), &true.into()), "{report:#}");
    assert!(report["probes"].as_array().unwrap().len() >= 11);
}

#[test]
fn two_netds_never_run_over_one_socket() {
    if !may_run("two_netds_never_run_over_one_socket") {
        return;
    }
    let netd = Netd::start().unwrap();
    let second = netd.command_line(&["serve"]).unwrap();
    assert_eq!(second.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&second.stderr).contains("be the only netd"), "{second:?}");
    assert!(netd.client().unwrap().list().is_ok(), "the first one lives");
}

#[test]
fn verify_sees_what_the_independent_witness_sees() {
    if !may_run("verify_sees_what_the_independent_witness_sees") {
        return;
    }
    let netd = Netd::start().unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    let confined = netd.confine(&mut client, &netns, &id("a")).unwrap();
    assert_eq!(client.verify(Some(&id("a"))).unwrap(), []);
    assert_eq!(netd.command_line(&["verify"]).unwrap().status.code(), Some(0));

    // nft, which is not ours, reads the kernel's rules as the text that netd renders.
    let text = client.render(&id("a")).unwrap();
    let loaded = Namespace::new().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let without_flags: String =
        text.lines().filter(|line| !line.contains("flags owner")).map(|l| l.to_owned() + "\n").collect();
    std::fs::write(file.path(), without_flags).unwrap();
    let listing = |netns: &Namespace| {
        let out = netns.run(|| nft(&["--stateless", "list", "table", "inet", "darwin"])).unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines()
            .filter(|line| line.starts_with("\t\t") || line.contains("chain"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let load = || {
        links::raise_loopback()?;
        nft(&["-f", file.path().to_str().unwrap()])
    };
    let loading = loaded.run(load).unwrap();
    assert!(loading.status.success(), "{}", String::from_utf8_lossy(&loading.stderr));
    assert_eq!(listing(&netns), listing(&loaded));
    assert!(listing(&netns).len() > 50);

    // Root inside cannot change the table, but can take the decoy away and add tables of its own.
    netns.run(|| nft(&["add", "table", "inet", "other"])).unwrap();
    assert_eq!(client.list().unwrap()[0].foreign_tables, 1);
    if confined.owner {
        netns.run(|| nft(&["flush", "ruleset"])).unwrap();
        netns.run(|| nft(&["delete", "table", "inet", "darwin"])).unwrap();
        assert_eq!(client.verify(None).unwrap(), []);
    }
    netns.run(|| links::add_veth("veth0", &loaded)).unwrap();
    let found = client.verify(None).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].what.contains("veth0"), "{found:?}");
    let command = netd.command_line(&["verify", "--agent", "a"]).unwrap();
    assert_eq!(command.status.code(), Some(1));
}

#[test]
fn an_independent_reader_finds_default_drop_on_every_hook_and_the_same_counters() {
    if !may_run("an_independent_reader_finds_default_drop_on_every_hook_and_the_same_counters") {
        return;
    }
    let netd = Netd::start().unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    netd.confine(&mut client, &netns, &id("a")).unwrap();
    drop(netns.run(|| Attack::named("DNS outside over UDP").unwrap().fire()).unwrap());
    let rules = netns.run(|| Ok(nftables::helper::get_current_ruleset()?)).unwrap();
    let (mut hooks, mut counters) = (Vec::new(), BTreeMap::new());
    for object in rules.objects.iter() {
        if let NfObject::ListObject(NfListObject::Chain(chain)) = object {
            hooks.extend(chain.hook.map(|hook| (hook, chain.policy)));
        }
        let NfObject::ListObject(NfListObject::Rule(rule)) = object else { continue };
        for statement in rule.expr.iter() {
            if let Statement::Counter(Counter::Anonymous(Some(found))) = statement {
                let packets = u64::try_from(found.packets.unwrap_or(0)).unwrap();
                counters.insert(rule.chain.to_string(), packets);
            }
        }
    }
    let drop = Some(NfChainPolicy::Drop);
    assert_eq!(hooks, [(NfHook::Output, drop), (NfHook::Input, drop), (NfHook::Forward, drop)]);
    let ours = client.list().unwrap().remove(0).drops;
    assert_eq!(counters, ours);
    assert_eq!(ours["dns_attempt"], 1);
}

#[test]
fn a_refused_attempt_becomes_a_signal_of_its_kind() {
    if !may_run("a_refused_attempt_becomes_a_signal_of_its_kind") {
        return;
    }
    let netd = Netd::start().unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    netd.confine(&mut client, &netns, &id("a")).unwrap();
    let attacks = [
        "TCP v4",
        "DNS outside over UDP",
        "metadata 169.254.169.254",
        "host address 172.17.0.1",
        "ICMP v4",
        "raw IP protocol 253",
    ];
    for name in attacks {
        drop(netns.run(|| Attack::named(name).unwrap().fire()).unwrap());
    }
    let fired = Instant::now();
    wait_until("all six kinds are in the spool", || netd.signals().unwrap().len() >= attacks.len());
    // NFLOG's own default would keep them for a second.
    assert!(fired.elapsed() < Duration::from_millis(500), "{:?}", fired.elapsed());
    let signals = netd.signals().unwrap();
    let names: Vec<_> = signals.iter().map(|signal| signal.name.as_str()).collect();
    assert_eq!(
        names,
        ["direct_attempt", "dns_attempt", "metadata_probe", "lan_probe", "icmp_attempt", "raw_attempt"]
    );
    let first = serde_json::to_value(&signals[0]).unwrap();
    assert_eq!(first["agent"], "a");
    assert_eq!(first["source"], "netd");
    assert_eq!(first["detail"]["protocol"], "tcp");
    assert_eq!(first["detail"]["address"], "198.18.0.9");
    assert_eq!(first["detail"]["port"], 443);
}

#[test]
fn a_flood_of_one_class_hides_no_other_and_is_counted_exactly() {
    if !may_run("a_flood_of_one_class_hides_no_other_and_is_counted_exactly") {
        return;
    }
    let netd = Netd::start().unwrap();
    let (netns, mut client) = (Namespace::new().unwrap(), netd.client().unwrap());
    netd.confine(&mut client, &netns, &id("a")).unwrap();
    netns
        .run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            for _ in 0..20_000 {
                drop(socket.send_to(b"flood", "198.18.0.9:9"));
            }
            Ok(())
        })
        .unwrap();
    drop(netns.run(|| Attack::named("metadata 169.254.169.254").unwrap().fire()).unwrap());
    let drops = client.list().unwrap().remove(0).drops;
    assert_eq!(drops["direct_attempt"], 20_000);
    assert_eq!(drops["metadata_probe"], 1);
    client.release(&id("a")).unwrap();
    let signals = netd.signals().unwrap();
    assert_eq!(signals.iter().filter(|signal| signal.name == "metadata_probe").count(), 1);
    assert!(signals.len() < 100, "{} lines", signals.len());
}

#[test]
fn the_command_line_confines_lists_renders_and_releases() {
    if !may_run("the_command_line_confines_lists_renders_and_releases") {
        return;
    }
    let netd = Netd::start().unwrap();
    let netns = Namespace::new().unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&netns.as_fd()));
    let run = |arguments: &[&str]| {
        let out = netd.command_line(arguments).unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    assert_eq!(run(&["confine", "--netns", &path, "--agent", "a", "--profile", "p"]).0, Some(0));
    assert_eq!(run(&["confine", "--netns", &path, "--agent", "a", "--profile", "p"]).0, Some(1));
    let (code, listed) = run(&["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((code, &listed[0]["agent"], &listed[0]["state"]), (Some(0), &"a".into(), &"up".into()));
    assert!(run(&["render", "--agent", "a"]).1.starts_with("table inet darwin {\n"));
    assert_eq!(run(&["release", "--agent", "a"]).0, Some(0));
    assert_eq!(run(&["release", "--agent", "a"]).0, Some(1));
    assert_eq!(run(&["list", "--json"]).1, "[]\n");
    assert_eq!(run(&["release", "--agent", "A:"]).0, Some(3));
    assert_eq!(run(&["no-such-command"]).0, Some(3));
    assert_eq!(run(&["--check-config"]).0, Some(0));
}
