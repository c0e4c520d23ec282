//! A root filesystem in a folder, on the real filesystem.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use image_audit::{AuditError, Limits, Report, Source, audit};
use policy::Exit;
use policy::image::Policy;
use tempfile::TempDir;

use crate::craft::{code, forbidden, found};

#[expect(clippy::expect_used, reason = "a test without its folder is no test")]
fn folder(files: &[(&str, u32)]) -> TempDir {
    let root = TempDir::new().expect("a temporary folder");
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).expect("its mode");
    for (name, mode) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        fs::write(&path, b"\x7fELF").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(*mode)).expect("its mode");
    }
    root
}

#[expect(clippy::expect_used, reason = "a test without its report is no test")]
fn scan(root: &Path) -> Report {
    audit(&Source::Dir(root.to_path_buf()), &Policy::default(), &Limits::default()).expect("a folder")
}

#[test]
fn a_setuid_file_refuses_the_folder_and_a_plain_one_does_not() {
    let root = folder(&[("bin/su", 0o4755)]);
    let report = scan(root.path());
    assert_eq!((code(&report), found(&report)), (1, vec!["setuid merged bin/su".to_owned()]));
    assert!(report.findings[0].layer.is_none());
    let plain = scan(folder(&[("bin/su", 0o755)]).path());
    assert_eq!((code(&plain), found(&plain), forbidden(&plain).len()), (0, vec![], 1));
}

#[test]
fn all_names_of_an_inode_are_one_finding() {
    let root = folder(&[("bin/a", 0o2755)]);
    fs::hard_link(root.path().join("bin/a"), root.path().join("bin/b")).expect("a link");
    let report = scan(root.path());
    assert_eq!(found(&report), ["setgid merged bin/a"]);
    assert_eq!(report.findings[0].finding.names.len(), 2);
}

#[test]
fn no_symlink_is_followed_out_of_the_folder() {
    let outside = folder(&[("su", 0o4755)]);
    let root = folder(&[("bin/true", 0o755)]);
    symlink(outside.path(), root.path().join("away")).expect("a link");
    symlink(outside.path().join("su"), root.path().join("bin/su")).expect("a link");
    symlink("loop", root.path().join("loop")).expect("a link");
    let report = scan(root.path());
    assert_eq!((code(&report), found(&report)), (0, vec![]));
    assert_eq!(forbidden(&report), ["forbidden-binary merged bin/su"]);
}

#[test]
fn names_of_any_bytes_are_read() {
    let root = folder(&[]);
    let path = root.path().join(std::ffi::OsStr::from_bytes(b"s\xff\nu"));
    fs::write(&path, b"x").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o4755)).expect("its mode");
    assert_eq!(found(&scan(root.path())), ["setuid merged s\\xff\\x0au"]);
}

#[test]
fn a_file_capability_is_found() {
    let root = folder(&[("bin/ping", 0o755)]);
    let value = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let path = root.path().join("bin/ping");
    rustix::fs::setxattr(&path, "security.capability", value, rustix::fs::XattrFlags::CREATE)
        .expect("root's right");
    let report = scan(root.path());
    assert_eq!((code(&report), found(&report)), (1, vec!["file-capability merged bin/ping".to_owned()]));
    assert_eq!(report.findings[0].finding.capabilities, ["cap_net_raw"]);
}

#[test]
fn what_is_mounted_inside_is_not_entered_and_not_passed_over() {
    let root = folder(&[("bin/true", 0o755)]);
    // Every Linux has filesystems mounted in it.
    let report = scan(Path::new("/dev"));
    assert!(!report.is_complete(), "/dev holds /dev/pts or /dev/shm");
    assert_eq!(code(&report), 2);
    assert_eq!(code(&scan(root.path())), 0);
}

#[test]
fn a_limit_is_named_and_never_clean() {
    let root = folder(&[("a/b/c/d", 0o644), ("e", 0o644), ("f", 0o644)]);
    let limited = |limits: Limits| {
        let report = audit(&Source::Dir(root.path().into()), &Policy::default(), &limits).expect("a folder");
        (code(&report), report.incomplete.first().map(|i| i.why.clone()).unwrap_or_default())
    };
    assert_eq!(limited(Limits { entries_max: 4, ..Limits::default() }), (2, "more than 4 entries".into()));
    assert_eq!(limited(Limits { bytes_max: 9, ..Limits::default() }), (2, "more than 9 bytes".into()));
    assert_eq!(
        limited(Limits { depth_max: 2, ..Limits::default() }),
        (2, "deeper than 2 directories".into())
    );
    assert_eq!(limited(Limits::default()), (0, String::new()));
}

#[test]
fn a_missing_folder_is_io_and_a_file_is_no_image() {
    let root = folder(&[("x", 0o644)]);
    let run =
        |path: &str| audit(&Source::Dir(root.path().join(path)), &Policy::default(), &Limits::default());
    let missing = run("nowhere").map(|_| ()).expect_err("missing");
    assert_eq!(missing.exit(), Exit::Io);
    let file = run("x").map(|_| ()).expect_err("a file");
    assert!(matches!(file, AuditError::NotAnImage { .. }));
    assert_eq!(file.exit(), Exit::Unknown);
}
