use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::ProfileName;
use crate::egress::hello::tests::hello_for;
use crate::egress::{Permit, ProfileText, RuleText, compile, judge_answers, judge_hello, nearest};

/// `allow a.example 443,8443`, with `tls=..`, `sni=..`, `pin=..`, `ech=..` after it.
fn rule(line: &str) -> RuleText {
    let mut words = line.split(' ');
    let mut text = RuleText { action: words.next().map(Into::into), ..RuleText::default() };
    let host = words.next().unwrap().to_owned();
    if host.parse::<IpAddr>().is_ok() {
        text.address = Some(host);
    } else {
        text.host = Some(host);
    }
    for word in words {
        match word.split_once('=') {
            None => text.ports = Some(word.split(',').map(|port| port.parse().unwrap()).collect()),
            Some(("tls", value)) => text.tls = Some(value.into()),
            Some(("ech", value)) => text.ech = Some(value.into()),
            Some(("sni", value)) => text.sni = value.split(',').map(Into::into).collect(),
            Some(("pin", value)) => text.pin = value.split(',').map(Into::into).collect(),
            Some(other) => panic!("{other:?}"),
        }
    }
    text
}

fn profile(mode: &str, report_only: bool, rules: &[&str]) -> Profile {
    let text = ProfileText {
        mode: Some(mode.into()),
        report_only: Some(report_only),
        rules: rules.iter().map(|line| rule(line)).collect(),
    };
    compile(&ProfileName::parse("p").unwrap(), &text).unwrap()
}

fn default(rules: &[&str]) -> Profile {
    profile("deny-by-default", false, rules)
}

fn host() -> Surroundings {
    Surroundings {
        own_addresses: vec!["9.9.9.1".parse().unwrap(), "10.0.0.9".parse().unwrap()],
        own_ports: vec![3128],
    }
}

fn ask(profile: &Profile, target: &str) -> Result<Permit, Refusal> {
    decide(Some(profile), &Authority::parse(target.as_bytes()).unwrap(), &host())
}

fn code(profile: &Profile, target: &str) -> Option<Code> {
    ask(profile, target).err().map(|refusal| refusal.code)
}

#[test]
fn an_empty_profile_allows_nothing() {
    for target in ["a.example:443", "localhost:443"] {
        assert_eq!(code(&default(&[]), target), Some(Code::HostNotAllowed));
    }
    assert_eq!(code(&default(&[]), "9.9.9.9:443"), Some(Code::IpLiteral));
}

#[test]
fn a_missing_profile_refuses_everything() {
    let wanted = Authority::parse(b"a.example:443").unwrap();
    assert_eq!(decide(None, &wanted, &host()), Err(Refusal::of(Code::NoProfile)));
}

#[test]
fn names_match_at_label_boundaries() {
    let profile = default(&["allow trusted.net", "allow *.wild.net"]);
    for target in ["trusted.net:443", "TRUSTED.net.:443", "a.wild.net:443", "a.b.wild.net:443"] {
        assert_eq!(code(&profile, target), None, "{target}");
    }
    for target in [
        "nottrusted.net:443",
        "trusted.net.evil.example:443",
        "a.trusted.net:443",
        "wild.net:443",
        "xwild.net:443",
    ] {
        assert_eq!(code(&profile, target), Some(Code::HostNotAllowed), "{target}");
    }
}

#[test]
fn ports_are_443_unless_a_rule_says_otherwise() {
    let profile = default(&["allow a.example", "allow b.example 80,8443 tls=opaque"]);
    assert_eq!(code(&profile, "a.example:443"), None);
    assert_eq!(code(&profile, "b.example:80"), None);
    assert_eq!(code(&profile, "a.example:80"), Some(Code::PortNotAllowed));
    assert_eq!(code(&profile, "a.example:9999"), Some(Code::PortNotAllowed));
    assert_eq!(code(&profile, "b.example:443"), Some(Code::PortNotAllowed));
}

#[test]
fn deny_beats_allow_and_names_its_rule() {
    let profile = default(&["allow a.example", "deny *", "allow b.example"]);
    let refusal = ask(&profile, "a.example:443").unwrap_err();
    assert_eq!(refusal.code, Code::DeniedByRule);
    assert_eq!(refusal.rule.unwrap().to_string(), "rules[1] deny *");
    let narrow = default(&["allow *.example.com", "deny E.example.com"]);
    assert_eq!(code(&narrow, "e.example.com.:443"), Some(Code::DeniedByRule));
    assert_eq!(code(&narrow, "f.example.com:443"), None);
}

