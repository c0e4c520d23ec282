//! The ledger against a model, and calls at once against one purse.
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

use std::collections::BTreeMap;

use core_script::{Part, START, Shell, agent, used};
use orchestrator::core::input::{EpisodeEnd, Input, Usage};
use orchestrator::core::ledger::{Account, Ledger, LedgerError, Posting};
use orchestrator::core::reply::{Refusal, Reply};
use orchestrator::core::settings::Settings;
use policy::{Instant, Money};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Act {
    Transfer { from: usize, to: usize, amount: i64 },
    Open { hold: u8, account: usize, amount: i64 },
    Release { hold: u8 },
}

fn accounts() -> Vec<Account> {
    vec![
        Account::External,
        Account::Treasury,
        Account::Agent(agent("ann")),
        Account::Case(1, agent("ann")),
        Account::Provider("p".to_owned()),
        Account::Income("shop".to_owned()),
        Account::Clearing("shop".to_owned()),
        Account::Shortfall,
    ]
}

/// Those whose balance may be below zero.
const MAY_OWE: [usize; 3] = [0, 5, 7];

fn act() -> impl Strategy<Value = Act> {
    let amount = prop_oneof![-2_i64..=20, Just(i64::MAX), Just(i64::MIN), Just(i64::MAX / 2)];
    let account = 0..8_usize;
    prop_oneof![
        (account.clone(), account.clone(), amount.clone()).prop_map(|(from, to, amount)| Act::Transfer {
            from,
            to,
            amount
        }),
        (0..4_u8, account, amount).prop_map(|(hold, account, amount)| Act::Open { hold, account, amount }),
        (0..4_u8).prop_map(|hold| Act::Release { hold }),
    ]
}

/// What a ledger must do, in 128 bits and without care for speed.
#[derive(Default)]
struct Model {
    posted: [i128; 8],
    holds: BTreeMap<u8, (usize, i128)>,
}

impl Model {
    fn held(&self, account: usize) -> i128 {
        self.holds.values().filter(|(whose, _)| *whose == account).map(|(_, amount)| amount).sum()
    }

    fn affords(&self, account: usize, amount: i128) -> bool {
        amount >= 0 && (MAY_OWE.contains(&account) || self.posted[account] - self.held(account) >= amount)
    }

    fn fits(value: i128) -> bool {
        i64::try_from(value).is_ok()
    }

    fn apply(&mut self, act: &Act) -> bool {
        match *act {
            Act::Transfer { from, to, amount } => {
                let amount = i128::from(amount);
                let fits = from == to
                    || (Self::fits(self.posted[from] - amount) && Self::fits(self.posted[to] + amount));
                let allowed = self.affords(from, amount) && fits;
                if allowed && from != to {
                    self.posted[from] -= amount;
                    self.posted[to] += amount;
                }
                allowed
            }
            Act::Open { hold, account, amount } => {
                let amount = i128::from(amount);
                let allowed = !self.holds.contains_key(&hold)
                    && self.affords(account, amount)
                    && Self::fits(self.held(account) + amount);
                if allowed {
                    self.holds.insert(hold, (account, amount));
                }
                allowed
            }
            Act::Release { hold } => self.holds.remove(&hold).is_some(),
        }
    }
}

fn apply(ledger: &mut Ledger, act: &Act) -> Result<(), LedgerError> {
    let now = Instant::from_ms(0);
    let account = |at: usize| accounts()[at].clone();
    match *act {
        Act::Transfer { from, to, amount } => {
            let (from, to, amount_nano) = (account(from), account(to), Money::from_nano(amount));
            ledger
                .transfer(now, Posting { from, to, amount_nano, kind: "test", reference: String::new() })
                .map(|_| ())
        }
        Act::Open { hold, account: whose, amount } => {
            ledger.open(now, &hold.to_string(), account(whose), Money::from_nano(amount))
        }
        Act::Release { hold } => ledger.release(&hold.to_string()).map(|_| ()),
    }
}

