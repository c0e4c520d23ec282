//! Whatever the judge's model returns, at most the quota lives.
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

use std::sync::LazyLock;

use core_script::{Judge, START, Shell, cast, honest, settings};
use orchestrator::core::docket::DocketState;
use orchestrator::core::effect::Effect;
use policy::time::DAY_MS;
use proptest::prelude::*;

/// A docket at the moment before its judge is asked: five appellants, of whom two may live.
static BEFORE: LazyLock<Shell> = LazyLock::new(|| {
    let mut shell = Shell::new(settings(), cast());
    shell.run_until_asked();
    shell
});

fn lives_with(reply: String) -> (usize, DocketState) {
    let mut shell = BEFORE.clone();
    shell.judge = Judge::Says(reply);
    shell.run_until(START.plus_ms(12 * DAY_MS));
    let docket = shell.culls().pop().unwrap();
    (docket.cases.values().filter(|case| case.is_reprieved()).count(), docket.state)
}

/// The frame that the judge is going to be shown.
fn frame() -> String {
    let open = BEFORE.core.open_effects();
    let user = open.into_iter().find_map(|effect| match effect {
        Effect::AskJudge { user, .. } => Some(user),
        _ => None,
    });
    user.unwrap()
}

#[test]
fn everyone_at_a_hundred_is_still_the_quota() {
    let reply = honest(&frame());
    let promises = ["61", "60", "60", "50", "40"];
    let all = promises
        .iter()
        .fold(reply, |reply, promise| reply.replace(&format!("\"promise\":{promise}"), "\"promise\":100"));
    assert_eq!(all.matches("\"promise\":100").count(), 5, "{all}");
    assert_eq!(lives_with(all), (2, DocketState::Done));
}

#[test]
fn prose_fences_and_huge_numbers_spare_nobody() {
    let reply = honest(&frame());
    for wrong in [
        format!("```json\n{reply}\n```"),
        format!("Here you are: {reply}"),
        reply.replace("\"promise\":", "\"promise\":9"),
        reply.replace("\"key\":\"", "\"key\":\"x"),
        String::new(),
        "[]".to_owned(),
        "\u{0}".to_owned(),
    ] {
        assert_eq!(lives_with(wrong.clone()), (0, DocketState::Done), "{wrong}");
    }
    assert_eq!(lives_with(reply), (2, DocketState::Done));
}

fn hostile() -> impl Strategy<Value = String> {
    let reply = honest(&frame());
    let length = reply.len();
    prop_oneof![
        "\\PC{0,200}",
        Just(reply.clone()),
        // One byte of an honest reply, all ASCII, is another.
        (0..length, 0x20_u8..0x7f).prop_map(move |(at, byte)| {
            let mut bytes = reply.clone().into_bytes();
            bytes[at] = byte;
            String::from_utf8(bytes).unwrap()
        }),
        prop::collection::vec((1..30_u32, 0..200_u32), 0..8).prop_map(|entries| {
            let of = |(label, promise): &(u32, u32)| format!("\"A{label}\":{{\"promise\":{promise}}}");
            format!("{{{}}}", entries.iter().map(of).collect::<Vec<_>>().join(","))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn whatever_the_judge_returns_at_most_the_quota_lives(reply in hostile()) {
        let (lives, state) = lives_with(reply);
        prop_assert!(lives <= 2);
        prop_assert_eq!(state, DocketState::Done);
    }
}
