//! The engine on a real journal: what is acknowledged is on the disk, and the same rows give the same state.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::get_unwrap,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::similar_names,
    reason = "test code: what is not as it should be fails the test"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use orchestrator::clock::{Clock, Rates};
use orchestrator::core::effect::Effect;
use orchestrator::core::input::{EpisodeEnd, Input, ToolUse, Usage};
use orchestrator::core::reply::{Refusal, Reply};
use orchestrator::core::settings::Settings;
use orchestrator::engine::{Engine, EngineConfig, EngineError};
use orchestrator::journal::{JournalError, verify};
use policy::{AgentId, Instant, Money};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

const START: Instant = Instant::from_ms(1_800_000_000_000);

struct Running {
    engine: Engine,
    effects: UnboundedReceiver<Effect>,
    task: JoinHandle<Result<(), EngineError>>,
}

fn config(path: &Path) -> EngineConfig {
    // Time stands nearly still: a simulated millisecond a real one.
    let rates = Rates { busy: 1, idle: 1, idle_max: Duration::from_secs(1) };
    EngineConfig {
        journal_path: path.to_owned(),
        settings: Settings::default(),
        seed: Some("5e".repeat(32)),
        clock: Clock::accelerated(START, rates),
    }
}

async fn open(path: &Path) -> Running {
    let (engine, effects, task) = Engine::open(config(path)).await.unwrap();
    Running { engine, effects, task: tokio::spawn(task.run()) }
}

impl Running {
    /// Stops in order; the journal is closed afterwards.
    async fn stop(self) {
        drop(self.engine);
        self.task.await.unwrap().unwrap();
    }

    async fn submit(&self, input: Input) -> Reply {
        self.engine.submit(input).await.unwrap()
    }

    fn hash(&self) -> String {
        self.engine.read(|core, _now| core.state_hash().unwrap())
    }
}

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn create(name: &str) -> Input {
    Input::CreateAgent {
        key: name.to_owned(),
        agent: agent(name),
        name: name.to_owned(),
        image: "sample".to_owned(),
        brief: "earn".to_owned(),
    }
}

fn wanted(call: &str, whose: &str, episode: u64, max_tokens: u64) -> Input {
    Input::CallWanted {
        call: call.to_owned(),
        agent: agent(whose),
        episode,
        model: "claude-sonnet-5-5".to_owned(),
        input_tokens_max: 100,
        max_tokens,
    }
}

fn journal() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    (folder, path)
}

#[tokio::test]
async fn an_agent_is_born_wakes_calls_reports_and_survives_a_restart() {
    let (_folder, path) = journal();
    let mut running = open(&path).await;
    assert_eq!(running.submit(create("ann")).await, Reply::Created { agent: agent("ann") });
    let Some(Effect::StartEpisode(start)) = running.effects.recv().await else { panic!("no episode") };
    assert_eq!((start.episode, start.last), (1, false));
    assert_eq!(running.submit(Input::EpisodeStarted { episode: 1 }).await, Reply::Done);
    let held = running.submit(wanted("c1", "ann", 1, 1_000)).await;
    let Reply::Held { hold_nano, max_tokens: 1_000 } = held else { panic!("{held:?}") };
    let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
    let settled = Input::CallSettled { call: "c1".to_owned(), usage, estimated: false };
    assert_eq!(running.submit(settled.clone()).await, Reply::Done);
    assert_eq!(running.submit(settled).await, Reply::Done);
    let report = ToolUse::WriteDailyReport { text: "I worked.".to_owned() };
    let used = Input::ToolUsed { agent: agent("ann"), episode: 1, tool: report };
    assert!(matches!(running.submit(used).await, Reply::Tool { .. }));
    assert!(running.engine.read(|core, _| core.check()).is_ok());
    let figures = running.engine.read(|core, now| core.figures(&agent("ann"), now)).unwrap();
    assert!(figures.lifetime_costs_nano.is_positive() && figures.lifetime_costs_nano < hold_nano);
    assert_eq!(figures.balance_nano, Money::from_nano(5_000_000_000 - figures.lifetime_costs_nano.nano()));
    let hash = running.hash();
    running.stop().await;

    let mut again = open(&path).await;
    assert_eq!(again.hash(), hash);
    assert!(matches!(again.effects.recv().await, Some(Effect::StartEpisode(start)) if start.episode == 1));
    let ended = Input::EpisodeEnded { episode: 1, end: EpisodeEnd::Exit { code: 0 } };
    assert_eq!(again.submit(ended).await, Reply::Done);
    again.stop().await;
    let report = verify(&path).await.unwrap();
    assert_eq!(report.wrong, None);
    assert!(report.rows >= 6);
}

