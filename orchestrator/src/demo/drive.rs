//! One run of the demo, from an empty folder to the last check.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as HostInstant};

use hyper::Method;
use netd::client::{Client, ClientError};
use policy::Exit;
use policy::time::DAY_MS;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::cast::CAST;
use super::checks::{self, Check, Scope, check};
use super::evidence::{self, Evidence, EvidenceError, Tables};
use super::files::{BORN, FIRST_CULL, Places, Rates};
use super::process::ProcessError;
use super::rootfs::SETUID_FILE;
use super::screen::Screen;
use super::stage::{Audit, Stage, StageError, Wanted};
use super::traces::Traces;
use super::watch::{Standing, Watch};
use super::{report, users::UserError};
use crate::api::client::{AskError, ask};

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How long after the last day an open docket is waited for, by the platform's clock.
const PATIENCE_MS: i64 = 4 * DAY_MS;
/// Longest that the platform's clock may stand still before the run is given up.
pub(super) const STALLED: Duration = Duration::from_mins(2);

/// Longest that a killed process may take to be gone.
const FADE_LIMIT: Duration = Duration::from_secs(5);

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Days of the platform's clock.
    pub days: u32,
    /// Whether to go on serving after the checks.
    pub serve: bool,
    /// How fast the days pass.
    pub rates: Rates,
    /// Where to keep what the run leaves.
    pub out: Option<PathBuf>,
    /// Whether the real judge scores.
    pub live_judge: bool,
    /// Whether standard output is for the summary alone.
    pub json: bool,
}

/// Why a run did not come to its end. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The stage.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A process ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Evidence.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The control plane's API.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The control plane refused what an operator may do.
    #[error("have {what} done by the control plane: it answered {status}: {answer}")]
    Refused {
        /// What.
        what: String,
        /// Its status.
        status: u16,
        /// Its answer.
        answer: String,
    },
    /// netd.
    #[error("ask netd what it holds")]
    Netd(#[from] ClientError),
    /// The runtime or signals.
    #[error("start")]
    Start(#[source] std::io::Error),
    /// The image did not pass.
    #[error("run agents from an image that fails its audit:\n{0}")]
    Image(String),
    /// Time stood still.
    #[error("wait longer: the platform's clock has stood still for {0:?}")]
    Stalled(Duration),
    /// The last day is over by far, and no judgement came.
    #[error("end: a docket still waits for its judgement; `darwin-serve.log` says why, and `--out` keeps it")]
    Undecided,
    /// The folder for what is kept.
    #[error("keep the run's files in {path}")]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Somebody wants it to end.
    #[error("go on: it was interrupted")]
    Interrupted,
}

impl DriveError {
    /// The exit code that says whose affair it is: 3 for a right or feature that the operator can grant, else 4.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Stage(StageError::User(UserError::Namespace(_)) | StageError::Kernel(_)) => Exit::Usage,
            Self::Stage(_)
            | Self::Process(_)
            | Self::Evidence(_)
            | Self::Ask(_)
            | Self::Refused { .. }
            | Self::Netd(_)
            | Self::Start(_)
            | Self::Image(_)
            | Self::Stalled(_)
            | Self::Undecided
            | Self::Keep { .. }
            | Self::Interrupted => Exit::Io,
        }
    }
}

/// A run, as its end leaves it.
#[derive(Debug)]
pub struct Ended {
    /// The checks.
    pub checks: Vec<Check>,
    /// The summary for programs.
    pub summary: Value,
}

/// The run for programs, in the folder of `--out`.
const SUMMARY: &str = "summary.json";

