//! Ways to hide a setuid file or a tool, each beside an image that is the same but for the trick.

use image_audit::Report;

use crate::craft::*;

/// Found exactly these, everything was read, and the exit code is that.
#[track_caller]
fn expect(report: &Report, exit: u8, findings: &[&str]) {
    assert!(report.is_complete(), "{:?}", report.incomplete);
    assert_eq!((code(report), found(report)), (exit, findings.iter().map(|&f| f.into()).collect()));
}

#[test]
fn an_honest_image_is_clean() {
    let report = scan(&[&[directory("bin/", 0o755), file("bin/true", 0o755), symlink("bin/yes", "true")]]);
    expect(&report, 0, &[]);
    assert_eq!((report.read.layers, report.read.entries_seen), (1, 3));
}

#[test]
fn no_path_is_exempt() {
    for path in ["usr/bin/x", "usr/lib/x", "bin/x", "x", "tmp/.x", "proc/x", "var/lib/docker/x"] {
        let report = scan(&[&[file(path, 0o4755)]]);
        expect(&report, 1, &[&format!("setuid merged {path}")]);
        expect(&scan(&[&[file(path, 0o755)]]), 0, &[]);
    }
}

#[test]
fn e1_a_whiteout_only_hides() {
    let report = scan(&[&[file("bin/su", 0o4755)], &[file("bin/.wh.su", 0o644).data(b"")]]);
    expect(&report, 1, &["setuid hidden bin/su"]);
    assert_eq!(report.findings[0].layer.as_ref().map(|l| l.index), Some(0));
    assert_eq!(report.findings[0].layer.as_ref().and_then(|l| l.created_by.as_deref()), Some("RUN step 0"));
    expect(&scan(&[&[file("bin/su", 0o755)], &[file("bin/.wh.su", 0o644).data(b"")]]), 0, &[]);
}

#[test]
fn e2_a_harmless_twin_on_top_only_hides() {
    expect(&scan(&[&[file("bin/su", 0o4755)], &[file("bin/su", 0o755)]]), 1, &["setuid hidden bin/su"]);
    expect(&scan(&[&[file("bin/su", 0o755)], &[file("bin/su", 0o4755)]]), 1, &["setuid merged bin/su"]);
    expect(&scan(&[&[file("bin/su", 0o755)], &[file("bin/su", 0o755)]]), 0, &[]);
}

#[test]
fn e3_an_opaque_directory_only_hides() {
    let opaque = [directory("bin/", 0o755), file("bin/.wh..wh..opq", 0o644).data(b"")];
    expect(&scan(&[&[file("bin/su", 0o4755)], &opaque]), 1, &["setuid hidden bin/su"]);
    expect(&scan(&[&[file("bin/su", 0o755)], &opaque]), 0, &[]);
    let kept = [file("bin/.wh..wh..opq", 0o644).data(b""), file("bin/su", 0o4755)];
    expect(&scan(&[&[], &kept]), 1, &["setuid merged bin/su"]);
}

#[test]
fn e4_a_hardlinks_header_raises_the_mode_of_both_names() {
    let report = scan(&[&[file("bin/a", 0o755), hardlink("bin/b", "bin/a", 0o4755)]]);
    expect(&report, 1, &["setuid merged bin/a"]);
    let names: Vec<_> = report.findings[0].finding.names.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["bin/a", "bin/b"]);
    expect(&scan(&[&[file("bin/a", 0o755), hardlink("bin/b", "bin/a", 0o755)]]), 0, &[]);
}

#[test]
fn e5_a_hardlinks_header_lowers_the_mode_for_some_unpackers_only() {
    let report = scan(&[&[file("bin/a", 0o4755), hardlink("bin/b", "bin/a", 0o755)]]);
    expect(&report, 2, &["setuid ambiguous bin/a"]);
    assert_eq!(report.findings[0].finding.mode, Some(0o4755));
}

