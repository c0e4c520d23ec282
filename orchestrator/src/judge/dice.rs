//! Randomness from a recorded seed: the same seed and purpose give the same stream, on every machine.

use policy::judge::Dice;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// A stream of `ChaCha20`, keyed by the hash of a secret and of what the stream is for.
///
/// One purpose, one stream: a sigil that an agent sees in its wake message tells nothing of the judge's.
#[derive(Debug)]
pub struct SeededDice(ChaCha20Rng);

impl SeededDice {
    /// The stream of `secret` for `purpose`, such as `judge/7/0`.
    pub fn new(secret: &[u8], purpose: &str) -> Self {
        let mut hash = Sha256::new();
        // The length in front keeps secret and purpose apart.
        hash.update(u64::try_from(secret.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(secret);
        hash.update(purpose.as_bytes());
        Self(ChaCha20Rng::from_seed(hash.finalize().into()))
    }

    /// The stream of a seed that a person typed.
    pub fn from_number(seed: u64, purpose: &str) -> Self {
        Self::new(&seed.to_be_bytes(), purpose)
    }
}

impl Dice for SeededDice {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(secret: &[u8], purpose: &str) -> u64 {
        SeededDice::new(secret, purpose).next_u64()
    }

    #[test]
    fn a_stream_follows_from_secret_and_purpose() {
        assert_eq!(first(b"s", "judge/1"), first(b"s", "judge/1"));
        assert_ne!(first(b"s", "judge/1"), first(b"s", "judge/2"));
        assert_ne!(first(b"s", "judge/1"), first(b"t", "judge/1"));
        assert_ne!(first(b"sj", "udge/1"), first(b"s", "judge/1"));
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // Recorded frames are rendered again from their seeds: a change here breaks every replay.
        // The value is worked out from the definitions of SHA-256 and ChaCha20, not copied from a run.
        assert_eq!(SeededDice::from_number(1, "judge/1").next_u64(), 8_237_697_031_706_715_696);
    }
}
