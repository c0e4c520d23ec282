//! The demo's processes: each started as an operator would, with its own user, namespace and log, and none of
//! them able to outlive the driver.
//!
//! Started from one thread that lives as long as the demo: the kernel kills each when that thread ends, however
//! it ends.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use caps::Capability;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::namespace::Namespace;
use crate::spawn::launch::Launch;
use crate::spawn::{Program, SpawnError, Streams};

/// Longest wait for a process to be ready.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for a process to end after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Lines of a log that are shown when its process failed.
const TAIL_LINES: usize = 12;

/// Why a process is not there, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A program of the product is not where it is built or installed.
    #[error("find {0} beside this program: build the whole workspace (`make`), or install it")]
    Missing(PathBuf),
    /// It could not be started.
    #[error("start {name}")]
    Start {
        /// Which.
        name: &'static str,
        /// Why.
        #[source]
        source: SpawnError,
    },
    /// A file or pipe of it.
    #[error("read or write for {name}")]
    Io {
        /// Which.
        name: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It ended by itself.
    #[error("go on without {name}: it ended with {status}; its last words:\n{tail}")]
    Ended {
        /// Which.
        name: &'static str,
        /// How.
        status: ExitStatus,
        /// The end of its log.
        tail: String,
    },
    /// It did not get ready in time.
    #[error("wait longer for {name}; its last words:\n{tail}")]
    NotReady {
        /// Which.
        name: &'static str,
        /// The end of its log.
        tail: String,
    },
}

/// What to start.
#[derive(Debug)]
pub struct Start<'a> {
    /// Its name, and its log's.
    pub name: &'static str,
    /// The program.
    pub program: Program,
    /// The namespace that it runs in; none, and it is the driver's.
    pub namespace: Option<&'a Namespace>,
    /// Its user and group; none, and they are the driver's, with all rights.
    pub user: Option<(u32, u32)>,
    /// Capabilities that it keeps.
    pub caps: Vec<Capability>,
    /// The folder for its log.
    pub logs: &'a Path,
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    output: Option<BufReader<ChildStdout>>,
    log: PathBuf,
}

/// The path of a program of this product, beside this one.
///
/// # Errors
/// [`ProcessError::Missing`].
pub fn sibling(name: &'static str) -> Result<PathBuf, ProcessError> {
    let own = std::env::current_exe().map_err(|source| ProcessError::Io { name, source })?;
    let path = own.with_file_name(name);
    if path.is_file() { Ok(path) } else { Err(ProcessError::Missing(path)) }
}

impl Process {
    /// Starts one, its standard error in `LOGS/NAME.log`, appended.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn start(start: Start<'_>) -> Result<Self, ProcessError> {
        let name = start.name;
        let failed = |source| ProcessError::Start { name, source };
        let log = start.logs.join(format!("{name}.log"));
        let errors = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|source| ProcessError::Io { name, source })?;
        // The descriptor's number is the driver's, so the launcher finds it there.
        let netns = start.namespace.map(|namespace| {
            PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd()))
        });
        let launch = Launch { netns, user: start.user, caps: start.caps, ..Launch::default() };
        let streams = Streams { input: Stdio::null(), output: Stdio::piped(), errors: errors.into() };
        let program = launch.program(start.program).map_err(failed)?;
        let mut child = program.start(streams).map_err(failed)?;
        let output = child.stdout.take().map(BufReader::new);
        Ok(Self { name, child, output, log })
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// Waits for the line `ready WHAT` on its standard output and gives `WHAT`.
    ///
    /// # Errors
    /// [`ProcessError::Ended`] or [`ProcessError::NotReady`].
    pub fn ready_line(&mut self) -> Result<String, ProcessError> {
        let end = Instant::now() + READY_LIMIT;
        while Instant::now() < end {
            if let Some(line) = self.line_within(Duration::from_millis(100))?
                && let Some(what) = line.strip_prefix("ready")
            {
                return Ok(what.trim().to_owned());
            }
            self.check()?;
        }
        Err(ProcessError::NotReady { name: self.name, tail: self.tail() })
    }

    /// Waits until something answers at a Unix stream or packet socket.
    ///
    /// # Errors
    /// [`ProcessError::Ended`] or [`ProcessError::NotReady`].
    pub fn ready_socket(&mut self, open: impl Fn() -> bool) -> Result<(), ProcessError> {
        let end = Instant::now() + READY_LIMIT;
        while Instant::now() < end {
            if open() {
                return Ok(());
            }
            self.check()?;
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(ProcessError::NotReady { name: self.name, tail: self.tail() })
    }

    /// Fails if it has ended.
    ///
    /// # Errors
    /// [`ProcessError::Ended`].
    pub fn check(&mut self) -> Result<(), ProcessError> {
        let name = self.name;
        match self.child.try_wait().map_err(|source| ProcessError::Io { name, source })? {
            Some(status) => Err(ProcessError::Ended { name, status, tail: self.tail() }),
            None => Ok(()),
        }
    }

    /// Asks it to end, waits, and kills it if it does not; whether it ended by itself with success.
    pub fn stop(&mut self) -> bool {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return false;
        }
        self.signal(Signal::SIGTERM);
        let end = Instant::now() + END_LIMIT;
        while Instant::now() < end {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.success(),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(_error) => break,
            }
        }
        self.kill();
        false
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        drop(self.child.wait());
    }

    fn signal(&self, signal: Signal) {
        // It is our child and not waited for: the number cannot be another's.
        if let Err(error) = kill(Pid::from_raw(self.pid()), signal) {
            tracing::debug!(name = self.name, %error, "cannot signal");
        }
    }

    fn line_within(&mut self, limit: Duration) -> Result<Option<String>, ProcessError> {
        let name = self.name;
        let failed = |source| ProcessError::Io { name, source };
        let Some(output) = &mut self.output else { return Ok(None) };
        if output.buffer().is_empty() {
            let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO);
            let mut waits = [PollFd::new(output.get_ref().as_fd(), PollFlags::POLLIN)];
            if poll(&mut waits, timeout).map_err(|errno| failed(errno.into()))? == 0 {
                return Ok(None);
            }
        }
        let mut line = String::new();
        output.read_line(&mut line).map_err(failed)?;
        Ok(Some(line))
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// Whether somebody answers at a Unix stream socket.
pub fn answers(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}
