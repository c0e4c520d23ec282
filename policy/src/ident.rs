//! Names that cross process boundaries, parsed once at the door.

use std::fmt;

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentError {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text is longer than the limit, in bytes.
    #[error("it has {len} bytes, more than {limit}")]
    TooLong {
        /// Bytes that the text has.
        len: usize,
        /// Bytes that it may have.
        limit: usize,
    },
    /// A byte outside the alphabet.
    #[error(
        "byte {at} is {byte:#04x}; lower-case letters, digits, `-`, `_` and `.` are allowed, and the first is a letter or digit"
    )]
    BadByte {
        /// Offset of the byte, from zero.
        at: usize,
        /// The byte.
        byte: u8,
    },
}

/// Longest identifier, in bytes: with its prefix it must fit a systemd descriptor name (255 bytes, no colon).
pub const IDENT_BYTES_MAX: usize = 64;

fn check(text: &str) -> Result<(), IdentError> {
    if text.is_empty() {
        return Err(IdentError::Empty);
    }
    if text.len() > IDENT_BYTES_MAX {
        return Err(IdentError::TooLong { len: text.len(), limit: IDENT_BYTES_MAX });
    }
    let fits = |at: usize, byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || (at > 0 && matches!(byte, b'-' | b'_' | b'.'))
    };
    match text.bytes().enumerate().find(|&(at, byte)| !fits(at, byte)) {
        Some((at, byte)) => Err(IdentError::BadByte { at, byte }),
        None => Ok(()),
    }
}

macro_rules! ident {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// 1 to 64 bytes of `[a-z0-9._-]`, the first a letter or digit.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
        pub struct $name(String);

        impl $name {
            /// Parses a text from outside.
            ///
            /// # Errors
            /// [`IdentError`] names the first thing that is wrong.
            pub fn parse(text: &str) -> Result<Self, IdentError> {
                check(text).map(|()| Self(text.to_owned()))
            }

            /// The text, as parsed.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdentError;
            fn try_from(text: String) -> Result<Self, IdentError> {
                check(&text).map(|()| Self(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdentError;
            fn from_str(text: &str) -> Result<Self, IdentError> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

ident! {
    /// One agent, in every process, log and interface.
    AgentId
}
ident! {
    /// The name of an egress profile in the root-owned policy file.
    ProfileName
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_identifiers() {
        for text in ["a", "agent-7", "0x", "listen-1", "a.b_c-d", &"a".repeat(64)] {
            assert_eq!(AgentId::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn hostile_names_are_no_identifiers() {
        assert_eq!(AgentId::parse(""), Err(IdentError::Empty));
        assert_eq!(AgentId::parse(&"a".repeat(65)), Err(IdentError::TooLong { len: 65, limit: 64 }));
        for (text, at) in
            [("-a", 0), ("a:b", 1), ("a\"", 1), ("a}", 1), ("a\n", 1), ("A", 0), ("a/b", 1), ("é", 0)]
        {
            assert!(
                matches!(AgentId::parse(text), Err(IdentError::BadByte { at: found, .. }) if found == at),
                "{text:?}"
            );
        }
    }
}
