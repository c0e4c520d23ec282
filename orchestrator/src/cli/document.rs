//! JSON in on stdin or from a file, JSON out on stdout: for the commands that decide and judge.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use policy::Exit;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ReadError {
    /// Standard input is closed or broken.
    #[error("read standard input")]
    Stdin(#[source] io::Error),
    /// The file is not there, or not readable.
    #[error("read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is no JSON of the command's shape; the text ends in line and column.
    #[error("understand {place}")]
    Shape {
        /// Where it came from.
        place: String,
        /// What is wrong, and where.
        #[source]
        source: serde_json::Error,
    },
}

/// Everything on standard input.
pub(super) fn stdin() -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(ReadError::Stdin)?;
    Ok(bytes)
}

/// A document from standard input.
pub(super) fn from_stdin<T: DeserializeOwned>() -> Result<T, ReadError> {
    parse("standard input", &stdin()?)
}

/// A document from a file.
pub(super) fn from_file<T: DeserializeOwned>(path: &Path) -> Result<T, ReadError> {
    let bytes = fs::read(path).map_err(|source| ReadError::File { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &bytes)
}

fn parse<T: DeserializeOwned>(place: &str, bytes: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(bytes).map_err(|source| ReadError::Shape { place: place.to_owned(), source })
}

impl ReadError {
    /// Whose fault: the caller's document, or the system's.
    const fn exit(&self) -> Exit {
        match self {
            Self::Stdin(_) | Self::File { .. } => Exit::Io,
            Self::Shape { .. } => Exit::Usage,
        }
    }
}

/// Says why a document could not be read.
pub(super) fn unread(error: &ReadError) -> Exit {
    complain(error);
    error.exit()
}

/// Says what is wrong with a document.
pub(super) fn wrong(error: &dyn std::error::Error) -> Exit {
    complain(error);
    Exit::Usage
}

/// Says what the system would not do.
pub(super) fn failed(error: &dyn std::error::Error) -> Exit {
    complain(error);
    Exit::Io
}

/// One line: what it could not do, and each cause.
fn complain(error: &dyn std::error::Error) {
    let mut line = format!("darwin: cannot {error}");
    let mut cause = error.source();
    while let Some(source) = cause {
        line = format!("{line}: {source}");
        cause = source.source();
    }
    // Where standard error is closed, the exit code says it alone.
    drop(writeln!(io::stderr(), "{line}"));
}

/// Prints a document; `exit`, if that went well.
pub(super) fn print(document: &impl Serialize, exit: Exit) -> Exit {
    let mut stdout = io::stdout().lock();
    let printed = serde_json::to_writer_pretty(&mut stdout, document)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(stdout))
        .and_then(|()| stdout.flush());
    match printed {
        Ok(()) => exit,
        Err(error) => {
            drop(writeln!(io::stderr(), "darwin: cannot print: {error}"));
            Exit::Io
        }
    }
}
