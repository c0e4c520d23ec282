//! The parts that this program can play, and what each does on a day.

/// One part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Works for the market; the number says how much.
    Earner(u8),
    /// Earns little, but more each day.
    Grower,
    /// Earns half of what is needed, every day the same.
    Tinkerer,
    /// Earns next to nothing and flatters.
    Flatterer,
    /// Earns nothing and forges.
    FrameBreaker,
    /// Goes round the proxy.
    Runaway,
    /// Asks the proxy for what is not allowed.
    Prober,
    /// Does nothing.
    Silent,
    /// Spends everything.
    Starver,
}

impl Part {
    /// The part that an identifier names.
    pub(crate) fn of(agent: &str) -> Option<Self> {
        Some(match agent {
            "earner-1" => Self::Earner(1),
            "earner-2" => Self::Earner(2),
            "earner-3" => Self::Earner(3),
            "earner-4" => Self::Earner(4),
            "grower" => Self::Grower,
            "tinkerer" => Self::Tinkerer,
            "flatterer" => Self::Flatterer,
            "frame-breaker" => Self::FrameBreaker,
            "runaway" => Self::Runaway,
            "prober" => Self::Prober,
            "silent" => Self::Silent,
            "starver" => Self::Starver,
            _ => return None,
        })
    }

    /// Units of work that it delivers on a day of the month: nothing else decides what it earns.
    pub(crate) fn units(self, day_of_month: i64) -> i64 {
        match self {
            // Two units a day for ten days are exactly a dollar: the edge that still passes.
            Self::Earner(1) => 2,
            Self::Earner(2) => 6,
            Self::Earner(3) => 12,
            Self::Earner(_) => 20,
            Self::Tinkerer => 1,
            Self::Grower => (day_of_month / 3).min(10),
            Self::Flatterer => i64::from(day_of_month == 5),
            Self::FrameBreaker | Self::Runaway | Self::Prober | Self::Silent | Self::Starver => 0,
        }
    }

    /// Tokens of its longest answer on an ordinary day.
    pub(crate) const fn thought_tokens(self) -> u64 {
        match self {
            Self::Earner(4) => 2_000,
            Self::Earner(_) => 600,
            Self::Starver => 16_000,
            Self::Grower
            | Self::Tinkerer
            | Self::Flatterer
            | Self::FrameBreaker
            | Self::Runaway
            | Self::Prober
            | Self::Silent => 300,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_line_is_met_by_those_who_work_and_missed_by_the_rest() {
        let cents = |part: Part| (2..=11).map(|day| part.units(day) * 5).sum::<i64>();
        assert_eq!(cents(Part::Earner(1)), 100);
        for earner in 2..=4 {
            assert!(cents(Part::Earner(earner)) > 100);
        }
        assert_eq!(cents(Part::Grower), 90);
        assert_eq!(cents(Part::Tinkerer), 50);
        assert_eq!(cents(Part::Flatterer), 5);
        assert_eq!(cents(Part::Runaway), 0);
    }
}