/// Runs the demo. Must be called while the process has one thread.
///
/// # Errors
/// [`DriveError`]; nothing is left behind then either.
pub fn drive(options: &Options) -> Result<Ended, DriveError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DriveError::Start)?;
    let mut run = runtime.block_on(async { Run::new(options.clone()) })?;
    if let Some(out) = &options.out {
        make_writable(out)?;
    }
    let began = HostInstant::now();
    let wanted = Wanted { rates: Rates::birth(), live_judge: options.live_judge };
    let mut stage = Stage::build(wanted)?;
    let before = Traces::look(stage.users());
    let played = run.play(&mut stage, &runtime);
    let served = if options.serve && played.is_ok() { run.go_on(&mut stage, &runtime) } else { Ok(()) };
    let unwilling = stage.stop();
    // A run that failed is the one whose logs are wanted most.
    let kept = options.out.as_deref().map(|out| keep(out, stage.places())).transpose();
    let (mut found, evidence) = played?;
    served?;
    found.push(check(
        "every process ended when it was asked to",
        unwilling.is_empty(),
        if unwilling.is_empty() { "all did".to_owned() } else { format!("not: {}", unwilling.join(", ")) },
    ));
    let users = *stage.users();
    drop(stage);
    found.push(nothing_left(&before, &users));
    for one in &found {
        run.screen.check(one.held, one.name, &one.detail);
    }
    kept?;
    let summary = report::summary(&evidence, &found, began.elapsed().as_millis());
    if let Some(out) = &options.out {
        let path = out.join(SUMMARY);
        std::fs::write(&path, format!("{summary:#}\n"))
            .map_err(|source| DriveError::Keep { path, source })?;
    }
    Ok(Ended { checks: found, summary })
}

fn nothing_left(before: &Traces, users: &super::users::Users) -> Check {
    // A process that was killed with its parent is gone a moment after it.
    let end = HostInstant::now() + FADE_LIMIT;
    let mut left = Traces::look(users).since(before);
    while !left.is_empty() && HostInstant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
        left = Traces::look(users).since(before);
    }
    let detail = if left.is_empty() { "no link, no process".to_owned() } else { left.join(", ") };
    check("the host is as it was", left.is_empty(), detail)
}

/// A run and its signals.
pub(super) struct Run {
    options: Options,
    pub(super) screen: Screen,
    interrupt: Signal,
    terminate: Signal,
}

