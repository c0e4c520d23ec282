//! What a reversal of income takes, and what it counts as (E5).

use crate::{Instant, Money};

/// Income that has cleared and is the agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credited {
    /// How much; more than nothing.
    pub amount: Money,
    /// When it was credited.
    pub at: Instant,
    /// Whether it was internal: then it was counted in no figure.
    pub internal: bool,
}

/// What a reversal counts as in the agent's figures: always the whole amount, also where its purse was too short,
/// since income that never was has earned nobody a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Less gross income on the day on which it was credited: the period is not over.
    LessIncome,
    /// A cost of the period that it comes in: the period of the income is over, and its figures stand.
    Cost,
    /// Nothing: internal income was counted in no figure, and neither is its end.
    Nothing,
}

/// Who gives a reversed amount back. Both together are the amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Out of the agent's purse: never more than is available there.
    pub paid: Money,
    /// Out of the platform's `shortfall`, as for a call that came out dearer than its hold: no agent owes.
    pub short: Money,
    /// What it counts as.
    pub counts: Counts,
}

/// Decides one reversal in the period that began at `period_start`, for a purse with `available` to spend.
pub fn reverse(income: Credited, available: Money, period_start: Instant) -> Taken {
    let paid = income.amount.min(available.max(Money::ZERO));
    let counts = if income.internal {
        Counts::Nothing
    } else if income.at >= period_start {
        Counts::LessIncome
    } else {
        Counts::Cost
    };
    // `paid` is between nothing and the amount.
    Taken { paid, short: income.amount.checked_sub(paid).unwrap_or(Money::ZERO), counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_ms(1_000);

    fn taken(amount: i64, available: i64, at_ms: i64, internal: bool) -> (i64, i64, Counts) {
        let income = Credited { amount: Money::from_nano(amount), at: Instant::from_ms(at_ms), internal };
        let Taken { paid, short, counts } = reverse(income, Money::from_nano(available), START);
        (paid.nano(), short.nano(), counts)
    }

    #[test]
    fn in_its_own_period_it_is_less_income_and_later_a_cost() {
        assert_eq!(taken(7, 9, 1_000, false), (7, 0, Counts::LessIncome));
        assert_eq!(taken(7, 9, 999, false), (7, 0, Counts::Cost));
    }

    #[test]
    fn internal_income_counted_nothing_and_its_end_does_not_either() {
        assert_eq!(taken(7, 9, 1_000, true), (7, 0, Counts::Nothing));
        assert_eq!(taken(7, 9, 999, true), (7, 0, Counts::Nothing));
    }

    #[test]
    fn a_short_purse_pays_what_it_has_and_the_platform_the_rest() {
        for (available, paid) in [(7, 7), (6, 6), (0, 0), (-1, 0), (i64::MIN, 0), (i64::MAX, 7)] {
            assert_eq!(
                taken(7, available, 1_000, false),
                (paid, 7 - paid, Counts::LessIncome),
                "{available}"
            );
        }
        assert_eq!(taken(i64::MAX, 0, 0, false), (0, i64::MAX, Counts::Cost));
    }
}
