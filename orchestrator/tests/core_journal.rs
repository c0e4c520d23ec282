//! The journal on the disk: what was tampered with is found and named, and what was acknowledged is there.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::get_unwrap,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::similar_names,
    reason = "test code: what is not as it should be fails the test"
)]

mod core_script;

use std::path::{Path, PathBuf};
use std::time::Duration;

use core_script::{START, agent};
use orchestrator::clock::{Clock, Rates};
use orchestrator::core::input::Input;
use orchestrator::core::reply::Reply;
use orchestrator::core::settings::Settings;
use orchestrator::engine::{Engine, EngineConfig, EngineError};
use orchestrator::journal::{ChainError, JournalError, verify};
use policy::Money;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

fn config(path: &Path) -> EngineConfig {
    let rates = Rates { busy: 1, idle: 1, idle_max: Duration::from_secs(1) };
    let clock = Clock::accelerated(START, rates);
    let seed = Some("5e".repeat(32));
    EngineConfig { journal_path: path.to_owned(), settings: Settings::default(), seed, clock }
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

fn income(key: &str, cents: i64) -> Input {
    Input::Income {
        key: key.to_owned(),
        agent: agent("ann"),
        source: "shop".to_owned(),
        project: "p".to_owned(),
        payer: "bob".to_owned(),
        amount_nano: Money::from_nano(cents * 10_000_000),
    }
}

/// A closed journal of six rows: genesis, ann, bea and three incomes.
async fn written() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (engine, effects, task) = Engine::open(config(&path)).await.unwrap();
    let task = tokio::spawn(task.run());
    for name in ["ann", "bea"] {
        engine.submit(create(name)).await.unwrap();
    }
    for (key, cents) in [("one", 100), ("two", 200), ("three", 300)] {
        engine.submit(income(key, cents)).await.unwrap();
    }
    drop((engine, effects));
    task.await.unwrap().unwrap();
    (folder, path)
}

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

