//! The simulator: the published run, the same bytes for the same seed, and checks that hold through faults.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::path::Path;
use std::process::{Command, Output};

use orchestrator::core::settings::Settings;
use orchestrator::simulate::outcome::{Deaths, Outcome};
use orchestrator::simulate::{JournalAt, Kind, Options, Scenario, Vary, many, run, sweep};

fn options(seed: u64) -> Options {
    Options { agents: 24, days: 22, seed, ..Options::default() }
}

/// An outcome without the one figure that two runs do not share.
fn timeless(mut outcome: Outcome) -> Outcome {
    outcome.wall_ms = 0;
    outcome
}

fn broken(outcome: &Outcome) -> Vec<&str> {
    outcome.checks.iter().filter(|check| !check.held).map(|check| check.name.as_str()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the binary under test, with arguments of ours")]
fn darwin(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_darwin")).arg("simulate").args(args).env_clear().output().unwrap()
}

fn json(args: &[&str]) -> serde_json::Value {
    let output = darwin(args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_published_run_comes_out_whatever_the_seed() {
    for seed in 1..=8 {
        let outcome =
            run(&Options { seed, scenario: Some(Scenario::Published), ..Options::default() }).unwrap();
        let [cull] = outcome.culls.as_slice() else { panic!("one cull: {:?}", outcome.culls) };
        let found = (cull.eligible, cull.idle, cull.performance, cull.appellants, cull.reprieved, cull.died);
        assert_eq!(found, (30, 6, 4, 10, 3, 7), "seed {seed}");
        assert_eq!(outcome.deaths, Deaths { idle: 6, performance: 1, starved: 4 }, "seed {seed}");
        let lone: Vec<_> =
            outcome.starvation_dockets.iter().map(|docket| (docket.appellants, docket.reprieved)).collect();
        assert_eq!(lone, [(1, 0); 4], "seed {seed}");
        assert!(outcome.starvation_dockets.iter().all(|docket| docket.at_ms < cull.at_ms));
        assert_eq!(broken(&outcome), [""; 0]);
    }
}

#[test]
fn the_published_run_is_printed_as_json_and_as_a_table() {
    let told = json(&["--scenario", "published", "--json"]);
    assert_eq!(told["culls"][0]["eligible"], 30);
    assert_eq!(told["deaths"], serde_json::json!({"idle": 6, "performance": 1, "starved": 4}));
    let keys: Vec<&String> = told.as_object().unwrap().keys().collect();
    let wanted = [
        "agents",
        "births",
        "checks",
        "culls",
        "days",
        "deaths",
        "events",
        "journal_hash",
        "seed",
        "starvation_dockets",
        "treasury_nano",
        "wall_ms",
    ];
    assert_eq!(keys, wanted);
    let text = String::from_utf8(darwin(&["--scenario", "published"]).stdout).unwrap();
    let row: Vec<&str> =
        text.lines().find(|line| line.contains("2027-01-12")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["2027-01-12", "30", "6", "4", "10", "3", "3", "7"]);
}

#[test]
fn a_seed_gives_the_same_bytes_in_two_processes_and_another_seed_does_not() {
    let told = |seed: &str| {
        let mut told = json(&["--agents", "24", "--days", "22", "--seed", seed, "--json"]);
        told["wall_ms"] = 0.into();
        told.to_string()
    };
    let (one, again, other) = (told("5"), told("5"), told("6"));
    assert_eq!(one, again);
    assert_ne!(one, other);
    assert!(one.contains(&run(&options(5)).unwrap().journal_hash));
}

#[test]
fn threads_change_nothing_but_the_time() {
    let all = |threads| -> Vec<Outcome> {
        many(&options(1), 5, threads).unwrap().into_iter().map(timeless).collect()
    };
    let alone = all(1);
    assert_eq!(alone, all(2));
    let seeds: Vec<u64> = alone.iter().map(|outcome| outcome.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn the_journal_on_sqlite_has_the_same_head_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let small = Options { agents: 6, days: 4, ..Options::default() };
    let written = |journal| {
        let options = Options { journal: Some(journal), ..small.clone() };
        std::thread::spawn(move || timeless(run(&options).unwrap())).join().unwrap()
    };
    let plain = timeless(run(&small).unwrap());
    assert_eq!(plain, written(JournalAt::Memory));
    assert_eq!(plain, written(JournalAt::File(path.clone())));
    let report = orchestrator::journal::verify(&path).await.unwrap();
    assert_eq!((report.wrong, report.head), (None, plain.journal_hash));
}

#[test]
fn a_journal_that_has_rows_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let args = ["--agents", "2", "--days", "1", "--journal", path.to_str().unwrap()];
    assert_eq!(darwin(&args).status.code(), Some(0));
    let before = std::fs::read(&path).unwrap();
    let second = darwin(&args);
    assert_eq!(second.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&second.stderr).contains("it has rows already"));
    assert_eq!(before, std::fs::read(&path).unwrap());
}

#[test]
fn checks_hold_through_faults_and_faults_happen() {
    let quiet = many(&Options { faults: false, ..faulty() }, 12, 2).unwrap();
    let upset = many(&faulty(), 12, 2).unwrap();
    for (outcome, calm) in upset.iter().zip(&quiet) {
        assert_eq!(broken(outcome), [""; 0], "seed {}", outcome.seed);
        assert_ne!(outcome.journal_hash, calm.journal_hash);
    }
    let killed = |outcome: &&Outcome| {
        outcome.series.lives.iter().any(|life| life.died_ms.is_some() && life.cause.is_none())
    };
    assert!(upset.iter().any(|outcome| killed(&outcome)), "an admin has killed nobody");
    assert!(!quiet.iter().any(|outcome| killed(&outcome)));
    let culls = |all: &[Outcome]| all.iter().map(|outcome| outcome.culls.clone()).collect::<Vec<_>>();
    assert_ne!(culls(&quiet), culls(&upset));
}

fn faulty() -> Options {
    Options { agents: 30, days: 35, faults: true, ..Options::default() }
}

#[test]
fn faults_are_those_of_the_seed() {
    let one = timeless(run(&faulty()).unwrap());
    assert_eq!(one, timeless(run(&faulty()).unwrap()));
    assert_ne!(one, timeless(run(&Options { seed: 2, ..faulty() }).unwrap()));
}

#[test]
fn every_kind_takes_part() {
    let outcome = run(&options(1)).unwrap();
    let kinds: std::collections::BTreeSet<&str> =
        outcome.series.lives.iter().map(|life| life.kind.as_str()).collect();
    assert_eq!(kinds, Kind::ALL.map(Kind::word).into_iter().collect());
    assert_eq!(outcome.series.lives.len(), 24);
}

#[test]
fn the_series_fit_the_figures() {
    let outcome = run(&options(3)).unwrap();
    assert_eq!(outcome.series.days.len(), 22);
    for day in &outcome.series.days {
        let living: u32 = day.by_kind.values().sum();
        assert_eq!(living, day.by_age.iter().sum::<u32>());
        let dead = outcome.series.lives.iter().filter(|life| life.died_ms.is_some_and(|at| at <= day.at_ms));
        assert_eq!(living as usize + dead.count(), 24);
    }
    let dead = outcome.series.lives.iter().filter(|life| life.died_ms.is_some()).count();
    let Deaths { idle, performance, starved } = outcome.deaths;
    assert_eq!(dead, (idle + performance + starved) as usize);
    let culled: u32 = outcome.culls.iter().map(|cull| cull.died).sum();
    assert_eq!(culled, idle + performance);
    assert!(culled > 0);
}

#[test]
fn a_larger_quota_spares_more() {
    let vary = Vary::parse("quota=0.1,1", &Settings::default()).unwrap();
    let points = sweep(&options(1), &vary, 6, 2).unwrap();
    let spared: Vec<f64> = points
        .iter()
        .map(|(point, outcomes)| {
            assert_eq!(outcomes.len(), 6);
            point.figures.iter().find(|figure| figure.name == "reprieved at culls").unwrap().mean
        })
        .collect();
    assert!(spared.first() < spared.get(1), "{spared:?}");
    for (point, _) in &points {
        assert!(point.figures.iter().all(|figure| figure.low <= figure.mean && figure.mean <= figure.high));
        assert_eq!(point.broken, []);
    }
}

#[test]
fn a_sweep_is_printed_as_an_array_and_as_a_table() {
    let args = ["--agents", "12", "--days", "21", "--seeds", "3", "--vary", "floor=0,100"];
    let told = json(&[&args[..], &["--json"]].concat());
    let values: Vec<&str> =
        told.as_array().unwrap().iter().map(|point| point["value"].as_str().unwrap()).collect();
    assert_eq!(values, ["0", "100"]);
    let text = String::from_utf8(darwin(&args).stdout).unwrap();
    assert!(text.contains("share of appellants reprieved"), "{text}");
}

#[test]
fn wrong_arguments_are_exit_3_and_say_what_there_is() {
    let unknown = darwin(&["--vary", "luck=1"]);
    assert_eq!(unknown.status.code(), Some(3));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("luck") && said.contains("quota, floor, passes"), "{said}");
    for args in [["--vary", "quota=2"], ["--vary", "quota"], ["--agents", "0"], ["--days", "0"]] {
        assert_eq!(darwin(&args).status.code(), Some(3), "{args:?}");
    }
    assert_eq!(darwin(&["--vary", "quota=0.5", "--agents", "3", "--days", "1"]).status.code(), Some(0));
    let nowhere = Path::new("/nonexistent/journal.db");
    assert_eq!(darwin(&["--journal", nowhere.to_str().unwrap()]).status.code(), Some(4));
}
