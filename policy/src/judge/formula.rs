//! The stand-in's scores: from the verified figures alone, never from a word of the appeal (J12, E31).
//!
//! The demo's and the simulator's stand-in judge answers with it, and each docket's ranking by promise can be
//! set beside it. It is a formula and its reasoning says so.

use super::Facts;
use super::reader::Scores;
use super::sanitise::sanitise;

/// Scores `facts`.
pub fn formula(facts: &Facts) -> Scores {
    let traction = traction(facts);
    let cost_discipline = cost_discipline(facts);
    let learning = learning(facts);
    let risk = 5u32.saturating_sub(u32::try_from(facts.open_flags.len()).unwrap_or(5).saturating_mul(2));
    // No figure shows a plan: what was sold and what was learned stand for it.
    let plan = u32::midpoint(traction, learning);
    // Of 100: income 40, trend 15, costs 20, plan 15, flags 10.
    let promise = traction * 8 + learning * 3 + cost_discipline * 4 + plan * 3 + risk * 2;
    let text = format!(
        "Scored by a formula from the ledger's figures, without reading the appeal: income {}, costs {}, profit {} \
         in the period; {} over its life; {} open flags.",
        facts.period_income_nano,
        facts.period_costs_nano,
        facts.period_profit_nano,
        facts.lifetime_profit_nano,
        facts.open_flags.len()
    );
    let (reasoning, _) = sanitise(&text, super::reader::REASONING_CHARS_MAX);
    Scores { traction, plan, cost_discipline, learning, risk, promise, reasoning }
}

/// By income of the period: nothing, under a dollar's tenth, a dollar, five, twenty, and over.
fn traction(facts: &Facts) -> u32 {
    let steps = [1, 100_000_000, 1_000_000_000, 5_000_000_000, 20_000_000_000];
    let passed = steps.iter().filter(|&&step| facts.period_income_nano.nano() >= step).count();
    u32::try_from(passed).unwrap_or(0)
}

/// By costs against income: none, a quarter, a half, all, twice, and over.
fn cost_discipline(facts: &Facts) -> u32 {
    let costs = i128::from(facts.period_costs_nano.nano().max(0));
    let income = i128::from(facts.period_income_nano.nano().max(0));
    match (costs, income) {
        (0, _) => 3, // it did nothing: neither waste nor care
        (_, 0) => u32::from(costs < 500_000_000),
        _ if costs * 4 <= income => 5,
        _ if costs * 2 <= income => 4,
        _ if costs <= income => 3,
        _ if costs <= income * 2 => 2,
        _ => 0,
    }
}

/// By the trend of its profit: one for each of the last five steps up.
fn learning(facts: &Facts) -> u32 {
    let trend = &facts.profit_trend_nano;
    let rises =
        trend.iter().zip(trend.iter().skip(1)).rev().take(5).filter(|(before, after)| after > before).count();
    u32::try_from(rises).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Money;
    use crate::judge::facts::plain;

    fn with_income(dollars: i64) -> Facts {
        let income = Money::DOLLAR.checked_mul(dollars).unwrap();
        Facts {
            period_income_nano: income,
            period_costs_nano: Money::from_nano(100_000_000),
            open_flags: vec![],
            ..plain()
        }
    }

    #[test]
    fn more_income_is_never_scored_lower() {
        let promises: Vec<u32> = (0..40).map(|dollars| formula(&with_income(dollars)).promise).collect();
        assert!(promises.is_sorted(), "{promises:?}");
        assert!(promises[0] < 40 && promises[39] > 60);
    }

    #[test]
    fn flags_cost_promise() {
        let clean = formula(&with_income(2));
        let flagged = formula(&Facts { open_flags: vec!["direct_attempt (1)".to_owned()], ..with_income(2) });
        assert_eq!((clean.risk, flagged.risk), (5, 3));
        assert!(flagged.promise < clean.promise);
    }

    #[test]
    fn a_rising_trend_is_learning() {
        let trend = |nanos: &[i64]| Facts {
            profit_trend_nano: nanos.iter().copied().map(Money::from_nano).collect(),
            ..with_income(1)
        };
        assert_eq!(formula(&trend(&[])).learning, 0);
        assert_eq!(formula(&trend(&[-3, -2, -1, 0])).learning, 3);
        assert_eq!(formula(&trend(&[5, 4, 3])).learning, 0);
    }

    #[test]
    fn it_says_that_it_is_a_formula() {
        assert!(formula(&plain()).reasoning.as_str().starts_with("Scored by a formula"));
    }

    #[test]
    fn the_best_and_worst_stay_in_range() {
        let best =
            Facts { profit_trend_nano: (0..9).map(Money::from_nano).collect(), ..with_income(1_000_000) };
        assert_eq!(formula(&best).promise, 100);
        let worst = Facts {
            period_income_nano: Money::from_nano(i64::MIN),
            period_costs_nano: Money::MAX,
            ..plain()
        };
        assert!(formula(&worst).promise <= 10);
    }
}
