use super::*;
use proptest::prelude::*;

const NOVEMBER_2026: Instant = Instant::from_ms(1_796_068_958_042);

fn nano(nano: i64) -> Money {
    Money::from_nano(nano)
}

fn row(model: &str) -> PriceRow {
    PriceBook::default().at(model, NOVEMBER_2026).unwrap().clone()
}

#[test]
fn the_default_book_is_in_order() {
    let book = PriceBook::default();
    assert_eq!(PriceBook::parse(book.rows.clone()), Ok(book));
}

#[test]
fn prices_are_those_in_force() {
    let book = PriceBook::default();
    let read = |now| book.at("claude-sonnet-5-5", now).unwrap().tiers[0].cache_read_nano;
    assert_eq!(read(OCTOBER_2026.plus_ms(-1)), 200);
    assert_eq!(read(OCTOBER_2026), 100);
    assert_eq!(book.at("claude-haiku-5-5", OCTOBER_2026.plus_ms(-1)), None);
}

#[test]
fn a_model_without_a_price_has_no_row() {
    assert_eq!(PriceBook::default().at("gpt-mystery", NOVEMBER_2026), None);
}

#[test]
fn published_rates_are_whole_nano_dollars_a_token() {
    let sonnet = row("claude-sonnet-5-5").tiers[0];
    let rates = [sonnet.input_nano, sonnet.output_nano, sonnet.cache_read_nano];
    assert_eq!(rates, [2_000, 10_000, 100]);
    assert_eq!((sonnet.cache_write_5m_nano, sonnet.cache_write_1h_nano), (2_500, 4_000));
    let long = row("claude-haiku-5-5").tiers[1];
    assert_eq!((long.input_nano, long.cache_write_5m_nano, long.cache_write_1h_nano), (500, 625, 1_000));
}

#[test]
fn a_tier_applies_to_every_token_of_the_call() {
    let haiku = row("claude-haiku-5-5");
    let at = Usage { input_tokens: 60_000, cache_read_tokens: 40_000, output_tokens: 10, ..Usage::default() };
    let over = Usage { cache_read_tokens: 40_001, ..at };
    assert_eq!(haiku.cost(at), Some(nano(60_000 * 100 + 40_000 * 10 + 10 * 500)));
    assert_eq!(haiku.cost(over), Some(nano(60_000 * 500 + 40_001 * 50 + 10 * 2_500)));
}

#[test]
fn the_bound_takes_the_dearest_rate_that_the_prompt_can_trigger() {
    let haiku = row("claude-haiku-5-5");
    assert_eq!(haiku.bound(100_000, 10), Some(nano(100_000 * 200 + 10 * 500)));
    assert_eq!(haiku.bound(100_001, 10), Some(nano(100_001 * 1_000 + 10 * 2_500)));
    assert_eq!(haiku.bound(u64::MAX, 0), None);
}

#[test]
fn a_call_that_the_purse_can_pay_is_left_alone() {
    let all = affordable(nano(5_000), nano(1_000), 2, 2_000);
    assert_eq!(all, Affordable::Call { hold: nano(5_000), max_tokens: 2_000 });
}

#[test]
fn the_token_limit_comes_down_to_what_is_affordable() {
    let lowered = affordable(nano(4_999), nano(1_000), 2, 2_000);
    assert_eq!(lowered, Affordable::Call { hold: nano(4_998), max_tokens: 1_999 });
    let least = affordable(nano(1_512), nano(1_000), 2, 2_000);
    assert_eq!(least, Affordable::Call { hold: nano(1_512), max_tokens: 256 });
}

#[test]
fn under_256_tokens_is_refused() {
    assert_eq!(
        affordable(nano(1_511), nano(1_000), 2, 2_000),
        Affordable::Short { needs: Some(nano(1_512)) }
    );
    assert_eq!(affordable(nano(0), nano(1), 0, 2_000), Affordable::Short { needs: Some(nano(1)) });
    assert_eq!(affordable(nano(-1), nano(0), 0, 1), Affordable::Short { needs: Some(nano(0)) });
}

#[test]
fn a_call_that_asks_for_less_than_256_is_paid_or_refused_as_asked() {
    assert_eq!(affordable(nano(10), nano(0), 1, 10), Affordable::Call { hold: nano(10), max_tokens: 10 });
    assert_eq!(affordable(nano(9), nano(0), 1, 10), Affordable::Short { needs: Some(nano(10)) });
}

#[test]
fn rows_that_contradict_are_refused() {
    let mut torn = row("claude-haiku-5-5");
    torn.tiers.reverse();
    let model = torn.model.clone();
    assert_eq!(PriceBook::parse(vec![torn]), Err(PriceError::Tiers { model: model.clone() }));
    let twice = row("claude-haiku-5-5");
    let from = twice.from;
    assert_eq!(PriceBook::parse(vec![twice.clone(), twice]), Err(PriceError::Twice { model, from }));
}

#[test]
fn the_cheapest_hold_is_over_the_priced_part_of_the_menu() {
    let menu = ["claude-sonnet-5-5".to_owned(), "unknown".to_owned(), "claude-haiku-5-5".to_owned()];
    let book = PriceBook::default();
    assert_eq!(book.cheapest_hold(&menu, NOVEMBER_2026, 1_000), Some(nano(1_000 * 200 + 256 * 500)));
    assert_eq!(book.cheapest_hold(&menu[1..2], NOVEMBER_2026, 1_000), None);
}

proptest! {
    #[test]
    fn no_cost_is_over_its_bound(
        input in 0u64..300_000, write_5m in 0u64..300_000, write_1h in 0u64..300_000,
        read in 0u64..300_000, output in 0u64..100_000, slack in 0u64..100_000,
    ) {
        for row in PriceBook::default().rows() {
            let usage = Usage {
                input_tokens: input, cache_write_5m_tokens: write_5m, cache_write_1h_tokens: write_1h,
                cache_read_tokens: read, output_tokens: output,
            };
            let bound = row.bound(input + write_5m + write_1h + read + slack, output + slack);
            prop_assert!(row.cost(usage) <= bound);
        }
    }

    #[test]
    fn a_hold_is_never_over_the_purse(available: i64, input_bound: i64, rate: u32, asked: u64) {
        match affordable(nano(available), nano(input_bound), rate, asked) {
            Affordable::Call { hold, max_tokens } => {
                prop_assert!(hold.nano() <= available && hold.nano() >= 0);
                prop_assert!(max_tokens == asked || (256..asked).contains(&max_tokens));
                let exact = i128::from(input_bound) + i128::from(rate) * i128::from(max_tokens);
                prop_assert_eq!(exact, i128::from(hold.nano()));
            }
            Affordable::Short { .. } => {
                let least = i128::from(input_bound) + i128::from(rate) * i128::from(asked.min(256));
                prop_assert!(least > i128::from(available) || input_bound < 0);
            }
        }
    }
}