#[test]
fn a_deny_without_ports_covers_every_port() {
    let profile = default(&[
        "allow a.example 80,443",
        "deny *.b.example",
        "allow x.b.example 80",
        "allow c.example 80,443",
        "deny c.example 80",
    ]);
    assert_eq!(code(&profile, "x.b.example:80"), Some(Code::DeniedByRule));
    assert_eq!(code(&profile, "c.example:80"), Some(Code::DeniedByRule));
    assert_eq!(code(&profile, "c.example:443"), None);
}

#[test]
fn addresses_need_a_rule_of_their_own() {
    let profile = default(&["allow a.example", "allow 9.9.9.9", "allow 10.1.2.3 pin=10.1.2.3"]);
    assert_eq!(code(&profile, "9.9.9.9:443"), None);
    assert_eq!(code(&profile, "10.1.2.3:443"), None);
    for target in [
        "140.82.114.4:443",
        "[2606:50c0::1]:443",
        "10.1.2.4:443",
        "127.0.0.1:443",
        "[::ffff:127.0.0.1]:443",
        "[::ffff:7f00:1]:443",
        "[::ffff:9.9.9.9]:443",
    ] {
        assert_eq!(code(&profile, target), Some(Code::IpLiteral), "{target}");
    }
}

#[test]
fn metadata_and_the_proxy_itself_are_never_reached() {
    let profile = profile("public", true, &[]);
    for target in
        ["169.254.169.254:80", "[::ffff:a9fe:a9fe]:80", "metadata.google.internal:443", "x.metadata.goog:443"]
    {
        assert_eq!(code(&profile, target), Some(Code::Metadata), "{target}");
    }
    for target in [
        "127.0.0.1:3128",
        "127.9.9.9:3128",
        "[::1]:3128",
        "9.9.9.1:3128",
        "0.0.0.0:3128",
        "[::ffff:127.0.0.1]:3128",
        "10.0.0.9:3128",
    ] {
        assert_eq!(code(&profile, target), Some(Code::Loop), "{target}");
    }
    assert_eq!(code(&profile, "9.9.9.2:3128"), None, "reported only: not ours");
}

#[test]
fn public_mode_allows_https_to_any_name_but_resolvers_and_denied_ones() {
    let profile = profile(
        "public",
        false,
        &["deny *.evil.example", "allow ssh.example 22 tls=opaque", "allow dns.quad9.net"],
    );
    assert_eq!(code(&profile, "a.example:443"), None);
    assert_eq!(code(&profile, "ssh.example:22"), None);
    assert_eq!(code(&profile, "ssh.example:443"), None);
    assert_eq!(code(&profile, "dns.quad9.net:443"), None);
    assert_eq!(code(&profile, "a.example:80"), Some(Code::PortNotAllowed));
    assert_eq!(code(&profile, "x.evil.example:443"), Some(Code::DeniedByRule));
    assert_eq!(code(&profile, "dns.google:443"), Some(Code::Resolver));
    assert_eq!(code(&profile, "9.9.9.9:443"), Some(Code::IpLiteral));
}

