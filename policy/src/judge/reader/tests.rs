use super::*;
use crate::economy::quota::{Appellant, Decision, QuotaRules, decide};
use crate::{Instant, Money};
use proptest::prelude::*;

fn seats(count: usize) -> Vec<Seat> {
    let seat = |n| Seat { label: format!("A{n}"), id: format!("agent-{n}"), key: format!("key{n}") };
    (1..=count).map(seat).collect()
}

fn entry(n: usize, promise: &str) -> String {
    format!(
        r#""A{n}":{{"key":"key{n}","traction":1,"plan":2,"cost_discipline":3,"learning":4,"risk":5,"promise":{promise},"reasoning":"You sold little."}}"#
    )
}

fn reply(entries: &[String]) -> String {
    format!("{{{}}}", entries.join(","))
}

/// Reads a reply for one seat whose entry is the honest one with `from` replaced by `to`.
fn with(from: &str, to: &str) -> Result<Scores, Unreadable> {
    let honest = reply(&[entry(1, "50")]);
    assert!(honest.contains(from), "{from}");
    let mut found = read(&seats(1), honest.replace(from, to).as_bytes());
    assert_eq!(found.rejected, None, "{to}");
    found.judgements.remove(0).scores
}

#[test]
fn an_honest_reply_is_read() {
    let found = read(&seats(2), reply(&[entry(2, "0"), entry(1, "100")]).as_bytes());
    assert_eq!((found.rejected, found.ignored_labels.len()), (None, 0));
    let first = found.judgements[0].scores.clone().unwrap();
    assert_eq!(
        (first.traction, first.plan, first.cost_discipline, first.learning, first.risk),
        (1, 2, 3, 4, 5)
    );
    assert_eq!(first.promise, 100);
    assert_eq!(found.judgements[1].promise(), 0);
    assert_eq!(found.judgements[1].reasoning(), "You sold little.");
}

