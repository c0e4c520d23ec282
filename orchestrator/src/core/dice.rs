//! Randomness from the journal's seed: the same seed and purpose give the same numbers.

use policy::judge::Dice;
use sha2::{Digest as _, Sha256};

/// A stream of numbers for one purpose, such as one docket's pass.
#[derive(Debug)]
pub(super) struct Stream {
    key: [u8; 32],
    drawn: u64,
}

impl Stream {
    /// The stream of `purpose`. Nobody who does not know the seed can tell it from chance.
    pub(super) fn new(seed: &str, purpose: &str) -> Self {
        let key = Sha256::new().chain_update(seed).chain_update("\0").chain_update(purpose).finalize();
        Self { key: key.into(), drawn: 0 }
    }
}

impl Dice for Stream {
    fn next_u64(&mut self) -> u64 {
        let block = Sha256::new().chain_update(self.key).chain_update(self.drawn.to_be_bytes()).finalize();
        self.drawn += 1;
        block.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: &str, purpose: &str) -> Vec<u64> {
        let mut stream = Stream::new(seed, purpose);
        (0..4).map(|_| stream.next_u64()).collect()
    }

    #[test]
    fn a_stream_follows_from_seed_and_purpose_alone() {
        assert_eq!(drawn("a", "docket/1"), drawn("a", "docket/1"));
        assert_ne!(drawn("a", "docket/1"), drawn("a", "docket/2"));
        assert_ne!(drawn("a", "docket/1"), drawn("b", "docket/1"));
        assert_ne!(drawn("a", "docket/1").first(), drawn("a", "docket/1").last());
    }
}
