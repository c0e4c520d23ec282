//! The smallest writer of tars and image archives: it writes what it is told, wrong or right.

use std::io::Write;

use image_audit::{Limits, Report, Source, audit};
use policy::image::{Digest, Policy};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

/// One member, as its header will say it.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    name: Vec<u8>,
    data: Vec<u8>,
    size: Option<u64>,
    kind: u8,
    mode: [u8; 8],
    link: Vec<u8>,
    device: (u64, u64),
}

/// A regular file of one byte with that mode.
pub(crate) fn file(name: impl AsRef<[u8]>, mode: u32) -> Member {
    node(name, b'0', mode).data(b"x")
}

/// A directory.
pub(crate) fn directory(name: impl AsRef<[u8]>, mode: u32) -> Member {
    node(name, b'5', mode)
}

/// A hardlink to `target` whose header says `mode`.
pub(crate) fn hardlink(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>, mode: u32) -> Member {
    Member { link: target.as_ref().to_vec(), ..node(name, b'1', mode) }
}

/// A symlink.
pub(crate) fn symlink(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Member {
    Member { link: target.as_ref().to_vec(), ..node(name, b'2', 0o777) }
}

/// A member of any type, without content.
pub(crate) fn node(name: impl AsRef<[u8]>, kind: u8, mode: u32) -> Member {
    let mut field = [0; 8];
    for (slot, byte) in field.iter_mut().zip(format!("{mode:07o}").bytes()) {
        *slot = byte;
    }
    let name = name.as_ref().to_vec();
    Member { name, data: Vec::new(), size: None, kind, mode: field, link: Vec::new(), device: (0, 0) }
}

impl Member {
    /// With that content.
    pub(crate) fn data(self, data: &[u8]) -> Self {
        Self { data: data.to_vec(), ..self }
    }

    /// With that size in its header, whatever the content.
    pub(crate) fn stated_size(self, size: u64) -> Self {
        Self { size: Some(size), ..self }
    }

    /// With that mode field, as bytes.
    pub(crate) fn raw_mode(self, mode: [u8; 8]) -> Self {
        Self { mode, ..self }
    }

    /// With that device number.
    pub(crate) fn device(self, major: u64, minor: u64) -> Self {
        Self { device: (major, minor), ..self }
    }

    /// Header, content, filling.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| {
            header.iter_mut().skip(at).zip(bytes).for_each(|(slot, byte)| *slot = *byte);
        };
        put(0, self.name.get(..100).unwrap_or(&self.name));
        put(100, &self.mode);
        put(108, b"0000000\x000000000\0");
        put(124, format!("{:011o}\0", self.size.unwrap_or(self.data.len() as u64)).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[self.kind]);
        put(157, self.link.get(..100).unwrap_or(&self.link));
        put(257, b"ustar\x0000");
        put(329, format!("{:07o}\0{:07o}\0", self.device.0, self.device.1).as_bytes());
        let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
        let text = format!("{sum:06o}\0 ");
        header.iter_mut().skip(148).zip(text.bytes()).for_each(|(slot, byte)| *slot = byte);
        [&header[..], &padded(&self.data)].concat()
    }
}

/// `data` filled with zeros to whole blocks.
pub(crate) fn padded(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    bytes.resize(data.len().next_multiple_of(512), 0);
    bytes
}

/// A PAX record that says its own length.
pub(crate) fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let body = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
    let mut length = body.len();
    while length != body.len() + length.to_string().len() {
        length = body.len() + length.to_string().len();
    }
    [length.to_string().as_bytes(), &body].concat()
}

/// An extended header with those records.
pub(crate) fn pax(records: &[(&str, &[u8])]) -> Member {
    let data: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
    node("pax", b'x', 0o644).data(&data)
}

/// A tar of those members with its end marker.
pub(crate) fn tar(members: &[Member]) -> Vec<u8> {
    let mut bytes: Vec<u8> = members.iter().flat_map(Member::bytes).collect();
    bytes.extend_from_slice(&[0; 1024]);
    bytes
}

/// The digest of bytes, without its scheme.
pub(crate) fn hex(bytes: &[u8]) -> String {
    Digest(Sha256::digest(bytes).into()).to_string().replace("sha256:", "")
}

/// A configuration for layers with those uncompressed bytes.
pub(crate) fn config(layers: &[Vec<u8>]) -> Vec<u8> {
    let ids: Vec<_> = layers.iter().map(|layer| format!("\"sha256:{}\"", hex(layer))).collect();
    let history: Vec<_> =
        (0..layers.len()).map(|n| format!("{{\"created_by\": \"RUN step {n}\"}}")).collect();
    let text = format!(
        r#"{{"architecture": "amd64", "os": "linux", "config": {{}}, "rootfs": {{"type": "layers", "diff_ids": [{}]}}, "history": [{}]}}"#,
        ids.join(", "),
        history.join(", ")
    );
    text.into_bytes()
}

