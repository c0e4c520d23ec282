//! The program itself: exit codes, outputs, and what it says when it cannot.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::craft::*;

#[expect(clippy::disallowed_methods, reason = "the one place of these tests that starts the program")]
#[expect(clippy::expect_used, reason = "a test without the program is no test")]
fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_image-audit")).args(arguments).env_clear().output().expect("the program")
}

/// The same with bytes on standard input.
#[expect(clippy::disallowed_methods, clippy::expect_used, reason = "as above, with a pipe")]
fn run_on(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_image-audit"));
    let piped = command.args(arguments).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.stderr(Stdio::piped()).spawn().expect("the program");
    child.stdin.take().expect("a pipe").write_all(input).expect("room in the pipe");
    child.wait_with_output().expect("its end")
}

fn exit(output: &Output) -> Option<i32> {
    output.status.code()
}

fn source(path: &Path) -> String {
    format!("docker-archive:{}", path.display())
}

fn scan_setuid(more: &[&str]) -> Output {
    let archive = on_disk(&docker_archive(&[tar(&[file("bin/su", 0o4755), file("etc/x", 0o666)])]));
    run(&[&["scan", &source(archive.path())], more].concat())
}

#[test]
fn exit_codes_are_what_they_say() {
    let clean = on_disk(&docker_archive(&[tar(&[file("bin/true", 0o755)])]));
    let rubbish = on_disk(b"rubbish");
    assert_eq!(exit(&run(&["scan", &source(clean.path())])), Some(0));
    assert_eq!(exit(&scan_setuid(&[])), Some(1));
    assert_eq!(exit(&run(&["scan", &source(rubbish.path())])), Some(2));
    assert_eq!(exit(&run(&["scan", "docker-archive:/no/such/file"])), Some(4));
    assert_eq!(exit(&run(&["--help"])), Some(0));
    for wrong in [
        &["scan"][..],
        &[],
        &["scan", "--no-such-flag", "dir:/"],
        &["scan", "dir:"],
        &["scan", "dir:/", "-o", "pdf"],
    ] {
        assert_eq!(exit(&run(wrong)), Some(3), "{wrong:?}");
    }
}

#[test]
fn a_form_that_is_not_read_is_a_clear_error() {
    for form in ["docker:x", "nonsense:x", "registry.example:5000/x"] {
        let output = run(&["scan", form]);
        let text = String::from_utf8(output.stderr.clone()).expect("text");
        assert_eq!(exit(&output), Some(3), "{form}");
        assert!(text.starts_with("image-audit: cannot ") && text.contains(form), "{text}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_threshold_moves_the_exit_code() {
    let world_writable = on_disk(&docker_archive(&[tar(&[file("etc/x", 0o666)])]));
    let run = |fail_on: &str| exit(&run(&["scan", &source(world_writable.path()), "--fail-on", fail_on]));
    let codes = ["info", "low", "medium", "high", "never"].map(run);
    assert_eq!(codes, [Some(1), Some(1), Some(0), Some(0), Some(3)]);
}

#[test]
fn outputs_go_where_they_are_sent() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("report.json");
    let to_file = format!("json={}", file.display());
    let output = scan_setuid(&["-o", "human", "-o", &to_file]);
    assert!(String::from_utf8(output.stdout).expect("text").contains("Verdict  refused"));
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    assert_eq!(json["schema"], "image-audit/1");
    assert_eq!(exit(&scan_setuid(&["-o", "json=/no/such/folder/x"])), Some(4));
}

#[test]
fn json_has_the_published_shape() {
    let output = scan_setuid(&["-o", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let keys = |value: &serde_json::Value| {
        let mut keys: Vec<_> = value.as_object().expect("an object").keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(keys(&json), "complete findings images incomplete read schema source verdict");
    assert_eq!(keys(&json["images"][0]), "config_digest layers manifest_digest platform");
    assert_eq!(keys(&json["read"]), "bytes_seen entries_seen entries_unanalysed layers");
    let setuid = &json["findings"][0];
    assert_eq!(
        keys(setuid),
        "cis evidence fingerprint image layer mode names path remedy rule severity visibility"
    );
    assert_eq!(keys(&setuid["layer"]), "created_by diff_id index");
    assert_eq!(setuid["mode"], "4755");
    assert_eq!(json["complete"], true);
}

#[test]
fn standard_input_is_read_in_one_pass() {
    let setuid = [tar(&[file("bin/su", 0o4755)])];
    let layout = archive_of(&oci_layout(&setuid, &[gzip(&setuid[0])], "application/x.tar+gzip"));
    for input in
        [docker_archive(&setuid), layout, gzip(&docker_archive(&setuid)), setuid[0].clone(), zstd(&setuid[0])]
    {
        let output = run_on(&["scan", "-", "-o", "json"], &input);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((exit(&output), &json["findings"][0]["rule"]), (Some(1), &"setuid".into()));
    }
    assert_eq!(exit(&run_on(&["scan", "-"], &docker_archive(&[tar(&[file("bin/true", 0o755)])]))), Some(0));
    assert_eq!(exit(&run_on(&["scan", "-"], b"")), Some(2));
}

#[test]
fn a_policy_allows_what_it_names_until_its_day() {
    let allow = |digest: &str, expires: &str| {
        format!(
            "[[allow]]\nrule = \"setuid\"\npath = \"bin/su\"\n{digest}\nreason = \"x\"\nowner = \"o\"\nexpires = {expires}\n"
        )
    };
    let bound = format!("digest = \"sha256:{}\"", hex(b"x"));
    let other = format!("digest = \"sha256:{}\"", hex(b"y"));
    for (text, code, said) in [
        (allow(&bound, "9999-01-01"), 0, "allowed: x (o, until 9999-01-01)"),
        (allow("any = true", "9999-01-01"), 0, "whatever the content"),
        (allow(&other, "9999-01-01"), 1, "covers nothing in this image"),
        (allow(&bound, "2001-01-01"), 1, "expired"),
    ] {
        let policy = on_disk(text.as_bytes());
        let output = scan_setuid(&["--policy", &policy.path().display().to_string()]);
        let text = String::from_utf8(output.stdout.clone()).expect("text");
        assert_eq!(exit(&output), Some(code), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_wrong_policy_stops_the_scan_with_every_mistake() {
    let policy = on_disk(b"fail_on = 1\nallow_all = true\n");
    let path = policy.path().display().to_string();
    for arguments in [&["scan", "dir:/", "--policy", &path][..], &["policy", "check", &path]] {
        let output = run(arguments);
        let text = String::from_utf8(output.stderr.clone()).expect("text");
        assert_eq!(exit(&output), Some(3));
        assert!(
            text.contains(&format!("{path}:1:11: ")) && text.contains(&format!("{path}:2:1: ")),
            "{text}"
        );
    }
    assert_eq!(exit(&run(&["policy", "check", "/no/such/file"])), Some(4));
}

#[test]
fn the_printed_default_policy_passes_its_own_check() {
    let output = run(&["policy", "default"]);
    let policy = on_disk(&output.stdout);
    assert_eq!(exit(&run(&["policy", "check", &policy.path().display().to_string()])), Some(0));
}

#[test]
fn one_platform_can_be_asked_for() {
    let archive = on_disk(&docker_archive(&[tar(&[file("bin/true", 0o755)])]));
    let run = |platform: &str| exit(&run(&["scan", &source(archive.path()), "--platform", platform]));
    assert_eq!(
        ["linux/amd64", "linux/arm64", "linux/am", "linux"].map(run),
        [Some(0), Some(3), Some(3), Some(3)]
    );
}