const NET_RAW: &[u8] = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn e6_a_capability_on_a_hardlinks_header_is_on_both_names() {
    let capability = pax(&[("SCHILY.xattr.security.capability", NET_RAW)]);
    let report = scan(&[&[file("bin/a", 0o755), capability.clone(), hardlink("bin/b", "bin/a", 0o755)]]);
    expect(&report, 1, &["file-capability merged bin/a"]);
    assert_eq!(report.findings[0].finding.capabilities, ["cap_net_raw"]);
    assert_eq!(report.findings[0].finding.names.len(), 2);
}

#[test]
fn e7_a_mode_in_base_256_is_read() {
    let mode = [0x80, 0, 0, 0, 0, 0, 0x09, 0xed];
    expect(&scan(&[&[file("bin/x", 0).raw_mode(mode)]]), 1, &["setuid merged bin/x"]);
    expect(&scan(&[&[file("bin/x", 0).raw_mode([0x80, 0, 0, 0, 0, 0, 0x01, 0xed])]]), 0, &[]);
}

#[test]
fn a_mode_that_is_no_number_stops_the_layer_and_keeps_what_was_found() {
    let report = scan(&[&[file("bin/su", 0o4755), file("bin/x", 0).raw_mode(*b"rwxr-xr\0")]]);
    assert_eq!((code(&report), found(&report)), (2, vec!["setuid merged bin/su".to_owned()]));
}

#[test]
fn e9_pax_renames_and_the_headers_name_is_judged_too() {
    let report = scan(&[&[pax(&[("path", b"bin/nc")]), file("bin/readme", 0o4755)]]);
    let expected = ["format-anomaly merged bin/nc", "setuid ambiguous bin/readme", "setuid merged bin/nc"];
    assert_eq!(found(&report), expected);
    assert!(forbidden(&report).contains(&"forbidden-binary merged bin/nc".into()));
    let reverse = scan(&[&[pax(&[("path", b"bin/readme")]), file("bin/nc", 0o755)]]);
    assert_eq!(forbidden(&reverse), ["forbidden-binary ambiguous bin/nc"]);
    // A name that the header has no room for is what PAX is for.
    let long = format!("srv/{}", "n".repeat(120));
    expect(&scan(&[&[pax(&[("path", long.as_bytes())]), file(&long, 0o644)]]), 0, &[]);
}

#[test]
fn e10_a_newline_in_a_pax_value_smuggles_no_name() {
    let value = [b"a\n", &record("path", b"bin/calm")[..]].concat();
    let value = value.strip_suffix(b"\n").expect("a record ends so");
    let report = scan(&[&[pax(&[("comment", value)]), file("bin/nc", 0o4755)]]);
    assert!(found(&report).contains(&"setuid merged bin/nc".into()));
    assert!(found(&report).contains(&"format-anomaly merged bin/nc".into()));
    assert!(found(&report).contains(&"setuid ambiguous bin/calm".into()));
    assert!(forbidden(&report).contains(&"forbidden-binary merged bin/nc".into()));
    expect(&scan(&[&[pax(&[("comment", b"two\nlines")]), file("bin/nothing", 0o755)]]), 0, &[]);
}

#[test]
fn e11_a_pax_size_swallows_what_looks_like_a_member() {
    let inner = file("bin/harmless", 0o755).bytes();
    let outer = file("bin/blob", 0o644).data(&inner).stated_size(0);
    let report = scan(&[&[pax(&[("size", b"1024")]), outer]]);
    expect(&report, 0, &["format-anomaly merged bin/blob"]);
    assert_eq!(report.read.entries_seen, 1);
    expect(&scan(&[&[pax(&[("size", b"1024")]), file("bin/blob", 0o644).data(&inner)]]), 0, &[]);
}

#[test]
fn e13_a_global_header_renames_for_some_readers_only() {
    let global = node("g", b'g', 0o644).data(&record("path", b"bin/harmless"));
    let report = scan(&[&[global, file("bin/su", 0o4755)]]);
    assert!(found(&report).contains(&"setuid merged bin/su".into()));
    assert!(found(&report).contains(&"setuid ambiguous bin/harmless".into()));
    let comment = node("g", b'g', 0o644).data(&record("comment", b"0123abc"));
    expect(&scan(&[&[comment, file("bin/x", 0o755)]]), 0, &[]);
}

