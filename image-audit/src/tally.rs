//! Counts what was read and what was not, and holds a scan to its limits.

use crate::limits::Limits;

/// Something that was not read, or not understood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incomplete {
    /// Where: a path in the image, a blob, or the source.
    pub where_: String,
    /// Why.
    pub why: String,
}

/// How much was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCounts {
    /// Layers.
    pub layers: u64,
    /// Headers of layers, or names of a folder.
    pub entries_seen: u64,
    /// Bytes of layers after decompression, or of a folder's files.
    pub bytes_seen: u64,
    /// Entries whose content or type was not understood.
    pub entries_unanalysed: u64,
}

/// The running count of one scan.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// So far.
    pub read: ReadCounts,
    /// What is missing.
    pub missing: Vec<Incomplete>,
    json_bytes: usize,
    anomaly_bytes: usize,
}

impl Tally {
    /// Notes what was not read.
    pub(crate) fn incomplete(&mut self, where_: &str, why: &str) {
        self.missing.push(Incomplete { where_: where_.to_owned(), why: why.to_owned() });
    }

    /// Counts one entry; the text of the limit if it is one too many.
    pub(crate) fn entry(&mut self, limits: &Limits) -> Result<(), String> {
        self.read.entries_seen += 1;
        if self.read.entries_seen > limits.entries_max {
            return Err(format!("more than {} entries", limits.entries_max));
        }
        Ok(())
    }

    /// Counts bytes of documents, which are kept; the text of the limit if all of them are too many.
    pub(crate) fn json(&mut self, count: usize, limits: &Limits) -> Result<(), String> {
        self.json_bytes = self.json_bytes.saturating_add(count);
        let max = limits.json_bytes_max.saturating_mul(8);
        if self.json_bytes > max {
            Err(format!("documents of more than {max} bytes together"))
        } else {
            Ok(())
        }
    }

    /// Counts bytes of anomalies, which are kept; the text of the limit if all of them are too many.
    pub(crate) fn anomalies(&mut self, count: usize, limits: &Limits) -> Result<(), String> {
        self.anomaly_bytes = self.anomaly_bytes.saturating_add(count);
        let max = limits.anomaly_bytes_max;
        if self.anomaly_bytes > max { Err(format!("more than {max} bytes of anomalies")) } else { Ok(()) }
    }

    /// Counts bytes; the text of the limit if they are too many.
    pub(crate) fn bytes(&mut self, count: u64, limits: &Limits) -> Result<(), String> {
        self.read.bytes_seen = self.read.bytes_seen.saturating_add(count);
        if self.read.bytes_seen > limits.bytes_max {
            return Err(format!("more than {} bytes", limits.bytes_max));
        }
        Ok(())
    }
}
