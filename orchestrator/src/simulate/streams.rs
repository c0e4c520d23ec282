//! Random streams: one a concern and agent, so that one more draw here changes nothing there.

use policy::judge::Dice as _;

use crate::judge::dice::SeededDice;

/// One stream.
#[derive(Debug)]
pub(super) struct Stream(SeededDice);

impl Stream {
    /// The stream of `seed` for a concern, such as `agent/a-0001`.
    pub(super) fn new(seed: u64, concern: &str) -> Self {
        Self(SeededDice::from_number(seed, &format!("simulate/{concern}")))
    }

    /// A number in `0..count`; 0 where `count` is.
    ///
    /// The high half of a product: as even as 64 bits are over counts this small, and without a division.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(count);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number in `low..=high`; `low` where they are the wrong way round.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high.saturating_sub(low)).unwrap_or(0);
        low.saturating_add(i64::try_from(self.below(span.saturating_add(1))).unwrap_or(0))
    }

    /// True `permille` times in a thousand.
    pub(super) fn chance(&mut self, permille: u32) -> bool {
        self.below(1_000) < u64::from(permille)
    }

    /// One of several.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(usize::try_from(self.below(of.len() as u64)).unwrap_or(0))
    }

    /// 64 hexadecimal digits.
    pub(super) fn hex_seed(&mut self) -> String {
        let bytes: Vec<u8> = (0..4).flat_map(|_| self.0.next_u64().to_be_bytes()).collect();
        crate::core::hex(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut stream = Stream::new(1, "bounds");
        for _ in 0..1_000 {
            assert!(stream.below(7) < 7);
            assert!((-3..=3).contains(&stream.between(-3, 3)));
        }
        assert_eq!(stream.below(0), 0);
        assert_eq!(stream.between(5, 5), 5);
        assert!(stream.chance(1_000) && !stream.chance(0));
    }

    #[test]
    fn concerns_have_streams_of_their_own() {
        let draws = |concern| (0..4).map(|_| Stream::new(9, concern).below(1 << 60)).collect::<Vec<_>>();
        assert_eq!(draws("agent/a"), draws("agent/a"));
        assert_ne!(draws("agent/a"), draws("agent/b"));
    }
}
