use super::*;
use proptest::prelude::*;

const AT: Instant = Instant::from_ms(100 * DAY_MS);
const TEN_DAYS: i64 = 10 * DAY_MS;

/// An eligible agent with this income and these costs, in nano-dollars.
fn agent(created: u64, income: i64, costs: i64) -> Figures<u64> {
    Figures {
        id: created,
        created,
        born: Instant::from_ms(0),
        state: LifeState::Alive,
        exempt: false,
        paused: false,
        period_income: Money::from_nano(income),
        period_costs: Money::from_nano(costs),
        lifetime_profit: Money::ZERO,
    }
}

/// Agents over the idle line, the first with the lowest profit.
fn earners(count: u64) -> Vec<Figures<u64>> {
    (0..count).map(|n| agent(n, 1_000_000_000 + i64::try_from(n).unwrap(), 0)).collect()
}

fn run(agents: &[Figures<u64>]) -> Cull<u64> {
    cull(AT, &CullRules::default(), agents)
}

#[test]
fn the_published_thirty_give_six_idle_and_four_on_performance() {
    let mut agents = earners(24);
    agents.extend((24..30).map(|n| agent(n, 999_999_999, 0)));
    let found = run(&agents);
    assert_eq!(found.eligible.len(), 30);
    assert_eq!(found.idle, [24, 25, 26, 27, 28, 29]);
    assert_eq!((found.ranked, found.performance_ran), (24, true));
    assert_eq!(found.performance, [0, 1, 2, 3]);
}

#[test]
fn exactly_ten_days_is_not_older() {
    let mut young = agent(0, 0, 0);
    young.born = AT.plus_ms(-TEN_DAYS);
    assert!(run(std::slice::from_ref(&young)).eligible.is_empty());
    young.born = AT.plus_ms(-TEN_DAYS - 1);
    assert_eq!(run(&[young]).eligible, [0]);
}

#[test]
fn only_the_living_unexempt_and_unpaused_are_eligible() {
    let plain = agent(0, 0, 0);
    let others = [
        Figures { state: LifeState::Condemned, ..agent(1, 0, 0) },
        Figures { state: LifeState::Dead, ..agent(2, 0, 0) },
        Figures { exempt: true, ..agent(3, 0, 0) },
        Figures { paused: true, ..agent(4, 0, 0) },
    ];
    let agents: Vec<_> = others.into_iter().chain([plain]).collect();
    assert_eq!(run(&agents).eligible, [0]);
}

#[test]
fn the_idle_line_is_income_alone_and_less_than_a_dollar() {
    let cases = [
        (1_200_000_000, 30_000_000_000, false),
        (0, 0, true),
        (1_000_000_000, 0, false),
        (999_999_999, 0, true),
        (-5, 0, true),
    ];
    for (income, costs, idle) in cases {
        assert_eq!(run(&[agent(0, income, costs)]).idle.len() == 1, idle, "{income} {costs}");
    }
}

#[test]
fn performance_needs_ten_that_the_idle_half_left() {
    let mut agents = earners(9);
    agents.extend((9..30).map(|n| agent(n, 0, 0)));
    let found = run(&agents);
    assert_eq!((found.ranked, found.performance_ran, found.performance.len()), (9, false, 0));
    let found = run(&earners(10));
    assert_eq!((found.ranked, found.performance_ran, found.performance.len()), (10, true, 2));
}

#[test]
fn the_share_is_rounded_down() {
    for (ranked, takes) in [(10, 2), (14, 2), (15, 3), (19, 3), (24, 4), (25, 5)] {
        assert_eq!(run(&earners(ranked)).performance.len(), takes, "{ranked}");
    }
}

#[test]
fn performance_can_be_switched_off() {
    let off = CullRules::parse(CullSettings { performance: false, ..CullSettings::default() }).unwrap();
    let found = cull(AT, &off, &earners(30));
    assert_eq!((found.ranked, found.performance_ran, found.performance.len()), (30, false, 0));
}

#[test]
fn ties_fall_to_the_lower_lifetime_then_the_younger_then_the_later_created() {
    let rules =
        CullRules::parse(CullSettings { performance_share_bps: BPS, ..CullSettings::default() }).unwrap();
    let mut agents: Vec<_> = (0..10).map(|n| agent(n, 2_000_000_000, 1_000_000_000)).collect();
    agents[3].lifetime_profit = Money::from_nano(-1);
    agents[5].born = Instant::from_ms(1);
    agents[7].period_costs = Money::from_nano(1_000_000_001);
    let found = cull(AT, &rules, &agents);
    assert_eq!(found.performance, [7, 3, 5, 9, 8, 6, 4, 2, 1, 0]);
}

