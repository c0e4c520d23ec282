//! Where engines disagree: what is merged, what is ambiguous, what is hidden.

use crate::craft::*;

#[track_caller]
fn expect(layers: &[&[Member]], exit: u8, findings: &[&str]) {
    let report = scan(layers);
    assert!(report.is_complete(), "{:?}", report.incomplete);
    assert_eq!((code(&report), found(&report)), (exit, findings.iter().map(|&f| f.into()).collect()));
}

fn empty(name: &str) -> Member {
    file(name, 0o644).data(b"")
}

#[test]
fn e23_a_write_through_a_lower_symlink_lands_in_two_places() {
    let link = [directory("target/", 0o755), symlink("link", "/target")];
    let through = [file("link/su", 0o4755)];
    expect(&[&link, &through], 2, &["setuid ambiguous target/su", "setuid merged link/su"]);
    expect(&[&link, &[file("target/su", 0o4755)]], 1, &["setuid merged target/su"]);
    expect(&[&link, &[directory("link/", 0o755), file("link/su", 0o4755)]], 1, &["setuid merged link/su"]);
}

#[test]
fn a_symlink_of_the_same_layer_is_followed() {
    let through = [directory("target/", 0o755), symlink("link", "target"), file("link/su", 0o4755)];
    expect(&[&through], 1, &["setuid merged target/su"]);
}

#[test]
fn e24_a_whiteout_after_the_file_in_one_layer_is_ambiguous() {
    expect(&[&[file("bin/su", 0o4755), empty("bin/.wh.su")]], 2, &["setuid ambiguous bin/su"]);
    expect(&[&[empty("bin/.wh.su"), file("bin/su", 0o4755)]], 1, &["setuid merged bin/su"]);
}

#[test]
fn e25_device_0_0_is_a_whiteout_and_a_device() {
    let device = node("bin/su", b'3', 0o644);
    let expected = ["device-node ambiguous bin/su", "setuid hidden bin/su"];
    expect(&[&[file("bin/su", 0o4755)], std::slice::from_ref(&device)], 1, &expected);
    expect(&[&[file("bin/su", 0o755)], &[device.device(1, 3)]], 0, &["device-node merged bin/su"]);
}

#[test]
fn e26_an_opaque_attribute_hides_on_overlayfs_only() {
    let opaque = [pax(&[("SCHILY.xattr.trusted.overlay.opaque", b"y")]), directory("bin/", 0o755)];
    let expected = ["overlay-xattr merged bin", "setuid ambiguous bin/su"];
    expect(&[&[file("bin/su", 0o4755)], &opaque], 2, &expected);
    expect(&[&[file("bin/su", 0o4755)], &[directory("bin/", 0o755)]], 1, &["setuid merged bin/su"]);
}

#[test]
fn e27_a_hardlink_across_layers_is_ambiguous() {
    let report = scan(&[&[file("bin/a", 0o755)], &[hardlink("bin/b", "bin/a", 0o4755)]]);
    assert_eq!(code(&report), 2);
    assert!(found(&report).contains(&"setuid ambiguous bin/a".into()), "{:?}", found(&report));
    assert!(found(&report).contains(&"setuid ambiguous bin/b".into()), "{:?}", found(&report));
}

#[test]
fn a_hardlink_to_nothing_is_still_judged() {
    let report = scan(&[&[hardlink("bin/b", "bin/nowhere", 0o4755)]]);
    assert_eq!(code(&report), 2);
    assert_eq!(found(&report), ["format-anomaly ambiguous bin/b", "setuid ambiguous bin/b"]);
}

#[test]
fn an_opaque_marker_never_follows_a_lower_symlink() {
    let lower = [directory("target/", 0o755), file("target/su", 0o4755), symlink("d", "target")];
    expect(&[&lower, &[empty("d/.wh..wh..opq")]], 1, &["setuid merged target/su"]);
}

