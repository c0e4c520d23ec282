//! An episode as a confined run: namespaces, root, limits and system calls of its own.
//!
//! `child` is what runs inside (two hidden lives of this same program), `root` and `seccomp` are its walls, and
//! `host` is the other side: it starts the run, has netd confine it before the agent's first instruction, and
//! tells how it ended. Nothing here decides whether an agent may run: the core did.

pub mod audit;
pub mod child;
pub mod doors;
pub mod host;
pub mod root;
pub mod seccomp;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// All that the inside needs to know, one JSON line on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The folder that becomes the read-only root.
    pub rootfs: PathBuf,
    /// Any empty folder, to mount the new root on; several runs may share it, each sees its own.
    pub mount_point: PathBuf,
    /// The agent's state folder, `/state` inside.
    pub state: PathBuf,
    /// The wake message's file, `/wake.txt` inside, read-only.
    pub wake: PathBuf,
    /// The program inside and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Its limits.
    pub limits: Limits,
}

/// Resource limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processes and threads.
    pub processes_max: u64,
    /// Open files a process.
    pub files_max: u64,
    /// Bytes of the largest file that it may write.
    pub file_bytes_max: u64,
    /// Bytes of data (heap and private maps) a process.
    pub data_bytes_max: u64,
    /// Bytes of `/tmp`, which is memory.
    pub tmp_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes_max: 256,
            files_max: 1_024,
            file_bytes_max: 1 << 30,
            data_bytes_max: 4 << 30,
            tmp_bytes_max: 256 << 20,
        }
    }
}
