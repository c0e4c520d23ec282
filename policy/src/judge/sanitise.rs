//! The sanitiser (J6): for every byte that an agent, or a model of ours, wrote.
//!
//! [`sanitise`] normalises, drops, caps, folds and flattens; what comes out is [`Clean`], and cleaning it again
//! changes nothing. Escaping and the sigil come where it is shown: [`Clean::escaped`], [`Clean::quoted`]. A raw
//! text has no way into a frame.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::{look_alikes, phrases, style};
use crate::signal::Severity;

/// Text that went through [`sanitise`]; not escaped yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Clean(String);

impl Clean {
    /// The text, for storing and counting. What shows it escapes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is left to read.
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// The text with `&`, `<` and `>` as entities: no byte of it can be part of a tag.
    pub fn escaped(&self) -> String {
        escape(&self.0)
    }

    /// Escaped, each line behind `sigil` and a bar, blank ones too; nothing where there is nothing.
    pub fn quoted(&self, sigil: &str) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut out = String::with_capacity(self.0.len() * 2);
        for line in self.0.split('\n') {
            let space = if line.is_empty() { "" } else { " " };
            out.extend([sigil, "|", space, escape(line).as_str(), "\n"]);
        }
        out
    }

    /// A clean text of clean parts: for the mask, which puts plain words in the place of names.
    pub(super) fn from_clean_parts(text: String) -> Self {
        Self(text)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What the sanitiser took away or changed, for the admin and for signals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Controls.
    pub controls: usize,
    /// Format characters: zero-width, bidirectional, tags.
    pub formats: usize,
    /// Of the format characters, the tags and bidirectional overrides: no honest text has them.
    pub covert: usize,
    /// Variation selectors.
    pub variations: usize,
    /// Private use and unassigned characters.
    pub unknown: usize,
    /// Characters that are letters or marks by name and show nothing.
    pub fillers: usize,
    /// Combining marks over three a base.
    pub marks: usize,
    /// Look-alikes that are everyday writing somewhere, made plain: typographic quotes, full-width and small
    /// forms, brackets of East Asian scripts.
    pub everyday: usize,
    /// Look-alikes of brackets, ampersand and backtick that are a disguise, made plain.
    pub disguised: usize,
    /// Characters of style.
    pub style: usize,
    /// Characters beyond the limit.
    pub cut: usize,
    /// Phrases that read like instructions.
    pub phrases: Vec<&'static str>,
}

impl Report {
    /// How many characters were dropped as hidden or piled up.
    pub fn dropped(&self) -> usize {
        self.controls + self.formats + self.variations + self.unknown + self.fillers + self.marks
    }

    /// How many look-alikes were folded.
    pub fn folded(&self) -> usize {
        self.everyday + self.disguised
    }

    /// How much of it is a signal against the writer. Joiners, selectors and typographic quotes are everyday
    /// writing in many scripts; tags, overrides, invisible padding and disguised brackets are not.
    pub fn severity(&self) -> Severity {
        let hidden = self.covert + self.unknown + self.fillers + self.controls;
        let suspicious = hidden > 0 || self.disguised > 0 || self.marks > 8 || !self.phrases.is_empty();
        if suspicious { Severity::Warn } else { Severity::Info }
    }

    /// Adds what was found in another text of the same writer.
    pub fn add(&mut self, other: &Self) {
        self.controls += other.controls;
        self.formats += other.formats;
        self.covert += other.covert;
        self.variations += other.variations;
        self.unknown += other.unknown;
        self.fillers += other.fillers;
        self.marks += other.marks;
        self.everyday += other.everyday;
        self.disguised += other.disguised;
        self.style += other.style;
        self.cut += other.cut;
        for phrase in &other.phrases {
            if !self.phrases.contains(phrase) {
                self.phrases.push(phrase);
            }
        }
    }
}

/// Rounds of cleaning before a text that will not settle is cut down to plain ASCII. Two settle every text that
/// we know of: each step can uncover work for an earlier one (a dropped joiner lets letters compose), and each
/// round takes something away.
const ROUNDS_MAX: usize = 8;
/// Normalising may write one character as up to eighteen: what is over twice the limit is cut.
const GROWTH_MAX: usize = 2;

/// Cleans a text of at most `chars_max` characters; what is longer is cut and counted.
pub fn sanitise(text: &str, chars_max: usize) -> (Clean, Report) {
    let mut report = Report::default();
    let (within, over) = cut(text, chars_max);
    let settled = settle(within, &mut report);
    let (within, grown) = cut(&settled, chars_max.saturating_mul(GROWTH_MAX));
    report.cut = over + grown;
    // A cut can leave a piece of a line that reads as style.
    let clean = Clean(if grown > 0 { settle(within, &mut report) } else { within });
    report.phrases = phrases::found(clean.as_str());
    (clean, report)
}

