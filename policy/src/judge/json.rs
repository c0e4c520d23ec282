//! JSON as strict as the reader needs it (J9).
//!
//! Not `serde_json`: what decides is whether a reply is accepted, and common parsers keep the last of two equal
//! keys, turn numbers into floats and round huge ones. Here a duplicate key at any depth is an error, and a
//! number keeps its text. RFC 8259, UTF-8 alone, no byte-order mark.

/// Deepest nesting; a reply needs two.
const DEPTH_MAX: usize = 16;
/// Longest text; twenty appellants need under 64 KiB.
const BYTES_MAX: usize = 1 << 20;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A string, its escapes resolved.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in the order of its keys; no key twice.
    Object(Vec<(String, Json)>),
}

/// Why bytes are no JSON text that we take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Over a mebibyte.
    #[error("it has {bytes} bytes, more than {BYTES_MAX}")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// Not UTF-8.
    #[error("byte {at} is not UTF-8")]
    NotUtf8 {
        /// Offset of the byte.
        at: usize,
    },
    /// A key that the object has already.
    #[error("key {key:?} stands twice in one object, at byte {at}")]
    DuplicateKey {
        /// The key, its escapes resolved.
        key: String,
        /// Where the second one ends.
        at: usize,
    },
    /// Nested too deeply.
    #[error("it is nested deeper than {DEPTH_MAX} at byte {at}")]
    TooDeep {
        /// Where.
        at: usize,
    },
    /// Something else than the grammar allows.
    #[error("byte {at} is not {wanted}")]
    Unexpected {
        /// Where.
        at: usize,
        /// What should stand there.
        wanted: &'static str,
    },
}

/// Parses one JSON text: a value with nothing round it but white space.
///
/// # Errors
/// [`JsonError`] for the first thing that is wrong.
pub fn parse(bytes: &[u8]) -> Result<Json, JsonError> {
    if bytes.len() > BYTES_MAX {
        return Err(JsonError::TooLong { bytes: bytes.len() });
    }
    let text = str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8 { at: error.valid_up_to() })?;
    let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
    parser.skip_space();
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.peek().is_some() { Err(parser.unexpected("the end")) } else { Ok(value) }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    const fn unexpected(&self, wanted: &'static str) -> JsonError {
        JsonError::Unexpected { at: self.at, wanted }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it stands here.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, byte: u8, wanted: &'static str) -> Result<(), JsonError> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        if depth >= DEPTH_MAX {
            return Err(JsonError::TooDeep { at: self.at });
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        for &byte in word.as_bytes() {
            self.require(byte, word)?;
        }
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.require(b'{', "an object")?;
        let mut members: Vec<(String, Json)> = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            let key = self.text()?;
            if members.iter().any(|(known, _)| *known == key) {
                return Err(JsonError::DuplicateKey { key, at: self.at });
            }
            self.skip_space();
            self.require(b':', "a colon")?;
            self.skip_space();
            members.push((key, self.value(depth + 1)?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            self.require(b',', "a comma or a closing brace")?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.require(b'[', "an array")?;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            self.require(b',', "a comma or a closing bracket")?;
        }
    }

    /// A number by the grammar: no leading zero, digits on both sides of a point.
    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        let written = self.bytes.get(start..self.at).unwrap_or_default();
        Ok(Json::Number(written.iter().copied().map(char::from).collect()))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn text(&mut self) -> Result<String, JsonError> {
        self.require(b'"', "a string")?;
        let mut text = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    let mut buffer = [0; 4];
                    text.extend_from_slice(self.escape()?.encode_utf8(&mut buffer).as_bytes());
                }
                Some(byte) if byte >= 0x20 => {
                    text.push(byte);
                    self.at += 1;
                }
                _ => return Err(self.unexpected("a character of a string")),
            }
        }
        self.at += 1;
        // Whole runs of a valid text between ASCII bytes are valid.
        String::from_utf8(text).map_err(|_broken| self.unexpected("UTF-8"))
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let c = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.unexpected("an escape")),
        };
        self.at += 1;
        Ok(c)
    }

    /// The character of `XXXX`, or of a pair of surrogates; half a pair is no character.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            self.require(b'\\', "the second half of a surrogate pair")?;
            self.require(b'u', "the second half of a surrogate pair")?;
            let second = self.hex()?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
            0x10000 + (first - 0xd800) * 0x400 + low.ok_or_else(|| self.unexpected("a low surrogate"))?
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("a character"))
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("a hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_the_grammar_allows_is_read() {
        let read = parse(br#" {"a":[0,-1,2.50,1e9,true,null],"\u0062":"x\n\ud83d\ude00\/"} "#).unwrap();
        let number = |text: &str| Json::Number(text.to_owned());
        let list =
            vec![number("0"), number("-1"), number("2.50"), number("1e9"), Json::Bool(true), Json::Null];
        let text = Json::Text("x\n😀/".to_owned());
        assert_eq!(read, Json::Object(vec![("a".to_owned(), Json::List(list)), ("b".to_owned(), text)]));
    }

    #[test]
    fn a_key_twice_is_refused_at_any_depth_and_in_any_spelling() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"\u0061":2}]}"#] {
            assert!(matches!(parse(text.as_bytes()), Err(JsonError::DuplicateKey { key, .. }) if key == "a"));
        }
        assert!(parse(br#"{"a":{"a":1}}"#).is_ok());
    }

    #[test]
    fn what_the_grammar_forbids_is_refused() {
        for text in [
            "",
            "{",
            "{}x",
            "```json\n{}\n```",
            "\u{feff}{}",
            "{'a':1}",
            "{a:1}",
            "{\"a\":1,}",
            "[1,]",
            "01",
            "+1",
            "1.",
            ".5",
            "1e",
            "-",
            "NaN",
            "Infinity",
            "\"\t\"",
            r#""\x""#,
            r#""\ud800""#,
            r#""\ud800\u0041""#,
            r#""\udc00""#,
            "{}{}",
            "tru",
            "// c\n{}",
            "{\"a\" 1}",
            "\u{a0}{}",
        ] {
            assert!(matches!(parse(text.as_bytes()), Err(JsonError::Unexpected { .. })), "{text:?}");
        }
        assert_eq!(parse(b"\"\xff\""), Err(JsonError::NotUtf8 { at: 1 }));
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(parse(nested(DEPTH_MAX + 1).as_bytes()), Err(JsonError::TooDeep { at: DEPTH_MAX }));
        assert!(matches!(parse(&vec![b' '; BYTES_MAX + 1]), Err(JsonError::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_answer(bytes: Vec<u8>) {
            let answer = parse(&bytes);
            prop_assert_eq!(answer, parse(&bytes));
        }

        #[test]
        fn what_another_parser_writes_is_read_alike(text in ".*", number: i64) {
            let written = serde_json::json!({ "text": text, "n": number }).to_string();
            let read = parse(written.as_bytes()).unwrap();
            // `serde_json` sorts keys.
            let expected = vec![
                ("n".to_owned(), Json::Number(number.to_string())), ("text".to_owned(), Json::Text(text)),
            ];
            prop_assert_eq!(read, Json::Object(expected));
        }

        #[test]
        fn what_we_accept_another_parser_accepts(text in r#"[\[\]{}:,"\\a-c0-9.eE+\- \n]{0,24}"#) {
            if parse(text.as_bytes()).is_ok() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
        }
    }
}
