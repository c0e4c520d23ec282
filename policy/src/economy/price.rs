//! What a model call can cost, did cost, and how much of it a purse can pay (G3, G5).
//!
//! Rates are whole nano-dollars a token, so nothing is rounded. Sums are 128-bit; what does not fit an amount
//! is `None`, which callers treat as a refusal.

use crate::{Instant, Money};

/// Fewest output tokens that a lowered limit may be; with less, a call is refused (G3).
pub const MAX_TOKENS_MIN: u64 = 256;

/// One model's prices from an instant on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct PriceRow {
    /// The model, as requests name it.
    pub model: String,
    /// First instant that these prices are in force.
    #[cfg_attr(feature = "serde", serde(default, rename = "from_ms"))]
    pub from: Instant,
    /// By size of the prompt; a call pays one tier's rates for every token that it uses.
    pub tiers: Vec<Tier>,
}

/// Rates for prompts over a size, in nano-dollars a token: $3 a million tokens is 3,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Tier {
    /// The tier is for prompts of more tokens than this, cached ones counted; the first tier's is 0 and takes
    /// an empty prompt too.
    #[cfg_attr(feature = "serde", serde(default))]
    pub over_tokens: u64,
    /// Uncached prompt.
    pub input_nano: u32,
    /// Output, thinking included.
    pub output_nano: u32,
    /// Prompt read from the cache.
    pub cache_read_nano: u32,
    /// Prompt written to the five-minute cache.
    pub cache_write_5m_nano: u32,
    /// Prompt written to the one-hour cache.
    pub cache_write_1h_nano: u32,
}

impl Tier {
    /// The dearest rate that one prompt token can be charged.
    fn dearest_input_nano(self) -> u32 {
        self.input_nano.max(self.cache_read_nano).max(self.cache_write_5m_nano).max(self.cache_write_1h_nano)
    }
}

/// What a call used, as the provider counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Uncached prompt tokens.
    pub input_tokens: u64,
    /// Tokens written to the five-minute cache.
    pub cache_write_5m_tokens: u64,
    /// Tokens written to the one-hour cache.
    pub cache_write_1h_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Output tokens, thinking included.
    pub output_tokens: u64,
}

impl Usage {
    /// Every token of the prompt: this picks the tier.
    fn prompt_tokens(self) -> u128 {
        u128::from(self.input_tokens)
            + u128::from(self.cache_write_5m_tokens)
            + u128::from(self.cache_write_1h_tokens)
            + u128::from(self.cache_read_tokens)
    }
}

/// Why rows make no price book. Each is the operator's mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// A row's tiers do not start with one over 0 tokens, or do not rise.
    #[error("the tiers of {model} must start with over_tokens = 0 and rise")]
    Tiers {
        /// The row's model.
        model: String,
    },
    /// Two rows of a model begin at the same instant.
    #[error("two rows for {model} begin at {from}")]
    Twice {
        /// The rows' model.
        model: String,
        /// When both begin.
        from: Instant,
    },
}

/// All prices: only [`PriceBook::parse`] and [`PriceBook::default`] make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceBook {
    /// By model, then by instant.
    rows: Vec<PriceRow>,
}

impl PriceBook {
    /// Checks rows, in any order. A model that has none cannot be called.
    ///
    /// # Errors
    /// [`PriceError`] for tiers out of order and for two rows with one beginning; [`PriceBook::mistakes`] names all.
    pub fn parse(mut rows: Vec<PriceRow>) -> Result<Self, PriceError> {
        if let Some(first) = Self::mistakes(&rows).into_iter().next() {
            return Err(first);
        }
        rows.sort_by(|one, other| one.place().cmp(&other.place()));
        Ok(Self { rows })
    }

