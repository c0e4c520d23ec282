//! Money: a signed 64-bit count of nano-dollars.
//!
//! Every published price with up to three decimals a million tokens is then a whole number a token, and nothing
//! is ever rounded. Arithmetic is checked: overflow is a value, never a wrap.

use std::fmt;

/// An amount in nano-dollars (`$1` is `1_000_000_000`), from about −9.2 to 9.2 thousand million dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Money(i64);

/// Why a text is no amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoneyError {
    /// Something else than `[-]DIGITS[.DIGITS]`, an optional `$` in front.
    #[error("it is not a decimal amount of dollars such as 1.25")]
    Malformed,
    /// More than nine decimals: finer than a nano-dollar.
    #[error("it has more than nine decimals, and nothing is finer than a nano-dollar")]
    TooFine,
    /// Does not fit 64 bits of nano-dollars.
    #[error("it is over 9223372036.854775807 dollars")]
    TooLarge,
}

impl Money {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(i64::MAX);
    /// One dollar.
    pub const DOLLAR: Self = Self(1_000_000_000);

    /// An amount of nano-dollars.
    pub const fn from_nano(nano: i64) -> Self {
        Self(nano)
    }

    /// The amount in nano-dollars.
    pub const fn nano(self) -> i64 {
        self.0
    }

    /// The sum, or `None` where it does not fit.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(nano) => Some(Self(nano)),
            None => None,
        }
    }

    /// The difference, or `None` where it does not fit.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(nano) => Some(Self(nano)),
            None => None,
        }
    }

    /// This amount `count` times, or `None` where it does not fit.
    pub const fn checked_mul(self, count: i64) -> Option<Self> {
        match self.0.checked_mul(count) {
            Some(nano) => Some(Self(nano)),
            None => None,
        }
    }

    /// The opposite amount, or `None` for the one amount that has none.
    pub const fn checked_neg(self) -> Option<Self> {
        match self.0.checked_neg() {
            Some(nano) => Some(Self(nano)),
            None => None,
        }
    }

    /// Whether it is more than nothing.
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// Whether it is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Parses `1.25`, `$1.25`, `-0.000000001` or `-$3`: exact, never rounded.
    ///
    /// # Errors
    /// [`MoneyError`] for other shapes, for more than nine decimals and for what does not fit.
    pub fn parse(text: &str) -> Result<Self, MoneyError> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let rest = rest.strip_prefix('$').unwrap_or(rest);
        let (whole, decimals) = rest.split_once('.').unwrap_or((rest, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(decimals) {
            return Err(MoneyError::Malformed);
        }
        if decimals.len() > 9 {
            return Err(MoneyError::TooFine);
        }
        // `i64::MIN` has no positive twin: the sign goes onto the digits before they are read.
        let digits = format!("{}{whole}{decimals:0<9}", if negative { "-" } else { "" });
        digits.parse::<i64>().map(Self).map_err(|_overflow| MoneyError::TooLarge)
    }
}

/// Exact dollars: `$1.25`, `-$0.000000001`; at least two decimals, further ones only where they are not zero.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nano = self.0.unsigned_abs();
        let decimals = format!("{:09}", nano % 1_000_000_000);
        let kept = decimals.trim_end_matches('0').len().max(2);
        let shown: String = decimals.chars().take(kept).collect();
        f.pad(&format!("{sign}${}.{shown}", nano / 1_000_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_shown_exactly() {
        let shown = |nano| Money::from_nano(nano).to_string();
        assert_eq!(shown(0), "$0.00");
        assert_eq!(shown(1_250_000_000), "$1.25");
        assert_eq!(shown(999_999_999), "$0.999999999");
        assert_eq!(shown(-1), "-$0.000000001");
        assert_eq!(shown(i64::MIN), "-$9223372036.854775808");
    }

    #[test]
    fn wrong_amounts_are_refused_by_kind() {
        for text in ["", "-", "$", "1.", ".5", "1,5", "+1", "1e3", "1.2.3", " 1", "--1", "$-1", "one", "١"] {
            assert_eq!(Money::parse(text), Err(MoneyError::Malformed), "{text:?}");
        }
        assert_eq!(Money::parse("0.0000000001"), Err(MoneyError::TooFine));
        assert_eq!(Money::parse("9223372036.854775808"), Err(MoneyError::TooLarge));
    }

    #[test]
    fn overflow_is_a_value() {
        assert_eq!(Money::MAX.checked_add(Money::from_nano(1)), None);
        assert_eq!(Money::from_nano(i64::MIN).checked_sub(Money::from_nano(1)), None);
        assert_eq!(Money::MAX.checked_mul(2), None);
        assert_eq!(Money::from_nano(i64::MIN).checked_neg(), None);
        assert_eq!(Money::from_nano(2).checked_mul(-3), Some(Money::from_nano(-6)));
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(nano: i64) {
            let money = Money::from_nano(nano);
            prop_assert_eq!(Money::parse(&money.to_string()), Ok(money));
        }
    }
}
