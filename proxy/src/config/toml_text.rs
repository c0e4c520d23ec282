//! TOML with a place for every value, so that all that is wrong is told at once.

use std::collections::BTreeMap;
use std::ops::Range;

use policy::Mistake;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Collects mistakes by offset, and remembers where each value stood by its path.
#[derive(Debug, Default)]
pub(super) struct Notes {
    found: Vec<(usize, String)>,
    places: BTreeMap<String, usize>,
}

impl Notes {
    pub(super) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn add(&mut self, at: usize, what: impl Into<String>) {
        self.found.push((at, what.into()));
    }

    /// Notes a mistake at the value with this path, or at the nearest one above it that the file has.
    pub(super) fn add_at(&mut self, path: &str, what: impl Into<String>) {
        let mut known = path;
        let at = loop {
            if let Some(&at) = self.places.get(known) {
                break at;
            }
            match known.rfind(['.', '[']).and_then(|cut| known.get(..cut)) {
                Some(above) => known = above,
                None => break 0,
            }
        };
        self.add(at, what);
    }

    fn place(&mut self, path: &str, span: &Range<usize>) {
        self.places.insert(path.to_owned(), span.start);
    }

    /// Every mistake with line and column, in the order of the text.
    pub(super) fn into_mistakes(mut self, text: &str) -> Vec<Mistake> {
        self.found.sort();
        self.found.dedup();
        self.found.into_iter().map(|(at, what)| Mistake::at(text, at, what)).collect()
    }
}

/// Reads a text: what `read` makes of its top table, or every mistake.
pub(super) fn read<T>(
    text: &str,
    read: impl FnOnce(Table<'_, '_>, &mut Notes) -> T,
) -> Result<T, Vec<Mistake>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut notes = Notes::default();
    for error in errors {
        notes.add(error.span().map_or(0, |span| span.start), error.message());
    }
    let value = read(Table::new(table.get_ref(), String::new()), &mut notes);
    if notes.found.is_empty() { Ok(value) } else { Err(notes.into_mistakes(text)) }
}

/// One table whose keys are taken one by one; what nobody took is unknown.
#[derive(Debug)]
pub(super) struct Table<'a, 'i> {
    keys: &'a DeTable<'i>,
    path: String,
    taken: Vec<&'static str>,
}

impl<'a, 'i> Table<'a, 'i> {
    const fn new(keys: &'a DeTable<'i>, path: String) -> Self {
        Self { keys, path, taken: Vec::new() }
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn value(&mut self, key: &'static str, notes: &mut Notes) -> Option<&'a Spanned<DeValue<'i>>> {
        self.taken.push(key);
        let value = self.keys.get(key)?;
        notes.place(&self.path_of(key), &value.span());
        Some(value)
    }

    pub(super) fn text(&mut self, key: &'static str, notes: &mut Notes) -> Option<String> {
        let value = self.value(key, notes)?;
        as_text(value, notes)
    }

    pub(super) fn number(&mut self, key: &'static str, notes: &mut Notes) -> Option<i64> {
        let value = self.value(key, notes)?;
        as_number(value, notes)
    }

    pub(super) fn flag(&mut self, key: &'static str, notes: &mut Notes) -> Option<bool> {
        let value = self.value(key, notes)?;
        value.get_ref().as_bool().or_else(|| expected("true or false", value, notes))
    }

    pub(super) fn texts(&mut self, key: &'static str, notes: &mut Notes) -> Option<Vec<String>> {
        self.list(key, notes, as_text)
    }

    pub(super) fn numbers(&mut self, key: &'static str, notes: &mut Notes) -> Option<Vec<i64>> {
        self.list(key, notes, as_number)
    }

    fn list<T>(
        &mut self,
        key: &'static str,
        notes: &mut Notes,
        item: fn(&Spanned<DeValue<'i>>, &mut Notes) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.value(key, notes)?;
        let Some(array) = value.get_ref().as_array() else { return expected("a list", value, notes) };
        let mut items = Vec::with_capacity(array.len());
        for (index, element) in array.iter().enumerate() {
            notes.place(&format!("{}[{index}]", self.path_of(key)), &element.span());
            items.extend(item(element, notes));
        }
        Some(items)
    }

    pub(super) fn table(&mut self, key: &'static str, notes: &mut Notes) -> Option<Self> {
        let path = self.path_of(key);
        let value = self.value(key, notes)?;
        as_table(value, path, notes)
    }

    /// A list of tables.
    pub(super) fn tables(&mut self, key: &'static str, notes: &mut Notes) -> Vec<Self> {
        let path = self.path_of(key);
        let Some(value) = self.value(key, notes) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            return expected("a list of tables", value, notes).unwrap_or_default();
        };
        let mut tables = Vec::with_capacity(array.len());
        for (index, element) in array.iter().enumerate() {
            let path = format!("{path}[{index}]");
            notes.place(&path, &element.span());
            tables.extend(as_table(element, path, notes));
        }
        tables
    }

    /// Every entry as a table, by its key, with the key's place.
    pub(super) fn entries(self, notes: &mut Notes) -> Vec<(String, usize, Self)> {
        let mut entries = Vec::new();
        for (key, value) in self.keys {
            let path = self.path_of(key.get_ref());
            notes.place(&path, &key.span());
            if let Some(table) = as_table(value, path, notes) {
                entries.push((key.get_ref().to_string(), key.span().start, table));
            }
        }
        entries
    }

    /// Notes every key that nobody took.
    pub(super) fn finish(self, notes: &mut Notes) {
        for key in self.keys.keys().filter(|key| !self.taken.contains(&&**key.get_ref())) {
            let known = self.taken.join(", ");
            notes.add(key.span().start, format!("unknown key {:?}; known are: {known}", key.get_ref()));
        }
    }
}

fn expected<T>(what: &str, value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<T> {
    notes.add(value.span().start, format!("expected {what}, found {}", value.get_ref().type_str()));
    None
}

fn as_text(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<String> {
    value.get_ref().as_str().map(str::to_owned).or_else(|| expected("text in quotes", value, notes))
}

fn as_number(value: &Spanned<DeValue<'_>>, notes: &mut Notes) -> Option<i64> {
    let Some(integer) = value.get_ref().as_integer() else { return expected("a whole number", value, notes) };
    i64::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .or_else(|| expected("a number of 64 bits", value, notes))
}

fn as_table<'a, 'i>(
    value: &'a Spanned<DeValue<'i>>,
    path: String,
    notes: &mut Notes,
) -> Option<Table<'a, 'i>> {
    match value.get_ref().as_table() {
        Some(table) => Some(Table::new(table, path)),
        None => expected("a table", value, notes),
    }
}
