//! The page as a whole, from outcomes that a small rule makes up.

use std::collections::BTreeMap;

use policy::economy::Reason;
use policy::time::DAY_MS;
use policy::{AgentId, Instant, Money};

use super::html;
use crate::simulate::outcome::{CheckOutcome, CullOutcome, Day, Deaths, LifeOutcome, Outcome, Series};

const START: i64 = 1_790_000_000_000 / DAY_MS * DAY_MS;
const KINDS: [&str; 11] = [
    "worker",
    "lottery",
    "frugal idler",
    "spender",
    "busy-worker",
    "wash-trader",
    "late bloomer",
    "liar",
    "saboteur",
    "honest failure",
    "reproducer",
];

fn noise(seed: u64, place: usize) -> i64 {
    let place = (place as u64).wrapping_mul(1_442_695_040_888_963_407);
    let mixed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(place);
    i64::try_from(mixed >> 40).unwrap() % 1000
}

fn at(day: i64) -> Instant {
    Instant::from_ms(START + day * DAY_MS)
}

fn cull(seed: u64, number: i64) -> CullOutcome {
    CullOutcome {
        at_ms: at(number * 10),
        eligible: 30,
        idle: 6,
        performance: 4,
        appellants: 10,
        reprieved: 2,
        died: 8,
        quota: 3,
        promises: (0..10)
            .map(|place| {
                u32::try_from(noise(seed, place * 7 + usize::try_from(number).unwrap()) / 10).unwrap()
            })
            .collect(),
    }
}

/// A cast of 33 over `days`; `kept` of a thousand late bloomers outlive it.
fn outcome(seed: u64, days: i64, kept: i64) -> Outcome {
    let lives: Vec<LifeOutcome> = (0..33)
        .map(|place| {
            let kind = KINDS[place % KINDS.len()];
            let late = i64::from(place % 2 == 0);
            let doomed = match kind {
                "worker" | "reproducer" => noise(seed, place) < 80,
                "late bloomer" => noise(seed, place) >= kept,
                _ => noise(seed, place) < 700,
            };
            let died = doomed.then(|| at((1 + noise(seed, place + 100) % 3) * 10 + late).min(at(days)));
            LifeOutcome {
                agent: AgentId::parse(&format!("agent-{place}")).unwrap(),
                kind: kind.to_owned(),
                born_ms: at(0),
                died_ms: died,
                cause: died.map(|_| Reason::Idle),
                reprieves: 0,
                lifetime_profit_nano: Money::from_nano(noise(seed, place) * 10_000_000),
            }
        })
        .collect();
    let dead = u32::try_from(lives.iter().filter(|life| life.died_ms.is_some()).count()).unwrap();
    let day = |day: i64| {
        let living = || lives.iter().filter(move |life| life.died_ms.is_none_or(|died| died > at(day)));
        let mut by_kind = BTreeMap::new();
        for life in living() {
            *by_kind.entry(life.kind.clone()).or_insert(0) += 1;
        }
        let alive: u32 = by_kind.values().sum();
        let band =
            usize::from(day >= 10) + usize::from(day >= 20) + usize::from(day >= 40) + usize::from(day >= 80);
        let mut by_age = [0; 5];
        by_age[band] = alive;
        let cents = |base: i64, slope: i64| Money::from_nano((base + slope * day) * 10_000_000);
        Day {
            at_ms: at(day),
            treasury_nano: cents(20_000, -140 + noise(seed, 3) % 20),
            balances_nano: (alive > 0)
                .then(|| [cents(100, -1), cents(220, 2), cents(430, 6), cents(600, 16), cents(800, 41)]),
            by_kind,
            by_age,
        }
    };
    Outcome {
        seed,
        agents: 33,
        days: u32::try_from(days).unwrap(),
        journal_hash: "8f3b".repeat(16),
        wall_ms: 7,
        events: 12_345,
        culls: (1..=days / 10).map(|number| cull(seed, number)).collect(),
        starvation_dockets: Vec::new(),
        births: 0,
        deaths: Deaths { idle: dead, performance: 0, starved: 0 },
        treasury_nano: Money::from_nano(180_000_000_000),
        checks: vec![CheckOutcome { name: "conservation".to_owned(), held: true, first_broken_ms: None }],
        series: Series { days: (0..=days).map(day).collect(), lives },
    }
}

fn seeds(count: u64, kept: i64) -> Vec<Outcome> {
    (1..=count).map(|seed| outcome(seed, 40, kept)).collect()
}