#[test]
fn e14_a_capability_that_holds_a_newline_is_whole() {
    // Capability 10 stands in a byte that is a newline where a reader splits lines.
    let mut value = NET_RAW.to_vec();
    value[4..8].copy_from_slice(&[0x0a, 0, 0, 0]);
    let report = scan(&[&[pax(&[("SCHILY.xattr.security.capability", &value)]), file("bin/x", 0o755)]]);
    expect(&report, 1, &["file-capability merged bin/x"]);
    assert_eq!(report.findings[0].finding.capabilities, ["cap_dac_override", "cap_fowner"]);
}

#[test]
fn e15_libarchives_spelling_of_attributes_gives_no_capability() {
    let report =
        scan(&[&[pax(&[("LIBARCHIVE.xattr.security.capability", b"AQAAAg")]), file("bin/x", 0o755)]]);
    expect(&report, 0, &[]);
}

#[test]
fn e18_a_lone_zero_block_is_not_the_end() {
    let hidden = [file("bin/a", 0o755).bytes(), vec![0; 512], file("bin/su", 0o4755).bytes(), vec![0; 1024]];
    let report = scan_raw(&[hidden.concat()]);
    assert_eq!(code(&report), 2);
    assert!(report.incomplete[0].why.contains("lone zero block"), "{:?}", report.incomplete);
    let whole = [file("bin/a", 0o755).bytes(), file("bin/b", 0o755).bytes(), vec![0; 1024]];
    expect(&scan_raw(&[whole.concat()]), 0, &[]);
}

#[test]
fn e19_unknown_types_are_analysed_all_the_same() {
    for kind in [b'7', b'Z', b'V', 0xff] {
        let report = scan(&[&[node("bin/su", kind, 0o4755).data(b"x"), file("bin/next", 0o755)]]);
        expect(&report, 1, &["format-anomaly merged bin/su", "setuid merged bin/su"]);
        assert_eq!(report.read.entries_seen, 2);
    }
}

#[test]
fn e21_a_name_of_any_bytes_is_shown_escaped() {
    let report = scan(&[&[file(b"bin/s\xff\xfe\n\x1b[2Ju", 0o4755)]]);
    expect(&report, 1, &["setuid merged bin/s\\xff\\xfe\\x0a\\x1b[2Ju"]);
    for text in [report.to_human(), report.to_json()] {
        assert!(!text.contains('\x1b') && !text.contains("\\u001b"));
    }
}

#[test]
fn e22_names_are_clamped_to_the_root() {
    for name in ["/bin/su", "./bin/su", "bin//su", "bin/./su"] {
        expect(&scan(&[&[file(name, 0o4755)]]), 1, &["setuid merged bin/su"]);
    }
    let climbing = scan(&[&[file("bin/../../../bin/su", 0o4755)]]);
    expect(&climbing, 1, &["format-anomaly merged bin/su", "setuid merged bin/su"]);
}

#[test]
fn whiteouts_are_cleaned_like_files() {
    for (name, whiteout) in
        [("./bin/su", "bin/.wh.su"), ("bin/su", "./bin/.wh.su"), ("/bin/su", "bin//.wh.su")]
    {
        let report = scan(&[&[file(name, 0o4755)], &[file(whiteout, 0o644).data(b"")]]);
        expect(&report, 1, &["setuid hidden bin/su"]);
    }
}

/// E29, and the marker with something after it.
#[test]
fn only_the_exact_markers_count() {
    let bare = scan(&[&[file("etc/su", 0o4755)], &[file("etc/.wh.", 0o644).data(b"")]]);
    expect(&bare, 1, &["format-anomaly merged etc/.wh.", "setuid merged etc/su"]);
    for name in
        ["etc/.wh..wh..opqX", "etc/.wh..wh..op", "etc/.wh.sux", "etc/wh.su", "etc/.whsu", "etc/.WH.su"]
    {
        let report = scan(&[&[file("etc/su", 0o4755)], &[file(name, 0o644).data(b"")]]);
        expect(&report, 1, &["setuid merged etc/su"]);
    }
}

