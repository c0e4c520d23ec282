use super::*;
use proptest::prelude::*;

fn appellant(created: u64, promise: u32) -> Appellant<u64> {
    Appellant {
        id: created,
        created,
        born: Instant::from_ms(0),
        promise,
        lifetime_profit: Money::ZERO,
        reprieves: 0,
    }
}

fn reprieved(docket: &[Appellant<u64>]) -> Vec<u64> {
    reprieved_under(docket, &QuotaRules::default())
}

fn reprieved_under(docket: &[Appellant<u64>], rules: &QuotaRules) -> Vec<u64> {
    let living = |decided: &&Decided<u64>| decided.decision == Decision::Reprieved;
    decide(docket, rules).decisions.iter().filter(living).map(|decided| decided.id).collect()
}

fn all_at(count: u64, promise: u32) -> Vec<Appellant<u64>> {
    (0..count).map(|created| appellant(created, promise)).collect()
}

#[test]
fn eight_at_a_hundred_spare_exactly_two() {
    assert_eq!(reprieved(&all_at(8, 100)), [0, 1]);
}

#[test]
fn the_quota_is_a_quarter_rounded_up() {
    let expected =
        [(0, 0), (1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (10, 3), (20, 5), (21, 6), (27, 7)];
    for (appellants, quota) in expected {
        assert_eq!(QuotaRules::default().quota(appellants), quota, "{appellants}");
    }
}

#[test]
fn a_lone_appellant_lives_at_forty_and_not_at_thirty_nine() {
    assert_eq!(reprieved(&[appellant(0, 40)]), [0]);
    assert_eq!(reprieved(&[appellant(0, 39)]), [] as [u64; 0]);
}

#[test]
fn those_that_are_barred_count_for_the_ceiling() {
    let mut docket = all_at(5, 10);
    docket[0].promise = 90;
    docket[1].promise = 80;
    let decisions = decide(&docket, &QuotaRules::default());
    assert_eq!((decisions.appellants, decisions.quota), (5, 2));
    assert_eq!(reprieved(&docket), [0, 1]);
}

#[test]
fn a_twice_reprieved_one_at_the_top_passes_its_place_on() {
    let mut docket = all_at(4, 50);
    docket[0].promise = 100;
    docket[0].reprieves = 2;
    docket[3].promise = 60;
    assert_eq!(reprieved(&docket), [3]);
    let first = &decide(&docket, &QuotaRules::default()).decisions[0];
    assert_eq!((first.reason, first.rank), (DecisionReason::ReprievedTooOften, None));
}

#[test]
fn too_many_reprieves_are_the_reason_before_a_low_promise() {
    let docket = [Appellant { reprieves: 2, ..appellant(0, 0) }];
    assert_eq!(
        decide(&docket, &QuotaRules::default()).decisions[0].reason,
        DecisionReason::ReprievedTooOften
    );
}

#[test]
fn ties_fall_to_the_higher_lifetime_then_the_older_then_the_earlier_created() {
    let mut docket = all_at(8, 70);
    docket[6].lifetime_profit = Money::from_nano(1);
    docket[4].born = Instant::from_ms(-1);
    assert_eq!(reprieved(&docket), [4, 6]);
    docket.remove(6);
    assert_eq!(reprieved(&docket), [0, 4]);
    let ranks: Vec<_> = decide(&docket, &QuotaRules::default())
        .decisions
        .iter()
        .map(|decided| decided.rank.unwrap())
        .collect();
    assert_eq!(ranks, [2, 3, 4, 5, 1, 6, 7]);
}

#[test]
fn no_reprieves_allowed_spares_nobody() {
    let none = QuotaRules::parse(QuotaSettings { max_reprieves: 0, ..QuotaSettings::default() }).unwrap();
    assert_eq!(reprieved_under(&all_at(8, 100), &none), [] as [u64; 0]);
}

#[test]
fn two_passes_double_floor_and_range() {
    let two = QuotaRules::parse(QuotaSettings { passes: 2, ..QuotaSettings::default() }).unwrap();
    assert_eq!((two.floor(), two.promise_max()), (80, 200));
    assert_eq!(reprieved_under(&[appellant(0, 80)], &two), [0]);
    assert_eq!(reprieved_under(&[appellant(0, 79)], &two), [] as [u64; 0]);
}

#[test]
fn settings_out_of_range_make_no_rules() {
    let refused = |settings| QuotaRules::parse(settings).unwrap_err().setting;
    let base = QuotaSettings::default();
    assert_eq!(refused(QuotaSettings { share_bps: 0, ..base.clone() }), "share_bps");
    assert_eq!(refused(QuotaSettings { share_bps: 10_001, ..base.clone() }), "share_bps");
    assert_eq!(refused(QuotaSettings { floor: 101, ..base.clone() }), "floor");
    assert_eq!(refused(QuotaSettings { passes: 0, ..base.clone() }), "passes");
    assert_eq!(refused(QuotaSettings { passes: 6, ..base.clone() }), "passes");
    let edge = QuotaSettings { share_bps: 10_000, floor: 100, max_reprieves: 0, passes: 5 };
    assert!(QuotaRules::parse(edge).is_ok());
}

#[test]
fn an_empty_docket_decides_nothing() {
    let decisions = decide::<u64>(&[], &QuotaRules::default());
    assert_eq!((decisions.appellants, decisions.quota, decisions.decisions.len()), (0, 0, 0));
}

prop_compose! {
    fn any_appellant()(
        promise in prop_oneof![38u32..43, 0u32..=500, Just(100)],
        lifetime in -1i64..2,
        born in -1i64..2,
        reprieves in 0u32..4,
    ) -> Appellant<u64> {
        let lifetime_profit = Money::from_nano(lifetime);
        Appellant { born: Instant::from_ms(born), lifetime_profit, reprieves, ..appellant(0, promise) }
    }
}

fn any_docket() -> impl Strategy<Value = (Vec<Appellant<u64>>, Vec<Appellant<u64>>)> {
    prop::collection::vec(any_appellant(), 0..60)
        .prop_map(|mut docket| {
            for (appellant, number) in docket.iter_mut().zip(0..) {
                (appellant.id, appellant.created) = (number, number);
            }
            docket
        })
        .prop_flat_map(|docket| (Just(docket.clone()), Just(docket).prop_shuffle()))
}

fn any_rules() -> impl Strategy<Value = QuotaRules> {
    (1u32..=10_000, 0u32..=100, 0u32..4, 1u32..=5).prop_map(|(share_bps, floor, max_reprieves, passes)| {
        QuotaRules::parse(QuotaSettings { share_bps, floor, max_reprieves, passes }).unwrap()
    })
}

proptest! {
    #[test]
    fn order_of_input_never_matters((docket, shuffled) in any_docket(), rules in any_rules()) {
        prop_assert_eq!(decide(&docket, &rules), decide(&shuffled, &rules));
    }

    #[test]
    fn the_quota_is_never_exceeded((docket, _) in any_docket(), rules in any_rules()) {
        let decisions = decide(&docket, &rules);
        let living = reprieved_under(&docket, &rules);
        prop_assert!(living.len() <= decisions.quota && decisions.quota <= docket.len());
        prop_assert!((decisions.quota as u128) * 10_000 < (docket.len() as u128) * u128::from(rules.settings().share_bps) + 10_000);
        prop_assert_eq!(decisions.decisions.len(), docket.len());
    }

    #[test]
    fn places_are_left_empty_only_for_want_of_the_worthy((docket, _) in any_docket(), rules in any_rules()) {
        let decisions = decide(&docket, &rules);
        let worthy = decisions.decisions.iter().filter(|decided| decided.rank.is_some()).count();
        prop_assert_eq!(reprieved_under(&docket, &rules).len(), worthy.min(decisions.quota));
    }

    #[test]
    fn nobody_reprieved_is_under_the_floor_or_spared_too_often((docket, _) in any_docket(), rules in any_rules()) {
        for id in reprieved_under(&docket, &rules) {
            let found = docket.iter().find(|appellant| appellant.id == id).unwrap();
            prop_assert!(found.promise >= rules.floor() && found.reprieves < rules.settings().max_reprieves);
        }
    }
}
