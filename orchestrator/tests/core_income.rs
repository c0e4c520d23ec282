//! Income and its reversal, sentence by sentence (E5, E24).
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "test code: what is not as it should be fails the test"
)]

mod core_script;

use std::collections::BTreeMap;

use core_script::{Part, START, Shell, agent};
use orchestrator::core::input::Input;
use orchestrator::core::query::Figures;
use orchestrator::core::reply::{Refusal, Reply};
use orchestrator::core::settings::Settings;
use orchestrator::core::state::Life;
use policy::time::DAY_MS;
use policy::{Instant, Money};

/// Of the period that begins at the first cull.
const PERIOD: Instant = START.plus_ms(10 * DAY_MS);

/// One agent without costs, that no cull takes.
fn one(change: impl FnOnce(&mut Settings)) -> Shell {
    let mut settings = Settings::default();
    settings.cull.idle_under_nano = Money::ZERO;
    settings.lives.starving = false;
    change(&mut settings);
    Shell::new(settings, BTreeMap::from([("ann".to_owned(), Part::default())]))
}

fn income(key: &str, nano: i64, payer: &str) -> Input {
    Input::Income {
        key: key.to_owned(),
        agent: agent("ann"),
        source: "shop".to_owned(),
        project: "maps".to_owned(),
        payer: payer.to_owned(),
        amount_nano: Money::from_nano(nano),
    }
}

fn reverse(key: &str, of: &str) -> Input {
    Input::ReverseIncome {
        key: key.to_owned(),
        income: of.to_owned(),
        reason: "charged back".to_owned(),
        actor: "ann".to_owned(),
    }
}

fn figures(shell: &Shell) -> Figures {
    shell.core.figures(&agent("ann"), shell.now).unwrap()
}

fn posted(shell: &Shell, account: &str) -> i64 {
    let accounts = shell.core.accounts();
    accounts.iter().find(|(name, _)| name == account).map_or(0, |(_, balance)| balance.posted_nano.nano())
}

const GRANT: i64 = 5_000_000_000;

#[test]
fn in_the_same_period_a_reversal_takes_the_income_back() {
    let mut shell = one(|_| {});
    shell.submit(income("k", 7, "bob"));
    shell.submit(income("l", 5, "bob"));
    shell.run_until(START.plus_ms(3 * DAY_MS));
    assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
    let now = figures(&shell);
    assert_eq!((now.period_income_nano.nano(), now.period_costs_nano.nano()), (5, 0));
    assert_eq!((now.lifetime_income_nano.nano(), now.lifetime_costs_nano.nano()), (5, 0));
    assert_eq!((now.balance_nano.nano(), posted(&shell, "income/shop")), (GRANT + 5, -5));
}

#[test]
fn from_the_next_period_on_it_is_a_cost_of_the_period_that_it_comes_in() {
    for (at, is_cost) in [(PERIOD.plus_ms(-1), false), (PERIOD, true), (PERIOD.plus_ms(4 * DAY_MS), true)] {
        let mut shell = one(|_| {});
        shell.submit(income("k", 7, "bob"));
        shell.run_until(at);
        // What is due at this instant, the cull among it, comes first.
        assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
        let now = figures(&shell);
        let expected = if is_cost { (7, 7, 7) } else { (0, 0, 0) };
        let found = (now.lifetime_income_nano, now.lifetime_costs_nano, now.period_costs_nano);
        assert_eq!((found.0.nano(), found.1.nano(), found.2.nano()), expected, "{at}");
        assert_eq!((now.lifetime_profit_nano.nano(), now.balance_nano.nano()), (0, GRANT), "{at}");
    }
}