#[test]
fn what_a_whiteout_carries_itself_is_hidden_not_lost() {
    expect(&scan(&[&[file("bin/.wh.x", 0o4755)]]), 1, &["setuid hidden bin/.wh.x"]);
    expect(&scan(&[&[file("bin/.wh.x", 0o4755).data(b"")]]), 0, &[]);
}

#[test]
fn e30_a_name_is_judged_by_its_family_and_links_by_theirs() {
    let elf = b"\x7fELF and so on";
    for name in ["bin/nc", "bin/NC", "bin/nc.traditional", "opt/x/ncat"] {
        let report = scan(&[&[file(name, 0o644).data(elf)]]);
        assert_eq!(forbidden(&report), [format!("forbidden-binary merged {name}")]);
        assert_eq!(report.findings[0].finding.severity.name(), "medium");
    }
    let links = scan(&[&[
        file("opt/harmless", 0o755).data(elf),
        hardlink("bin/nc", "opt/harmless", 0o755),
        symlink("bin/wget", "../opt/harmless"),
    ]]);
    assert_eq!(forbidden(&links), ["forbidden-binary merged bin/nc"]);
    assert_eq!(links.findings[0].finding.evidence.len(), 2);
    assert_eq!(forbidden(&scan(&[&[file("opt/harmless", 0o755).data(elf)]])), [] as [&str; 0]);
}

#[test]
fn e43_bits_on_a_directory_and_a_symlink_are_told_apart() {
    let link = node("bin/x", b'2', 0o4777);
    expect(&scan(&[&[link, directory("srv/", 0o2755)]]), 0, &["setid-directory merged srv"]);
}

#[test]
fn setgid_and_world_writable_are_found() {
    let report = scan(&[&[file("bin/wall", 0o2755), file("etc/x", 0o666), directory("tmp/", 0o1777)]]);
    expect(&report, 1, &["setgid merged bin/wall", "world-writable merged etc/x"]);
}

#[test]
fn what_stands_after_the_end_marker_is_hidden() {
    let bytes = [tar(&[file("bin/a", 0o755)]), tar(&[file("bin/su", 0o4755)])].concat();
    expect(&scan_raw(&[bytes]), 1, &["setuid hidden bin/su"]);
    let rubbish = [tar(&[file("bin/a", 0o755)]), b"rubbish".to_vec()].concat();
    expect(&scan_raw(&[rubbish]), 0, &["trailing-data merged "]);
    let filled = [tar(&[file("bin/a", 0o755)]), vec![0; 9 * 1024]].concat();
    expect(&scan_raw(&[filled]), 0, &[]);
}

#[test]
fn a_gnu_long_name_counts_over_pax() {
    let long = node("long", b'L', 0o644).data(b"bin/long\0");
    let report = scan(&[&[pax(&[("path", b"bin/pax")]), long.clone(), file("bin/pax", 0o4755)]]);
    assert!(found(&report).contains(&"setuid merged bin/long".into()));
    expect(&scan(&[&[long, file("bin/short", 0o4755)]]), 1, &["setuid merged bin/long"]);
}

#[test]
fn an_empty_pax_path_does_not_count() {
    expect(&scan(&[&[pax(&[("path", b"")]), file("bin/su", 0o4755)]]), 1, &["setuid merged bin/su"]);
}

#[test]
fn of_two_extended_headers_the_last_counts() {
    let report =
        scan(&[&[pax(&[("path", b"bin/first")]), pax(&[("path", b"bin/last")]), file("bin/last", 0o4755)]]);
    expect(&report, 1, &["format-anomaly merged bin/last", "setuid merged bin/last"]);
}