/// What `docker save` wrote before version 25.
pub(crate) fn docker_archive(layers: &[Vec<u8>]) -> Vec<u8> {
    let config = config(layers);
    docker_archive_of(layers, &config)
}

/// The same with a configuration of the caller's.
pub(crate) fn docker_archive_of(layers: &[Vec<u8>], config: &[u8]) -> Vec<u8> {
    let name = format!("{}.json", hex(config));
    let mut members: Vec<_> =
        (0..).zip(layers).map(|(n, l)| file(format!("{n}/layer.tar"), 0o644).data(l)).collect();
    let names: Vec<_> = (0..layers.len()).map(|n| format!("\"{n}/layer.tar\"")).collect();
    let manifest =
        format!(r#"[{{"Config": "{name}", "RepoTags": ["x:1"], "Layers": [{}]}}]"#, names.join(", "));
    members.push(file(&name, 0o644).data(config));
    members.push(file("manifest.json", 0o644).data(manifest.as_bytes()));
    tar(&members)
}

/// The report on a docker archive of those bytes.
#[expect(clippy::expect_used, reason = "a test without its report is no test")]
pub(crate) fn report_on(archive: &[u8]) -> Report {
    audit_bytes(archive, &Policy::default()).expect("an image")
}

/// The same, with a policy, or why there is none.
pub(crate) fn audit_bytes(archive: &[u8], policy: &Policy) -> Result<Report, image_audit::AuditError> {
    let file = on_disk(archive);
    audit(&Source::DockerArchive(file.path().to_path_buf()), policy, &Limits::default())
}

/// A file with those bytes.
#[expect(clippy::expect_used, reason = "a test without its file is no test")]
pub(crate) fn on_disk(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    file
}

/// The report on an image of layers with those members.
pub(crate) fn scan(layers: &[&[Member]]) -> Report {
    scan_raw(&layers.iter().map(|members| tar(members)).collect::<Vec<_>>())
}

/// The report on an image of layers with those bytes.
pub(crate) fn scan_raw(layers: &[Vec<u8>]) -> Report {
    report_on(&docker_archive(layers))
}

/// Every finding as `rule view path`, without forbidden names, in order.
pub(crate) fn found(report: &Report) -> Vec<String> {
    lines(report, |rule| rule != "forbidden-binary")
}

/// The forbidden names alone.
pub(crate) fn forbidden(report: &Report) -> Vec<String> {
    lines(report, |rule| rule == "forbidden-binary")
}

fn lines(report: &Report, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let line = |r: &image_audit::Reported| {
        let f = &r.finding;
        format!("{} {} {}", f.rule.name(), f.visibility.name(), f.path)
    };
    let mut lines: Vec<_> =
        report.findings.iter().filter(|r| wanted(r.finding.rule.name())).map(line).collect();
    lines.sort();
    lines
}

/// The verdict's exit code.
pub(crate) fn code(report: &Report) -> u8 {
    report.verdict().exit().code()
}

/// What is not a docker archive's own: files by name, in that order.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    tar(&files.iter().map(|(name, data)| file(name, 0o644).data(data)).collect::<Vec<_>>())
}

/// A gzip member.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// A zstd frame.
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap_or_default()
}

/// An OCI layout of one image, as names and blobs: `packed` are the layers as they are stored.
pub(crate) fn oci_layout(layers: &[Vec<u8>], packed: &[Vec<u8>], media_type: &str) -> Vec<(String, Vec<u8>)> {
    let config = config(layers);
    let descriptor = |bytes: &[u8], media_type: &str| {
        format!(
            r#"{{"mediaType": "{media_type}", "digest": "sha256:{}", "size": {}}}"#,
            hex(bytes),
            bytes.len()
        )
    };
    let listed: Vec<_> = packed.iter().map(|layer| descriptor(layer, media_type)).collect();
    let manifest = format!(
        r#"{{"schemaVersion": 2, "config": {}, "layers": [{}]}}"#,
        descriptor(&config, "application/vnd.oci.image.config.v1+json"),
        listed.join(", ")
    );
    let index = format!(
        r#"{{"schemaVersion": 2, "manifests": [{}]}}"#,
        descriptor(manifest.as_bytes(), "application/vnd.oci.image.manifest.v1+json")
    );
    let blob = |bytes: &[u8]| (format!("blobs/sha256/{}", hex(bytes)), bytes.to_vec());
    let mut files: Vec<_> = packed.iter().map(|layer| blob(layer)).collect();
    files.push(blob(&config));
    files.push(blob(manifest.as_bytes()));
    files.push(("oci-layout".into(), br#"{"imageLayoutVersion": "1.0.0"}"#.to_vec()));
    files.push(("index.json".into(), index.into_bytes()));
    files
}

/// An archive of names and blobs.
pub(crate) fn archive_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    archive(&files.iter().map(|(name, data)| (name.as_str(), data.as_slice())).collect::<Vec<_>>())
}