    /// Every row that contradicts itself or another.
    pub fn mistakes(rows: &[PriceRow]) -> Vec<PriceError> {
        let orderly = |row: &&PriceRow| {
            row.tiers.first().is_some_and(|tier| tier.over_tokens == 0)
                && row.tiers.is_sorted_by(|low, high| low.over_tokens < high.over_tokens)
        };
        let tiers = rows.iter().filter(|row| !orderly(row));
        let mut found: Vec<_> = tiers.map(|row| PriceError::Tiers { model: row.model.clone() }).collect();
        let mut places: Vec<_> = rows.iter().map(PriceRow::place).collect();
        places.sort_unstable();
        for (one, next) in places.iter().zip(places.iter().skip(1)) {
            if one == next {
                found.push(PriceError::Twice { model: one.0.to_owned(), from: one.1 });
            }
        }
        found
    }

    /// The rows, by model and instant.
    pub fn rows(&self) -> &[PriceRow] {
        &self.rows
    }

    /// The prices of `model` in force at `now`, or `None` where it has none: it cannot be called.
    pub fn at(&self, model: &str, now: Instant) -> Option<&PriceRow> {
        self.rows.iter().rfind(|row| row.model == model && row.from <= now)
    }

    /// The cheapest hold among `models` for a prompt of at most `input_tokens_max` and the least output that a
    /// call may be lowered to (E7); `None` where no model has a price.
    pub fn cheapest_hold(&self, models: &[String], now: Instant, input_tokens_max: u64) -> Option<Money> {
        let holds =
            models.iter().filter_map(|model| self.at(model, now)?.bound(input_tokens_max, MAX_TOKENS_MIN));
        holds.min()
    }
}

impl PriceRow {
    /// What orders rows, and no two may share: the model and the beginning.
    fn place(&self) -> (&str, Instant) {
        (&self.model, self.from)
    }

    /// The most that a call can cost: the dearest prompt rate of any tier that a prompt of up to
    /// `input_tokens_max` can fall in, and the dearest output rate for `max_tokens`. `None` where it fits no
    /// amount.
    pub fn bound(&self, input_tokens_max: u64, max_tokens: u64) -> Option<Money> {
        let input = self.input_bound(input_tokens_max)?;
        let output = product(max_tokens, self.output_nano(input_tokens_max));
        input.checked_add(amount(output)?)
    }

    /// The part of [`PriceRow::bound`] that the prompt makes.
    pub fn input_bound(&self, input_tokens_max: u64) -> Option<Money> {
        let dearest = self.reachable(input_tokens_max).map(Tier::dearest_input_nano).max().unwrap_or(0);
        amount(product(input_tokens_max, dearest))
    }

    /// The dearest output rate, in nano-dollars a token, that a prompt of up to `input_tokens_max` can lead to.
    pub fn output_nano(&self, input_tokens_max: u64) -> u32 {
        self.reachable(input_tokens_max).map(|tier| tier.output_nano).max().unwrap_or(0)
    }

    /// What a call cost, exactly; `None` where it fits no amount.
    pub fn cost(&self, usage: Usage) -> Option<Money> {
        let tier = self.tier(usage.prompt_tokens())?;
        let parts = [
            product(usage.input_tokens, tier.input_nano),
            product(usage.cache_write_5m_tokens, tier.cache_write_5m_nano),
            product(usage.cache_write_1h_tokens, tier.cache_write_1h_nano),
            product(usage.cache_read_tokens, tier.cache_read_nano),
            product(usage.output_tokens, tier.output_nano),
        ];
        // Five products of 64 and 32 bits fit 99 bits.
        amount(parts.iter().sum())
    }

    fn tier(&self, prompt_tokens: u128) -> Option<Tier> {
        let fits = |tier: &&Tier| tier.over_tokens == 0 || u128::from(tier.over_tokens) < prompt_tokens;
        self.tiers.iter().rfind(fits).copied()
    }

    fn reachable(&self, input_tokens_max: u64) -> impl Iterator<Item = Tier> + '_ {
        let fits = move |tier: &Tier| tier.over_tokens == 0 || tier.over_tokens < input_tokens_max;
        self.tiers.iter().copied().filter(fits)
    }
}

