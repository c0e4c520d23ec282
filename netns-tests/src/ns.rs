//! Network namespaces without names.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace, held by a descriptor; it ends with its last holder.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    /// Its `SO_NETNS_COOKIE`.
    pub cookie: u64,
}

/// The calling thread's namespace.
const OWN: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// A new one, with `lo` down and nothing else.
    ///
    /// # Errors
    /// Without the right to it.
    pub fn new() -> Result<Self> {
        let host = netd::own_netns_cookie().context("read the host's cookie")?;
        let made = std::thread::spawn(|| -> Result<Self> {
            unshare(CloneFlags::CLONE_NEWNET).context("make a network namespace")?;
            Ok(Self { file: File::open(OWN)?, cookie: netd::own_netns_cookie()? })
        });
        let Ok(made) = made.join() else { bail!("the thread that makes namespaces panicked") };
        let made = made?;
        ensure!(made.cookie != host, "the new namespace is the host's own");
        Ok(made)
    }

    /// The one that the test itself is in.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn host() -> Result<Self> {
        Ok(Self { file: File::open(OWN)?, cookie: netd::own_netns_cookie()? })
    }

    /// Runs something inside, on a thread of its own.
    ///
    /// # Errors
    /// What it returns, or that the namespace cannot be entered.
    pub fn run<T: Send>(&self, inside: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(&self.file, CloneFlags::CLONE_NEWNET).context("enter the namespace")?;
                inside()
            });
            match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
