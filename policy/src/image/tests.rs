use proptest::prelude::*;

use super::*;

fn file(name: &str, mode: u16, form: Form) -> Subject {
    Subject {
        names: vec![ImagePath::clean(name.as_bytes())],
        links: Vec::new(),
        kind: Kind::File,
        mode,
        form,
        digest: Some(Digest([7; 32])),
        capability: None,
        overlay_xattrs: Vec::new(),
        anomalies: Vec::new(),
        visibility: Visibility::Merged,
        note: None,
    }
}

fn rules(subject: &Subject) -> Vec<Rule> {
    findings(subject, &Policy::default()).into_iter().map(|f| f.rule).collect()
}

#[test]
fn each_bit_of_a_file_is_its_own_rule() {
    let table: [(u16, &[Rule]); 7] = [
        (0o0755, &[]),
        (0o4755, &[Rule::Setuid]),
        (0o2755, &[Rule::Setgid]),
        (0o6755, &[Rule::Setuid, Rule::Setgid]),
        (0o4000, &[Rule::Setuid]),
        (0o0666, &[Rule::WorldWritable]),
        (0o1644, &[]),
    ];
    for (mode, expected) in table {
        assert_eq!(rules(&file("usr/bin/x", mode, Form::Elf)), expected, "{mode:04o}");
    }
}

#[test]
fn a_directorys_bits_are_not_a_files() {
    let table: [(&str, u16, &[Rule]); 6] = [
        ("srv", 0o2755, &[Rule::SetidDirectory]),
        ("srv", 0o4755, &[Rule::SetidDirectory]),
        ("srv", 0o0777, &[Rule::WorldWritable]),
        ("tmp", 0o1777, &[]),
        ("usr/bin", 0o0777, &[Rule::WritablePathDir]),
        ("usr/bin", 0o0755, &[]),
    ];
    for (path, mode, expected) in table {
        let subject = Subject { kind: Kind::Directory, ..file(path, mode, Form::Empty) };
        assert_eq!(rules(&subject), expected, "{path} {mode:04o}");
    }
}

#[test]
fn bits_on_a_symlink_raise_no_alarm() {
    let link = Subject { kind: Kind::Symlink(b"/bin/true".to_vec()), ..file("bin/x", 0o4777, Form::Empty) };
    assert_eq!(rules(&link), []);
}

#[test]
fn a_setuid_bit_on_a_script_says_that_the_kernel_ignores_it() {
    let found = findings(&file("x", 0o4755, Form::Script), &Policy::default());
    assert!(found[0].evidence[0].what.contains("ignores"), "{found:?}");
}

#[test]
fn a_name_weighs_as_much_as_its_content_backs_it() {
    let table = [
        (Form::Elf, Severity::Medium),
        (Form::Script, Severity::Medium),
        (Form::Unseen, Severity::Medium),
        (Form::Other, Severity::Low),
        (Form::Empty, Severity::Low),
    ];
    for (form, severity) in table {
        let found = findings(&file("usr/bin/nc", 0o755, form), &Policy::default());
        assert_eq!((found[0].rule, found[0].severity), (Rule::ForbiddenBinary, severity), "{form:?}");
    }
}

#[test]
fn names_of_one_family_are_one_class() {
    let table = [
        ("nc", Some(Class::NetworkClient)),
        ("NC", Some(Class::NetworkClient)),
        ("nc.traditional", Some(Class::NetworkClient)),
        ("nc.openbsd", Some(Class::NetworkClient)),
        ("nc6", Some(Class::NetworkClient)),
        ("n\u{441}", Some(Class::NetworkClient)),
        ("python3.11", Some(Class::Interpreter)),
        ("perl5.36.0", Some(Class::Interpreter)),
        ("x86_64-linux-gnu-gcc-12", Some(Class::Compiler)),
        ("aarch64-alpine-linux-musl-ld", Some(Class::Compiler)),
        ("busybox", Some(Class::Shell)),
        ("bash.real", Some(Class::Shell)),
        ("sudo", Some(Class::PrivilegeTool)),
        ("nmap", Some(Class::Scanner)),
        ("xmrig-6.21", Some(Class::Miner)),
        ("ncurses", None),
        ("once", None),
        ("true", None),
        ("ls", None),
        ("pythonista", None),
        ("libc.so.6", None),
        ("", None),
    ];
    for (name, expected) in table {
        let found = Classes::default().of(name.as_bytes());
        assert_eq!(found.keys().next().copied(), expected, "{name}");
    }
}

