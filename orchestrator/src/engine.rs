//! The single writer round the core: inputs in, rows to the journal, then replies and effects out.
//!
//! Many waiting inputs share one commit. Nothing is answered and no effect is released before its row is on the
//! disk; when a row cannot be written, the engine stops and says so, and what it had acknowledged is in the journal.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use policy::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::core::effect::Effect;
use crate::core::input::Input;
use crate::core::reply::Reply;
use crate::core::settings::Settings;
use crate::core::{Core, Fault, Step, hex};
use crate::journal::{Head, Journal, JournalError};

/// Most inputs that share one commit.
const BATCH_MAX: usize = 512;

/// What an engine is opened with.
#[derive(Debug)]
pub struct EngineConfig {
    /// The journal's file; it is made if it is missing.
    pub journal_path: PathBuf,
    /// The economy's settings: those of a new journal, and they must be those of an old one.
    pub settings: Settings,
    /// The seed of a new journal, 64 hexadecimal digits; left out, from the operating system's random source.
    pub seed: Option<String>,
    /// What time it is.
    pub clock: Clock,
}

/// Why the engine does not open, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A commit failed: nothing that was acknowledged is lost.
    #[error(
        "commit to the journal: what was acknowledged is safe; check the disk's room and health, then start again"
    )]
    Commit {
        /// Why.
        #[source]
        source: JournalError,
    },
    /// The journal was begun with other settings.
    #[error(
        "go on with journal {path}: it was begun with other economy settings; put those back, or begin a new journal"
    )]
    SettingsDiffer {
        /// The journal.
        path: PathBuf,
    },
    /// The settings of a new journal make no rules.
    #[error("begin a journal: {what}")]
    Genesis {
        /// What is wrong.
        what: String,
    },
    /// No random bytes for the seed.
    #[error("read /dev/urandom")]
    Seed {
        /// Why.
        source: std::io::Error,
    },
    /// The core broke a promise of its own: a bug of ours.
    #[error("go on: the core broke a promise of its own; the journal ends before it")]
    Fault {
        /// Which.
        #[source]
        source: Fault,
    },
    /// The engine has stopped; its task says why.
    #[error("take this input: the engine has stopped")]
    Stopped,
}

/// A handle on the engine; clones are handles on the same one.
#[derive(Debug, Clone)]
pub struct Engine {
    core: Arc<RwLock<Core>>,
    inputs: mpsc::Sender<Waiting>,
    clock: Clock,
    closing: CancellationToken,
}

/// One input and who waits for its answer.
#[derive(Debug)]
struct Waiting {
    input: Input,
    answer: oneshot::Sender<Result<Reply, EngineError>>,
}

/// The writer. Whoever opened the engine runs it, and stops with it.
#[derive(Debug)]
#[must_use = "an engine whose task nobody runs answers nothing"]
pub struct EngineTask {
    core: Arc<RwLock<Core>>,
    inputs: mpsc::Receiver<Waiting>,
    effects: mpsc::UnboundedSender<Effect>,
    journal: Journal,
    clock: Clock,
    closing: CancellationToken,
}

impl Engine {
    /// Opens the journal, or begins one, and rebuilds the core from it. Open effects come out first.
    ///
    /// # Errors
    /// [`EngineError`] for a journal that is locked, broken, of another version or begun with other settings.
    pub async fn open(
        config: EngineConfig,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Effect>, EngineTask), EngineError> {
        let EngineConfig { journal_path, settings, seed, clock } = config;
        let (mut journal, mut core) = Journal::open(&journal_path).await?;
        if core.is_born() {
            if *core.settings() != settings {
                return Err(EngineError::SettingsDiffer { path: journal_path });
            }
            clock.resume(core.last_instant());
        } else {
            let seed = seed.map_or_else(random_seed, Ok)?;
            begin(&mut journal, &mut core, &clock, settings, seed).await?;
        }
        clock.pace(core.is_busy(), core.next_due());
        let (effects, released) = mpsc::unbounded_channel();
        for effect in core.open_effects() {
            // The receiver is in our hand: it cannot be gone.
            drop(effects.send(effect));
        }
        let core = Arc::new(RwLock::new(core));
        let (sender, inputs) = mpsc::channel(BATCH_MAX);
        let closing = CancellationToken::new();
        let engine =
            Self { core: Arc::clone(&core), inputs: sender, clock: clock.clone(), closing: closing.clone() };
        Ok((engine, released, EngineTask { core, inputs, effects, journal, clock, closing }))
    }

