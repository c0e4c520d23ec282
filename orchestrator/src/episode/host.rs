//! The outside of a confined run, on a thread of its own from start to end.
//!
//! The thread's end is the run's: the kernel kills the first process inside when the thread that started it goes,
//! and netd takes the confinement down when the connection that asked for it closes. So nothing that is confined
//! outlives this process, however it ends.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use netd::client::{Client, ClientError};
use policy::{AgentId, ProfileName};

use super::doors::Doors;
use super::{Limits, Plan};
use crate::config::Image;
use crate::core::input::{EpisodeEnd, EpisodeId};
use crate::spawn::{OURSELVES, Program, SpawnError, Streams};

/// How long the gateway's listener may take to come after netd says that the confinement is up.
const DOOR: Duration = Duration::from_secs(10);
/// How long the first process may take to end what it started.
const GRACE: Duration = Duration::from_secs(2);
/// Most bytes of one episode's log.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// How much of what comes after that is dropped, and how often: at most 256 KiB a second.
const DROPPED_BYTES_A_TURN: usize = 64 << 10;
const DROPPED_TURN: Duration = Duration::from_millis(250);
/// Most bytes of one report of the inside.
const REPORT_BYTES_MAX: u64 = 64 << 10;
/// Where the agent finds its wake message, inside.
pub const WAKE_FILE: &str = "/wake.txt";
/// The gateway, inside.
const GATEWAY: &str = "http://127.0.0.1:3129";
/// The proxy, inside.
const PROXY: &str = "http://127.0.0.1:3128";

/// What all runs of this host share.
#[derive(Debug, Clone)]
pub struct Site {
    /// netd's socket.
    pub netd_socket: PathBuf,
    /// Holds the agents' state folders and logs.
    pub state_dir: PathBuf,
    /// Holds the mount point that every run shares.
    pub run_dir: PathBuf,
    /// Where the gateway's listeners arrive.
    pub doors: Arc<Doors>,
    /// The program that has `confined` as its subcommand.
    pub program: PathBuf,
}

/// One run to make.
#[derive(Debug, Clone)]
pub struct Order {
    /// Which.
    pub episode: EpisodeId,
    /// Whose.
    pub agent: AgentId,
    /// What it runs from, audited.
    pub image: Image,
    /// What it may reach.
    pub profile: ProfileName,
    /// What it is told.
    pub wake: String,
}

/// Stops a run from outside; clones stop the same one.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: bool,
    child: Option<Child>,
    /// Its end is the order to end: the first process then kills, and reaps, what it started.
    input: Option<ChildStdin>,
}

