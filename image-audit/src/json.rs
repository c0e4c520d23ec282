//! JSON as Go decodes it into a struct: the letters of a key may be of either case, and the last of two counts.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value that keeps every key of an object, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that is a whole one from 0 up.
    Whole(u64),
    /// Any other number; no document that is read here has a use for one.
    OtherNumber,
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object: keys may repeat.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a whole document.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The field that Go would decode into one of that name; `null` counts as absent.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        let folded = |(key, _): &&(String, Self)| fold(key) == fold(name);
        fields.iter().rev().find(folded).map(|(_, value)| value).filter(|value| **value != Self::Null)
    }

    /// The field of exactly that name: keys of Go maps are not folded.
    pub(crate) fn key(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The items, if it is a list.
    pub(crate) fn list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The whole number, if it is one.
    pub(crate) fn whole(&self) -> Option<u64> {
        if let Self::Whole(number) = self { Some(*number) } else { None }
    }
}

/// A key as Go compares it: small letters, and the two characters that Unicode folds into ASCII.
fn fold(key: &str) -> String {
    key.chars()
        .map(|c| match c {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Json, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(field) = fields.next_entry()? {
            object.push(field);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_counts_whatever_its_case() {
        let json = Json::parse(br#"{"User": "root", "user": "app", "U\u017fER": "x"}"#).expect("valid");
        assert_eq!(json.field("User").and_then(Json::text), Some("x"));
        assert_eq!(json.key("User").and_then(Json::text), Some("root"));
        assert_eq!(json.field("Use"), None);
    }

    #[test]
    fn depth_is_bounded() {
        assert!(Json::parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(Json::parse(b"[[1]] x").is_err());
        assert!(Json::parse(b"[[1, -2, 3.5, null, true]]").is_ok());
    }
}
