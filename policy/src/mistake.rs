//! What is wrong in a file that people write, with its place: the same words for every program.

use std::fmt;

/// One thing that is wrong in a text, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Line, from one.
    pub line: usize,
    /// Column, from one, in characters.
    pub column: usize,
    /// What is wrong, and where it helps what would be right.
    pub what: String,
}

impl Mistake {
    /// The mistake at a byte offset of `text`; an offset that is none counts as the end.
    pub fn at(text: &str, offset_bytes: usize, what: impl Into<String>) -> Self {
        let before = text.get(..offset_bytes).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { line, column, what: what.into() }
    }

    /// All of `mistakes`, a line each, behind the file's name.
    pub fn list(file: &str, mistakes: &[Self]) -> String {
        let lines: Vec<String> = mistakes.iter().map(|mistake| format!("{file}:{mistake}")).collect();
        lines.join("\n")
    }
}

/// `LINE:COLUMN: WHAT`.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one_and_in_characters() {
        let text = "a = 1\né = 22\n";
        assert_eq!(Mistake::at(text, 0, "x").to_string(), "1:1: x");
        assert_eq!(Mistake::at(text, 6, "x").to_string(), "2:1: x");
        assert_eq!(Mistake::at(text, 11, "x").to_string(), "2:5: x");
        assert_eq!(Mistake::at(text, 999, "x").to_string(), "3:1: x");
    }

    #[test]
    fn every_mistake_has_a_line_of_its_own() {
        let found = [Mistake::at("", 0, "one"), Mistake::at("", 0, "two")];
        assert_eq!(Mistake::list("f.toml", &found), "f.toml:1:1: one\nf.toml:1:1: two");
    }
}