/// How much of a call a purse can pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affordable {
    /// All of it, or with the token limit brought down.
    Call {
        /// What to hold.
        hold: Money,
        /// The token limit that `hold` covers: as asked, or less but at least [`MAX_TOKENS_MIN`].
        max_tokens: u64,
    },
    /// Not enough of it to be worth the call.
    Short {
        /// What the least form of the call would need; `None` where it fits no amount.
        needs: Option<Money>,
    },
}

/// Decides how much of a call `available` can pay (G3). `input_bound` is the most that its prompt can cost,
/// `output_nano` the rate of an output token.
pub fn affordable(available: Money, input_bound: Money, output_nano: u32, max_tokens: u64) -> Affordable {
    let hold = |tokens: u64| input_bound.checked_add(amount(product(tokens, output_nano))?);
    let paid = |tokens: u64| hold(tokens).filter(|&hold| hold <= available && !input_bound.is_negative());
    if let Some(hold) = paid(max_tokens) {
        return Affordable::Call { hold, max_tokens };
    }
    let least = max_tokens.min(MAX_TOKENS_MIN);
    let left = u64::try_from(available.checked_sub(input_bound).map_or(0, Money::nano)).unwrap_or(0);
    // A rate of zero never gets here with a hold that is too dear: then the prompt alone is.
    let tokens = left.checked_div(u64::from(output_nano)).unwrap_or(0).min(max_tokens);
    match paid(tokens) {
        Some(hold) if tokens >= MAX_TOKENS_MIN => Affordable::Call { hold, max_tokens: tokens },
        Some(_) | None => Affordable::Short { needs: hold(least) },
    }
}

fn product(tokens: u64, nano: u32) -> u128 {
    u128::from(tokens) * u128::from(nano)
}

fn amount(nano: u128) -> Option<Money> {
    i64::try_from(nano).ok().map(Money::from_nano)
}

/// 2026-10-07T00:00:00Z, when Haiku 5.5 got its price and Sonnet 5.5 its cheaper cache reads.
const OCTOBER_2026: Instant = Instant::from_ms(1_791_331_200_000);

/// Rates in cents of a dollar per million tokens: one cent a million tokens is 10 nano-dollars a token.
/// `read` is the cache-read rate in tenths of a cent; writes are 1.25 and 2 times the input rate.
const fn tier(over_tokens: u64, input_cents: u32, output_cents: u32, read_mills: u32) -> Tier {
    Tier {
        over_tokens,
        input_nano: input_cents * 10,
        output_nano: output_cents * 10,
        cache_read_nano: read_mills,
        cache_write_5m_nano: input_cents * 25 / 2,
        cache_write_1h_nano: input_cents * 20,
    }
}

/// Anthropic's published list as of November 2026, for the models that Darwin uses by default. Prices that were
/// in force before stand as of 1970; an operator's own rows replace the book.
impl Default for PriceBook {
    fn default() -> Self {
        let row = |model: &str, from, tiers: &[Tier]| PriceRow {
            model: model.to_owned(),
            from,
            tiers: tiers.to_vec(),
        };
        let start = Instant::from_ms(0);
        let rows = vec![
            row("claude-haiku-4-5", start, &[tier(0, 100, 500, 100)]),
            row("claude-haiku-5-5", OCTOBER_2026, &[tier(0, 10, 50, 10), tier(100_000, 50, 250, 50)]),
            row("claude-opus-5-5", start, &[tier(0, 400, 2_000, 200)]),
            row("claude-sonnet-5-5", start, &[tier(0, 200, 1_000, 200)]),
            row("claude-sonnet-5-5", OCTOBER_2026, &[tier(0, 200, 1_000, 100)]),
        ];
        Self { rows }
    }
}

#[cfg(test)]
mod tests;
