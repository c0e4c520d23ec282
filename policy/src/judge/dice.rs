//! Randomness as a value: whoever calls brings it, and the same dice give the same frame.

/// A stream of random numbers. The shell draws it from a recorded seed.
pub trait Dice {
    /// The next 64 bits.
    fn next_u64(&mut self) -> u64;
}

/// Letters and digits that no reader takes for another, and that make no words.
const ALPHABET: [char; 28] = [
    'b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'y', 'z', '2',
    '3', '4', '5', '6', '7', '8', '9',
];

/// A number under `count`, or 0 where `count` is 0.
///
/// The high half of a 128-bit product: no loop that unlucky dice could keep running; the bias is under
/// `count / 2^64`.
pub fn below(dice: &mut dyn Dice, count: usize) -> usize {
    let scaled = u128::from(dice.next_u64()) * count as u128;
    usize::try_from(scaled >> 64).unwrap_or(0)
}

/// Shuffles in place (Fisher and Yates).
pub fn shuffle<T>(dice: &mut dyn Dice, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(dice, last + 1));
    }
}

/// A word of at least `chars` characters that occurs in none of `texts`: longer where they leave no other.
pub fn word(dice: &mut dyn Dice, chars: usize, texts: &[&str]) -> String {
    let mut word = String::new();
    loop {
        word.extend(ALPHABET.get(below(dice, ALPHABET.len())));
        // Ends: a word longer than every text is in none of them.
        if word.len() >= chars && !texts.iter().any(|text| text.contains(&word)) {
            return word;
        }
    }
}

/// Dice for tests: every number follows from the seed (`SplitMix64`).
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Loaded(pub(crate) u64);

#[cfg(test)]
impl Dice for Loaded {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dice that always fall alike.
    struct Stuck;

    impl Dice for Stuck {
        fn next_u64(&mut self) -> u64 {
            0
        }
    }

    #[test]
    fn numbers_are_under_their_count() {
        let mut dice = Loaded(1);
        assert!((0..1_000).all(|_| below(&mut dice, 7) < 7));
        assert_eq!(below(&mut dice, 0), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..20).collect();
        shuffle(&mut Loaded(3), &mut items);
        assert_ne!(items, (0..20).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_word_is_in_no_text_whatever_the_dice() {
        assert_eq!(word(&mut Stuck, 4, &[]), "bbbb");
        assert_eq!(word(&mut Stuck, 4, &["xxbbbbbbyy"]), "bbbbbbb");
    }
}
