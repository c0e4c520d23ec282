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
mod limits;
mod merge;
mod plan;
mod report;
mod source;
mod tally;
mod tar;
mod unpack;

use std::fs::File;
use std::io;

use archive::ArchiveError;
use policy::Exit;
use policy::image::{Policy, escape};

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
}

/// What a source lacks to be an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnImage {
    /// `dir:` on a file.
    #[error("it is not a folder; an archive is written docker-archive:FILE")]
    NotAFolder,
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
    let mut tally = tally::Tally::default();
    let mut report = Report::new(escape(source.to_string().as_bytes()), policy);
    match source {
        Source::Dir(root) => {
            let entries = dir::read(root, limits, &mut tally)?;
            report.add_image(Image::default(), &merge::views([entries.as_slice()]));
        }
        Source::DockerArchive(file) => {
            let file = File::open(file).map_err(|source| AuditError::Open { source })?;
            let blobs = archive::read(file, limits, &mut tally)?;
            if !image::assemble(&blobs, &mut report, &mut tally) {
                return Err(NotAnImage::NoManifest.into());
            }
        }
    }
    report.close(tally.missing, tally.read);
    Ok(report)
}