#[test]
fn a_class_can_grow_and_shrink() {
    let mut classes = Classes::default();
    classes.add(Class::NetworkClient, "MyCurl");
    assert!(classes.of(b"mycurl").contains_key(&Class::NetworkClient));
    assert!(classes.remove(Class::NetworkClient, "wget"));
    assert!(classes.of(b"wget").is_empty());
    assert!(!classes.remove(Class::NetworkClient, "no-such-name"));
}

#[test]
fn a_link_to_a_tool_is_a_name_of_the_tool() {
    let tool = Subject { links: vec![ImagePath::clean(b"bin/nc")], ..file("opt/harmless", 0o755, Form::Elf) };
    let found = findings(&tool, &Policy::default());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path.to_string(), "bin/nc");
    assert_eq!(found[0].names.len(), 2);
    assert!(findings(&file("opt/harmless", 0o755, Form::Elf), &Policy::default()).is_empty());
}

#[test]
fn an_allowance_is_bound_to_rule_path_and_content() {
    let allow = Allow {
        rule: Rule::Setuid,
        path: ImagePath::clean(b"usr/bin/su"),
        binding: Binding::Digest(Digest([7; 32])),
        reason: "login".into(),
        owner: "me".into(),
        expires: "2099-01-01".into(),
        state: AllowState::InForce,
    };
    let allowed = |allow: Allow, subject: &Subject| {
        let policy = Policy { allows: vec![allow], ..Policy::default() };
        let found = findings(subject, &policy);
        let setuid = found.iter().find(|f| f.rule == Rule::Setuid).expect("setuid");
        (setuid.allowed_by.is_some(), verdict(&policy, &found, true))
    };
    let su = file("usr/bin/su", 0o4755, Form::Elf);
    assert_eq!(allowed(allow.clone(), &su), (true, Verdict::Clean));
    let other = Subject { digest: Some(Digest([8; 32])), ..su.clone() };
    assert_eq!(allowed(allow.clone(), &other), (false, Verdict::Refused));
    let unread = Subject { digest: None, ..su.clone() };
    assert_eq!(allowed(allow.clone(), &unread), (false, Verdict::Refused));
    assert_eq!(allowed(Allow { binding: Binding::Any, ..allow.clone() }, &unread), (true, Verdict::Clean));
    assert_eq!(allowed(allow.clone(), &file("bin/su", 0o4755, Form::Elf)), (false, Verdict::Refused));
    assert_eq!(allowed(Allow { rule: Rule::Setgid, ..allow.clone() }, &su), (false, Verdict::Refused));
    assert_eq!(allowed(Allow { state: AllowState::Expired, ..allow }, &su), (false, Verdict::Refused));
}

#[test]
fn what_could_not_be_told_outranks_what_was_found() {
    let policy = Policy::default();
    let merged = findings(&file("x", 0o4755, Form::Elf), &policy);
    let hidden = Subject { visibility: Visibility::Hidden, ..file("x", 0o4755, Form::Elf) };
    let hidden = findings(&hidden, &policy);
    let ambiguous = Subject { visibility: Visibility::Ambiguous, ..file("x", 0o4755, Form::Elf) };
    let ambiguous = findings(&ambiguous, &policy);
    let both: Vec<_> = merged.iter().chain(&ambiguous).cloned().collect();
    assert_eq!(verdict(&policy, &[], true), Verdict::Clean);
    assert_eq!(verdict(&policy, &[], false), Verdict::CouldNotTell);
    assert_eq!(verdict(&policy, &merged, true), Verdict::Refused);
    assert_eq!(verdict(&policy, &hidden, true), Verdict::Refused);
    assert_eq!(verdict(&policy, &ambiguous, true), Verdict::CouldNotTell);
    assert_eq!(verdict(&policy, &merged, false), Verdict::CouldNotTell);
    assert_eq!(verdict(&policy, &both, true), Verdict::CouldNotTell);
    assert_eq!(verdict(&policy, both.iter().rev(), true), Verdict::CouldNotTell);
}

#[test]
fn a_threshold_counts_its_own_severity() {
    let subject = file("srv/x", 0o666, Form::Other);
    for (fail_on, expected) in [(Severity::Low, Verdict::Refused), (Severity::Medium, Verdict::Clean)] {
        let policy = Policy { fail_on: Thresholds::all(fail_on), ..Policy::default() };
        assert_eq!(verdict(&policy, &findings(&subject, &policy), true), expected);
    }
}

