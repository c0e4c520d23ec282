//! One image through every door: the same findings, whatever it is packed in.

use std::fs;
use std::path::PathBuf;

use image_audit::{AuditError, Limits, Report, Source, audit};
use policy::Exit;
use policy::image::Policy;
use tempfile::TempDir;

use crate::craft::*;

fn scan(source: &Source) -> Result<Report, AuditError> {
    audit(source, &Policy::default(), &Limits::default())
}

#[expect(clippy::expect_used, reason = "a test without its folder is no test")]
fn layout_on_disk(files: &[(String, Vec<u8>)]) -> TempDir {
    let root = TempDir::new().expect("a folder");
    for (name, data) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        fs::write(path, data).expect("a blob");
    }
    root
}

fn layers() -> Vec<Vec<u8>> {
    vec![
        tar(&[directory("bin/", 0o755), file("bin/su", 0o4755), file("bin/nc", 0o755).data(b"\x7fELF")]),
        tar(&[file("bin/.wh.su", 0o644).data(b""), hardlink("bin/x", "bin/y", 0o755), file("tmp/x", 0o666)]),
    ]
}

/// The report without what may differ: where it comes from, and how many bytes that took.
#[expect(clippy::expect_used, reason = "what is no JSON is no report")]
fn comparable(report: &Report) -> serde_json::Value {
    let mut json: serde_json::Value = serde_json::from_str(&report.to_json()).expect("JSON");
    json["source"].take();
    json["read"]["bytes_seen"].take();
    json["images"][0]["manifest_digest"].take();
    json
}

type Packer = fn(&[u8]) -> Vec<u8>;

#[test]
fn an_image_is_the_same_in_every_packing() {
    let layers = layers();
    let docker = on_disk(&docker_archive(&layers));
    let expected = comparable(&scan(&Source::DockerArchive(docker.path().into())).expect("an image"));
    assert_eq!(
        scan(&Source::Path(docker.path().into())).as_ref().map(comparable).expect("an image"),
        expected
    );
    let packers: [(Packer, &str); 3] = [
        (|b| b.to_vec(), "application/x.tar"),
        (gzip, "application/x.tar+gzip"),
        (zstd, "application/x.tar+zstd"),
    ];
    for (pack, media_type) in packers {
        let packed: Vec<_> = layers.iter().map(|layer| pack(layer)).collect();
        let files = oci_layout(&layers, &packed, media_type);
        let (folder, archive) = (layout_on_disk(&files), on_disk(&archive_of(&files)));
        let path = PathBuf::from(archive.path());
        for source in
            [Source::Oci(folder.path().into()), Source::OciArchive(path.clone()), Source::Path(path)]
        {
            assert_eq!(scan(&source).as_ref().map(comparable).expect("an image"), expected, "{source}");
        }
    }
}

#[test]
fn a_layout_in_a_folder_is_an_image() {
    let layers = layers();
    let files = oci_layout(&layers, &layers, "application/x.tar");
    let root = layout_on_disk(&files);
    let (named, bare) = (scan(&Source::Oci(root.path().into())), scan(&Source::Path(root.path().into())));
    let expected = report_on(&docker_archive(&layers));
    assert_eq!(named.as_ref().map(comparable).expect("a layout"), comparable(&expected));
    assert_eq!(bare.as_ref().map(comparable).expect("a layout"), comparable(&expected));
    fs::remove_file(root.path().join(&files[0].0)).expect("a blob");
    assert_eq!(scan(&Source::Oci(root.path().into())).as_ref().map(code).expect("a layout"), 2);
}

#[test]
fn a_layout_follows_no_symlink_out_of_itself() {
    let layers = layers();
    let files = oci_layout(&layers, &layers, "application/x.tar");
    let root = layout_on_disk(&files);
    let elsewhere = on_disk(&files[0].1);
    let blob = root.path().join(&files[0].0);
    fs::remove_file(&blob).expect("a blob");
    std::os::unix::fs::symlink(elsewhere.path(), &blob).expect("a link");
    assert_eq!(scan(&Source::Oci(root.path().into())).as_ref().map(code).expect("a layout"), 2);
}

#[test]
fn a_root_filesystem_is_the_same_as_a_tar_and_as_a_folder() {
    let root = layout_on_disk(&[("bin/su".into(), b"x".to_vec()), ("etc/x".into(), Vec::new())]);
    let mode = |name: &str, mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(root.path().join(name), permissions).expect("its mode");
    };
    for (name, bits) in [("bin/su", 0o4755), ("etc/x", 0o666), ("etc", 0o755), ("bin", 0o755), ("", 0o755)] {
        mode(name, bits);
    }
    let members = [directory("bin/", 0o755), file("bin/su", 0o4755), file("etc/x", 0o666).data(b"")];
    let tar = on_disk(&tar(&members));
    let folder = scan(&Source::Dir(root.path().into())).expect("a folder");
    for source in [Source::Tar(tar.path().into()), Source::Path(tar.path().into())] {
        let report = scan(&source).expect("a tar");
        assert_eq!((code(&report), &report.findings), (1, &folder.findings), "{source}");
    }
}

#[test]
fn a_cut_root_filesystem_is_never_clean() {
    let whole = tar(&[file("bin/true", 0o755).data(&[1; 600]), file("etc/x", 0o644)]);
    for wanted in [Source::Tar, Source::Path] {
        let disk = on_disk(&whole);
        assert_eq!(scan(&wanted(disk.path().into())).as_ref().map(code).expect("a tar"), 0);
        for end in (0..whole.len()).step_by(512) {
            let disk = on_disk(whole.get(..end).expect("shorter"));
            match scan(&wanted(disk.path().into())) {
                Ok(report) => assert_eq!(code(&report), 2, "cut at {end}"),
                Err(error) => assert_eq!(error.exit(), Exit::Unknown, "cut at {end}"),
            }
        }
    }
}

#[test]
fn a_layout_of_another_kind_of_folder_is_no_image() {
    let root = layout_on_disk(&[("x".into(), b"y".to_vec())]);
    let error = scan(&Source::Oci(root.path().into())).map(|_| ()).expect_err("no layout");
    assert_eq!(error.exit(), Exit::Unknown);
    let missing = scan(&Source::Oci(root.path().join("nowhere"))).map(|_| ()).expect_err("missing");
    assert_eq!(missing.exit(), Exit::Io);
}

#[test]
fn a_device_has_no_end_and_is_no_image() {
    for path in ["/dev/zero", "/dev/null"] {
        let error = scan(&Source::DockerArchive(path.into())).map(|_| ()).expect_err("a device");
        assert_eq!((error.exit(), error.to_string().is_empty()), (Exit::Unknown, false), "{path}");
    }
}

#[test]
fn a_root_without_a_file_is_not_clean_and_one_with_a_file_is() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("bin")).expect("a folder");
    assert_eq!(scan(&Source::Dir(root.path().into())).as_ref().map(code).expect("a folder"), 2);
    fs::write(root.path().join("bin/calm"), b"#!/bin/sh\n").expect("a file");
    assert_eq!(scan(&Source::Dir(root.path().into())).as_ref().map(code).expect("a folder"), 0);
}
