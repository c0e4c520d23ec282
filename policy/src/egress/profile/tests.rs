use super::*;

fn rule(action: &str, host: &str) -> RuleText {
    RuleText { action: Some(action.into()), host: Some(host.into()), ..RuleText::default() }
}

fn mistakes(rules: Vec<RuleText>) -> Vec<(String, MistakeKind)> {
    let text = ProfileText { rules, ..ProfileText::default() };
    match compile(&ProfileName::parse("p").unwrap(), &text) {
        Ok(_) => Vec::new(),
        Err(found) => found.into_iter().map(|mistake| (mistake.path, mistake.kind)).collect(),
    }
}

#[test]
fn sound_rules_load() {
    let mut address = rule("allow", "");
    address.host = None;
    address.address = Some("9.9.9.9".into());
    let mut pinned = address.clone();
    pinned.address = Some("10.1.2.3".into());
    pinned.pin = vec!["10.1.2.3".into()];
    let full = RuleText {
        ports: Some(vec![443, 8443]),
        tls: Some("required".into()),
        sni: vec!["other.example".into()],
        pin: vec!["10.1.2.3".into(), "::1".into()],
        ech: Some("refuse".into()),
        idle_s: Some(5),
        ..rule("allow", "API.example.com.")
    };
    let opaque =
        RuleText { tls: Some("opaque".into()), ports: Some(vec![22]), ..rule("allow", "git.example.com") };
    let rules = vec![
        full,
        opaque,
        address,
        pinned,
        rule("allow", "*.example.com"),
        rule("deny", "*"),
        rule("deny", "*.com"),
        rule("deny", "api.example.com"),
        rule("report", "new.example.com"),
        rule("deny", "metadata.goog"),
    ];
    assert_eq!(mistakes(rules), []);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table, a mistake a row")]
fn each_mistake_is_found_at_its_place() {
    let found = |text: &str| text.to_owned();
    let with = |change: fn(&mut RuleText)| {
        let mut rule = rule("allow", "a.example");
        change(&mut rule);
        rule
    };
    for (bad, path, kind) in [
        (
            rule("permit", "a.example"),
            "action",
            MistakeKind::UnknownWord { found: found("permit"), known: "allow, deny, report" },
        ),
        (rule("allow", "E:443"), "host", MistakeKind::PortInHost { found: found("E:443") }),
        (rule("allow", "9.9.9.9"), "host", MistakeKind::AddressInHost { found: found("9.9.9.9") }),
        (rule("allow", "[::1]"), "host", MistakeKind::AddressInHost { found: found("[::1]") }),
        (rule("allow", "a.*.example"), "host", MistakeKind::BadWildcard { found: found("a.*.example") }),
        (rule("allow", "*.com"), "host", MistakeKind::PublicSuffix { found: found("*.com") }),
        (rule("report", "*.co.uk"), "host", MistakeKind::PublicSuffix { found: found("*.co.uk") }),
        (rule("allow", "*"), "host", MistakeKind::EveryHost),
        (
            rule("allow", "metadata.google.internal"),
            "host",
            MistakeKind::Metadata { found: found("metadata.google.internal") },
        ),
        (rule("allow", "*.metadata.goog"), "host", MistakeKind::Metadata { found: found("*.metadata.goog") }),
        (with(|r| r.ports = Some(vec![0])), "ports[0]", MistakeKind::BadPort { found: 0 }),
        (with(|r| r.ports = Some(vec![443, 65_536])), "ports[1]", MistakeKind::BadPort { found: 65_536 }),
        (with(|r| r.ports = Some(vec![])), "ports", MistakeKind::Empty),
        (with(|r| r.ports = Some(vec![443, 443])), "ports", MistakeKind::Twice { found: found("443") }),
        (
            with(|r| r.pin = vec!["169.254.169.254".into()]),
            "pin[0]",
            MistakeKind::Metadata { found: found("169.254.169.254") },
        ),
        (with(|r| r.pin = vec!["127.1".into()]), "pin[0]", MistakeKind::BadAddress { found: found("127.1") }),
        (
            with(|r| r.pin = vec!["0.0.0.0".into()]),
            "pin[0]",
            MistakeKind::RefusedAddress { found: found("0.0.0.0"), class: "unspecified", pinnable: false },
        ),
        (
            with(|r| r.idle_s = Some(0)),
            "idle_s",
            MistakeKind::OutOfRange { found: 0, least: 1, most: 86_400 },
        ),
        (
            with(|r| r.quota = Some(QuotaText { tunnels: Some(1), ..QuotaText::default() })),
            "quota.tunnels",
            MistakeKind::NotEnforced,
        ),
        (with(|r| r.address = Some("9.9.9.9".into())), "address", MistakeKind::HostAndAddress),
        (
            with(|r| {
                r.host = None;
                r.address = Some("127.0.0.1".into());
            }),
            "address",
            MistakeKind::RefusedAddress { found: found("127.0.0.1"), class: "loopback", pinnable: true },
        ),
        (
            with(|r| {
                r.tls = Some("opaque".into());
                r.sni = vec!["b.example".into()];
            }),
            "sni",
            MistakeKind::NoEffect("is opaque"),
        ),
        (
            with(|r| {
                r.action = Some("deny".into());
                r.pin = vec!["10.0.0.1".into()];
            }),
            "pin",
            MistakeKind::NoEffect("denies"),
        ),
        (
            with(|r| r.sni = vec!["*.b.example".into()]),
            "sni[0]",
            MistakeKind::BadWildcard { found: found("*.b.example") },
        ),
    ] {
        assert_eq!(mistakes(vec![bad]), [(format!("rules[0].{path}"), kind)]);
    }
}

#[test]
fn rules_need_an_action_and_one_host() {
    let missing = mistakes(vec![RuleText::default()]);
    let at = "rules[0]".to_owned();
    assert_eq!(
        missing,
        [(at.clone(), MistakeKind::Missing("action")), (at, MistakeKind::Missing("host or address"))]
    );
}

#[test]
fn mistakes_are_reported_all_at_once() {
    let mut bad = rule("allow", "a..b");
    bad.ports = Some(vec![0, 70_000]);
    bad.tls = Some("maybe".into());
    assert_eq!(mistakes(vec![bad, rule("allow", "*.com"), rule("deny", "x:1")]).len(), 6);
}

#[test]
fn two_rules_may_not_say_the_same() {
    let other = RuleText { ports: Some(vec![8443, 443]), ..rule("allow", "A.example.") };
    let found = mistakes(vec![rule("allow", "a.example"), other, rule("deny", "a.example")]);
    assert_eq!(found, [("rules[1]".to_owned(), MistakeKind::Duplicate { other: 0, port: "443".into() })]);
}

#[test]
fn an_unknown_mode_does_not_load() {
    let text = ProfileText { mode: Some("open".into()), ..ProfileText::default() };
    let found = compile(&ProfileName::parse("p").unwrap(), &text).unwrap_err();
    assert_eq!(found[0].path, "mode");
    assert_eq!(found.len(), 1);
}