proptest! {
    #[test]
    fn the_ledger_does_what_the_model_does_at_every_prefix(acts in prop::collection::vec(act(), 1..60)) {
        let (mut ledger, mut model) = (Ledger::default(), Model::default());
        for act in &acts {
            let allowed = model.apply(act);
            prop_assert_eq!(apply(&mut ledger, act).is_ok(), allowed, "{:?}", act);
            prop_assert_eq!(ledger.broken(), None);
            for (at, account) in accounts().iter().enumerate() {
                let balance = ledger.balance(account);
                prop_assert_eq!(i128::from(balance.posted_nano.nano()), model.posted[at]);
                prop_assert_eq!(i128::from(balance.held_nano.nano()), model.held(at));
            }
        }
    }
}

/// One agent in an episode, with `nano` to its name.
fn purse(nano: i64) -> Shell {
    let mut settings = Settings::default();
    settings.money.grant_nano = Money::from_nano(nano);
    settings.models.prompt_tokens_min = 1;
    settings.lives.starving = false;
    let mut shell = Shell::new(settings, BTreeMap::from([("ann".to_owned(), Part::default())]));
    shell.forget_effects();
    shell.submit(Input::EpisodeStarted { episode: 1 });
    shell
}

fn wanted(call: &str, input_tokens_max: u64, max_tokens: u64) -> Input {
    Input::CallWanted {
        call: call.to_owned(),
        agent: agent("ann"),
        episode: 1,
        model: "claude-haiku-5-5".to_owned(),
        input_tokens_max,
        max_tokens,
    }
}

fn settled(call: &str, usage: Usage) -> Input {
    Input::CallSettled { call: call.to_owned(), usage, estimated: false }
}

/// Haiku's rates below 100,000 tokens of prompt, in nano-dollars a token: the dearest input, plain input, output.
const DEAREST: i64 = 200;
const PLAIN: i64 = 100;
const OUTPUT: i64 = 500;

#[test]
fn a_call_is_held_at_its_bound_and_settled_at_its_cost() {
    let mut shell = purse(1_000_000_000);
    let bound = 1_000 * DEAREST + 100 * OUTPUT;
    let held = Reply::Held { hold_nano: Money::from_nano(bound), max_tokens: 100 };
    assert_eq!(shell.submit(wanted("c", 1_000, 100)), held);
    assert_eq!(shell.core.balance(&agent("ann")).available().nano(), 1_000_000_000 - bound);
    let usage = Usage { input_tokens: 900, output_tokens: 10, ..Usage::default() };
    assert_eq!(shell.submit(settled("c", usage)), Reply::Done);
    let balance = shell.core.balance(&agent("ann"));
    assert_eq!(balance.posted_nano.nano(), 1_000_000_000 - 900 * PLAIN - 10 * OUTPUT);
    assert_eq!(balance.held_nano, Money::ZERO);
}

#[test]
fn the_same_key_gives_the_same_answer_and_another_body_a_conflict() {
    let mut shell = purse(1_000_000_000);
    let first = shell.submit(wanted("c", 1_000, 100));
    assert_eq!(shell.submit(wanted("c", 1_000, 100)), first);
    assert!(matches!(shell.submit(wanted("c", 1_000, 101)), Reply::Refused(Refusal::Conflict { .. })));
    assert_eq!(shell.submit(settled("c", used())), Reply::Done);
    let after = shell.core.balance(&agent("ann"));
    assert_eq!(shell.submit(settled("c", used())), Reply::Done);
    let voided = Input::CallVoided { call: "c".to_owned(), why: "late".to_owned() };
    assert!(matches!(shell.submit(voided), Reply::Refused(Refusal::Conflict { .. })));
    assert_eq!(shell.submit(wanted("c", 1_000, 100)), first);
    assert_eq!(shell.core.balance(&agent("ann")), after);
    assert_eq!(shell.core.open_calls(), 0);
}

#[test]
fn a_voided_call_gives_everything_back() {
    let mut shell = purse(1_000_000_000);
    shell.submit(wanted("c", 1_000, 100));
    let voided = Input::CallVoided { call: "c".to_owned(), why: "never sent".to_owned() };
    assert_eq!(shell.submit(voided), Reply::Done);
    assert_eq!(shell.core.balance(&agent("ann")).available().nano(), 1_000_000_000);
}