/// Cleans a name or another text that has to stand on one line.
pub fn sanitise_line(text: &str, chars_max: usize) -> (Clean, Report) {
    let (clean, mut report) = sanitise(text, chars_max);
    let line = clean.0.split_whitespace().collect::<Vec<_>>().join(" ");
    // Joined lines can read as style that none of them was.
    let line = settle(line, &mut report);
    (Clean(line), report)
}

/// Cleans until nothing changes.
fn settle(text: String, report: &mut Report) -> String {
    let mut current = text;
    for _ in 0..ROUNDS_MAX {
        let next = clean_once(&current, report);
        if next == current {
            return current;
        }
        current = next;
    }
    plain(&current)
}

fn cut(text: &str, chars_max: usize) -> (String, usize) {
    let mut chars = text.chars();
    let kept: String = chars.by_ref().take(chars_max).collect();
    (kept, chars.count())
}

fn clean_once(text: &str, report: &mut Report) -> String {
    // What normalising itself makes plain is folded too: full-width and small forms.
    let wide =
        |c: &char| !c.is_ascii() && std::iter::once(*c).nfkc().all(|plain| "<>&\"{}[]`".contains(plain));
    report.everyday += text.chars().filter(wide).count();
    let normal: String = text.nfkc().collect();
    let lines = normal.replace("\r\n", "\n").replace(['\r', '\u{85}', '\u{2028}', '\u{2029}'], "\n");
    let visible = drop_hidden(&lines, report);
    // Letters that a dropped character held apart compose now.
    let composed: String = visible.nfkc().collect();
    let capped = cap_marks(&composed, report);
    let folded = fold(&capped, report);
    let (flat, went) = style::flatten(&folded);
    report.style += went;
    flat
}

fn drop_hidden(text: &str, report: &mut Report) -> String {
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        match hidden(c) {
            None if c.general_category() == GeneralCategory::SpaceSeparator => kept.push(' '),
            None => kept.push(c),
            Some(Hidden::Control) => report.controls += 1,
            Some(Hidden::Format) => {
                report.formats += 1;
                report.covert += usize::from(is_covert(c));
            }
            Some(Hidden::Variation) => report.variations += 1,
            Some(Hidden::Unknown) => report.unknown += 1,
            Some(Hidden::Filler) => report.fillers += 1,
        }
    }
    kept
}

/// Why a character is dropped.
enum Hidden {
    Control,
    Format,
    Variation,
    Unknown,
    Filler,
}

fn hidden(c: char) -> Option<Hidden> {
    match c {
        '\n' | '\t' => return None,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' | '\u{180f}' => {
            return Some(Hidden::Variation);
        }
        // Hangul fillers, the grapheme joiner, Khmer's inherent vowels, Braille's blank: assigned, and empty.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{34f}' | '\u{17b4}' | '\u{17b5}'
        | '\u{2800}' => {
            return Some(Hidden::Filler);
        }
        _ => {}
    }
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a list of what is dropped; every other category shows"
    )]
    match c.general_category() {
        GeneralCategory::Control => Some(Hidden::Control),
        GeneralCategory::Format => Some(Hidden::Format),
        GeneralCategory::PrivateUse | GeneralCategory::Unassigned | GeneralCategory::Surrogate => {
            Some(Hidden::Unknown)
        }
        _ => None,
    }
}

/// Tags, overrides and isolates: invisible, and no one's everyday writing.
const fn is_covert(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Most combining marks that one base keeps.
const MARKS_MAX: usize = 3;

fn cap_marks(text: &str, report: &mut Report) -> String {
    let mut marks = 0;
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        marks = if c.general_category_group() == GeneralCategoryGroup::Mark { marks + 1 } else { 0 };
        if marks > MARKS_MAX {
            report.marks += 1;
        } else {
            kept.push(c);
        }
    }
    kept
}

fn fold(text: &str, report: &mut Report) -> String {
    let mut before = None;
    let mut chars = text.chars().peekable();
    let mut folded = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        let plain = look_alikes::sign(c).or_else(|| look_alikes::letter(before, c, chars.peek().copied()));
        if let Some(plain) = plain {
            let everyday = look_alikes::is_everyday(c, plain);
            report.everyday += usize::from(everyday);
            report.disguised += usize::from(!everyday);
        }
        folded.push(plain.unwrap_or(c));
        before = Some(c);
    }
    folded
}

/// The last resort for a text that does not settle: words one space apart, which nothing above changes.
fn plain(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { ' ' };
    text.chars().map(kept).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
