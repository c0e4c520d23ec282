use policy::image::Class;

use super::*;

/// 2026-12-01T00:00:00Z.
const NOW: Instant = Instant::from_ms(1_796_083_200_000);

fn mistakes(text: &str) -> Vec<String> {
    parse(text, NOW).map(|_| ()).expect_err("a mistake").iter().map(ToString::to_string).collect()
}

fn policy(text: &str) -> Policy {
    parse(text, NOW).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

const ALLOW: &str = r#"[[allow]]
rule = "setuid"
path = "usr/bin/su"
digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
reason = "login"
owner = "me"
expires = 2026-12-01
"#;

#[test]
fn the_printed_default_reads_back_as_the_default() {
    let (read, built_in) = (policy(&default_text()), Policy::default());
    assert_eq!((read.classes, read.severities), (built_in.classes, built_in.severities));
    assert_eq!((read.fail_on, read.allows), (built_in.fail_on, built_in.allows));
}

#[test]
fn an_empty_policy_is_the_default() {
    assert_eq!(policy("").classes, Policy::default().classes);
    assert_eq!(policy("extends = \"default\"").fail_on, Thresholds::all(Severity::High));
}

#[test]
fn every_part_is_read() {
    let read = policy(&format!(
        "fail_on = {{ hidden = \"low\" }}\n[rules.setgid]\nseverity = \"medium\"\n[classes.network-client]\nadd = \
         [\"MyCurl\"]\nremove = [\"wget\"]\n{ALLOW}"
    ));
    assert_eq!(read.fail_on, Thresholds { hidden: Severity::Low, ..Thresholds::all(Severity::High) });
    assert_eq!(read.severity(Rule::Setgid, Severity::High), Severity::Medium);
    assert!(read.classes.of(b"mycurl").contains_key(&Class::NetworkClient));
    assert!(read.classes.of(b"wget").is_empty());
    assert_eq!((read.allows.len(), read.allows[0].expires.as_str()), (1, "2026-12-01"));
}

#[test]
fn an_allowance_counts_to_the_end_of_its_day() {
    for (day, state) in [
        ("2026-11-30", AllowState::Expired),
        ("2026-12-01", AllowState::InForce),
        ("2026-12-02", AllowState::InForce),
        ("0001-01-01", AllowState::Expired),
    ] {
        assert_eq!(policy(&ALLOW.replace("2026-12-01", day)).allows[0].state, state, "{day}");
    }
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let text = "extends = \"other\"\nfail_on = \"never\"\nfail_of = 1\n[rules.setuids]\nseverity = 3\n\
                [rules.setuid]\nweight = 1\n[classes.shells]\n[classes.shell]\nadd = \"sh\"\nremove = [\"nosuch\", 1]\n";
    let found = mistakes(text);
    let places: Vec<_> = found.iter().map(|m| m.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(
        places,
        ["1:11", "2:11", "3:1", "4:8", "5:12", "7:1", "8:10", "10:7", "11:11", "11:21"],
        "{found:#?}"
    );
}

#[test]
fn an_allowance_lacks_nothing() {
    for key in ["rule", "path", "digest", "reason", "owner", "expires"] {
        let without: Vec<_> = ALLOW.lines().filter(|line| !line.starts_with(key)).collect();
        let without = without.join("\n");
        assert_eq!(mistakes(&without).len(), 1, "{key}");
    }
    for (from, to) in [
        ("usr/bin/su", "/"),
        ("usr/bin/su", "\\\\y"),
        ("sha256:0", "sha256:g"),
        ("\"login\"", "\" \""),
        ("2026-12-01", "\"2026-12-01\""),
        ("2026-12-01", "2026-12-01T00:00:00Z"),
        ("owner", "any = true\nowner"),
        ("\"setuid\"", "\"suid\""),
        ("owner", "comment = \"x\"\nowner"),
    ] {
        assert_eq!(mistakes(&ALLOW.replace(from, to)).len(), 1, "{to}");
    }
    let any: Vec<_> =
        ALLOW.lines().map(|line| if line.starts_with("digest") { "any = true" } else { line }).collect();
    let any = any.join("\n");
    assert_eq!(policy(&any).allows[0].binding, Binding::Any);
}

#[test]
fn what_is_no_toml_has_a_place_too() {
    assert_eq!(mistakes("fail_on = \n").len(), 1);
    assert!(mistakes("fail_on = \"high\"\nfail_on = \"low\"\n")[0].starts_with("2:"));
}