#[test]
fn what_is_reversed_while_it_clears_never_clears() {
    let mut shell = one(|settings| settings.money.clearing_ms = DAY_MS);
    shell.submit(income("k", 7, "bob"));
    assert_eq!((figures(&shell).clearing_nano.nano(), posted(&shell, "clearing/shop")), (7, 7));
    assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
    let both =
        |shell: &Shell| (figures(shell).clearing_nano.nano(), figures(shell).lifetime_income_nano.nano());
    assert_eq!(both(&shell), (0, 0));
    shell.run_until(START.plus_ms(3 * DAY_MS));
    assert_eq!(both(&shell), (0, 0));
    assert_eq!((posted(&shell, "clearing/shop"), posted(&shell, "income/shop")), (0, 0));
    assert_eq!(figures(&shell).balance_nano.nano(), GRANT);
}

#[test]
fn what_clears_is_shown_and_neither_counted_nor_spendable_until_its_instant() {
    let mut shell = one(|settings| settings.money.clearing_ms = DAY_MS);
    shell.submit(income("k", 7, "bob"));
    for (ms, clearing, income) in [(DAY_MS, 7, 0), (DAY_MS + 1, 0, 7)] {
        // Everything before `ms` has happened.
        shell.run_until(START.plus_ms(ms));
        let now = figures(&shell);
        assert_eq!((now.clearing_nano.nano(), now.lifetime_income_nano.nano()), (clearing, income), "{ms}");
        assert_eq!(now.available_nano.nano(), GRANT + income);
    }
}

#[test]
fn a_purse_that_is_too_short_gives_what_it_has_and_the_treasury_covers_the_rest() {
    let mut shell = one(|settings| settings.money.grant_nano = Money::from_nano(5_000_000));
    shell.forget_effects();
    shell.submit(income("k", 3_000_000, "bob"));
    shell.submit(Input::EpisodeStarted { episode: 1 });
    let held = shell.submit(Input::CallWanted {
        call: "c".to_owned(),
        agent: agent("ann"),
        episode: 1,
        model: "claude-haiku-5-5".to_owned(),
        input_tokens_max: 100,
        max_tokens: 100_000,
    });
    let Reply::Held { hold_nano, .. } = held else { panic!("{held:?}") };
    let (free, treasury) = (8_000_000 - hold_nano.nano(), shell.treasury());
    let paid = free.min(3_000_000);
    assert!(paid < 3_000_000, "the hold of {hold_nano} leaves too much for this test");
    assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
    let now = figures(&shell);
    assert_eq!((now.balance_nano, now.available_nano.nano()), (hold_nano, 0));
    assert_eq!(shell.treasury(), treasury - (3_000_000 - paid));
    assert_eq!((posted(&shell, "shortfall"), posted(&shell, "income/shop")), (0, 0));
    // The figures are those of an agent that never had it.
    assert_eq!(now.lifetime_income_nano, Money::ZERO);
}

#[test]
fn an_income_is_reversed_once() {
    let mut shell = one(|_| {});
    shell.submit(income("k", 7, "bob"));
    assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
    let rows = shell.rows.len();
    assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
    let conflict = Reply::Refused(Refusal::Conflict { key: "reverse/r".to_owned() });
    assert_eq!(shell.submit(reverse("r", "l")), conflict);
    let again = Reply::Refused(Refusal::Reversed { income: "k".to_owned() });
    assert_eq!(shell.submit(reverse("s", "k")), again);
    assert!(matches!(shell.submit(reverse("t", "none")), Reply::Refused(Refusal::Unknown { .. })));
    // The income's own key has its answer for good.
    assert_eq!(shell.submit(income("k", 7, "bob")), Reply::Done);
    assert_eq!((shell.rows.len(), figures(&shell).balance_nano.nano()), (rows, GRANT));
}

#[test]
fn a_reversal_without_a_reason_or_with_an_endless_one_is_refused() {
    let mut shell = one(|_| {});
    shell.submit(income("k", 7, "bob"));
    for (text, done) in [("", false), (" \n", false), (&*"x".repeat(501), false), (&*"x".repeat(500), true)] {
        let mut input = reverse("r", "k");
        let Input::ReverseIncome { reason, .. } = &mut input else { unreachable!() };
        text.clone_into(reason);
        assert_eq!(shell.submit(input) == Reply::Done, done, "{text:?}");
    }
}

