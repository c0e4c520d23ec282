//! `darwin serve`: gathers the shell round the core, in the order in which things must stand, and takes it down.

mod archive;
mod effects;
mod inherit;
mod netd;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use policy::Instant;
use policy::constitution::Constitution;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::api::{Api, ApiError, Listener};
use crate::clock::{Clock, Rates};
use crate::config::{ClockMode, Config};
use crate::engine::{Engine, EngineConfig, EngineError};
use crate::episode::audit::Audits;
use crate::episode::host::Site;
use crate::gateway::Gateway;
use crate::provider::{Provider, ProviderError};
use effects::Performer;

/// How long calls that are under way have to be settled after SIGTERM.
const DRAIN: Duration = Duration::from_secs(30);
/// How long the last commit and the journal's closing may take after that.
const CLOSE: Duration = Duration::from_secs(10);

/// Why it does not run, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It was started as root.
    #[error("run as root: start it as a user of its own")]
    Root,
    /// A folder of ours.
    #[error("use the folder {path}")]
    Folder {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The runtime, a signal stream or the host's random source.
    #[error("start")]
    Start(#[source] std::io::Error),
    /// The journal and the core.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A client of a provider.
    #[error("set the provider's client up")]
    Provider(#[from] ProviderError),
    /// The interface.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// netd.
    #[error("be handed the gateway's listeners")]
    Netd(#[source] ::netd::client::ClientError),
    /// A task that must not end has ended.
    #[error("go on: {0} has ended")]
    Ended(&'static str),
    /// The writer does not come to its end.
    #[error("close the journal within {CLOSE:?}; what was acknowledged is in it")]
    Unclosed,
}

/// Runs until a signal ends it.
///
/// # Errors
/// [`ServeError`].
pub fn run(config: Config) -> Result<(), ServeError> {
    if nix::unistd::geteuid().is_root() {
        return Err(ServeError::Root);
    }
    prepare_folders(&config)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::Start)?;
    let served = runtime.block_on(serve(config));
    // Threads of runs end with the process; their agents end with them.
    runtime.shutdown_timeout(Duration::from_millis(200));
    served
}

async fn serve(config: Config) -> Result<(), ServeError> {
    let mut term = signal(SignalKind::terminate()).map_err(ServeError::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Start)?;
    let (engine, effects, task) = Engine::open(EngineConfig {
        journal_path: config.journal.clone(),
        settings: config.settings.clone(),
        seed: config.seed.clone(),
        clock: clock(config.clock),
    })
    .await?;
    let mut essential: JoinSet<Result<(), ServeError>> = JoinSet::new();
    let mut writer = tokio::spawn(task.run());
    let gateway = gateway(&engine, &config)?;
    let site = Site::new(config.netd_socket.clone(), config.state_dir.clone(), config.run_dir.clone());
    let performer = Performer::new(engine.clone(), &config, site.clone())?;
    let subscribed = netd::subscribe(site, gateway.clone(), Arc::clone(performer.runs())).await;
    let gone = subscribed.map_err(ServeError::Netd)?;
    essential.spawn(async move {
        gone.await;
        Err(ServeError::Ended("the thread that netd hands listeners to"))
    });
    for listen in &config.api.listen {
        let listener = Listener::open(listen).await?;
        let api = Api::new(engine.clone(), &config);
        essential.spawn(async move {
            api.serve(listener).await;
            Err(ServeError::Ended("the interface"))
        });
    }
    for spool in config.spools.clone() {
        let following = crate::spool::follow(engine.clone(), spool);
        essential.spawn(async move { following.await.map_err(ServeError::Engine) });
    }
    let performing = performer.clone();
    essential.spawn(async move {
        performing.perform(effects).await;
        Err(ServeError::Ended("the performer of effects"))
    });
    ready();
    let (outcome, is_open) = tokio::select! {
        () = wanted(&mut term, &mut interrupt) => (Ok(()), true),
        written = &mut writer => (written_to_end(written).and(Err(ServeError::Ended("the engine"))), false),
        Some(ended) = essential.join_next() => match ended {
            Ok(Err(error)) => (Err(error), true),
            Ok(Ok(())) | Err(_) => (Err(ServeError::Ended("a task")), true),
        },
    };
    drain(&performer, &gateway, (&mut term, &mut interrupt)).await;
    engine.close();
    outcome.and(if is_open { closed(writer).await } else { Ok(()) })
}

/// Waits for the last commit: a journal that was closed needs no recovery at the next start.
async fn closed(writer: JoinHandle<Result<(), EngineError>>) -> Result<(), ServeError> {
    tokio::time::timeout(CLOSE, writer).await.map_or(Err(ServeError::Unclosed), written_to_end)
}

fn written_to_end(written: Result<Result<(), EngineError>, JoinError>) -> Result<(), ServeError> {
    written.unwrap_or(Err(EngineError::Stopped)).map_err(ServeError::Engine)
}

/// No run is started any more and those under way are ended, without a word to the core: after the next start it
/// asks for them again. Calls under way are settled, unless a second signal does not wait for them.
async fn drain(performer: &Performer, gateway: &Gateway, (term, interrupt): (&mut Signal, &mut Signal)) {
    tracing::info!("STOPPING=1");
    performer.close();
    let settled = async {
        // In this order: an agent that is gone makes no further call.
        performer.runs().emptied().await;
        gateway.drained().await;
    };
    tokio::select! {
        () = settled => {}
        () = tokio::time::sleep(DRAIN) => tracing::warn!("calls under way are left to their time limit"),
        () = wanted(term, interrupt) => tracing::warn!("a second signal: calls under way are left to their time limit"),
    }
}

async fn wanted(term: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _got = term.recv() => {}
        _got = interrupt.recv() => {}
    }
}

fn gateway(engine: &Engine, config: &Config) -> Result<Gateway, ServeError> {
    let provider = Provider::new(&config.provider)?;
    Gateway::new(engine.clone(), provider, Constitution::default().render()).map_err(ServeError::Start)
}

fn clock(mode: ClockMode) -> Clock {
    match mode {
        ClockMode::Real => Clock::real(),
        ClockMode::Accelerated(fast) => Clock::accelerated(
            Instant::from_ms(fast.start_ms),
            Rates { busy: fast.busy_rate, idle: fast.idle_rate, idle_max: fast.idle_max },
        ),
    }
}

fn prepare_folders(config: &Config) -> Result<(), ServeError> {
    let audits = config.state_dir.join("audits");
    let journal = config.journal.parent().unwrap_or(Path::new("/")).to_owned();
    for path in [config.state_dir.clone(), config.run_dir.clone(), journal, audits] {
        std::fs::create_dir_all(&path).map_err(|source| ServeError::Folder { path, source })?;
    }
    Ok(())
}

/// Said when everything above stands: whoever waits for it may begin.
#[expect(clippy::print_stderr, reason = "the word that supervisors and tests wait for")]
fn ready() {
    eprintln!("READY=1");
}

/// The audits of a configuration's images.
fn audits(config: &Config) -> Audits {
    Audits::new(config.state_dir.join("audits"))
}
