//! Says what is in an image, and what only hides there.
//!
//! The crate gathers: it reads folders and archives, lays layers over each other, and hands every inode to the rules
//! in [`policy::image`]. It writes nothing of an image to disk, follows no symlink of one, and never takes
//! what it could not read for clean.

pub mod cli;
mod content;
mod dir;
mod entry;
mod limits;
mod merge;
mod report;
mod source;
mod tally;

use std::io;

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
    /// No layout that this version knows.
    #[error("{0}")]
    UnknownLayout(String),
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
        Source::DockerArchive(_) => {
            let source = NotAnImage::UnknownLayout("docker-archive is not read by this version yet".into());
            return Err(AuditError::NotAnImage { source });
        }
    }
    report.close(tally.missing, tally.read);
    Ok(report)
}