async fn tamper(path: &Path, statements: &'static str) {
    let mut conn = connect(path).await;
    sqlx::raw_sql(statements).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

async fn open_error(path: &Path) -> Option<ChainError> {
    match Engine::open(config(path)).await {
        Err(EngineError::Journal(JournalError::Broken { source, .. })) => Some(source),
        Err(other) => panic!("{other:?}"),
        Ok(_) => None,
    }
}

#[tokio::test]
async fn an_untouched_journal_is_right() {
    let (_folder, path) = written().await;
    let report = verify(&path).await.unwrap();
    assert_eq!((report.rows, report.wrong), (6, None));
    assert_eq!(open_error(&path).await, None);
}

#[tokio::test]
async fn every_kind_of_tampering_with_the_chain_names_the_row() {
    let swap = "UPDATE journal SET seq = 99 WHERE seq = 4; UPDATE journal SET seq = 4 WHERE seq = 5;
        UPDATE journal SET seq = 5 WHERE seq = 99";
    for (statements, wrong) in [
        ("UPDATE journal SET input = replace(input, '1000000000', '9000000000') WHERE seq = 4", 4),
        ("UPDATE journal SET at_ms = at_ms + 1 WHERE seq = 3", 3),
        ("UPDATE journal SET reply = '{}' WHERE seq = 5", 5),
        ("UPDATE journal SET effects = '[]' WHERE seq = 2", 2),
        ("UPDATE journal SET hash = upper(hash) WHERE seq = 2", 2),
        ("DELETE FROM journal WHERE seq = 1", 1),
        ("DELETE FROM journal WHERE seq = 3", 3),
        (swap, 4),
        ("DELETE FROM journal WHERE seq > 4", 5),
        ("DELETE FROM journal", 1),
    ] {
        let (_folder, path) = written().await;
        tamper(&path, statements).await;
        let found = verify(&path).await.unwrap().wrong.unwrap();
        assert_eq!(
            (found.table.as_str(), found.row.as_str()),
            ("journal", wrong.to_string().as_str()),
            "{statements}"
        );
        assert_eq!(open_error(&path).await.map(|error| error.row()), Some(wrong), "{statements}");
    }
}

#[tokio::test]
async fn every_kind_of_tampering_with_a_table_names_the_row() {
    for (statements, table, row) in [
        (
            "UPDATE accounts SET posted_nano = posted_nano + 1 WHERE account = 'agent/ann'",
            "accounts",
            "\"agent/ann\"",
        ),
        ("UPDATE transfers SET amount_nano = 5 WHERE id = 4", "transfers", "4"),
        ("DELETE FROM transfers WHERE id = 2", "transfers", "2"),
        ("UPDATE agents SET state = 'dead' WHERE agent = 'bea'", "agents", "\"bea\""),
        ("INSERT INTO work_log (id, text, seq) VALUES (9, 'x', 3)", "work_log", "9"),
        ("UPDATE dockets SET note = 'x', seq = 2", "dockets", "1"),
    ] {
        let (_folder, path) = written().await;
        tamper(&path, statements).await;
        let found = verify(&path).await.unwrap().wrong.unwrap();
        assert_eq!((found.table.as_str(), found.row.as_str()), (table, row), "{statements}: {found:?}");
    }
}

#[tokio::test]
async fn a_journal_of_another_version_stops_the_start() {
    let (_folder, path) = written().await;
    tamper(&path, "UPDATE meta SET value = 'darwin-journal/0' WHERE key = 'version'").await;
    let opened = Engine::open(config(&path)).await.map(|_| ());
    assert!(matches!(opened, Err(EngineError::Journal(JournalError::Version { .. }))), "{opened:?}");
    assert!(matches!(verify(&path).await, Err(JournalError::Version { .. })));
}

#[tokio::test]
async fn a_journal_that_lost_its_version_stops_the_start_and_an_empty_one_does_not() {
    let (_folder, path) = written().await;
    tamper(&path, "DELETE FROM meta WHERE key = 'version'").await;
    let opened = Engine::open(config(&path)).await.map(|_| ());
    assert!(matches!(opened, Err(EngineError::Journal(JournalError::Version { .. }))), "{opened:?}");
    tamper(&path, "DELETE FROM journal; DELETE FROM meta").await;
    let opened = Engine::open(config(&path)).await.map(|_| ());
    assert!(opened.is_ok(), "{opened:?}");
}

#[tokio::test]
async fn an_unknown_input_is_named_by_its_row() {
    let (_folder, path) = written().await;
    // A chain that is right, of a row that no darwin wrote.
    let mut conn = connect(&path).await;
    let report = verify(&path).await.unwrap();
    let head = orchestrator::journal::Head { seq: 6, hash: report.head };
    let mut record = orchestrator::journal::Record {
        seq: 7,
        at_ms: START.plus_ms(1_000_000),
        input: "{\"input\":\"make_rich\"}".to_owned(),
        reply: "{}".to_owned(),
        effects: "[]".to_owned(),
        hash: String::new(),
    };
    record.hash = head.hash_of(&record);
    sqlx::query("INSERT INTO journal VALUES (7, $1, $2, '{}', '[]', $3)")
        .bind(record.at_ms.ms())
        .bind(&record.input)
        .bind(&record.hash)
        .execute(&mut conn)
        .await
        .unwrap();
    let found = verify(&path).await.unwrap().wrong.unwrap();
    assert_eq!((found.table.as_str(), found.row.as_str()), ("journal", "7"));
    assert!(matches!(
        Engine::open(config(&path)).await.map(|_| ()),
        Err(EngineError::Journal(JournalError::Replay { .. }))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_dropped_at_any_moment_loses_nothing_that_it_acknowledged() {
    for patience_ms in [0_u64, 1, 2, 3, 5, 8, 13, 21] {
        let (_folder, path) = written().await;
        let (engine, _effects, task) = Engine::open(config(&path)).await.unwrap();
        let task = tokio::spawn(task.run());
        let submitting = tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for number in 0.. {
                match engine.submit(income(&format!("i{number}"), 1)).await {
                    Ok(reply) => acknowledged.push((number, reply)),
                    Err(_) => return acknowledged,
                }
            }
            acknowledged
        });
        tokio::time::sleep(Duration::from_millis(patience_ms)).await;
        task.abort();
        let acknowledged = submitting.await.unwrap();
        drop(task.await);
        assert_eq!(verify(&path).await.unwrap().wrong, None);
        let (again, _effects, task) = Engine::open(config(&path)).await.unwrap();
        let task = tokio::spawn(task.run());
        let had = again.read(|core, now| core.figures(&agent("ann"), now)).unwrap().lifetime_income_nano;
        let least = i64::try_from(acknowledged.len()).unwrap() * 10_000_000 + 6_000_000_000;
        assert!(had.nano() >= least && had.nano() <= least + 10_000_000, "{had} for {}", acknowledged.len());
        for (number, reply) in acknowledged {
            assert_eq!(reply, Reply::Done);
            assert_eq!(again.submit(income(&format!("i{number}"), 1)).await.unwrap(), Reply::Done);
        }
        let now = again.read(|core, now| core.figures(&agent("ann"), now)).unwrap().lifetime_income_nano;
        assert_eq!(now, had);
        drop(again);
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_commit_that_fails_stops_the_engine_and_says_what_to_do() {
    let (_folder, path) = written().await;
    let (engine, _effects, task) = Engine::open(config(&path)).await.unwrap();
    let task = tokio::spawn(task.run());
    assert_eq!(engine.submit(income("four", 1)).await.unwrap(), Reply::Done);
    tamper(&path, "DROP TABLE journal").await;
    assert!(matches!(engine.submit(income("five", 1)).await, Err(EngineError::Stopped)));
    let stopped = task.await.unwrap().unwrap_err();
    assert!(matches!(stopped, EngineError::Commit { .. }));
    assert!(stopped.to_string().contains("check the disk"), "{stopped}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the binary itself is what is tested")]
fn darwin_verify_exits_by_what_it_finds() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (folder, path) = runtime.block_on(written());
    let verify = |path: &Path, json: bool| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_darwin"));
        command.arg("verify").arg("--journal").arg(path);
        if json {
            command.arg("--json");
        }
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, out, _) = verify(&path, true);
    assert_eq!(code, Some(0));
    assert!(out.contains("\"rows\":6") && out.contains("\"wrong\":null"), "{out}");
    runtime.block_on(tamper(&path, "UPDATE accounts SET held_nano = 1 WHERE account = 'treasury'"));
    let (code, out, _) = verify(&path, false);
    assert_eq!(code, Some(1));
    assert!(out.contains("table accounts, row \"treasury\"") && out.contains("its held_nano is 1"), "{out}");
    let (code, _, error) = verify(&folder.path().join("none.db"), false);
    assert_eq!(code, Some(4));
    assert!(error.starts_with("darwin verify: cannot open journal"), "{error}");
    std::fs::write(folder.path().join("text"), "not a database at all, but some text").unwrap();
    let (code, _, _) = verify(&folder.path().join("text"), false);
    assert!(matches!(code, Some(2 | 4)));
}