#[test]
fn internal_income_that_is_reversed_leaves_the_purse_and_no_figure() {
    for wait in [0, 12 * DAY_MS] {
        let mut shell = one(|_| {});
        shell.submit(income("k", 7, "ann"));
        assert_eq!(figures(&shell).balance_nano.nano(), GRANT + 7);
        shell.run_until(START.plus_ms(wait));
        assert_eq!(shell.submit(reverse("r", "k")), Reply::Done);
        let now = figures(&shell);
        assert_eq!((now.lifetime_income_nano, now.lifetime_costs_nano), (Money::ZERO, Money::ZERO));
        assert_eq!(now.balance_nano.nano(), GRANT);
    }
}

fn dead() -> Shell {
    let mut shell = one(|_| {});
    shell.submit(income("alive", 7, "bob"));
    shell.submit(Input::Kill { agent: agent("ann"), reason: "test".to_owned(), actor: "ann".to_owned() });
    shell.run_until(START.plus_ms(1));
    assert!(matches!(shell.core.life(&agent("ann")), Some(Life::Dead { .. })));
    shell
}

#[test]
fn income_after_death_is_the_treasurys_and_listed_and_can_be_reversed() {
    let mut shell = dead();
    let treasury = shell.treasury();
    assert_eq!(shell.submit(income("late", 9, "bob")), Reply::Done);
    shell.run_until(START.plus_ms(2));
    assert!(shell.announced.iter().any(|line| line.contains("the treasury has it")), "{:?}", shell.announced);
    assert_eq!((shell.treasury(), figures(&shell).lifetime_income_nano.nano()), (treasury + 9, 7));
    assert_eq!(shell.submit(reverse("r", "late")), Reply::Done);
    assert_eq!((shell.treasury(), posted(&shell, "income/shop")), (treasury, -7));
}

#[test]
fn a_reversal_after_death_is_the_platforms_and_the_figures_of_the_dead_stand() {
    let mut shell = dead();
    let treasury = shell.treasury();
    assert_eq!(shell.submit(reverse("r", "alive")), Reply::Done);
    let now = figures(&shell);
    assert_eq!((now.balance_nano, now.lifetime_income_nano.nano()), (Money::ZERO, 7));
    assert_eq!(shell.treasury(), treasury - 7);
    assert_eq!((posted(&shell, "income/shop"), posted(&shell, "shortfall")), (0, 0));
}

#[test]
fn a_reversed_income_is_no_source_of_the_facts_and_the_agent_is_told_why() {
    let mut shell = one(|settings| {
        settings.cull.idle_under_nano = Money::DOLLAR;
        settings.schedule.first_ms = Some(START.plus_ms(11 * DAY_MS));
    });
    shell.run_until(START.plus_ms(5 * DAY_MS));
    shell.submit(income("k", 7, "bob"));
    shell.submit(income("l", 5, "bob"));
    shell.submit(reverse("r", "k"));
    let wake = shell.core.wake_text(&agent("ann"), shell.now).unwrap();
    assert!(wake.contains("from shop was reversed") && wake.contains("charged back"), "{wake}");
    shell.run_until(START.plus_ms(12 * DAY_MS));
    let culls = shell.culls();
    let facts = &culls[0].cases[&agent("ann")].facts;
    let sources: Vec<i64> = facts.income_sources.iter().map(|source| source.amount_nano.nano()).collect();
    assert_eq!((sources, facts.period_income_nano.nano()), (vec![5], 5));
}

#[test]
fn a_reversal_replays_to_the_same_state() {
    let mut shell = one(|settings| settings.money.clearing_ms = 5);
    shell.submit(income("k", 7, "bob"));
    shell.submit(income("l", 8, "bob"));
    shell.submit(reverse("r", "l"));
    shell.run_until(START.plus_ms(DAY_MS));
    shell.submit(reverse("s", "k"));
    let again = shell.crashed(shell.rows.len());
    assert_eq!(again.core.state_hash().unwrap(), shell.core.state_hash().unwrap());
}