/// Why a run did not come about.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A folder or file of the agent's.
    #[error("prepare {path}")]
    Prepare {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The first process.
    #[error("start the first process")]
    Spawn(#[source] SpawnError),
    /// What the first process says, or does not.
    #[error("talk to the first process")]
    Talk(#[source] std::io::Error),
    /// It said why.
    #[error("build the inside: it cannot {0}")]
    Inside(String),
    /// It ended without a word.
    #[error("build the inside: its first process ended early")]
    EndedEarly,
    /// Its namespace.
    #[error("open its network namespace")]
    Namespace(#[source] std::io::Error),
    /// netd.
    #[error("confine it")]
    Confine(#[source] ClientError),
    /// The gateway was not handed its listener.
    #[error("open its gateway: netd handed over no listener within {DOOR:?}")]
    NoDoor,
    /// It was to stop before it ran.
    #[error("go on: it was stopped")]
    Stopped,
}

impl Stop {
    /// Ends the run, now or as soon as it would start. Kills: what an agent has not written is lost.
    pub fn stop(&self) {
        let mut shared = self.lock();
        shared.wanted = true;
        shared.input = None;
    }

    /// Whether somebody asked for its end.
    pub fn is_wanted(&self) -> bool {
        self.lock().wanted
    }

    /// Takes the process in; one that is to stop already is told at once.
    fn hold(&self, child: Child, input: Option<ChildStdin>) {
        let mut shared = self.lock();
        shared.child = Some(child);
        shared.input = input.filter(|_| !shared.wanted);
    }

    /// One line to the first process.
    fn say(&self, line: &str) -> Result<(), HostError> {
        let mut shared = self.lock();
        let input = shared.input.as_mut().ok_or(HostError::Stopped)?;
        writeln!(input, "{line}").map_err(HostError::Talk)
    }

    /// Ends it and reaps it. One that does not end when told is killed: what it started dies with it, and is
    /// left for the host's own first process to reap.
    fn reap(&self) {
        let (child, input) = {
            let mut shared = self.lock();
            (shared.child.take(), shared.input.take())
        };
        drop(input);
        let Some(mut child) = child else { return };
        let end = Instant::now() + GRACE;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                drop(child.kill());
                drop(child.wait());
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes one run and stays until it is over and its confinement is gone; calls `started` when the agent runs.
pub fn run(site: &Site, order: &Order, stop: &Stop, started: impl FnOnce()) -> EpisodeEnd {
    let ended = attempt(site, order, stop, started);
    stop.reap();
    site.doors.forget(&order.agent, order.episode);
    match ended {
        Ok(_) | Err(_) if stop.is_wanted() => EpisodeEnd::Stopped,
        Ok(end) => end,
        Err(error) => EpisodeEnd::Failed { why: format!("cannot {}", crate::cli::with_causes(&error)) },
    }
}

fn attempt(site: &Site, order: &Order, stop: &Stop, started: impl FnOnce()) -> Result<EpisodeEnd, HostError> {
    let plan = prepare(site, order)?;
    let mut inside = Inside::start(site, order, &plan, stop)?;
    inside.expect("ready")?;
    let netns = File::open(format!("/proc/{}/ns/net", inside.pid)).map_err(HostError::Namespace)?;
    site.doors.expect(&order.agent, order.episode);
    let mut netd = Client::connect(&site.netd_socket).map_err(HostError::Confine)?;
    let confined = netd.confine(netns.as_fd(), &order.agent, &order.profile).map_err(HostError::Confine)?;
    drop(netns);
    let ended = if site.doors.wait(&order.agent, confined.generation, DOOR) {
        inside.live(stop, started)
    } else {
        Err(HostError::NoDoor)
    };
    // Dead before its walls come down; closing the connection would release it as well.
    stop.reap();
    if let Err(error) = netd.release(&order.agent) {
        tracing::warn!(agent = %order.agent, "cannot release its confinement: {}", crate::cli::with_causes(&error));
    }
    ended
}

fn prepare(site: &Site, order: &Order) -> Result<Plan, HostError> {
    let state = state_folder(&site.state_dir, &order.agent);
    let mount_point = site.run_dir.join("root");
    let wakes = site.state_dir.join("wakes");
    for folder in [&state, &mount_point, &wakes, &site.state_dir.join("logs").join(order.agent.as_str())] {
        make_folder(folder).map_err(|source| HostError::Prepare { path: folder.clone(), source })?;
    }
    // Not in the agent's own folder: there it could stand in the way of the next one.
    let wake = wakes.join(format!("{}.txt", order.agent));
    fs::write(&wake, &order.wake).map_err(|source| HostError::Prepare { path: wake.clone(), source })?;
    Ok(Plan {
        rootfs: order.image.rootfs.clone(),
        mount_point,
        state,
        wake,
        command: order.image.command.clone(),
        env: environment(order),
        limits: Limits::default(),
    })
}

/// The folder that an agent keeps between episodes.
pub fn state_folder(state_dir: &Path, agent: &AgentId) -> PathBuf {
    state_dir.join("agents").join(agent.as_str())
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// All that an agent finds in its environment: its doors, and what makes common SDKs use them.
fn environment(order: &Order) -> Vec<(String, String)> {
    let mcp = format!("{GATEWAY}/mcp");
    let pairs = [
        ("ANTHROPIC_BASE_URL", GATEWAY),
        // SDKs ask for a key; the door is the identity, and the platform's key stays outside.
        ("ANTHROPIC_API_KEY", "none-needed"),
        ("HTTP_PROXY", PROXY),
        ("HTTPS_PROXY", PROXY),
        ("http_proxy", PROXY),
        ("https_proxy", PROXY),
        ("NO_PROXY", "127.0.0.1"),
        ("no_proxy", "127.0.0.1"),
        ("NODE_USE_ENV_PROXY", "1"),
        ("DARWIN_MCP", &mcp),
        ("DARWIN_WAKE_FILE", WAKE_FILE),
        ("DARWIN_AGENT", order.agent.as_str()),
        ("HOME", "/state"),
        ("TMPDIR", "/tmp"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The first process and what it says.
struct Inside {
    pid: u32,
    reports: BufReader<std::io::Take<std::process::ChildStdout>>,
}

impl Inside {
    fn start(site: &Site, order: &Order, plan: &Plan, stop: &Stop) -> Result<Self, HostError> {
        let program = Program::new(&site.program).map_err(HostError::Spawn)?.args([
            "confined",
            "--parent",
            &std::process::id().to_string(),
        ]);
        let streams = Streams { input: Stdio::piped(), output: Stdio::piped(), errors: Stdio::piped() };
        let mut child = program.start(streams).map_err(HostError::Spawn)?;
        let pid = child.id();
        let (input, pipes) = (child.stdin.take(), (child.stdout.take(), child.stderr.take()));
        stop.hold(child, input);
        let (Some(output), Some(errors)) = pipes else { return Err(HostError::EndedEarly) };
        keep_log(&site.state_dir.join("logs"), order, errors)?;
        let line = serde_json::to_string(plan).map_err(|error| HostError::Talk(error.into()))?;
        stop.say(&line)?;
        Ok(Self { pid, reports: BufReader::new(output.take(REPORT_BYTES_MAX)) })
    }

    fn next(&mut self) -> Result<String, HostError> {
        let mut line = String::new();
        self.reports.read_line(&mut line).map_err(HostError::Talk)?;
        let line = line.trim_end();
        match line.strip_prefix("failed ") {
            Some(why) => Err(HostError::Inside(why.to_owned())),
            None if line.is_empty() => Err(HostError::EndedEarly),
            None => Ok(line.to_owned()),
        }
    }

    fn expect(&mut self, word: &str) -> Result<(), HostError> {
        let said = self.next()?;
        if said == word { Ok(()) } else { Err(HostError::Inside(format!("say {word}: it said {said}"))) }
    }

    /// Gives the word and waits for the end.
    fn live(mut self, stop: &Stop, started: impl FnOnce()) -> Result<EpisodeEnd, HostError> {
        stop.say("go")?;
        self.expect("running")?;
        started();
        // From here on the agent has run: whatever ends it now is an end, not a failure to start.
        let said = self.next().unwrap_or_default();
        let code = said.strip_prefix("exit ").and_then(|code| code.parse().ok());
        Ok(EpisodeEnd::Exit { code: code.unwrap_or(128 + 9) })
    }
}

/// What the agent prints goes into a file of its own, up to a limit. The rest is read and dropped, slowly: an agent
/// that prints without end waits at its pipe, and costs us next to nothing.
fn keep_log(logs: &Path, order: &Order, mut errors: impl Read + Send + 'static) -> Result<(), HostError> {
    let path = logs.join(order.agent.as_str()).join(format!("episode-{}.log", order.episode));
    let prepare = |source| HostError::Prepare { path: path.clone(), source };
    let mut file = File::create(&path).map_err(prepare)?;
    let copy = move || {
        let kept = std::io::copy(&mut (&mut errors).take(LOG_BYTES_MAX), &mut file);
        if kept.is_ok_and(|bytes| bytes == LOG_BYTES_MAX) {
            drop(writeln!(file, "\ndarwin: the log is full; the rest is dropped"));
        }
        let mut dropped = vec![0; DROPPED_BYTES_A_TURN];
        while errors.read(&mut dropped).is_ok_and(|bytes| bytes > 0) {
            std::thread::sleep(DROPPED_TURN);
        }
    };
    let name = format!("log-{}", order.episode);
    std::thread::Builder::new().name(name).spawn(copy).map(drop).map_err(prepare)
}

impl Site {
    /// The site of a host, with this program as the one that runs confined.
    pub fn new(netd_socket: PathBuf, state_dir: PathBuf, run_dir: PathBuf) -> Self {
        Self { netd_socket, state_dir, run_dir, doors: Arc::default(), program: PathBuf::from(OURSELVES) }
    }
}