#[test]
fn what_a_call_costs_beyond_its_hold_is_the_platforms() {
    let mut shell = purse(1_000_000_000);
    let treasury = shell.treasury();
    shell.submit(wanted("c", 1_000, 100));
    let bound = 1_000 * DEAREST + 100 * OUTPUT;
    let usage = Usage { input_tokens: 10_000, output_tokens: 100, ..Usage::default() };
    let cost = 10_000 * PLAIN + 100 * OUTPUT;
    shell.submit(settled("c", usage));
    assert_eq!(shell.core.balance(&agent("ann")).posted_nano.nano(), 1_000_000_000 - bound);
    assert_eq!(treasury - shell.treasury(), cost - bound);
    let figures = shell.core.figures(&agent("ann"), shell.now).unwrap();
    assert_eq!(figures.lifetime_costs_nano.nano(), bound);
}

#[test]
fn a_short_purse_lowers_the_token_limit_and_then_refuses() {
    let prompt = 1_000 * DEAREST;
    let mut shell = purse(prompt + 300 * OUTPUT);
    let held = Reply::Held { hold_nano: Money::from_nano(prompt + 300 * OUTPUT), max_tokens: 300 };
    assert_eq!(shell.submit(wanted("c", 1_000, 4_000)), held);
    assert!(matches!(shell.submit(wanted("d", 1_000, 4_000)), Reply::Refused(Refusal::MoneyHeld { .. })));
    let mut poor = purse(prompt + 255 * OUTPUT);
    assert!(matches!(poor.submit(wanted("c", 1_000, 4_000)), Reply::Refused(Refusal::NoMoney { .. })));
    assert!(matches!(poor.submit(wanted("c", 1_000, 255)), Reply::Held { .. }));
}

#[test]
fn an_episode_spends_no_more_than_its_limit() {
    let mut shell = purse(5_000_000_000);
    let limit = shell.core.settings().lives.episode_spend_nano.nano();
    let mut count = 0;
    let refused = loop {
        match shell.submit(wanted(&count.to_string(), 99_000, 100_000)) {
            Reply::Held { .. } => count += 1,
            other => break other,
        }
    };
    assert_eq!(refused, Reply::Refused(Refusal::SpendLimit));
    let held = shell.core.balance(&agent("ann")).held_nano.nano();
    assert!(held <= limit && held > limit / 2, "{held}");
}

