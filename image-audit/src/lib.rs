//! Says what is in an image, and what only hides there.
//!
//! The crate gathers: it reads folders and archives, lays layers over each other, and hands every inode to the rules
//! in [`policy::image`]. It writes nothing of an image to disk, follows no symlink of one, and never takes
//! what it could not read for clean.

mod archive;
mod blob;
pub mod cli;
mod content;
mod dir;
mod entry;
mod image;
mod json;
mod layer;
mod layout;
mod limits;
mod merge;
mod plan;
pub mod policy_file;
mod report;
mod source;
mod tally;
mod tar;
mod unpack;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use archive::{ArchiveError, Blobs, Wanted};
use image::Assembled;
use layer::LayerRead;
use policy::Exit;
use policy::image::{Kind, Policy, Rule, escape};
use tally::Tally;

pub use limits::Limits;
pub use report::{Image, LayerName, Report, Reported};
pub use source::{Source, SourceError};
pub use tally::{Incomplete, ReadCounts};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The source is not there or may not be read: the caller's fault, or the host's.
    #[error("open the source")]
    Open {
        /// What the host said.
        source: io::Error,
    },
    /// It can be read, and is no image.
    #[error("take the source for an image")]
    NotAnImage {
        /// What it lacks.
        source: NotAnImage,
    },
    /// The platform that was asked for is not in it: the caller's mistake.
    #[error("find the platform: the source has {}", if present.is_empty() { "none".into() } else { present.join(", ") })]
    NoPlatform {
        /// Those that are.
        present: Vec<String>,
    },
}

/// What a source lacks to be an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnImage {
    /// `dir:` on a file.
    #[error("it is not a folder; a file is scanned as docker-archive: oci-archive: or tar:")]
    NotAFolder,
    /// A file's prefix on a device, which has no end.
    #[error("it is a device; name a file, a pipe or a folder")]
    Device,
    /// `docker-archive:` on what is no archive.
    #[error("{0}")]
    NotAnArchive(String),
    /// An archive of something else.
    #[error("the archive holds no manifest.json and no index.json")]
    NoManifest,
}

impl From<NotAnImage> for AuditError {
    fn from(source: NotAnImage) -> Self {
        Self::NotAnImage { source }
    }
}

impl From<ArchiveError> for AuditError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Read(source) => Self::Open { source },
            ArchiveError::NotATar(why) => NotAnImage::NotAnArchive(why).into(),
        }
    }
}

impl AuditError {
    /// The exit code that says so.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Open { .. } => Exit::Io,
            Self::NotAnImage { .. } => Exit::Unknown,
            Self::NoPlatform { .. } => Exit::Usage,
        }
    }
}

/// Audits `source` by `policy`.
///
/// What was partly read still has a report; it is then not complete, and its verdict is not clean.
///
/// # Errors
/// [`AuditError`] if there is nothing to report on at all.
pub fn audit(source: &Source, policy: &Policy, limits: &Limits) -> Result<Report, AuditError> {
    audit_platform(source, policy, limits, None)
}

/// Audits the images of one platform alone: `linux/amd64`, `linux/arm64/v8`. `None` audits all.
///
/// # Errors
/// [`AuditError`], as [`audit`]; [`AuditError::NoPlatform`] if no image is for that platform.
pub fn audit_platform(
    source: &Source,
    policy: &Policy,
    limits: &Limits,
    platform: Option<&str>,
) -> Result<Report, AuditError> {
    let report = Report::new(escape(source.to_string().as_bytes()), policy);
    let scan = Scan { limits, platform };
    match source {
        Source::Dir(root) => scan.folder(report, root),
        Source::Oci(root) => scan.layout(report, root),
        Source::DockerArchive(file) | Source::OciArchive(file) => {
            scan.tar(report, open(file)?, Wanted::Archive)
        }
        Source::Tar(file) => scan.tar(report, open(file)?, Wanted::Rootfs),
        Source::Stdin => scan.tar(report, io::stdin().lock(), Wanted::Either),
        Source::Path(path) if path.join("oci-layout").is_file() => scan.layout(report, path),
        Source::Path(path) if path.is_dir() => scan.folder(report, path),
        Source::Path(path) => scan.tar(report, open(path)?, Wanted::Either),
    }
}

fn open(path: &Path) -> Result<File, AuditError> {
    let failed = |source| AuditError::Open { source };
    let file = File::open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(NotAnImage::Device.into());
    }
    Ok(file)
}

/// What holds for the whole of one scan.
struct Scan<'a> {
    limits: &'a Limits,
    platform: Option<&'a str>,
}

impl Scan<'_> {
    fn folder(&self, mut report: Report, root: &Path) -> Result<Report, AuditError> {
        self.no_platform()?;
        let mut tally = Tally::default();
        let entries = dir::read(root, self.limits, &mut tally)?;
        note_if_empty(&entries, &mut tally);
        report.add_image(Image::default(), &merge::views([entries.as_slice()]));
        report.close(tally);
        Ok(report)
    }

    fn layout(&self, report: Report, root: &Path) -> Result<Report, AuditError> {
        let mut tally = Tally::default();
        let blobs = layout::read(root, self.limits, &mut tally)?;
        self.images(report, &blobs, tally)?.ok_or(NotAnImage::NoManifest.into())
    }

    /// A tar of either kind. A manifest decides: a root filesystem that has one by chance is incomplete, never clean.
    fn tar(&self, report: Report, source: impl Read, wanted: Wanted) -> Result<Report, AuditError> {
        let pass = archive::read(source, wanted, self.limits)?;
        if wanted != Wanted::Rootfs {
            let (blobs, tally) = pass.archive;
            if let Some(report) = self.images(report.clone(), &blobs?, tally)? {
                return Ok(report);
            }
        }
        let (read, tally) = pass.rootfs.ok_or(NotAnImage::NoManifest)?;
        self.no_platform()?;
        rootfs(report, &read, tally)
    }

    fn images(
        &self,
        mut report: Report,
        blobs: &Blobs,
        mut tally: Tally,
    ) -> Result<Option<Report>, AuditError> {
        match image::assemble(blobs, self.platform, &mut report, &mut tally) {
            Assembled::NoManifest => Ok(None),
            Assembled::NoPlatform(present) => Err(AuditError::NoPlatform { present }),
            Assembled::Images => {
                report.close(tally);
                Ok(Some(report))
            }
        }
    }

    /// A root filesystem says for no platform that it is for it.
    fn no_platform(&self) -> Result<(), AuditError> {
        match self.platform {
            Some(_) => Err(AuditError::NoPlatform { present: Vec::new() }),
            None => Ok(()),
        }
    }
}

/// A root filesystem without a file is a wrong path or an unpacking that failed, not a clean image.
fn note_if_empty(entries: &[entry::Entry], tally: &mut Tally) {
    if !entries.iter().any(|entry| matches!(entry.what, entry::What::Node(Kind::File))) {
        tally.incomplete("the source", "it holds no file: there was nothing to audit");
    }
}

fn rootfs(mut report: Report, read: &LayerRead, mut tally: Tally) -> Result<Report, AuditError> {
    if let Some(problem) = &read.problem {
        if read.entries.is_empty() {
            return Err(NotAnImage::NotAnArchive(problem.clone()).into());
        }
        tally.incomplete("the tar", problem);
    }
    note_if_empty(&read.entries, &mut tally);
    report.add_image(Image::default(), &merge::views([read.entries.as_slice()]));
    if read.trailing {
        let what = "the archive goes on after the end of its tar".to_owned();
        image::image_finding(&mut report, 0, Rule::TrailingData, what, None);
    }
    report.close(tally);
    Ok(report)
}