impl Run {
    /// Takes the signals first, so that an early Ctrl-C ends in order too.
    pub(super) fn new(options: Options) -> Result<Self, DriveError> {
        let listen = |kind| signal(kind).map_err(DriveError::Start);
        let screen = Screen::new(options.json);
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { options, screen, interrupt, terminate })
    }

    /// Everything up to the control plane's orderly end.
    fn play(
        &mut self,
        stage: &mut Stage,
        runtime: &tokio::runtime::Runtime,
    ) -> Result<(Vec<Check>, Evidence), DriveError> {
        let mut found = self.open(stage)?;
        self.pause(runtime, Duration::ZERO)?;
        self.give_birth(stage, runtime)?;
        self.screen.heading(&format!("{} days, by an accelerated clock", self.options.days));
        self.live(stage, runtime)?;
        stage.stop_serve();
        found.extend(released(stage.places())?);
        stage.stop_proxy();
        let evidence = runtime.block_on(evidence::gather(stage.places()))?;
        report::show(&evidence, self.screen);
        self.screen.heading("checks");
        let cull = i64::from(self.options.days) * DAY_MS >= FIRST_CULL.since_ms(BORN) + DAY_MS / 2;
        if !cull {
            self.screen
                .line("  no cull yet: it is on the eleventh day, and what it should show is not checked");
        }
        found.extend(checks::all(&evidence, Scope { cull, live_judge: self.options.live_judge }));
        found.push(verified(stage)?);
        Ok((found, evidence))
    }

    /// The image's audit, and then every process.
    pub(super) fn open(&self, stage: &mut Stage) -> Result<Vec<Check>, DriveError> {
        let screen = self.screen;
        screen.heading("darwin demo");
        screen.line(
            "  Twelve sample agents, each a small program that says so, live in network namespaces that no",
        );
        screen.line(
            "  packet leaves. A stand-in answers for the models. Everything else is the product itself.",
        );
        stage.probe()?;
        screen.heading("the agents' image");
        let (good, bad) = stage.audits()?;
        screen.paragraph("  ", &good.report);
        screen.line("  the same image with a setuid file in it:");
        screen.paragraph("  ", &bad.report);
        if good.code != 0 {
            return Err(DriveError::Image(good.report));
        }
        screen.heading("processes");
        stage.start_world()?;
        screen.line("  demo-world: a name server, a market and a library, in a namespace of their own");
        screen.line("  demo-provider: the stand-in for the Messages API, by TLS on loopback");
        stage.start_containment()?;
        let users = stage.users();
        screen.line(&format!("  darwin-netd: hand as root, head as user {}", users.netd));
        screen.line(&format!("  darwin-proxy: user {}, no capability", users.proxy));
        stage.start_serve()?;
        screen.line(&format!("  darwin serve: user {}, no capability", stage.users().serve));
        Ok(image_checks(&good, &bad))
    }

    /// Creates the agents as an operator would, at noon by a clock that does not run ahead meanwhile, and starts
    /// the control plane again once their first episodes are over.
    pub(super) fn give_birth(
        &mut self,
        stage: &mut Stage,
        runtime: &tokio::runtime::Runtime,
    ) -> Result<(), DriveError> {
        for member in CAST {
            let body = json!({
                "agent": member.id, "name": member.name, "image": "sample", "brief": member.brief,
            });
            operate(stage.places(), Method::POST, "/api/v1/agents", Some(&body))?;
        }
        self.screen.line(&format!("  {} agents born at {BORN}", CAST.len()));
        let end = HostInstant::now() + STALLED;
        loop {
            let standing = operate(stage.places(), Method::GET, "/api/v1/status", None)?;
            if standing.get("busy") == Some(&Value::Bool(false)) {
                break;
            }
            if HostInstant::now() > end {
                return Err(DriveError::Stalled(STALLED));
            }
            stage.check()?;
            self.pause(runtime, Duration::from_millis(50))?;
        }
        stage.stop_serve();
        stage.set_rates(self.options.rates);
        Ok(stage.start_serve()?)
    }

    /// Watches until the last day is over and no docket is open.
    fn live(&mut self, stage: &mut Stage, runtime: &tokio::runtime::Runtime) -> Result<(), DriveError> {
        let end_ms = BORN.plus_ms(i64::from(self.options.days) * DAY_MS).ms();
        let mut tables = runtime.block_on(Tables::open(&stage.places().journal()))?;
        let mut watch = Watch::default();
        let (mut last_ms, mut moved) = (0, HostInstant::now());
        loop {
            let standing: Standing = runtime.block_on(watch.look(&mut tables, self.screen))?;
            if standing.last_ms >= end_ms && !standing.docket_open {
                runtime.block_on(tables.close());
                return Ok(());
            }
            if standing.last_ms >= end_ms + PATIENCE_MS {
                return Err(DriveError::Undecided);
            }
            if standing.last_ms != last_ms {
                (last_ms, moved) = (standing.last_ms, HostInstant::now());
            } else if moved.elapsed() > STALLED {
                return Err(DriveError::Stalled(STALLED));
            }
            stage.check()?;
            self.pause(runtime, LOOK)?;
        }
    }

    /// With `--serve`: starts the control plane again and waits for Ctrl-C.
    fn go_on(&mut self, stage: &mut Stage, runtime: &tokio::runtime::Runtime) -> Result<(), DriveError> {
        stage.set_rates(Rates::birth());
        stage.start_proxy()?;
        stage.start_serve()?;
        let places = stage.places();
        self.screen.heading("still serving; Ctrl-C ends it");
        for (what, path) in
            [("api", places.api()), ("netd", places.netd_socket()), ("journal", places.journal())]
        {
            self.screen.line(&format!("  {what}: {}", path.display()));
        }
        loop {
            match self.pause(runtime, LOOK) {
                Ok(()) => stage.check()?,
                Err(DriveError::Interrupted) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
    }

    /// Waits, unless somebody wants it to end.
    pub(super) fn pause(
        &mut self,
        runtime: &tokio::runtime::Runtime,
        wait: Duration,
    ) -> Result<(), DriveError> {
        runtime.block_on(async {
            tokio::select! {
                biased;
                _got = self.interrupt.recv() => Err(DriveError::Interrupted),
                _got = self.terminate.recv() => Err(DriveError::Interrupted),
                () = tokio::time::sleep(wait) => Ok(()),
            }
        })
    }
}

fn operate(places: &Places, method: Method, path: &str, body: Option<&Value>) -> Result<Value, DriveError> {
    let (status, answer) = ask(&places.api(), method, path, body)?;
    if status.is_success() {
        return Ok(answer);
    }
    let (what, answer) = (path.to_owned(), answer.to_string());
    Err(DriveError::Refused { what, status: status.as_u16(), answer })
}

fn image_checks(good: &Audit, bad: &Audit) -> Vec<Check> {
    let refused = bad.code == 1 && bad.report.contains(SETUID_FILE) && bad.report.contains("setuid");
    vec![
        check("the agents' image passed its audit", good.code == 0, format!("exit {}", good.code)),
        check(
            "an image with a setuid file was refused",
            refused,
            format!("exit {}: {SETUID_FILE}", bad.code),
        ),
    ]
}

/// What netd says once the control plane is gone: nothing is confined any more.
fn released(places: &Places) -> Result<Vec<Check>, DriveError> {
    let mut client = Client::connect(places.netd_socket())?;
    let held = client.list()?;
    let differences = client.verify(None)?;
    let names: Vec<&str> = held.iter().map(|status| status.agent.as_str()).collect();
    let detail = if names.is_empty() { "netd holds nothing".to_owned() } else { names.join(", ") };
    Ok(vec![
        check("no confinement outlived its episode", held.is_empty(), detail),
        check(
            "netd's rules are what it made",
            differences.is_empty(),
            format!("{} differences", differences.len()),
        ),
    ])
}

/// `darwin verify`, as an operator would run it.
fn verified(stage: &Stage) -> Result<Check, DriveError> {
    let finished = stage.verify().map_err(StageError::from)?;
    let said = String::from_utf8_lossy(&finished.output).trim().replace('\n', "; ");
    Ok(check("darwin verify finds the journal whole", finished.status.success(), said))
}

/// Makes the folder, and finds out before the run whether files can be kept in it.
fn make_writable(out: &Path) -> Result<(), DriveError> {
    let failed = |source| DriveError::Keep { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(failed)?;
    std::fs::File::create(out.join(SUMMARY)).map(drop).map_err(failed)
}

/// Copies journal, logs, spools and configuration; never a key or a secret.
fn keep(out: &Path, places: &Places) -> Result<(), DriveError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DriveError::Keep { path, source }
    };
    std::fs::create_dir_all(out).map_err(failed(out))?;
    let copy = |from: &Path, to: &Path| match std::fs::copy(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        copied => copied.map(drop).map_err(failed(to)),
    };
    let files = [
        places.journal(),
        places.serve.join("darwin.toml"),
        places.netd.join("netd.toml"),
        places.proxy.join("proxy.toml"),
        places.proxy.join("policy.toml"),
        places.proxy_log(),
        places.world.join("world.jsonl"),
        places.provider.join("provider.jsonl"),
    ];
    for file in files {
        copy(&file, &out.join(file.file_name().unwrap_or_default()))?;
    }
    for source in ["netd", "proxy"] {
        copy(&places.spool_of(source), &out.join(format!("signals-{source}.jsonl")))?;
    }
    for entry in std::fs::read_dir(&places.logs).map_err(failed(&places.logs))?.flatten() {
        copy(&entry.path(), &out.join(entry.file_name()))?;
    }
    Ok(())
}
