//! What the demo's world and provider saw, one JSON object a line: evidence for the checks at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// One thing that a server of the demo's own saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "saw", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sighting {
    /// A question to the name server.
    Query {
        /// For which name, lower-case, without the last dot.
        name: String,
        /// The record type.
        kind: String,
    },
    /// A TCP connection to a site.
    Connection {
        /// Which site.
        site: String,
        /// The address that it came from.
        from: String,
    },
    /// A request to a site or to the provider, and its answer's status.
    Request {
        /// Which site.
        site: String,
        /// Method and path.
        line: String,
        /// The answer's status.
        status: u16,
    },
    /// Income announced to the control plane.
    Announced {
        /// The webhook's id.
        id: String,
        /// Whose income.
        agent: String,
        /// How much.
        amount_nano: i64,
        /// The control plane's answer; 0 if there was none.
        status: u16,
    },
    /// Bytes on an address where nothing is served, other than by the proxy's choice.
    Stray {
        /// What came.
        what: String,
    },
}

/// Appends sightings to a file.
#[derive(Debug)]
pub struct Witness(Mutex<File>);

impl Witness {
    /// Opens the file, which keeps what it has.
    ///
    /// # Errors
    /// As of opening a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(|file| Self(Mutex::new(file)))
    }

    /// Appends one. A sighting that cannot be written ends the process's usefulness as a witness, so it is said
    /// on stderr, where the driver collects it.
    pub fn saw(&self, sighting: &Sighting) {
        let Ok(mut line) = serde_json::to_vec(sighting) else { return };
        line.push(b'\n');
        let written = match self.0.lock() {
            Ok(mut file) => file.write_all(&line),
            Err(poisoned) => poisoned.into_inner().write_all(&line),
        };
        if let Err(error) = written {
            tracing::error!(%error, "cannot write what was seen");
        }
    }
}

/// Reads a file of sightings.
///
/// # Errors
/// As of reading a file; a line that is none is `InvalidData`.
pub fn read(path: &Path) -> io::Result<Vec<Sighting>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}
