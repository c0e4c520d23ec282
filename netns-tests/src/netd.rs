//! The real `darwin-netd`, with a folder of its own.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};
use netd::client::{Client, Confined, Role, Subscription};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use policy::signal::Signal as Seen;
use policy::{AgentId, ProfileName};
use tempfile::TempDir;

use crate::ns::Namespace;

/// A running netd.
#[derive(Debug)]
pub struct Netd {
    child: Child,
    folder: TempDir,
}

/// The program beside the test, or beside the folder of tests.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let found =
        own.ancestors().skip(1).take(2).map(|folder| folder.join("darwin-netd")).find(|path| path.is_file());
    found.context("find darwin-netd beside the tests: build it first with `cargo build --workspace --bins`")
}

#[expect(clippy::disallowed_methods, reason = "the one place where this crate starts programs")]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

/// Runs a program to its end.
///
/// # Errors
/// When it cannot be started.
pub fn run(program: &Path, arguments: &[&str]) -> Result<Output> {
    command(program).args(arguments).output().with_context(|| format!("start {}", program.display()))
}

/// `nft`, run in the calling thread's namespace.
///
/// # Errors
/// When it is not installed.
pub fn nft(arguments: &[&str]) -> Result<Output> {
    let places = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"];
    let nft =
        places.iter().map(Path::new).find(|path| path.is_file()).context("find nft: install nftables")?;
    run(nft, arguments)
}

impl Netd {
    /// Starts one and waits until it serves. Root may ask everything; the head gets a user of its own.
    ///
    /// # Errors
    /// When it does not come up; its own words are in the test's output.
    pub fn start() -> Result<Self> {
        let folder = TempDir::new()?;
        let text = format!(
            "socket = \"{0}/netd.sock\"\nspool = \"{0}/netd.jsonl\"\nuser = 64123\nclients = {{ control = [0], proxy = [0], gateway = [0] }}\n",
            folder.path().display()
        );
        std::fs::write(folder.path().join("netd.toml"), text)?;
        let child = Self::spawn(folder.path())?;
        Ok(Self { child, folder })
    }

    fn spawn(folder: &Path) -> Result<Child> {
        let config = folder.join("netd.toml");
        let mut child = command(&program()?)
            .arg("serve")
            .arg("--config")
            .arg(config)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("netd's stderr")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        if !line.contains("ready at") {
            child.kill()?;
            child.wait()?;
            bail!("netd did not start: {line}");
        }
        // Read on, or netd would block when it has much to say.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        Ok(child)
    }

    /// Starts it again after [`Netd::kill_9`].
    ///
    /// # Errors
    /// As [`Netd::start`].
    pub fn restart(&mut self) -> Result<()> {
        self.child = Self::spawn(self.folder.path())?;
        Ok(())
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("netd.sock")
    }

    /// The head's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection of root.
    ///
    /// # Errors
    /// When netd is gone.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::connect(self.socket())?)
    }

    /// A subscription of root.
    ///
    /// # Errors
    /// When netd is gone.
    pub fn subscribe(&self, role: Role) -> Result<Subscription> {
        Ok(Subscription::open(self.socket(), role)?)
    }

    /// Confines a namespace over a connection.
    ///
    /// # Errors
    /// netd's refusal.
    pub fn confine(&self, client: &mut Client, netns: &Namespace, agent: &AgentId) -> Result<Confined> {
        let profile = ProfileName::parse("research")?;
        Ok(client.confine(netns.as_fd(), agent, &profile)?)
    }

    /// The signals so far.
    ///
    /// # Errors
    /// When the spool is no list of signals.
    pub fn signals(&self) -> Result<Vec<Seen>> {
        let text = std::fs::read_to_string(self.folder.path().join("netd.jsonl"))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// One run of the command line against this netd.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn command_line(&self, arguments: &[&str]) -> Result<Output> {
        let config = self.folder.path().join("netd.toml").display().to_string();
        let mut all = arguments.to_vec();
        all.extend(["--config", &config]);
        run(&program()?, &all)
    }

    /// SIGKILL to the head; returns when the hand is gone too.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill_9(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.both_gone()
    }

    /// SIGTERM; returns its exit status when both processes are gone.
    ///
    /// # Errors
    /// When it cannot be told to stop.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        self.both_gone()?;
        Ok(status)
    }

    /// Both hold the lock for as long as they live, so taking it is waiting for their end.
    fn both_gone(&self) -> Result<()> {
        let lock = std::fs::File::open(self.folder.path().join("netd.sock.lock"))?;
        let held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
        drop(held);
        Ok(())
    }
}

impl Drop for Netd {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
