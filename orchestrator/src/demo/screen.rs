//! What the demo shows: plain lines to a pipe, the same lines with weight to a terminal.

use std::io::{IsTerminal, Write};

/// Where lines go. With `--json` the summary alone goes to standard output, and everything else to standard error.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    aside: bool,
    styled: bool,
}

impl Screen {
    /// A screen; `aside` keeps standard output free.
    pub fn new(aside: bool) -> Self {
        let styled = if aside { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        Self { aside, styled }
    }

    /// One line.
    pub fn line(self, text: &str) {
        let told = if self.aside {
            writeln!(std::io::stderr(), "{text}")
        } else {
            writeln!(std::io::stdout(), "{text}")
        };
        // A reader that has gone (`| head`) ends no run: it still has to be taken down in order.
        drop(told);
    }

    /// A heading, with a blank line before it.
    pub fn heading(self, text: &str) {
        self.line("");
        self.line(&self.weighted("1", &text.to_uppercase()));
    }

    /// A paragraph, wrapped at 100 columns and set in.
    pub fn paragraph(self, indent: &str, text: &str) {
        for line in text.lines() {
            for wrapped in wrap(line, 100 - indent.len().min(60)) {
                self.line(&format!("{indent}{wrapped}"));
            }
        }
    }

    /// A table: the first row names the columns; numbers are set right.
    pub fn table(self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> =
            (0..columns).map(|at| cells(at).map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
        for (number, row) in rows.iter().enumerate() {
            let padded = row.iter().zip(&widths).map(|(cell, &width)| {
                if is_figure(cell) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            let line = format!("  {}", padded.collect::<Vec<_>>().join("  "));
            let line = line.trim_end();
            self.line(&if number == 0 { self.weighted("2", line) } else { line.to_owned() });
        }
    }

    /// One check.
    pub fn check(self, held: bool, name: &str, detail: &str) {
        let mark = if held { self.weighted("32", "ok    ") } else { self.weighted("1;31", "FAILED") };
        self.line(&format!("  {mark}  {name}: {detail}"));
    }

    fn weighted(self, code: &str, text: &str) -> String {
        if self.styled { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn is_figure(cell: &str) -> bool {
    cell.starts_with(|first: char| first.is_ascii_digit() || first == '$')
        || cell.starts_with("-$") && cell.len() > 2
}

fn wrap(line: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_whitespace() {
        if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > columns {
            lines.push(std::mem::take(&mut current));
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_at_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("longerthanseven x", 7), ["longerthanseven", "x"]);
    }
}
