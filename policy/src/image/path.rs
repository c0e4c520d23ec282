//! Paths of an image: bytes, cleaned once, printed so that the printing can be undone.

use std::fmt;

/// A path inside an image, relative to its root: no leading slash, no empty, `.` or `..` component.
///
/// The root itself is empty. Components are bytes: nothing promises that they are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ImagePath(Vec<u8>);

impl ImagePath {
    /// Cleans a name as Go's `path.Clean("/" + name)` does, then drops the slash: `..` stops at the root.
    ///
    /// Whiteouts and files are cleaned by the same function, or a whiteout written `./bin/.wh.su` would miss.
    pub fn clean(name: &[u8]) -> Self {
        Self::root().join(name)
    }

    /// The image's root.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// `name` taken from this directory, `..` stopping at the root; an absolute `name` starts there.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = if name.first() == Some(&b'/') { Vec::new() } else { self.0.clone() };
        for part in name.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." => {
                    let end = bytes.iter().rposition(|&b| b == b'/').unwrap_or(0);
                    bytes.truncate(end);
                }
                part => {
                    if !bytes.is_empty() {
                        bytes.push(b'/');
                    }
                    bytes.extend_from_slice(part);
                }
            }
        }
        Self(bytes)
    }

    /// Reads what [`fmt::Display`] wrote, or a plain path that a person wrote.
    ///
    /// # Errors
    /// [`MalformedEscape`] if a backslash is followed by anything but `\` or `xNN`.
    pub fn unescape(text: &str) -> Result<Self, MalformedEscape> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            rest = match (first, tail) {
                (b'\\', [b'\\', tail @ ..]) => {
                    bytes.push(b'\\');
                    tail
                }
                (b'\\', [b'x', high, low, tail @ ..]) => {
                    bytes.push(hex(*high)? << 4 | hex(*low)?);
                    tail
                }
                (b'\\', _) => return Err(MalformedEscape),
                (byte, tail) => {
                    bytes.push(byte);
                    tail
                }
            };
        }
        Ok(Self::clean(&bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The last component; empty for the root.
    pub fn base(&self) -> &[u8] {
        self.0.rsplit(|&b| b == b'/').next().unwrap_or_default()
    }

    /// The directory that holds it; the root holds itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        let end = self.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
        Self(self.0.get(..end).unwrap_or_default().to_vec())
    }

    /// Every directory above it, nearest first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().rev().filter(|&(_, &b)| b == b'/');
        slashes.map(|(at, _)| Self(self.0.get(..at).unwrap_or_default().to_vec()))
    }

    /// Whether this is the image's root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ImagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escape(&self.0))
    }
}

/// A backslash in a path that begins no escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read the path: a backslash must be written `\\\\`, a byte `\\xNN`")]
pub struct MalformedEscape;

/// Bytes as text that can be undone: not UTF-8 and control characters as `\xNN`, a backslash doubled.
///
/// Control characters are those of Unicode's class Cc, and the marks that turn the direction of writing, so that
/// no name can redraw the terminal that shows it.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_control() || redraws(c) => {
                    let mut buffer = [0; 4];
                    c.encode_utf8(&mut buffer).bytes().for_each(|b| push_hex(&mut out, b));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&b| push_hex(&mut out, b));
    }
    out
}

/// Zero-width characters, line and paragraph separators, marks of direction, the byte-order mark.
const fn redraws(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn push_hex(out: &mut String, byte: u8) {
    out.push_str("\\x");
    for nibble in [byte >> 4, byte & 15] {
        out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
    }
}

fn hex(byte: u8) -> Result<u8, MalformedEscape> {
    let digit = char::from(byte).to_digit(16).ok_or(MalformedEscape)?;
    u8::try_from(digit).map_err(|_out_of_range| MalformedEscape)
}