#[test]
fn each_departure_makes_its_entry_unreadable() {
    let not_integer = |field| Err(Unreadable::NotAnInteger { field });
    assert_eq!(with("\"promise\":50", "\"promise\":50.0"), not_integer("promise"));
    assert_eq!(with("\"promise\":50", "\"promise\":5e1"), not_integer("promise"));
    assert_eq!(with("\"promise\":50", "\"promise\":\"50\""), not_integer("promise"));
    assert_eq!(with("\"promise\":50", "\"promise\":-1"), not_integer("promise"));
    assert_eq!(with("\"promise\":50", "\"promise\":-0"), not_integer("promise"));
    assert_eq!(with("\"promise\":50", "\"promise\":null"), not_integer("promise"));
    assert_eq!(with("\"risk\":5", "\"risk\":true"), not_integer("risk"));
    let over = |field, max| Err(Unreadable::OutOfRange { field, max });
    assert_eq!(with("\"promise\":50", "\"promise\":101"), over("promise", 100));
    assert_eq!(with("\"promise\":50", "\"promise\":18446744073709551666"), over("promise", 100));
    assert_eq!(with("\"traction\":1", "\"traction\":6"), over("traction", 5));
    assert_eq!(with("\"key\":\"key1\"", "\"key\":\"key2\""), Err(Unreadable::WrongKey));
    assert_eq!(with("\"key\":\"key1\"", "\"key\":1"), Err(Unreadable::NotText { field: "key" }));
    assert_eq!(with("\"key\":\"key1\",", ""), Err(Unreadable::Missing { field: "key" }));
    assert_eq!(with("\"plan\":2,", ""), Err(Unreadable::Missing { field: "plan" }));
    assert_eq!(with("\"plan\":2,", "\"plan\":2,\"mercy\":1,"), Err(Unreadable::Extra));
    assert_eq!(with("\"You sold little.\"", "7"), Err(Unreadable::NotText { field: "reasoning" }));
    let listed = read(&seats(1), br#"{"A1":[1]}"#);
    assert_eq!(listed.judgements[0].scores, Err(Unreadable::NotAnObject));
}

#[test]
fn reasoning_has_one_to_seven_hundred_characters_that_show() {
    let long = |count: usize| with("You sold little.", &"é".repeat(count));
    assert!(long(700).is_ok());
    assert_eq!(long(701), Err(Unreadable::TooLong { chars: 701 }));
    assert_eq!(long(0), Err(Unreadable::Blank));
    assert_eq!(with("You sold little.", "\\u200b \\ufeff"), Err(Unreadable::Blank));
}

#[test]
fn reasoning_is_sanitised() {
    let scores = with("You sold little.", "Sell\\u200b ‹more›").unwrap();
    assert_eq!(scores.reasoning.as_str(), "Sell <more>");
    assert_eq!(scores.reasoning.escaped(), "Sell &lt;more&gt;");
}

#[test]
fn whole_replies_are_rejected_for_what_is_no_single_object() {
    let honest = reply(&[entry(1, "50")]);
    let fenced = format!("```json\n{honest}\n```");
    let prose = format!("Here you are: {honest}");
    let after = format!("{honest}.");
    let twice = format!("{honest}{honest}");
    let label_twice = reply(&[entry(1, "50"), entry(1, "50")]);
    let deep_twice = reply(&[entry(1, "50"), r#""x":{"y":[{"z":1,"z":2}]}"#.to_owned()]);
    for text in [&fenced, &prose, &after, &twice, &label_twice, &deep_twice, "", "[]", "null", "\u{feff}{}"] {
        let found = read(&seats(1), text.as_bytes());
        assert!(found.rejected.is_some(), "{text}");
        assert_eq!(found.judgements[0].scores, Err(Unreadable::Rejected));
        assert_eq!(
            (found.judgements[0].promise(), found.judgements[0].reasoning()),
            (0, UNREADABLE_REASONING)
        );
    }
    assert_eq!(read(&seats(1), format!("\n{honest}\n").as_bytes()).rejected, None);
}

#[test]
fn an_unreadable_neighbour_changes_no_score() {
    let found = read(&seats(3), reply(&[entry(1, "50"), entry(2, "5000")]).as_bytes());
    assert_eq!(found.judgements[0].promise(), 50);
    assert_eq!(found.judgements[1].scores, Err(Unreadable::OutOfRange { field: "promise", max: 100 }));
    assert_eq!(found.judgements[2].scores, Err(Unreadable::Absent));
}

#[test]
fn labels_of_strangers_are_ignored_and_recorded() {
    let found = read(&seats(1), reply(&[entry(1, "50"), entry(9, "100"), "\"a1\":1".to_owned()]).as_bytes());
    let ignored: Vec<&str> = found.ignored_labels.iter().map(Clean::as_str).collect();
    assert_eq!(ignored, ["A9", "a1"]);
    assert_eq!(found.judgements.len(), 1);
}

/// How many of a docket live if the judge answers `reply`, and how many may.
fn living(count: usize, reply: &[u8]) -> (usize, usize) {
    let judgements = read(&seats(count), reply).judgements;
    let docket: Vec<_> = judgements
        .iter()
        .zip(0..)
        .map(|(judgement, created)| Appellant {
            id: judgement.id.clone(),
            created,
            born: Instant::from_ms(0),
            promise: judgement.promise(),
            lifetime_profit: Money::ZERO,
            reprieves: 0,
        })
        .collect();
    let decisions = decide(&docket, &QuotaRules::default());
    let reprieved =
        decisions.decisions.iter().filter(|decided| decided.decision == Decision::Reprieved).count();
    (reprieved, count.div_ceil(4))
}

/// Replies near to honest ones: entries for any label, any of their parts broken, bytes round them.
fn any_reply() -> impl Strategy<Value = Vec<u8>> {
    let promise = prop_oneof![
        4 => (0u32..=100).prop_map(|promise| promise.to_string()),
        1 => prop::sample::select(vec!["101", "1e2", "\"100\"", "-1", "99999999999999999999", "null", "{}"])
            .prop_map(str::to_owned),
    ];
    let entries = prop::collection::vec((1usize..16, promise), 0..24);
    let near = (entries, prop::option::weighted(0.1, any::<u8>())).prop_map(|(entries, stray)| {
        let entries: Vec<String> = entries.iter().map(|(n, promise)| entry(*n, promise)).collect();
        let mut bytes = reply(&entries).into_bytes();
        bytes.extend(stray);
        bytes
    });
    prop_oneof![4 => near, 1 => any::<Vec<u8>>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_the_judge_returns_at_most_the_quota_lives(count in 0usize..13, reply in any_reply()) {
        let (reprieved, quota) = living(count, &reply);
        prop_assert!(reprieved <= quota);
    }

    #[test]
    fn every_seat_has_one_judgement_in_its_order(count in 0usize..13, reply in any_reply()) {
        let order = seats(count);
        let found = read(&order, &reply);
        let labels: Vec<&str> = found.judgements.iter().map(|judgement| judgement.label.as_str()).collect();
        prop_assert_eq!(labels, order.iter().map(|seat| seat.label.as_str()).collect::<Vec<_>>());
        prop_assert!(found.judgements.iter().all(|judgement| judgement.promise() <= 100));
    }
}
