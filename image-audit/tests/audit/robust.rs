//! Whatever the bytes: no panic, no more than the limits, and never clean when something is missing.

use image_audit::{Limits, Source, audit};
use policy::image::{Policy, Verdict};
use proptest::prelude::*;

use crate::craft::*;

fn is_clean(archive: &[u8]) -> bool {
    audit_bytes(archive, &Policy::default()).is_ok_and(|report| report.verdict() == Verdict::Clean)
}

fn sample() -> Vec<u8> {
    docker_archive(&[
        tar(&[directory("bin/", 0o755), pax(&[("path", b"bin/true")]), file("bin/true", 0o755)]),
        tar(&[file("bin/.wh.true", 0o644).data(b""), file("etc/x", 0o644).data(&[7; 1500])]),
    ])
}

#[test]
fn a_cut_at_any_block_is_never_clean() {
    let archive = sample();
    assert!(is_clean(&archive));
    for end in (0..archive.len()).step_by(512) {
        assert!(!is_clean(archive.get(..end).expect("shorter")), "cut at {end}");
    }
    for end in (1..archive.len()).step_by(97) {
        assert!(!is_clean(archive.get(..end).expect("shorter")), "cut at {end}");
    }
}

/// The archive and its manifest are whole: only a layer is not, and its digests agree with what is left.
#[test]
fn a_layer_cut_at_any_block_is_never_clean() {
    let layer = tar(&[file("bin/a", 0o755).data(&[1; 700]), file("bin/b", 0o755)]);
    assert_eq!(code(&scan_raw(std::slice::from_ref(&layer))), 0);
    for end in (0..layer.len()).step_by(512) {
        let report = scan_raw(&[layer.get(..end).expect("shorter").to_vec()]);
        assert_eq!(code(&report), 2, "cut at {end}");
    }
}

#[test]
fn limits_are_named_and_never_clean() {
    let long = vec![b'n'; 3000];
    let archive = docker_archive(&[tar(&[pax(&[("path", &long)]), file("x", 0o644), file("y", 0o644)])]);
    let disk = on_disk(&archive);
    let why = |limits: Limits| {
        let report =
            audit(&Source::DockerArchive(disk.path().into()), &Policy::default(), &limits).expect("an image");
        let why = report.incomplete.first().map(|i| i.why.clone()).unwrap_or_default();
        (code(&report), why)
    };
    assert_eq!(why(Limits::default()), (0, String::new()));
    for (limits, number) in [
        (Limits { name_bytes_max: 2000, ..Limits::default() }, "2000"),
        (Limits { pax_bytes_max: 1000, ..Limits::default() }, "1000"),
        (Limits { bytes_max: 600, ..Limits::default() }, "600"),
    ] {
        let (code, why) = why(limits);
        assert!(code == 2 && why.contains(number), "{code} {why}");
    }
}

/// The exit code and what is missing. A member stands before the others, so that the tar is one.
fn of_limits(members: &[Member], limits: Limits) -> (u8, String) {
    let disk = on_disk(&tar(&[&[file("first", 0o644)], members].concat()));
    match audit(&Source::Tar(disk.path().into()), &Policy::default(), &limits) {
        Ok(report) => (code(&report), report.incomplete.iter().map(|i| i.why.clone()).collect()),
        Err(error) => (error.exit().code(), format!("{error:?}")),
    }
}

fn global(key: &str, value: &[u8]) -> Member {
    node("pax", b'g', 0o644).data(&record(key, value))
}

#[test]
fn global_records_over_the_limit_are_named_and_those_under_it_are_read() {
    let keys: Vec<String> = (0..40).map(|number| format!("comment.{number}")).collect();
    let mut members: Vec<Member> = keys.iter().map(|key| global(key, b"some text")).collect();
    members.push(file("x", 0o644));
    assert_eq!(of_limits(&members, Limits::default()), (0, String::new()));
    for limits in [
        Limits { global_records_max: 39, ..Limits::default() },
        Limits { global_bytes_max: 500, ..Limits::default() },
    ] {
        let (code, why) = of_limits(&members, limits);
        assert!(code == 2 && why.contains("global extended headers"), "{code} {why}");
    }
    // One key again and again is one record.
    let mut again: Vec<Member> = (0..40).map(|_| global("comment", b"some text")).collect();
    again.push(file("x", 0o644));
    assert_eq!(of_limits(&again, Limits { global_records_max: 1, ..Limits::default() }).0, 0);
}

