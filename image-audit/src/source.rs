//! What a scan reads: the word before the colon says how, or the bytes do.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `dir:ROOTFS`: a root filesystem in a folder.
    Dir(PathBuf),
    /// `docker-archive:F`: what `docker save` writes.
    DockerArchive(PathBuf),
    /// `oci:DIR`: an OCI layout in a folder.
    Oci(PathBuf),
    /// `oci-archive:F`: an OCI layout in a tar.
    OciArchive(PathBuf),
    /// `tar:F`: the tar of a root filesystem.
    Tar(PathBuf),
    /// `-`: any of the tars, in one pass.
    Stdin,
    /// A bare path: any of these, recognised by its content.
    Path(PathBuf),
}

/// A source that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The engine is not asked by this version.
    #[error(
        "read {0:?}: this version asks no engine; use `docker save` and scan the file, or pipe it to `-`"
    )]
    NoEngine(String),
    /// Neither a word that is known nor a path.
    #[error("read {0:?}: it is neither a path nor one of dir: docker-archive: oci: oci-archive: tar: -")]
    NotASource(String),
    /// Nothing after the colon.
    #[error("read {0:?}: a path must follow the colon")]
    Empty(String),
}

impl Source {
    /// Reads the one argument of a scan.
    ///
    /// # Errors
    /// [`SourceError`] for any other form: an unread source must never pass for a clean one.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let Some((word, path)) = text.split_once(':') else { return Self::bare(text) };
        let source = match word {
            "dir" => Self::Dir,
            "docker-archive" => Self::DockerArchive,
            "oci" => Self::Oci,
            "oci-archive" => Self::OciArchive,
            "tar" => Self::Tar,
            "docker" => return Err(SourceError::NoEngine(text.into())),
            _ => return Self::bare(text),
        };
        if path.is_empty() {
            return Err(SourceError::Empty(text.into()));
        }
        Ok(source(PathBuf::from(path)))
    }

    /// A path without a word. One with a colon must look like a path, or a mistyped word would be one.
    fn bare(text: &str) -> Result<Self, SourceError> {
        let plain =
            !text.is_empty() && (!text.contains(':') || text.starts_with('/') || text.starts_with('.'));
        if plain { Ok(Self::Path(PathBuf::from(text))) } else { Err(SourceError::NotASource(text.into())) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = |word: &str, path: &Path| write!(f, "{word}{}", path.display());
        match self {
            Self::Dir(path) => named("dir:", path),
            Self::DockerArchive(path) => named("docker-archive:", path),
            Self::Oci(path) => named("oci:", path),
            Self::OciArchive(path) => named("oci-archive:", path),
            Self::Tar(path) => named("tar:", path),
            Self::Path(path) => named("", path),
            Self::Stdin => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_back_as_it_is_written() {
        for text in [
            "dir:/x",
            "docker-archive:a:b.tar",
            "oci:x",
            "oci-archive:x",
            "tar:x",
            "-",
            "x.tar",
            "/a:b",
            "./c:d",
        ] {
            assert_eq!(Source::parse(text).map(|s| s.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for text in ["", "dir:", "oci:", "docker:x", "containers-storage:x", "image:latest"] {
            assert!(Source::parse(text).is_err(), "{text}");
        }
    }
}