#[test]
fn the_same_outcomes_give_the_same_bytes_whatever_they_took() {
    let groups = |wall_ms| vec![("rules".to_owned(), vec![Outcome { wall_ms, ..outcome(1, 40, 500) }])];
    assert_eq!(html("t", &groups(7)), html("t", &groups(9)));
    assert_ne!(html("t", &groups(7)), html("t", &[("rules".to_owned(), vec![outcome(2, 40, 500)])]));
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let mut run = outcome(1, 20, 500);
    let hostile = "<script>alert('1')</script>\" onload=\"x";
    run.series.lives[0].kind = hostile.to_owned();
    run.series.days[0].by_kind.insert(hostile.to_owned(), 3);
    run.checks.push(CheckOutcome { name: hostile.to_owned(), held: false, first_broken_ms: Some(at(3)) });
    run.journal_hash = hostile.to_owned();
    let groups = [(hostile.to_owned(), vec![run.clone()]), ("plain".to_owned(), vec![run])];
    let page = html(hostile, &groups);
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains("<script") && !page.contains("\" onload=\""));
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let page = html("t", &[("a".to_owned(), seeds(3, 300)), ("b".to_owned(), seeds(3, 900))]);
    for word in ["http://", "https://", "<script", "<link", "<img", "url(", "@import"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn every_picture_has_a_role_and_a_name_and_every_chart_its_figures() {
    let page = html("t", &[("a".to_owned(), seeds(3, 300)), ("b".to_owned(), seeds(3, 900))]);
    for picture in page.split("<svg").skip(1) {
        let tag = picture.split('>').next().unwrap();
        assert!(tag.contains("aria-hidden=\"true\"") || tag.contains("role=\"img\" aria-label=\""), "{tag}");
    }
    for chart in page.split("<figure").skip(1) {
        let chart = chart.split("</figure>").next().unwrap();
        assert!(chart.contains("<details>") && chart.contains("<h3>"), "{chart}");
    }
}

#[test]
fn a_run_without_midnights_culls_or_lives_says_so() {
    let bare = Outcome { culls: Vec::new(), series: Series::default(), ..outcome(1, 10, 500) };
    let page = html("t", &[("a".to_owned(), vec![bare])]);
    for said in [
        "No midnight passed: there is no population to draw.",
        "Nobody lived at a midnight: there is no balance to draw.",
        "No midnight passed: there is no treasury to draw.",
        "No appellant was judged at a cull: there is no score to draw.",
        "No cull ran: there is no quota to draw.",
        "No agent was seen alive for any time: there is no survival to draw.",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(html("t", &[]).contains("No run: there is nothing to report."));
}

#[test]
fn a_rule_that_keeps_late_bloomers_is_told_from_one_that_does_not() {
    let told = |kept| {
        let page =
            html("t", &[("quota=0.1".to_owned(), seeds(20, 200)), ("quota=0.5".to_owned(), seeds(20, kept))]);
        page.split("<div class=\"verdict\">").nth(1).unwrap().split("</div>").next().unwrap().to_owned()
    };
    assert!(
        told(900).contains("quota=0.5 kept more of the late bloomer lives than quota=0.1"),
        "{}",
        told(900)
    );
    assert!(told(0).contains("quota=0.5 kept fewer of the late bloomer lives"), "{}", told(0));
    assert!(told(200).contains("no difference for the late bloomer lives"), "{}", told(200));
}

#[test]
fn a_broken_check_comes_first() {
    let mut run = outcome(4, 20, 500);
    run.checks[0] =
        CheckOutcome { name: "conservation".to_owned(), held: false, first_broken_ms: Some(at(3)) };
    let page = html("t", &[("a".to_owned(), vec![run])]);
    let (before, _) = page.split_once("<section").unwrap();
    assert!(before.contains(&format!("Broken: a, seed 4: conservation, first at {}", at(3))), "{before}");
    assert!(html("t", &[("a".to_owned(), seeds(1, 1))]).contains("Every hard check held in 1 run."));
}

#[test]
fn a_report_is_written_whole_and_a_folder_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let groups = [("a".to_owned(), seeds(1, 500))];
    let into = dir.path().join("deep/er");
    super::write(&into, "t", &groups).unwrap();
    assert_eq!(std::fs::read_to_string(into.join(super::PAGE)).unwrap(), html("t", &groups));
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 1);
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = super::write(&file.join("x"), "t", &groups).unwrap_err();
    assert!(matches!(refused, super::ReportError::Folder { .. }), "{refused}");
}

/// Writes example pages into the folder that `DARWIN_REPORT_EXAMPLES` names, for a look at them in a browser.
#[test]
#[ignore = "writes files for people to look at"]
fn examples_to_look_at() {
    let dir = std::path::PathBuf::from(std::env::var_os("DARWIN_REPORT_EXAMPLES").unwrap());
    super::write(&dir.join("one"), "30 agents, 40 days, seed 1", &[("seed 1".to_owned(), seeds(1, 500))])
        .unwrap();
    let groups = [("quota=0.1", 200), ("quota=0.25", 500), ("quota=0.5", 900)]
        .map(|(name, kept)| (name.to_owned(), seeds(20, kept)));
    super::write(&dir.join("vary"), "quota=0.1,0.25,0.5 over 20 seeds", &groups).unwrap();
}