#[test]
fn report_only_passes_and_says_what_it_would_have_said() {
    let whole = profile("deny-by-default", true, &["deny bad.example"]);
    for (target, expected) in [
        ("a.example:443", Code::HostNotAllowed),
        ("bad.example:443", Code::DeniedByRule),
        ("9.9.9.9:443", Code::IpLiteral),
    ] {
        match ask(&whole, target).unwrap().grounds() {
            Grounds::ReportOnly(refusal) => assert_eq!(refusal.code, expected),
            other @ (Grounds::Rule(_) | Grounds::PublicMode) => panic!("{other:?}"),
        }
    }
    assert_eq!(code(&whole, "10.0.0.1:443"), Some(Code::IpLiteral), "never a private address");
    let single = default(&["report new.example", "allow a.example"]);
    assert!(matches!(ask(&single, "new.example:443").unwrap().grounds(), Grounds::ReportOnly(_)));
    assert!(matches!(ask(&single, "a.example:443").unwrap().grounds(), Grounds::Rule(_)));
    assert_eq!(code(&single, "b.example:443"), Some(Code::HostNotAllowed));
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn dialled(rules: &[&str], target: &str, found: &[&str]) -> Result<Vec<String>, Code> {
    let permit = ask(&default(rules), target).unwrap();
    let answers = judge_answers(&permit, &addresses(found), &host());
    answers.refusal().map_err(|refusal| refusal.code)?;
    Ok(answers.good.iter().map(|destination| destination.address().ip().to_string()).collect())
}

#[test]
fn bad_answers_are_skipped_and_good_ones_used() {
    let plain = |found: &[&str]| dialled(&["allow a.example"], "a.example:443", found);
    assert_eq!(plain(&["10.0.0.5", "8.8.8.8", "8.8.8.8"]), Ok(vec!["8.8.8.8".to_owned()]));
    assert_eq!(plain(&["10.0.0.5"]), Err(Code::AddressRefused));
    assert_eq!(plain(&["10.0.0.5", "169.254.169.254"]), Err(Code::Metadata));
    assert_eq!(plain(&["9.9.9.1"]), Err(Code::AddressRefused), "the host's own");
    assert_eq!(plain(&[]), Err(Code::NameNotFound));
    for found in ["64:ff9b::a00:1", "2002:7f00:1::", "2001:0:808:808::f5ff:fffe", "::ffff:8.8.8.8"] {
        assert_eq!(plain(&[found]), Err(Code::AddressRefused), "{found}");
    }
}

#[test]
fn pins_open_what_they_list_and_nothing_else() {
    let pinned = |found: &[&str]| {
        dialled(&["allow a.example 443,3128 pin=10.1.2.3,127.0.0.1"], "a.example:443", found)
    };
    assert_eq!(pinned(&["10.1.2.3", "10.1.2.4", "8.8.8.8"]), Ok(vec!["10.1.2.3".to_owned()]));
    assert_eq!(pinned(&["127.0.0.1"]), Ok(vec!["127.0.0.1".to_owned()]));
    assert_eq!(pinned(&["10.1.2.4"]), Err(Code::PinMismatch));
    assert_eq!(pinned(&["8.8.8.8"]), Err(Code::PinMismatch));
    assert_eq!(pinned(&["169.254.169.254"]), Err(Code::Metadata));
    let to_us = dialled(&["allow a.example 3128 pin=127.0.0.1"], "a.example:3128", &["127.0.0.1"]);
    assert_eq!(to_us, Err(Code::Loop));
}

#[test]
fn an_address_asked_for_is_the_one_that_is_dialled() {
    assert_eq!(dialled(&["allow 9.9.9.9"], "9.9.9.9:443", &["8.8.8.8"]), Ok(vec!["9.9.9.9".to_owned()]));
    assert_eq!(dialled(&["allow 9.9.9.1"], "9.9.9.1:443", &[]), Err(Code::AddressRefused));
}

fn hello(rules: &[&str], target: &str, sni: Option<&str>, ech: bool) -> Option<Code> {
    let permit = ask(&default(rules), target).unwrap();
    judge_hello(&permit, &hello_for(sni, ech)).err().map(|refusal| refusal.code)
}

#[test]
fn the_server_name_is_the_connect_host() {
    let plain = |sni| hello(&["allow a.example", "allow b.example"], "a.example:443", sni, false);
    assert_eq!(plain(Some("A.example")), None);
    assert_eq!(plain(Some("b.example")), Some(Code::SniMismatch), "equality, not membership");
    assert_eq!(plain(None), Some(Code::SniMissing));
}

#[test]
fn rules_may_list_further_server_names_but_deny_wins() {
    let rules = &["allow a.example sni=b.example,c.bad.example", "deny *.bad.example"];
    assert_eq!(hello(rules, "a.example:443", Some("b.example"), false), None);
    assert_eq!(hello(rules, "a.example:443", Some("c.bad.example"), false), Some(Code::SniDenied));
    assert_eq!(hello(rules, "a.example:443", Some("d.example"), false), Some(Code::SniMismatch));
}

#[test]
fn a_name_may_be_missing_where_a_rule_or_an_address_says_so() {
    let rules = &["allow a.example tls=no-sni", "allow 9.9.9.9"];
    assert_eq!(hello(rules, "a.example:443", None, false), None);
    assert_eq!(hello(rules, "a.example:443", Some("b.example"), false), Some(Code::SniMismatch));
    assert_eq!(hello(rules, "9.9.9.9:443", None, false), None);
    assert_eq!(hello(rules, "9.9.9.9:443", Some("a.example"), false), Some(Code::SniMismatch));
}

#[test]
fn an_encrypted_hello_is_judged_by_its_outer_name() {
    assert_eq!(hello(&["allow a.example"], "a.example:443", Some("a.example"), true), None);
    assert_eq!(
        hello(&["allow a.example"], "a.example:443", Some("b.example"), true),
        Some(Code::SniMismatch)
    );
    assert_eq!(
        hello(&["allow a.example ech=refuse"], "a.example:443", Some("a.example"), true),
        Some(Code::EchRefused)
    );
    assert_eq!(hello(&["allow a.example ech=refuse"], "a.example:443", Some("a.example"), false), None);
}

#[test]
fn report_only_clears_another_server_name_and_says_so() {
    let permit = ask(&profile("deny-by-default", true, &["allow a.example"]), "a.example:443").unwrap();
    let cleared = judge_hello(&permit, &hello_for(Some("b.example"), false)).unwrap();
    assert_eq!(cleared.would_deny().unwrap().code, Code::SniMismatch);
    let cleared = judge_hello(&permit, &hello_for(Some("a.example"), false)).unwrap();
    assert_eq!(cleared.would_deny(), None);
}

#[test]
fn only_an_opaque_rule_needs_no_hello() {
    let profile =
        default(&["allow a.example", "allow b.example 22 tls=opaque", "allow c.example tls=no-sni"]);
    assert!(ask(&profile, "b.example:22").unwrap().without_hello().is_some());
    assert!(ask(&profile, "a.example:443").unwrap().without_hello().is_none());
    assert!(ask(&profile, "c.example:443").unwrap().without_hello().is_none());
}

#[test]
fn a_refusal_hints_at_the_nearest_allowed_thing_only() {
    let profile = default(&[
        "allow api.example.com",
        "allow far.example.org",
        "allow *.wild.example",
        "deny apj.example.com",
    ]);
    let hint = |target: &str| nearest(&profile, &Authority::parse(target.as_bytes()).unwrap());
    assert_eq!(hint("api.example.com:80"), Some("api.example.com:443".into()));
    assert_eq!(hint("ap.example.com:443"), Some("api.example.com:443".into()));
    assert_eq!(hint("wild.example:443"), Some("*.wild.example:443".into()));
    assert_eq!(hint("unrelated.example.net:443"), None);
    assert_eq!(hint("9.9.9.9:443"), None);
}

proptest! {
    #[test]
    fn the_order_of_the_rules_never_matters(
        mut picks in proptest::sample::subsequence(
            vec![
                "allow a.x.com", "allow *.x.com", "deny b.x.com", "deny *.y.com 443", "allow c.y.com 80,443",
                "report d.x.com", "allow *.a.x.com 22 tls=opaque", "deny *.a.x.com 22", "report *.x.com 80", "allow x.com",
            ],
            0..10,
        ).prop_shuffle(),
        target in "([a-d]\\.)?([a-d]\\.)?[xy]\\.com:(22|80|443)",
    ) {
        let outcome = |rules: &[&str]| {
            let permit = ask(&default(rules), &target);
            permit.map(|permit| permit.grounds().rule().map(|rule| (rule.action, rule.host.clone())))
                .map_err(|refusal| (refusal.code, refusal.rule.map(|rule| rule.host)))
        };
        let shuffled = outcome(&picks);
        picks.sort_unstable();
        prop_assert_eq!(shuffled, outcome(&picks));
    }

    #[test]
    fn a_deny_rule_never_widens(target in "([a-c]\\.)?[xy]\\.com:(80|443)", denied in "([a-c]\\.|\\*\\.)?[xy]\\.com") {
        let allows = ["allow *.x.com", "allow x.com", "allow a.y.com 80,443"];
        let deny = format!("deny {denied}");
        let with = [&allows[..], &[&*deny]].concat();
        prop_assert!(ask(&default(&allows), &target).is_ok() || ask(&default(&with), &target).is_err());
    }
}