#[test]
fn only_priced_models_of_the_menu_are_called_and_only_in_the_episode() {
    let mut shell = purse(5_000_000_000);
    let call = |model: &str, episode| Input::CallWanted {
        call: format!("{model}/{episode}"),
        agent: agent("ann"),
        episode,
        model: model.to_owned(),
        input_tokens_max: 10,
        max_tokens: 10,
    };
    let refusal = |reply| match reply {
        Reply::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    for model in ["claude-opus-5-5", "gpt-9"] {
        assert!(matches!(refusal(shell.submit(call(model, 1))), Refusal::ModelNotOnMenu { .. }));
    }
    assert!(matches!(refusal(shell.submit(call("claude-haiku-5-5", 2))), Refusal::WrongState { .. }));
    assert!(matches!(shell.submit(call("claude-haiku-5-5", 1)), Reply::Held { .. }));
    shell.submit(Input::EpisodeEnded { episode: 1, end: EpisodeEnd::Exit { code: 0 } });
    assert!(matches!(refusal(shell.submit(call("claude-sonnet-5-5", 1))), Refusal::WrongState { .. }));
}

#[test]
fn a_call_that_nobody_reports_is_charged_its_bound_at_its_time_limit() {
    let mut shell = purse(1_000_000_000);
    shell.submit(wanted("c", 1_000, 100));
    let limit = START.plus_ms(shell.core.settings().money.call_limit_ms);
    shell.run_until(limit);
    assert_eq!(shell.core.open_calls(), 1);
    shell.run_until(limit.plus_ms(1));
    assert_eq!(shell.core.open_calls(), 0);
    let bound = 1_000 * DEAREST + 100 * OUTPUT;
    assert_eq!(shell.core.balance(&agent("ann")).posted_nano.nano(), 1_000_000_000 - bound);
    assert_eq!(shell.core.unknown_outcomes().collect::<Vec<_>>(), [("c", Money::from_nano(bound))]);
    assert!(matches!(shell.submit(settled("c", used())), Reply::Refused(Refusal::Unknown { .. })));
}

#[test]
fn income_clears_after_its_span_and_counts_then() {
    let mut settings = Settings::default();
    settings.money.clearing_ms = 1_000;
    let mut shell = Shell::new(settings, BTreeMap::from([("ann".to_owned(), Part::default())]));
    let income = |amount, payer: &str| Input::Income {
        key: "k".to_owned(),
        agent: agent("ann"),
        source: "shop".to_owned(),
        project: "p".to_owned(),
        payer: payer.to_owned(),
        amount_nano: Money::from_nano(amount),
    };
    for amount in [0, -1, i64::MAX, i64::MIN] {
        assert!(
            matches!(shell.submit(income(amount, "bob")), Reply::Refused(Refusal::Invalid { .. })),
            "{amount}"
        );
    }
    assert_eq!(shell.submit(income(7, "bob")), Reply::Done);
    assert_eq!(shell.submit(income(7, "bob")), Reply::Done);
    assert!(matches!(shell.submit(income(8, "bob")), Reply::Refused(Refusal::Conflict { .. })));
    let figures = |shell: &Shell| shell.core.figures(&agent("ann"), shell.now).unwrap();
    assert_eq!((figures(&shell).clearing_nano.nano(), figures(&shell).lifetime_income_nano.nano()), (7, 0));
    assert_eq!(figures(&shell).available_nano.nano(), 5_000_000_000);
    shell.run_until(START.plus_ms(1_001));
    assert_eq!((figures(&shell).clearing_nano.nano(), figures(&shell).lifetime_income_nano.nano()), (0, 7));
    assert_eq!(figures(&shell).available_nano.nano(), 5_000_000_007);
}

#[derive(Debug, Clone)]
enum Deed {
    Want { call: u8, input: u64, output: u64 },
    Settle { call: u8, input: u64, output: u64 },
    Void { call: u8 },
    Pass { ms: i64 },
}

fn deed() -> impl Strategy<Value = Deed> {
    let tokens = prop_oneof![0..2_000_u64, Just(u64::MAX), Just(150_000)];
    prop_oneof![
        4 => (0..12_u8, tokens.clone(), tokens.clone())
            .prop_map(|(call, input, output)| Deed::Want { call, input, output }),
        3 => (0..12_u8, tokens.clone(), tokens).prop_map(|(call, input, output)| Deed::Settle { call, input, output }),
        1 => (0..12_u8).prop_map(|call| Deed::Void { call }),
        1 => (0..2_000_000_i64).prop_map(|ms| Deed::Pass { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn no_order_of_calls_overspends_and_the_books_close(deeds in prop::collection::vec(deed(), 1..60)) {
        const GRANT: i64 = 2_000_000;
        let mut shell = purse(GRANT);
        for deed in deeds {
            // Submitting checks the ledger's promises each time.
            match deed {
                Deed::Want { call, input, output } => {
                    shell.submit(wanted(&call.to_string(), input, output));
                }
                Deed::Settle { call, input, output } => {
                    let usage = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
                    shell.submit(settled(&call.to_string(), usage));
                }
                Deed::Void { call } => {
                    shell.submit(Input::CallVoided { call: call.to_string(), why: "test".to_owned() });
                }
                Deed::Pass { ms } => shell.run_until(shell.now.plus_ms(ms)),
            }
            let balance = shell.core.balance(&agent("ann"));
            prop_assert!(!balance.available().is_negative());
            let figures = shell.core.figures(&agent("ann"), shell.now).unwrap();
            prop_assert_eq!(balance.posted_nano.nano(), GRANT - figures.lifetime_costs_nano.nano());
        }
    }
}
