//! How much a scan takes in before it says that it could not tell.

/// Limits of one scan. Reaching one is never silent: the report is incomplete and names the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries, over all layers.
    pub entries_max: u64,
    /// Bytes after decompression, over all layers.
    pub bytes_max: u64,
    /// Bytes out of a decompressor for each byte that went in, once it gave more than [`Self::ratio_free_bytes`].
    pub ratio_max: u64,
    /// What a decompressor may give before the ratio counts.
    pub ratio_free_bytes: u64,
    /// One name or link target, in bytes.
    pub name_bytes_max: usize,
    /// One extended header, in bytes: 1 MiB is where Go's reader stops too.
    pub pax_bytes_max: usize,
    /// Records of all global extended headers of one archive.
    pub global_records_max: usize,
    /// Their keys and values together, in bytes.
    pub global_bytes_max: usize,
    /// Bytes of texts about what readers differ on, and of the names that others read, over all layers.
    pub anomaly_bytes_max: usize,
    /// One JSON document (manifest, index or configuration), in bytes.
    pub json_bytes_max: usize,
    /// Directories within directories.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries_max: 4_000_000,
            bytes_max: 64 << 30,
            ratio_max: 300,
            ratio_free_bytes: 256 << 20,
            name_bytes_max: 64 << 10,
            pax_bytes_max: 1 << 20,
            global_records_max: 1024,
            global_bytes_max: 4 << 20,
            anomaly_bytes_max: 64 << 20,
            json_bytes_max: 8 << 20,
            depth_max: 512,
        }
    }
}
