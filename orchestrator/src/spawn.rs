//! The one place where this program starts programs: by absolute path, with an argument array and an empty
//! environment plus what is given, with limits on output and time.
//!
//! What needs more than that (another user, a network namespace, a death tied to ours) goes through
//! [`launch`]: a single-threaded process that changes itself and then becomes the program. The other way, code
//! between fork and exec of a threaded process, would be unsafe in every sense.

pub mod launch;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// This program itself, also when its file has been replaced or lies where the new user may not look.
pub const OURSELVES: &str = "/proc/self/exe";

/// A program and all that it is given.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    dir: PathBuf,
}

/// Where a program's three streams go.
#[derive(Debug)]
pub struct Streams {
    /// Its standard input.
    pub input: Stdio,
    /// Its standard output.
    pub output: Stdio,
    /// Its standard error.
    pub errors: Stdio,
}

/// What a program that ran to its end left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// The first bytes of its standard output.
    pub output: Vec<u8>,
    /// The first bytes of its standard error.
    pub errors: Vec<u8>,
}

/// Why a program was not started, or did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A relative path would mean another program in another folder.
    #[error("start {0}: its path is not absolute")]
    NotAbsolute(PathBuf),
    /// The host would not start it.
    #[error("start {path}")]
    Start {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its end or its output could not be had.
    #[error("wait for {path}")]
    Wait {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It took too long and was killed.
    #[error("wait for {path}: it ran longer than {limit:?} and was killed")]
    TooSlow {
        /// Which.
        path: PathBuf,
        /// How long it had.
        limit: Duration,
    },
}

impl Program {
    /// A program without arguments or environment, in the folder `/`.
    ///
    /// # Errors
    /// [`SpawnError::NotAbsolute`].
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, SpawnError> {
        let path = path.into();
        if !path.is_absolute() {
            return Err(SpawnError::NotAbsolute(path));
        }
        Ok(Self { path, args: Vec::new(), env: Vec::new(), dir: PathBuf::from("/") })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same with another program in its place.
    #[must_use]
    pub fn with_path(mut self, path: PathBuf) -> Self {
        self.path = path;
        self
    }

    /// One argument more.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// One variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The folder that it starts in.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// Starts it, in a process group of its own: a Ctrl-C at our terminal is ours to pass on.
    ///
    /// # Errors
    /// [`SpawnError::Start`].
    #[expect(clippy::disallowed_methods, reason = "this is the one place where programs are started")]
    pub fn start(&self, streams: Streams) -> Result<Child, SpawnError> {
        use std::os::unix::process::CommandExt as _;
        Command::new(&self.path)
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.dir)
            .process_group(0)
            .stdin(streams.input)
            .stdout(streams.output)
            .stderr(streams.errors)
            .spawn()
            .map_err(|source| SpawnError::Start { path: self.path.clone(), source })
    }

    /// Runs it to its end; keeps the first `bytes_max` of each stream and kills it after `limit`.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn run(&self, bytes_max: u64, limit: Duration) -> Result<Finished, SpawnError> {
        let mut child =
            self.start(Streams { input: Stdio::null(), output: Stdio::piped(), errors: Stdio::piped() })?;
        let output = child.stdout.take().map(|pipe| keep_first(pipe, bytes_max));
        let errors = child.stderr.take().map(|pipe| keep_first(pipe, bytes_max));
        let status = self.wait(&mut child, limit)?;
        let joined = |kept: Option<std::thread::JoinHandle<Vec<u8>>>| {
            kept.and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        Ok(Finished { status, output: joined(output), errors: joined(errors) })
    }

    fn wait(&self, child: &mut Child, limit: Duration) -> Result<ExitStatus, SpawnError> {
        let wait = |source| SpawnError::Wait { path: self.path.clone(), source };
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if let Some(status) = child.try_wait().map_err(wait)? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().map_err(wait)?;
        child.wait().map_err(wait)?;
        Err(SpawnError::TooSlow { path: self.path.clone(), limit })
    }
}

/// Reads to the end so that the writer never blocks, and keeps the first `bytes_max`.
fn keep_first(mut pipe: impl Read + Send + 'static, bytes_max: u64) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let whole = (&mut pipe).take(bytes_max).read_to_end(&mut kept);
        if whole.is_ok() {
            // The rest is of no interest, nor is why it ended.
            drop(std::io::copy(&mut pipe, &mut std::io::sink()));
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_starts_nothing() {
        assert!(matches!(Program::new("sh"), Err(SpawnError::NotAbsolute(_))));
    }

    #[test]
    fn the_environment_is_what_is_given() {
        let program = Program::new("/usr/bin/env").unwrap().env("GIVEN", "1");
        let finished = program.run(1000, Duration::from_secs(10)).unwrap();
        assert_eq!(String::from_utf8(finished.output).unwrap(), "GIVEN=1\n");
    }

    #[test]
    fn output_is_bounded_and_the_writer_never_blocks() {
        let program = Program::new("/usr/bin/head").unwrap().args(["-c", "1000000", "/dev/zero"]);
        let finished = program.run(10, Duration::from_secs(10)).unwrap();
        assert_eq!((finished.output.len(), finished.status.success()), (10, true));
    }

    #[test]
    fn what_runs_too_long_is_killed() {
        let program = Program::new("/usr/bin/sleep").unwrap().arg("60");
        let ended = program.run(10, Duration::from_millis(50));
        assert!(matches!(ended, Err(SpawnError::TooSlow { .. })));
    }
}
