//! What a scan reads: the word before the colon says how.

use std::fmt;
use std::path::PathBuf;

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `dir:ROOTFS`: a root filesystem in a folder.
    Dir(PathBuf),
    /// `docker-archive:F`: what `docker save` writes.
    DockerArchive(PathBuf),
}

/// A source that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The word is known, this version does not read it.
    #[error("read {0:?}: this version reads dir:FOLDER and docker-archive:FILE only")]
    NotRead(String),
    /// Nothing after the colon.
    #[error("read {0:?}: a path must follow the colon")]
    Empty(String),
}

impl Source {
    /// Reads `dir:ROOTFS` or `docker-archive:F`.
    ///
    /// # Errors
    /// [`SourceError`] for any other form: an unread source must never pass for a clean one.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let (word, path) = text.split_once(':').ok_or_else(|| SourceError::NotRead(text.into()))?;
        let source = match word {
            "dir" => Self::Dir,
            "docker-archive" => Self::DockerArchive,
            _ => return Err(SourceError::NotRead(text.into())),
        };
        if path.is_empty() {
            return Err(SourceError::Empty(text.into()));
        }
        Ok(source(PathBuf::from(path)))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dir(path) => write!(f, "dir:{}", path.display()),
            Self::DockerArchive(path) => write!(f, "docker-archive:{}", path.display()),
        }
    }
}
