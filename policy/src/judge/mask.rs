//! Takes the names of a batch's agents out of their words (J3), so that the judge scores nobody it knows.

use super::sanitise::{Clean, sanitise_line};

/// What stands in the place of a name. Not a label: that would tell which rival is meant.
pub const MASK: &str = "(name withheld)";
/// A name under this many characters is not masked: it is part of too many words.
const NAME_CHARS_MIN: usize = 3;
/// A name is at most this long before it is compared.
const NAME_CHARS_MAX: usize = 200;

/// The names of one batch, ready to compare: cleaned like the text that they are looked for in, case folded,
/// longest first.
#[derive(Debug, Clone)]
pub struct Masks(Vec<Vec<char>>);

impl Masks {
    /// Masks for `names` (identifiers among them), but for those under three characters and those that read
    /// like one of `labels`.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>, labels: &[String]) -> Self {
        let cleaned = names.map(|name| sanitise_line(name, NAME_CHARS_MAX).0);
        let kept = cleaned.filter(|name| {
            name.as_str().chars().count() >= NAME_CHARS_MIN
                && !labels.iter().any(|label| label.eq_ignore_ascii_case(name.as_str()))
        });
        let mut needles: Vec<Vec<char>> =
            kept.map(|name| name.as_str().chars().flat_map(case_folded).collect()).collect();
        needles.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        needles.dedup();
        Self(needles)
    }

    /// The text with every name masked, in any case, wherever it stands.
    pub fn apply(&self, text: &Clean) -> Clean {
        let chars: Vec<char> = text.as_str().chars().collect();
        let mut out = String::with_capacity(text.as_str().len());
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            let rest = chars.get(at..).unwrap_or_default();
            if let Some(len) = self.0.iter().find_map(|needle| matched(needle, rest)) {
                out.push_str(MASK);
                at += len;
            } else {
                out.push(c);
                at += 1;
            }
        }
        Clean::from_clean_parts(out)
    }
}

/// How many characters at the start of `text` are `needle`, whole characters only.
fn matched(needle: &[char], text: &[char]) -> Option<usize> {
    let mut left = needle;
    for (count, &c) in text.iter().enumerate() {
        if left.is_empty() {
            return Some(count);
        }
        for folded in case_folded(c) {
            left = left.strip_prefix(&[folded])?;
        }
    }
    left.is_empty().then_some(text.len())
}

/// Upper case and down again: `ß` meets `SS`, `ς` meets `σ`.
fn case_folded(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::sanitise::sanitise;

    fn masked(names: &[&str], text: &str) -> String {
        let labels = ["A1".to_owned(), "A2".to_owned()];
        Masks::new(names.iter().copied(), &labels).apply(&sanitise(text, 1_000).0).as_str().to_owned()
    }

    #[test]
    fn names_are_masked_in_any_case_and_disguise() {
        assert_eq!(masked(&["Alice"], "ALICE, alice and Ａｌｉｃｅ"), format!("{MASK}, {MASK} and {MASK}"));
        assert_eq!(masked(&["Alice"], "Al\u{200b}ice"), MASK);
        assert_eq!(masked(&["Großmann"], "GROSSMANN großmann"), format!("{MASK} {MASK}"));
        assert_eq!(masked(&["ΟΔΥΣΣΕΥΣ"], "οδυσσευς"), MASK);
        assert_eq!(masked(&["agent-7"], "(agent-7)"), format!("({MASK})"));
    }

    #[test]
    fn the_longest_name_goes_first() {
        assert_eq!(masked(&["Ann", "Annabel"], "Annabel and Ann"), format!("{MASK} and {MASK}"));
    }

    #[test]
    fn short_names_and_labels_are_not_masked() {
        assert_eq!(masked(&["Al", "a1", "A2"], "Al, A1 and A2 always"), "Al, A1 and A2 always");
    }

    #[test]
    fn other_words_are_left_alone() {
        assert_eq!(masked(&["Alice"], "Alic and lice"), "Alic and lice");
    }
}