#[test]
fn verdicts_and_exit_codes_are_one_to_one() {
    let codes = [Verdict::Clean, Verdict::Refused, Verdict::CouldNotTell].map(|v| v.exit().code());
    assert_eq!(codes, [0, 1, 2]);
}

#[test]
fn names_of_rules_severities_and_classes_read_back() {
    for r in Rule::ALL {
        assert_eq!(Rule::parse(r.name()), Some(r));
    }
    for s in Severity::ALL {
        assert_eq!(Severity::parse(s.name()), Some(s));
    }
    for c in Class::ALL {
        assert_eq!(Class::parse(c.name()), Some(c));
    }
    assert_eq!((Rule::parse("Setuid"), Severity::parse("HIGH"), Class::parse("")), (None, None, None));
}

#[test]
fn capabilities_of_all_three_versions_are_read() {
    let value = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let net_raw =
        FileCapability { version: 2, effective: true, names: vec!["cap_net_raw".into()], root_id: None };
    assert_eq!(FileCapability::parse(&value(&[0x0200_0001, 1 << 13, 0, 0, 0])), Ok(net_raw.clone()));
    let old = FileCapability { version: 1, ..net_raw.clone() };
    assert_eq!(FileCapability::parse(&value(&[0x0100_0001, 1 << 13, 0])), Ok(old));
    let rooted = FileCapability { version: 3, root_id: Some(1000), ..net_raw };
    assert_eq!(FileCapability::parse(&value(&[0x0300_0001, 1 << 13, 0, 0, 0, 1000])), Ok(rooted));
    let high = FileCapability::parse(&value(&[0x0200_0000, 0, 0, 1 << 7, 1 << 31])).expect("version 2");
    assert_eq!(high.names, ["cap_bpf", "cap_63"]);
    for bad in [&[][..], &[0x0200_0001], &[0x0400_0001, 0, 0, 0, 0], &[0x0200_0001, 0, 0, 0, 0, 0]] {
        assert!(FileCapability::parse(&value(bad)).is_err(), "{bad:?}");
    }
}

#[test]
fn a_malformed_capability_is_still_a_finding() {
    let subject = Subject { capability: Some(b"\n".to_vec()), ..file("ping", 0o755, Form::Elf) };
    assert!(rules(&subject).contains(&Rule::FileCapability));
}

#[test]
fn names_are_cleaned_as_go_cleans_them() {
    let table = [
        ("/bin/su", "bin/su"),
        ("./bin//su", "bin/su"),
        ("bin/../../../bin/su", "bin/su"),
        ("..", ""),
        ("/", ""),
        ("a/./b/", "a/b"),
        ("a/..b", "a/..b"),
    ];
    for (name, expected) in table {
        assert_eq!(ImagePath::clean(name.as_bytes()).to_string(), expected, "{name}");
    }
}

#[test]
fn no_name_redraws_the_terminal() {
    assert_eq!(escape(b"s\xff\xfeu\n\x1b[2J\\"), "s\\xff\\xfeu\\x0a\\x1b[2J\\\\");
    assert_eq!(escape("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
    assert_eq!(escape("caf\u{e9}".as_bytes()), "caf\u{e9}");
}

proptest! {
    #[test]
    fn printing_a_path_can_be_undone(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let path = ImagePath::clean(&bytes);
        prop_assert_eq!(ImagePath::unescape(&path.to_string()), Ok(path));
    }

    #[test]
    fn cleaning_twice_changes_nothing(bytes in prop::collection::vec(prop::sample::select(b"a./".to_vec()), 0..30)) {
        let path = ImagePath::clean(&bytes);
        prop_assert_eq!(&ImagePath::clean(path.as_bytes()), &path);
        prop_assert!(path.as_bytes().split(|&b| b == b'/').all(|part| part != b".." && part != b"."));
    }

    #[test]
    fn every_family_begins_with_the_name_and_ends(base in prop::collection::vec(any::<u8>(), 0..40)) {
        prop_assert!(!family(&base).is_empty());
    }

    #[test]
    fn incomplete_is_never_clean(mode in 0_u16..0o10000, base in "[a-z.0-9]{0,8}") {
        let policy = Policy::default();
        let found = findings(&file(&base, mode, Form::Elf), &policy);
        prop_assert_eq!(verdict(&policy, &found, false), Verdict::CouldNotTell);
    }
}