#[test]
fn profits_beyond_64_bits_are_compared_exactly() {
    let mut agents = earners(10);
    agents[4] = agent(4, i64::MAX, i64::MIN);
    agents[6] = agent(6, i64::MAX, i64::MIN + 1);
    agents[8] = agent(8, 1_000_000_000, i64::MAX);
    let rules =
        CullRules::parse(CullSettings { performance_share_bps: BPS, ..CullSettings::default() }).unwrap();
    let found = cull(AT, &rules, &agents).performance;
    assert_eq!((found[0], found[8], found[9]), (8, 6, 4));
}

#[test]
fn settings_out_of_range_make_no_rules() {
    let refused = |settings| CullRules::parse(settings).unwrap_err().setting;
    assert_eq!(refused(CullSettings { period_days: 0, ..CullSettings::default() }), "period_days");
    let share = CullSettings { performance_share_bps: BPS + 1, ..CullSettings::default() };
    assert_eq!(refused(share), "performance_share_bps");
    let line = CullSettings { idle_under_nano: Money::from_nano(-1), ..CullSettings::default() };
    assert_eq!(refused(line), "idle_under_nano");
    let edge = CullSettings { period_days: 36_500, performance_share_bps: 0, ..CullSettings::default() };
    assert!(CullRules::parse(edge).is_ok());
}

#[test]
fn the_condemned_carry_their_reason() {
    let mut agents = earners(10);
    agents.push(agent(10, 0, 0));
    let expected = [(10, Reason::Idle), (0, Reason::Performance), (1, Reason::Performance)];
    assert_eq!(run(&agents).condemned(), expected);
}

prop_compose! {
    /// Few distinct values, so that ties and boundaries come up.
    fn any_agent()(
        income in prop_oneof![0i64..3, 999_999_999i64..1_000_000_002, any::<i64>()],
        costs in prop_oneof![0i64..3, any::<i64>()],
        lifetime in -1i64..2,
        born in prop_oneof![Just(0), 90 * DAY_MS - 1..90 * DAY_MS + 2, any::<i64>()],
        state in prop_oneof![8 => Just(LifeState::Alive), 1 => Just(LifeState::Condemned), 1 => Just(LifeState::Dead)],
        exempt in prop::bool::weighted(0.1),
        paused in prop::bool::weighted(0.1),
    ) -> Figures<u64> {
        let lifetime_profit = Money::from_nano(lifetime);
        let born = Instant::from_ms(born);
        Figures { born, state, exempt, paused, lifetime_profit, ..agent(0, income, costs) }
    }
}

fn any_field() -> impl Strategy<Value = (Vec<Figures<u64>>, Vec<Figures<u64>>)> {
    prop::collection::vec(any_agent(), 0..40)
        .prop_map(|mut agents| {
            for (agent, number) in agents.iter_mut().zip(0..) {
                (agent.id, agent.created) = (number, number);
            }
            agents
        })
        .prop_flat_map(|agents| (Just(agents.clone()), Just(agents).prop_shuffle()))
}

proptest! {
    #[test]
    fn order_of_input_never_matters((agents, shuffled) in any_field()) {
        prop_assert_eq!(run(&agents), run(&shuffled));
    }

    #[test]
    fn every_part_is_of_the_eligible_and_none_is_condemned_twice((agents, _) in any_field()) {
        let found = run(&agents);
        let mut condemned: Vec<u64> = found.condemned().into_iter().map(|(id, _)| id).collect();
        prop_assert_eq!(found.ranked + found.idle.len(), found.eligible.len());
        prop_assert!(condemned.iter().all(|id| found.eligible.contains(id)));
        condemned.sort_unstable();
        let count = condemned.len();
        condemned.dedup();
        prop_assert_eq!(condemned.len(), count);
        prop_assert!(found.performance.len() * 5 <= found.ranked);
    }

    #[test]
    fn nobody_safe_did_worse_than_somebody_condemned_on_performance((agents, _) in any_field()) {
        let found = run(&agents);
        let profit = |id: u64| agents.iter().find(|agent| agent.id == id).unwrap().period_profit_nano();
        let safe = found.eligible.iter().filter(|id| !found.idle.contains(id) && !found.performance.contains(id));
        let worst_safe = safe.map(|&id| profit(id)).min().unwrap_or(i128::MAX);
        prop_assert!(found.performance.iter().all(|&id| profit(id) <= worst_safe));
    }
}