#[test]
fn a_whiteout_below_a_lower_symlink_removes_nothing_of_its_target() {
    let lower = [directory("target/", 0o755), file("target/su", 0o4755), symlink("d", "target")];
    expect(&[&lower, &[empty("d/.wh.su")]], 1, &["setuid merged target/su"]);
}

#[test]
fn an_opaque_root_hides_nothing_on_overlay2() {
    expect(&[&[file("su", 0o4755)], &[empty(".wh..wh..opq")]], 1, &["setuid merged su"]);
}

#[test]
fn a_directory_after_its_whiteout_brings_lower_files_back() {
    let again = [empty(".wh.bin"), directory("bin/", 0o755)];
    expect(&[&[file("bin/su", 0o4755)], &again], 1, &["setuid merged bin/su"]);
    expect(&[&[file("bin/su", 0o4755)], &[empty(".wh.bin")]], 1, &["setuid hidden bin/su"]);
}

#[test]
fn what_is_no_directory_hides_all_below() {
    let lower = [directory("opt/", 0o755), file("opt/a/su", 0o4755), file("optical", 0o4755)];
    for upper in [symlink("opt", "usr"), file("opt", 0o644)] {
        expect(&[&lower, &[upper]], 1, &["setuid hidden opt/a/su", "setuid merged optical"]);
    }
    let directory = directory("opt/", 0o700);
    expect(&[&lower, &[directory]], 1, &["setuid merged opt/a/su", "setuid merged optical"]);
}

#[test]
fn a_file_over_a_symlink_does_not_follow_it() {
    let lower = [file("bin/target", 0o4755), symlink("bin/link", "target")];
    expect(&[&lower, &[file("bin/link", 0o755)]], 1, &["setuid merged bin/target"]);
}

#[test]
fn of_two_entries_with_one_name_the_last_counts_and_the_first_is_hidden() {
    let twice = [file("bin/su", 0o4755), file("bin/su", 0o755)];
    expect(&[&twice], 1, &["format-anomaly merged bin/su", "setuid hidden bin/su"]);
    expect(&[&[directory("bin/", 0o755), directory("bin/", 0o755), file("bin/x", 0o755)]], 0, &[]);
}

#[test]
fn hidden_is_found_in_every_layer_once() {
    let layers: [&[Member]; 3] = [&[file("x", 0o4755)], &[file("x", 0o4755)], &[empty(".wh.x")]];
    let report = scan(&layers);
    assert_eq!(found(&report), ["setuid hidden x", "setuid hidden x"]);
    let indices: Vec<_> = report.findings.iter().filter_map(|r| r.layer.as_ref()).map(|l| l.index).collect();
    assert_eq!(indices, [0, 1]);
    assert_ne!(report.findings[0].fingerprint, report.findings[1].fingerprint);
}

#[test]
fn a_whiteout_of_a_directory_takes_all_of_it() {
    let lower = [file("opt/a/su", 0o4755), file("opt/b", 0o755)];
    expect(&[&lower, &[empty(".wh.opt")]], 1, &["setuid hidden opt/a/su"]);
}

#[test]
fn a_directory_listed_again_unchanged_is_no_second_finding() {
    let listed: [&[Member]; 2] =
        [&[directory("srv/", 0o2755)], &[directory("srv/", 0o2755), file("srv/x", 0o644)]];
    expect(&listed, 0, &["setid-directory merged srv"]);
    let mended: [&[Member]; 2] = [&[directory("srv/", 0o2755)], &[directory("srv/", 0o755)]];
    expect(&mended, 0, &["setid-directory hidden srv"]);
}

#[test]
fn fingerprints_survive_a_rebuild() {
    let one = scan(&[&[file("bin/su", 0o4755).data(b"old")]]);
    let two = scan(&[&[file("etc/new", 0o644)], &[file("bin/su", 0o4755).data(b"new")]]);
    assert_eq!(one.findings.last().map(|f| &f.fingerprint), two.findings.last().map(|f| &f.fingerprint));
}
