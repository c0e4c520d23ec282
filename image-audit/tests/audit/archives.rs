//! Archives of images: what they are recognised by, and every way in which they can be short of what they promise.

use image_audit::AuditError;
use policy::Exit;
use policy::image::Policy;

use crate::craft::*;

fn setuid_layer() -> Vec<u8> {
    tar(&[file("bin/su", 0o4755)])
}

fn plain_layer() -> Vec<u8> {
    tar(&[file("bin/true", 0o755)])
}

/// The archive with every byte sequence `from` replaced by `to` of the same length.
fn replaced(archive: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes.get(at..at + from.len()) == Some(from) {
            bytes.splice(at..at + from.len(), to.iter().copied());
        }
    }
    bytes
}

#[test]
fn layers_may_come_before_or_after_the_manifest() {
    let layers = [setuid_layer()];
    let config = config(&layers);
    let name = format!("{}.json", hex(&config));
    let manifest = format!(r#"[{{"Config": "{name}", "Layers": ["0/layer.tar"]}}]"#);
    let mut files =
        vec![("0/layer.tar", &layers[0][..]), (&name, &config), ("manifest.json", manifest.as_bytes())];
    for _ in 0..2 {
        let report = report_on(&archive(&files));
        assert_eq!((code(&report), found(&report)), (1, vec!["setuid merged bin/su".to_owned()]));
        assert_eq!(report.images[0].platform.as_deref(), Some("linux/amd64"));
        files.reverse();
    }
}

#[test]
fn keys_of_the_manifest_are_folded_as_go_folds_them() {
    let layers = [setuid_layer()];
    let config = config(&layers);
    let manifest = br#"[{"config": "c.json", "LAYERS": ["l"], "Layers": ["l"]}]"#;
    let report = report_on(&archive(&[("l", &layers[0]), ("c.json", &config), ("manifest.json", manifest)]));
    assert_eq!(code(&report), 1);
}

#[test]
fn a_layer_may_be_a_link_in_the_archive() {
    let layers = [setuid_layer()];
    let config = config(&layers);
    let manifest = br#"[{"Config": "c", "Layers": ["b/layer.tar"]}]"#;
    for link in [symlink("b/layer.tar", "../a/layer.tar"), hardlink("b/layer.tar", "a/layer.tar", 0o644)] {
        let members = [
            link,
            file("a/layer.tar", 0o644).data(&layers[0]),
            file("c", 0o644).data(&config),
            file("manifest.json", 0o644).data(manifest),
        ];
        let report = report_on(&tar(&members));
        assert_eq!((code(&report), found(&report)), (1, vec!["setuid merged bin/su".to_owned()]));
    }
    let ring = [
        symlink("b/layer.tar", "layer.tar"),
        file("c", 0o644).data(&config),
        file("manifest.json", 0o644).data(manifest),
    ];
    assert_eq!(code(&report_on(&tar(&ring))), 2);
}

#[test]
fn an_archive_packed_as_a_whole_is_read() {
    let archive = docker_archive(&[setuid_layer()]);
    for packed in [gzip(&archive), zstd(&archive)] {
        let report = report_on(&packed);
        assert_eq!((code(&report), found(&report)), (1, vec!["setuid merged bin/su".to_owned()]));
        let clean = report_on(&gzip(&docker_archive(&[plain_layer()])));
        assert_eq!(code(&clean), 0);
    }
}

/// E16, through the whole auditor.
#[test]
fn a_second_member_or_frame_of_a_layer_is_read() {
    let layer = tar(&[file("bin/a", 0o755), file("bin/su", 0o4755)]);
    let (one, two) = layer.split_at(1024);
    for pack in [gzip, zstd] {
        let packed = [pack(one), pack(two)].concat();
        let files = oci_layout(std::slice::from_ref(&layer), &[packed], "application/x.tar");
        let report = report_on(&archive_of(&files));
        assert_eq!((code(&report), found(&report)[1].as_str()), (1, "setuid merged bin/su"));
    }
}

#[test]
fn layers_that_are_not_read_are_never_clean() {
    let layer = plain_layer();
    for packed in [&b"BZh91AY&SY and so on"[..], b"\xfd7zXZ\0\0", b"no tar at all", b"", b"{}"] {
        let files = oci_layout(std::slice::from_ref(&layer), &[packed.to_vec()], "application/x.tar+gzip");
        let report = report_on(&archive_of(&files));
        assert_eq!(code(&report), 2, "{packed:?}");
    }
}

/// E40.
#[test]
fn a_blob_that_is_not_what_its_name_promises_is_never_clean() {
    let layer = plain_layer();
    let files = oci_layout(std::slice::from_ref(&layer), std::slice::from_ref(&layer), "application/x.tar");
    assert_eq!(code(&report_on(&archive_of(&files))), 0);
    for at in (0..files.len()).filter(|&at| files[at].0 != "oci-layout") {
        for byte in 0..files[at].1.len() {
            let mut broken = files.clone();
            broken[at].1[byte] ^= 1;
            let Ok(report) = audit_bytes(&archive_of(&broken), &Policy::default()) else { continue };
            // The index has no digest of its own: there a changed letter may change nothing that counts.
            if broken[at].0 != "index.json" {
                assert_eq!(code(&report), 2, "{} byte {byte}", broken[at].0);
            }
        }
    }
}

#[test]
fn a_missing_blob_is_never_clean() {
    let layer = plain_layer();
    let files = oci_layout(std::slice::from_ref(&layer), std::slice::from_ref(&layer), "application/x.tar");
    for at in (0..files.len()).filter(|&at| files[at].0 != "oci-layout") {
        let mut short = files.clone();
        let (name, _) = short.remove(at);
        match audit_bytes(&archive_of(&short), &Policy::default()) {
            Ok(report) => assert_eq!(code(&report), 2, "{name}"),
            Err(error) => assert_eq!(error.exit(), Exit::Unknown, "{name}"),
        }
    }
}

#[test]
fn a_diff_id_that_is_wrong_or_missing_is_never_clean() {
    let (layer, other) = (plain_layer(), setuid_layer());
    let wrong =
        report_on(&docker_archive_of(std::slice::from_ref(&layer), &config(std::slice::from_ref(&other))));
    assert_eq!((code(&wrong), found(&wrong)), (2, vec!["digest-mismatch merged ".to_owned()]));
    let short = report_on(&docker_archive_of(std::slice::from_ref(&layer), &config(&[])));
    assert_eq!(code(&short), 2);
    let long = report_on(&docker_archive_of(std::slice::from_ref(&layer), &config(&[layer.clone(), other])));
    assert_eq!(code(&long), 2);
}

#[test]
fn history_that_does_not_fit_maps_no_layer() {
    let layers = [setuid_layer()];
    let config = String::from_utf8(config(&layers)).expect("text");
    let line = r#"{"created_by": "RUN step 0"}"#;
    let table = [
        (format!(r#"{{"created_by": "ENV a=b", "empty_layer": true}}, {line}"#), Some("RUN step 0")),
        (format!(r#"{{"created_by": "ENV a=b"}}, {line}"#), None),
        (String::new(), None),
    ];
    for (history, expected) in table {
        let config = config.replace(line, &history);
        let report = report_on(&docker_archive_of(&layers, config.as_bytes()));
        assert_eq!(report.findings[0].layer.as_ref().and_then(|l| l.created_by.as_deref()), expected);
    }
}

/// E38: whatever a manifest does not name still came along.
#[test]
fn a_layer_that_no_manifest_names_is_hidden() {
    let layers = [plain_layer()];
    let mut files = oci_layout(&layers, &layers, "application/x.tar");
    files.push(("blobs/sha256/extra".into(), gzip(&setuid_layer())));
    let report = report_on(&archive_of(&files));
    assert_eq!((code(&report), found(&report)), (1, vec!["setuid hidden bin/su".to_owned()]));
}

/// E39.
#[test]
fn two_manifests_that_differ_are_a_finding() {
    let layers = [plain_layer()];
    let mut files = oci_layout(&layers, &layers, "application/x.tar");
    let config = files[1].0.clone();
    let same = format!(r#"[{{"Config": "{config}", "Layers": ["{}"]}}]"#, files[0].0);
    let none = format!(r#"[{{"Config": "{config}", "Layers": []}}]"#);
    files.push(("manifest.json".into(), same.into_bytes()));
    let agreed = report_on(&archive_of(&files));
    assert_eq!((code(&agreed), found(&agreed), agreed.images.len()), (0, vec![], 1));
    assert!(agreed.images[0].manifest_digest.is_some());
    files.last_mut().expect("manifest.json").1 = none.into_bytes();
    let differ = report_on(&archive_of(&files));
    assert_eq!(code(&differ), 2);
    assert!(found(&differ).contains(&"manifest-mismatch merged ".into()));
}

type Packer = fn(&[u8]) -> Vec<u8>;

/// E41.
#[test]
fn a_media_type_that_lies_is_a_finding_and_the_bytes_decide() {
    let layer = setuid_layer();
    let table: [(&str, Packer, bool); 4] = [
        ("application/vnd.oci.image.layer.v1.tar+gzip", gzip, false),
        ("application/vnd.oci.image.layer.v1.tar+gzip", zstd, true),
        ("application/vnd.docker.image.rootfs.diff.tar.gzip", gzip, false),
        ("application/vnd.oci.image.layer.v1.tar+zstd", |b| b.to_vec(), true),
    ];
    for (media_type, pack, lies) in table {
        let files = oci_layout(std::slice::from_ref(&layer), &[pack(&layer)], media_type);
        let report = report_on(&archive_of(&files));
        assert_eq!(code(&report), 1, "{media_type}");
        assert_eq!(found(&report).contains(&"media-type-mismatch merged ".into()), lies, "{media_type}");
    }
}

/// E37, nested.
#[test]
fn every_platform_of_every_index_is_audited() {
    let (plain, setuid) = ([plain_layer()], [setuid_layer()]);
    let mut files = oci_layout(&plain, &plain, "application/x.tar");
    let inner = oci_layout(&setuid, &setuid, "application/x.tar");
    let (_, nested) = inner.last().expect("index.json").clone();
    files.extend(inner.into_iter().filter(|(name, _)| name.starts_with("blobs/")));
    let descriptor =
        format!(r#"{{"digest": "sha256:{}", "size": {}}}, {{"mediaType""#, hex(&nested), nested.len());
    let index = files.iter_mut().find(|(name, _)| name == "index.json").expect("index.json");
    index.1 = String::from_utf8(index.1.clone())
        .expect("text")
        .replacen("{\"mediaType\"", &descriptor, 1)
        .into_bytes();
    files.push((format!("blobs/sha256/{}", hex(&nested)), nested));
    let report = report_on(&archive_of(&files));
    assert!(report.is_complete(), "{:?}", report.incomplete);
    assert_eq!((code(&report), report.images.len()), (1, 2));
}

#[test]
fn what_is_no_image_is_said_to_be_none() {
    for bytes in [&b""[..], b"hello", &[0; 1024], &tar(&[file("bin/su", 0o4755)]), b"BZh9"] {
        let error = audit_bytes(bytes, &Policy::default()).map(|_| ()).expect_err("no image");
        assert!(matches!(error, AuditError::NotAnImage { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::Unknown);
    }
}

#[test]
fn a_name_twice_in_the_archive_is_never_clean() {
    let archive = docker_archive(&[plain_layer()]);
    let twice = [&file("manifest.json", 0o644).data(b"[]").bytes()[..], &archive].concat();
    assert_eq!(code(&report_on(&twice)), 2);
    assert_eq!(code(&report_on(&archive)), 0);
}

#[test]
fn an_archive_without_images_is_never_clean() {
    for manifest in [&b"[]"[..], b"{}", b"[{}]", b"[", b"[{\"Config\": 1}]"] {
        assert_eq!(code(&report_on(&archive(&[("manifest.json", manifest)]))), 2);
    }
}

#[test]
fn a_changed_mode_in_a_layer_is_noticed_by_its_digest() {
    let archive = docker_archive(&[plain_layer()]);
    let report = report_on(&replaced(&archive, b"0000755\0", b"0000575\0"));
    assert_eq!(code(&report), 2);
}

#[test]
fn an_image_with_two_tags_is_one_image() {
    let layers = [setuid_layer()];
    let mut files = oci_layout(&layers, &layers, "application/x.tar");
    let index = &mut files.last_mut().expect("index.json").1;
    let text = String::from_utf8(index.clone()).expect("text");
    let (head, descriptor) = text.split_once('[').expect("a list");
    let descriptor = descriptor.strip_suffix("]}").expect("its end");
    *index = format!("{head}[{descriptor}, {descriptor}]}}").into_bytes();
    let report = report_on(&archive_of(&files));
    assert_eq!((code(&report), report.images.len(), found(&report).len()), (1, 1, 1));
}