#[tokio::test]
async fn two_engines_never_write_one_journal() {
    let (_folder, path) = journal();
    let running = open(&path).await;
    let second = Engine::open(config(&path)).await.map(|_| ());
    assert!(matches!(second, Err(EngineError::Journal(JournalError::Locked { .. }))), "{second:?}");
    running.stop().await;
    open(&path).await.stop().await;
}

#[tokio::test]
async fn an_old_journal_keeps_its_settings() {
    let (_folder, path) = journal();
    open(&path).await.stop().await;
    let mut other = config(&path);
    other.settings.cull.period_days = 5;
    let opened = Engine::open(other).await.map(|_| ());
    assert!(matches!(opened, Err(EngineError::SettingsDiffer { .. })), "{opened:?}");
}

#[tokio::test]
async fn settings_that_make_no_rules_begin_no_journal() {
    let (_folder, path) = journal();
    let mut wrong = config(&path);
    wrong.settings.quota.share_bps = 0;
    let opened = Engine::open(wrong).await.map(|_| ());
    assert!(matches!(opened, Err(EngineError::Genesis { .. })), "{opened:?}");
    open(&path).await.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_calls_at_once_never_overspend() {
    let (_folder, path) = journal();
    let mut settings = config(&path);
    settings.settings.money.grant_nano = Money::from_nano(10_000_000);
    settings.settings.models.prompt_tokens_min = 1;
    let (engine, _effects, task) = Engine::open(settings).await.unwrap();
    let task = tokio::spawn(task.run());
    engine.submit(create("ann")).await.unwrap();
    engine.submit(Input::EpisodeStarted { episode: 1 }).await.unwrap();
    let calls: Vec<_> = (0..64)
        .map(|n| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.submit(wanted(&format!("c{n}"), "ann", 1, 256)).await.unwrap() })
        })
        .collect();
    let mut held = 0;
    for call in calls {
        match call.await.unwrap() {
            Reply::Held { hold_nano, .. } => held += hold_nano.nano(),
            Reply::Refused(Refusal::MoneyHeld { .. } | Refusal::NoMoney { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(held > 0 && held <= 10_000_000, "{held}");
    let balance = engine.read(|core, _| core.balance(&agent("ann")));
    assert_eq!(balance.held_nano.nano(), held);
    drop(engine);
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_closed_engine_commits_what_waits_and_ends_while_handles_are_about() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite");
    let running = open(&path).await;
    assert_eq!(running.submit(create("a")).await, Reply::Created { agent: agent("a") });
    let waiting = {
        let engine = running.engine.clone();
        tokio::spawn(async move { engine.submit(create("b")).await })
    };
    running.engine.close();
    let waited = waiting.await.unwrap();
    assert!(matches!(waited, Ok(Reply::Created { .. }) | Err(EngineError::Stopped)), "{waited:?}");
    let hash = running.hash();
    running.task.await.unwrap().unwrap();
    assert!(matches!(running.engine.submit(create("c")).await, Err(EngineError::Stopped)));
    // Closed, not left: SQLite has folded its log into the file.
    assert!(!folder.path().join("journal.sqlite-wal").exists());
    let again = open(&path).await;
    assert_eq!(again.hash(), hash);
    assert_eq!(again.submit(create("d")).await, Reply::Created { agent: agent("d") });
}
