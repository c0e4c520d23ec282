//! Takes the form out of a text and leaves its words (J6): headings, tables, fences, emphasis, emoji.
//!
//! Figures are never touched: a mark between two letters or digits leaves a space, and a leading minus before a
//! number stays.

use unicode_properties::UnicodeEmoji;

/// The text without style, and how many characters went.
pub(super) fn flatten(text: &str) -> (String, usize) {
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let flat = flat_line(line);
        // One blank line separates paragraphs; more are form.
        if !(flat.is_empty() && lines.last().is_none_or(String::is_empty)) {
            lines.push(flat);
        }
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let flat = lines.join("\n");
    let went = text.chars().count().saturating_sub(flat.chars().count());
    (flat, went)
}

fn flat_line(line: &str) -> String {
    let bare = without_lead(line.trim());
    if is_rule(bare) { String::new() } else { spaced_once(&without_marks(bare)) }
}

/// The line without heading, quote and list marks in front of it.
fn without_lead(line: &str) -> &str {
    let mut line = line;
    loop {
        let rest = line.trim_start_matches('#');
        let rest = if rest.len() < line.len() && !rest.starts_with([' ', '\t']) && !rest.is_empty() {
            line // `#tag` is a word
        } else {
            let rest = rest.trim_start();
            let marked = ["- ", "* ", "+ ", "> ", "• "].iter().find_map(|mark| rest.strip_prefix(mark));
            marked.map_or(rest, |after| if starts_amount(after) { rest } else { after.trim_start() })
        };
        if rest == line {
            return line;
        }
        line = rest;
    }
}

/// Whether the text starts with an amount, of which a mark in front may be the sign.
fn starts_amount(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_numeric() || matches!(c, '$' | '€' | '£'))
}

/// Whether a line only draws: a rule, a table's or heading's underline.
fn is_rule(line: &str) -> bool {
    line.chars().count() >= 3 && line.chars().all(|c| "-=_*:~|+# ".contains(c))
}

/// The line without emphasis, backticks, table bars and emoji.
fn without_marks(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let run = chars.iter().skip(at).take_while(|&&next| next == c).count();
        if is_mark(c, run) {
            let after = chars.get(at + run).copied();
            if c == '|' || out.ends_with(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric) {
                out.push(' ');
            }
        } else {
            out.extend(std::iter::repeat_n(c, run));
        }
        at += run;
    }
    out
}

fn is_mark(c: char, run: usize) -> bool {
    match c {
        '`' | '|' => true,
        '*' | '_' | '~' => run >= 2,
        _ => is_picture(c),
    }
}

/// Emoji and their modifiers; not digits, signs of the keyboard, arrows or marks of trade.
fn is_picture(c: char) -> bool {
    !c.is_ascii() && !matches!(c, '©' | '®' | '\u{2190}'..='\u{21ff}') && c.is_emoji_char_or_emoji_component()
}

/// Runs of spaces and tabs as one: a tab where it was one alone, else a space.
fn spaced_once(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            ' ' | '\t' if out.ends_with(' ') => {}
            ' ' | '\t' if out.ends_with('\t') => {
                out.pop();
                out.push(' ');
            }
            _ => out.push(c),
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_goes_and_words_stay() {
        let text =
            "# Title\n\n\n* **bold** and `code`\n> quoted\n|a|b|\n|---|---|\n```\nx\n```\n🚀 ship it 🎉";
        assert_eq!(flatten(text).0, "Title\n\nbold and code\nquoted\na b\n\nx\n\nship it");
    }

    #[test]
    fn figures_keep_their_signs_and_digits() {
        let text = "- $5 lost\n-7\n2**3 and 4*5\n1️2\n> 3 sales\n3. third\n#1 in sales";
        assert_eq!(
            flatten(&text.replace('\u{fe0f}', "")).0,
            "- $5 lost\n-7\n2 3 and 4*5\n12\n> 3 sales\n3. third\n#1 in sales"
        );
    }
}