#[test]
fn anomalies_over_the_limit_are_named_and_those_under_it_are_kept() {
    let long = vec![b'n'; 3000];
    let mut members = vec![global("path", &long)];
    members.extend((0..10).map(|number| file(format!("x{number}"), 0o644)));
    let (_, why) = of_limits(&members, Limits::default());
    assert!(!why.contains("bytes of anomalies"), "{why}");
    let (code, why) = of_limits(&members, Limits { anomaly_bytes_max: 20_000, ..Limits::default() });
    assert!(code == 2 && why.contains("more than 20000 bytes of anomalies"), "{code} {why}");
    // Headers that no member follows are held as well.
    let mut waiting: Vec<Member> = (0..100).map(|_| pax(&[("comment", b"x")])).collect();
    waiting.push(file("x", 0o644));
    let (code, why) = of_limits(&waiting, Limits { anomaly_bytes_max: 1000, ..Limits::default() });
    assert!(code == 2 && why.contains("more than 1000 bytes of anomalies"), "{code} {why}");
}

/// A member of random kind, name, mode and target: few names, so that they meet.
fn any_member() -> impl Strategy<Value = Member> {
    let name = prop::sample::select(vec![
        "a",
        "a/b",
        "a/b/c",
        "b",
        "b/c",
        ".wh.a",
        "a/.wh.b",
        "a/.wh..wh..opq",
        ".wh..wh..opq",
        "./a",
        "a/../b",
        "a/.wh.",
    ]);
    let target = prop::sample::select(vec!["a", "b", "/a/b", "..", "b/c", "nowhere"]);
    let kind = prop::sample::select(b"0123567SZ".to_vec());
    (name, kind, 0_u32..0o10000, target).prop_map(|(name, kind, mode, target)| match kind {
        b'1' => hardlink(name, target, mode),
        b'2' => symlink(name, target),
        b'0' => file(name, mode),
        kind => node(name, kind, mode),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_layer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        prop_assert!(!is_clean(&bytes));
        prop_assert!(!is_clean(&docker_archive(&[bytes])));
    }

    #[test]
    fn no_flipped_byte_is_clean(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut archive = sample();
        let at = at.index(archive.len());
        // Past a member's last byte a change is filling, and changes nothing.
        archive[at] ^= 1 << bit;
        if let Ok(report) = audit_bytes(&archive, &Policy::default()) {
            let clean = report_on(&sample());
            prop_assert!(report.verdict() != Verdict::Clean || report.findings == clean.findings);
        }
    }

    /// Whatever whiteouts, links and duplicates do: a setuid bit that is in a blob is in the report.
    #[test]
    fn nothing_that_an_entry_brings_is_dropped(
        stack in prop::collection::vec(prop::collection::vec(any_member(), 0..8), 1..4),
    ) {
        let layers: Vec<&[Member]> = stack.iter().map(Vec::as_slice).collect();
        let mut with = stack.clone();
        with.first_mut().into_iter().for_each(|layer| layer.push(file("a/b", 0o4711).data(b"unmistakable")));
        let with: Vec<&[Member]> = with.iter().map(Vec::as_slice).collect();
        let setuid = |layers: &[&[Member]]| {
            scan(layers).findings.iter().filter(|r| r.finding.mode == Some(0o4711)).count()
        };
        prop_assert!(setuid(&with) > 0 || setuid(&layers) > 0);
    }

    #[test]
    fn the_same_bytes_give_the_same_report(stack in prop::collection::vec(prop::collection::vec(any_member(), 0..6), 1..3)) {
        let layers: Vec<&[Member]> = stack.iter().map(Vec::as_slice).collect();
        let (one, two) = (scan(&layers), scan(&layers));
        prop_assert_eq!(one.findings, two.findings);
    }
}
