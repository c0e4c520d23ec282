//! Reads a TOML text into a `serde` type and collects *every* mistake, each with its place.
//!
//! `serde` stops at the first mistake. So what was wrong is struck out and the rest is read again, until nothing
//! is wrong or nothing can be struck out any more.

use std::ops::Range;

use policy::Mistake;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most mistakes that are looked for in one text.
const MISTAKES_MAX: usize = 100;

/// The text's mistakes so far.
#[derive(Debug)]
pub struct Mistakes<'t> {
    text: &'t str,
    found: Vec<Mistake>,
}

impl<'t> Mistakes<'t> {
    /// None yet.
    pub fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new() }
    }

    /// Notes one at a byte offset of the text.
    pub fn note(&mut self, span: &Range<usize>, what: impl Into<String>) {
        self.found.push(Mistake::at(self.text, span.start, what));
    }

    /// Notes one at a dotted path of keys; where the text does not have it, at the innermost table that it has.
    pub fn note_at(&mut self, path: &str, what: impl Into<String>) {
        let (span, whole) = place(self.text, path);
        let what = what.into();
        self.note(&span, if whole { what } else { format!("{path}: {what}") });
    }

    /// Notes that a key is missing, unless the text has it: then what is wrong with it has been noted.
    pub fn note_missing(&mut self, path: &str, what: &str) {
        if !place(self.text, path).1 {
            self.note(&(0..0), what);
        }
    }

    /// All of them, in the order of the text.
    ///
    /// # Errors
    /// The mistakes, if there are any.
    pub fn none_or_all(mut self) -> Result<(), Vec<Mistake>> {
        self.found.sort();
        self.found.dedup();
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}

/// Where the value at a dotted path stands, and whether it is all there; else its innermost table that is.
fn place(text: &str, path: &str) -> (Range<usize>, bool) {
    let (table, _syntax) = DeTable::parse_recoverable(text);
    let mut span = 0..0;
    let mut table = Some(table.get_ref());
    for name in path.split('.') {
        let Some((_key, value)) = table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name))
        else {
            return (span, false);
        };
        span = value.span();
        table = value.get_ref().as_table();
    }
    (span, true)
}

/// Reads `text`, noting what is wrong. `None` where it is no TOML at all, or where what is wrong cannot be left out.
pub fn read<T: DeserializeOwned>(text: &str, mistakes: &mut Mistakes<'_>) -> Option<T> {
    let (table, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        mistakes.note(&error.span().unwrap_or(0..0), error.message());
    }
    // What follows a syntax error is a guess: only the syntax is reported then.
    if !syntax.is_empty() {
        return None;
    }
    let mut table = table;
    for _ in 0..MISTAKES_MAX {
        let error = match T::deserialize(toml::de::Deserializer::from(table.clone())) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        mistakes.note(&span, error.message());
        if !strike(table.get_mut(), &span) {
            return None;
        }
    }
    None
}

/// Takes the innermost entry that holds `span` out of the table; false if there is none.
fn strike(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    let holder = table.iter().find(|(key, value)| holds(&key.span(), span) || within(value, span));
    let Some((key, on_key)) = holder.map(|(key, _)| (key.clone(), holds(&key.span(), span))) else {
        return false;
    };
    let struck_inside = !on_key && table.get_mut(&key).is_some_and(|value| strike_value(value, span));
    struck_inside || table.remove(&key).is_some()
}

fn strike_value(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    match value.get_mut() {
        DeValue::Table(table) => strike(table, span),
        DeValue::Array(array) => array.iter_mut().any(|item| within(item, span) && strike_value(item, span)),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => false,
    }
}

/// A table's own span is its header alone, so its entries are asked too.
fn within(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    holds(&value.span(), span)
        || match value.get_ref() {
            DeValue::Table(table) => {
                table.iter().any(|(key, value)| holds(&key.span(), span) || within(value, span))
            }
            DeValue::Array(array) => array.iter().any(|item| within(item, span)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => false,
        }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && !outer.is_empty()
}
