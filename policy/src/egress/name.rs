//! Host names: one canonical spelling, or none.

use std::fmt;

/// Longest name, in bytes without the trailing dot (RFC 1035 section 2.3.4: 255 on the wire).
const NAME_BYTES_MAX: usize = 253;
/// Longest label, in bytes (RFC 1035 section 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// Why bytes are no host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing, or a dot alone.
    #[error("it is empty")]
    Empty,
    /// More than 253 bytes.
    #[error("it has {len} bytes, more than 253")]
    TooLong {
        /// Bytes that it has.
        len: usize,
    },
    /// A byte outside `[A-Za-z0-9_.-]`.
    #[error("byte {at} is {byte:#04x}, and only letters, digits, `-`, `_` and `.` make a name")]
    BadByte {
        /// Offset of the byte, from zero.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// Two dots in a row, or one at the start.
    #[error("it has an empty label")]
    EmptyLabel,
    /// A label of more than 63 bytes.
    #[error("a label has {len} bytes, more than 63")]
    LabelTooLong {
        /// Bytes that the label has.
        len: usize,
    },
    /// A label that begins or ends with a hyphen.
    #[error("a label begins or ends with a hyphen")]
    Hyphen,
    /// The last label is digits only or begins `0x`: some resolvers read such text as an IPv4 address.
    #[error("its last label reads as part of an IPv4 address")]
    Numeric,
}

/// A host name in its one canonical spelling: lower case, no trailing dot, 1 to 253 bytes.
///
/// Labels are 1 to 63 bytes of `[a-z0-9_-]` without a hyphen at either end (service labels with `_` may). The
/// last label is neither digits only nor begins `0x`, which is what keeps `127.1`, `2130706433`, `0x7f000001` and
/// `0177.0.0.1` from being names: the WHATWG URL standard's "ends in a number" test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Box<str>);

impl HostName {
    /// Parses bytes from outside; one trailing dot is folded and letters are lower-cased.
    ///
    /// # Errors
    /// [`NameError`] names the first thing that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, NameError> {
        Self::parse_without_dot(bytes.strip_suffix(b".").unwrap_or(bytes))
    }

    /// Parses bytes in which a trailing dot is not allowed (RFC 6066 section 3: a server name has none).
    ///
    /// # Errors
    /// [`NameError`]; a trailing dot is an [`NameError::EmptyLabel`].
    pub fn parse_without_dot(bytes: &[u8]) -> Result<Self, NameError> {
        if bytes.is_empty() {
            return Err(NameError::Empty);
        }
        if let Some((at, &byte)) = bytes.iter().enumerate().find(|&(_, &b)| !(is_label_byte(b) || b == b'.'))
        {
            return Err(NameError::BadByte { at, byte });
        }
        if bytes.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong { len: bytes.len() });
        }
        bytes.split(|&b| b == b'.').try_for_each(check_label)?;
        let last = bytes.rsplit(|&b| b == b'.').next().unwrap_or(bytes);
        if is_numeric(last) {
            return Err(NameError::Numeric);
        }
        Ok(Self(
            bytes.iter().map(|b| char::from(b.to_ascii_lowercase())).collect::<String>().into_boxed_str(),
        ))
    }

    /// The canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Every name above this one, nearest first: `a.b.c` gives `b.c`, `c`.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (_, above) = rest.split_once('.')?;
            rest = above;
            Some(above)
        })
    }

    /// Whether this is a strict subdomain of `parent`, at a label boundary.
    pub fn is_under(&self, parent: &str) -> bool {
        self.0.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn check_label(label: &[u8]) -> Result<(), NameError> {
    if label.is_empty() {
        return Err(NameError::EmptyLabel);
    }
    if label.len() > LABEL_BYTES_MAX {
        return Err(NameError::LabelTooLong { len: label.len() });
    }
    let hyphen = label.starts_with(b"-") || label.ends_with(b"-");
    if hyphen && !label.contains(&b'_') {
        return Err(NameError::Hyphen);
    }
    Ok(())
}

fn is_numeric(label: &[u8]) -> bool {
    label.iter().all(u8::is_ascii_digit) || matches!(label, [b'0', b'x' | b'X', ..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_name_are_one_value() {
        for text in ["a.example.com", "A.EXAMPLE.com", "a.example.com.", "a.EXAMPLE.Com."] {
            assert_eq!(HostName::parse(text.as_bytes()).unwrap().as_str(), "a.example.com");
        }
    }

    #[test]
    fn service_labels_and_long_names_are_names() {
        let long = [&"a".repeat(63); 3].map(String::as_str).join(".") + "." + &"b".repeat(61);
        assert_eq!(long.len(), 253);
        for text in ["_dmarc.example.com", "-_x.example", "xn--bcher-kva.example", "a", "1.2.3.com", &long] {
            assert!(HostName::parse(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_names() {
        let over = "a.".repeat(126) + "aa";
        assert_eq!(over.len(), 254);
        for (text, why) in [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("a..", NameError::EmptyLabel),
            ("a..b", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("-a.com", NameError::Hyphen),
            ("a-.com", NameError::Hyphen),
            ("127.1", NameError::Numeric),
            ("2130706433", NameError::Numeric),
            ("0x7f000001", NameError::Numeric),
            ("a.0X7f", NameError::Numeric),
            ("0177.0.0.1", NameError::Numeric),
            ("127.0.0.1.", NameError::Numeric),
            ("a\0.com", NameError::BadByte { at: 1, byte: 0 }),
            ("a%00.com", NameError::BadByte { at: 1, byte: b'%' }),
            ("a b.com", NameError::BadByte { at: 1, byte: b' ' }),
            ("[a]", NameError::BadByte { at: 0, byte: b'[' }),
            ("a。b", NameError::BadByte { at: 1, byte: 0xe3 }),
            (&over, NameError::TooLong { len: 254 }),
            (&"a".repeat(64), NameError::LabelTooLong { len: 64 }),
        ] {
            assert_eq!(HostName::parse(text.as_bytes()), Err(why), "{text:?}");
        }
    }

    #[test]
    fn under_means_a_label_boundary() {
        let name = |text: &str| HostName::parse(text.as_bytes()).unwrap();
        assert!(name("a.trusted.net").is_under("trusted.net"));
        assert!(name("a.b.trusted.net").is_under("trusted.net"));
        assert!(!name("trusted.net").is_under("trusted.net"));
        assert!(!name("nottrusted.net").is_under("trusted.net"));
        assert!(!name("trusted.net.evil.example").is_under("trusted.net"));
        assert_eq!(name("a.b.c").parents().collect::<Vec<_>>(), ["b.c", "c"]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_the_canonical_form_is_a_fixed_point(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(name) = HostName::parse(&bytes) {
                prop_assert_eq!(HostName::parse_without_dot(name.as_str().as_bytes()), Ok(name));
            }
        }

        #[test]
        fn names_survive_case_and_a_dot(text in "[a-zA-Z0-9_]{1,20}(\\.[a-zA-Z0-9_]{1,20}){0,4}\\.[a-zA-Z]{2,9}") {
            let plain = HostName::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(plain.as_str(), text.to_ascii_lowercase());
            prop_assert_eq!(HostName::parse(format!("{}.", text.to_ascii_uppercase()).as_bytes()).unwrap(), plain);
        }
    }
}