    /// Hands in one input; resolves when its row is on the disk.
    ///
    /// # Errors
    /// `Stopped` where the engine stopped before that: the input may or may not be in the journal, and the same
    /// key tells.
    pub async fn submit(&self, input: Input) -> Result<Reply, EngineError> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { input, answer };
        self.inputs.send(waiting).await.map_err(|_closed| EngineError::Stopped)?;
        answered.await.map_err(|_dropped| EngineError::Stopped)?
    }

    /// Has the writer end: what waits is committed, further inputs are refused, and the journal is closed.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Looks at the core. What it shows may be ahead of the journal by the one commit that is under way.
    pub fn read<T>(&self, look: impl FnOnce(&Core, Instant) -> T) -> T {
        let core = self.core.read().unwrap_or_else(PoisonError::into_inner);
        look(&core, self.clock.now().max(core.last_instant()))
    }

    /// The engine's clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl EngineTask {
    /// The journal's last row.
    pub fn head(&self) -> &Head {
        self.journal.head()
    }

    /// Runs until the engine is closed or every handle is gone.
    ///
    /// # Errors
    /// `Commit` where a row could not be written, `Fault` where the core broke. Both end the engine.
    pub async fn run(mut self) -> Result<(), EngineError> {
        while let Some(batch) = self.next_batch().await {
            self.take(batch).await?;
            let core = self.core.read().unwrap_or_else(PoisonError::into_inner);
            self.clock.pace(core.is_busy(), core.next_due());
        }
        self.journal.close().await.map_err(EngineError::Journal)
    }

    /// What waits, as far as it fits one commit; an empty batch when something is due; `None` at the end.
    async fn next_batch(&mut self) -> Option<Vec<Waiting>> {
        loop {
            let due = self.core.read().unwrap_or_else(PoisonError::into_inner).next_due();
            let wait = self.clock.until(due);
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !self.inputs.is_closed() => self.inputs.close(),
                first = self.inputs.recv() => {
                    let mut batch = vec![first?];
                    while batch.len() < BATCH_MAX {
                        let Ok(next) = self.inputs.try_recv() else { break };
                        batch.push(next);
                    }
                    return Some(batch);
                }
                () = tokio::time::sleep(wait) => {
                    let Some(due) = due else { continue };
                    self.clock.arrive(due);
                    if self.clock.now() >= due {
                        return Some(Vec::new());
                    }
                }
            }
        }
    }

    /// Steps a batch, commits it, then answers and releases. A fault ends the batch before it; what came before
    /// is committed all the same.
    async fn take(&mut self, batch: Vec<Waiting>) -> Result<(), EngineError> {
        let (stepped, fault) = self.step_all(batch);
        let changed: Vec<(Instant, Input, Step)> = stepped.journalled;
        if !changed.is_empty() {
            self.journal.commit(&changed).await.map_err(|source| EngineError::Commit { source })?;
        }
        for (answer, reply) in stepped.answers {
            // Whoever asked may have gone; its input is in the journal all the same.
            drop(answer.send(Ok(reply)));
        }
        for effect in changed.into_iter().flat_map(|(_, _, step)| step.effects) {
            // A shell that is gone gets open effects again at its next start.
            drop(self.effects.send(effect));
        }
        fault.map_or(Ok(()), |source| Err(EngineError::Fault { source }))
    }

    fn step_all(&self, batch: Vec<Waiting>) -> (Stepped, Option<Fault>) {
        let mut core = self.core.write().unwrap_or_else(PoisonError::into_inner);
        let mut stepped = Stepped::default();
        let ticks = if batch.is_empty() { vec![None] } else { Vec::new() };
        for waiting in ticks.into_iter().chain(batch.into_iter().map(Some)) {
            let now = self.clock.now().max(core.last_instant());
            let is_due = core.next_due().is_some_and(|due| due <= now);
            if is_due && let Err(fault) = stepped.step(&mut core, now, Input::Tick) {
                return (stepped, Some(fault));
            }
            let Some(Waiting { input, answer }) = waiting else { continue };
            match stepped.step(&mut core, now, input) {
                Ok(reply) => stepped.answers.push((answer, reply)),
                Err(fault) => return (stepped, Some(fault)),
            }
        }
        (stepped, None)
    }
}

/// What a batch led to.
#[derive(Debug, Default)]
struct Stepped {
    journalled: Vec<(Instant, Input, Step)>,
    answers: Vec<(oneshot::Sender<Result<Reply, EngineError>>, Reply)>,
}

impl Stepped {
    fn step(&mut self, core: &mut Core, now: Instant, input: Input) -> Result<Reply, Fault> {
        let step = core.step(now, &input)?;
        let reply = step.reply.clone();
        if step.changed {
            self.journalled.push((now, input, step));
        }
        Ok(reply)
    }
}

/// Writes the genesis row.
async fn begin(
    journal: &mut Journal,
    core: &mut Core,
    clock: &Clock,
    settings: Settings,
    seed: String,
) -> Result<(), EngineError> {
    let now = clock.now();
    let input = Input::Genesis { settings: Box::new(settings), seed };
    let step = core.step(now, &input).map_err(|source| EngineError::Fault { source })?;
    if let Reply::Refused(refusal) = &step.reply {
        return Err(EngineError::Genesis { what: refusal.to_string() });
    }
    journal.commit(&[(now, input, step)]).await.map_err(|source| EngineError::Commit { source })
}

fn random_seed() -> Result<String, EngineError> {
    let mut seed = [0_u8; 32];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut seed));
    read.map_err(|source| EngineError::Seed { source })?;
    Ok(hex(&seed))
}
