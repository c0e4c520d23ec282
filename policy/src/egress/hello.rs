//! The `ClientHello`, put together over TCP segments and TLS records, by a reader that never falls back.
//!
//! RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3, RFC 7301 section 3.1. Whatever is not understood is an error.

use std::collections::BTreeSet;

use super::{Code, HostName, NameError};

/// Longest hello, in bytes of handshake message.
pub const HELLO_BYTES_MAX: usize = 64 * 1024;
/// Most bytes on the wire that it may take: records of one byte each cost six.
const WIRE_BYTES_MAX: usize = 6 * HELLO_BYTES_MAX;
/// RFC 8446 section 5.1.
const RECORD_BYTES_MAX: usize = 1 << 14;
const RECORD_HEADER: usize = 5;
const HANDSHAKE_HEADER: usize = 4;

const EXT_SERVER_NAME: u16 = 0;
const EXT_ALPN: u16 = 16;
/// Encrypted client hello (RFC 9849), and the draft that it came from.
const EXT_ECH: [u16; 2] = [0xfe0d, 0xffce];

/// What a hello says, as far as it is judged or logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The one server name, if there is the extension.
    pub sni: Option<HostName>,
    /// The protocols offered, hostile bytes as they came.
    pub alpn: Vec<Vec<u8>>,
    /// Whether there is an encrypted hello, real or greased.
    pub ech: bool,
    /// Bytes of the handshake message, its header included.
    pub hello_bytes: usize,
}

/// Why the first bytes are no hello that can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The first byte is not a handshake record's.
    #[error("the first byte is {0:#04x}, not a TLS handshake record's")]
    NotTls(u8),
    /// A record of another kind, length or version in the midst of it.
    #[error("a TLS record is malformed")]
    Record,
    /// A handshake message of another kind.
    #[error("the first handshake message is {0:#04x}, not a ClientHello")]
    NotHello(u8),
    /// More than 64 KiB.
    #[error("the hello is larger than 64 KiB")]
    TooLarge,
    /// A field that runs over or leaves bytes.
    #[error("the hello is malformed")]
    Malformed,
    /// Not exactly one name, or not of the kind `host_name`.
    #[error("the server name list does not hold exactly one host name")]
    NameList,
    /// A name that breaks the grammar.
    #[error("the server name is no host name: {0}")]
    Name(NameError),
}

impl HelloError {
    /// The code of the refusal.
    pub const fn code(self) -> Code {
        match self {
            Self::NotTls(_) => Code::NotTls,
            Self::TooLarge => Code::HelloTooLarge,
            Self::NameList | Self::Name(_) => Code::SniMalformed,
            Self::Record | Self::NotHello(_) | Self::Malformed => Code::HelloMalformed,
        }
    }
}

/// What the reader says after some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum HelloStep {
    /// The hello is not whole.
    More,
    /// The hello is whole.
    Done(Hello),
}

/// Reads one hello from pieces of any size.
///
/// It keeps handshake bytes alone; the caller keeps the wire's, to send them on once they are judged.
#[derive(Debug, Default)]
pub struct HelloReader {
    header: Vec<u8>,
    /// Bytes of the record that are still to come.
    left: usize,
    message: Vec<u8>,
    wire_bytes: usize,
}

impl HelloReader {
    /// A reader that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of handshake seen so far.
    pub fn hello_bytes(&self) -> usize {
        self.message.len()
    }

    /// Takes the next bytes. What follows the hello's last record is not looked at.
    ///
    /// # Errors
    /// [`HelloError`]; the reader is of no use after one.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<HelloStep, HelloError> {
        while !piece.is_empty() {
            let used = if self.left == 0 { self.take_header(piece)? } else { self.take_record(piece) };
            self.wire_bytes += used;
            piece = piece.get(used..).unwrap_or_default();
            if let Some(wanted) = self.message_len()? {
                // A hello shares its last record with nothing (RFC 8446 section 5.1: no key change in a record).
                if self.message.len() + self.left > wanted && self.message.len() >= wanted {
                    return Err(HelloError::Malformed);
                }
                if self.message.len() == wanted {
                    return parse(&self.message).map(HelloStep::Done);
                }
            }
            if self.wire_bytes > WIRE_BYTES_MAX {
                return Err(HelloError::TooLarge);
            }
        }
        Ok(HelloStep::More)
    }

    /// Takes bytes of a record's header, each judged as it comes.
    fn take_header(&mut self, piece: &[u8]) -> Result<usize, HelloError> {
        let used = piece.len().min(RECORD_HEADER - self.header.len());
        self.header.extend_from_slice(piece.get(..used).unwrap_or_default());
        let first_record = self.message.is_empty();
        match *self.header.as_slice() {
            [kind, ..] if kind != 22 => {
                return Err(if first_record { HelloError::NotTls(kind) } else { HelloError::Record });
            }
            [_, major, ..] if major != 3 => return Err(HelloError::Record),
            [_, _, minor, ..] if minor > 4 => return Err(HelloError::Record),
            [_, _, _, high, low] => {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                if self.left == 0 || self.left > RECORD_BYTES_MAX {
                    return Err(HelloError::Record);
                }
                self.header.clear();
            }
            _ => {}
        }
        Ok(used)
    }

    fn take_record(&mut self, piece: &[u8]) -> usize {
        let used = piece.len().min(self.left);
        self.message.extend_from_slice(piece.get(..used).unwrap_or_default());
        self.left -= used;
        used
    }

    /// Length of the whole message with its header, once that is known.
    fn message_len(&self) -> Result<Option<usize>, HelloError> {
        match *self.message.as_slice() {
            [kind, ..] if kind != 1 => Err(HelloError::NotHello(kind)),
            [_, a, b, c, ..] => {
                let body = (usize::from(a) << 16) | (usize::from(b) << 8) | usize::from(c);
                let len = body + HANDSHAKE_HEADER;
                if len > HELLO_BYTES_MAX { Err(HelloError::TooLarge) } else { Ok(Some(len)) }
            }
            _ => Ok(None),
        }
    }
}

fn parse(message: &[u8]) -> Result<Hello, HelloError> {
    let mut fields = Fields(message);
    fields.take(HANDSHAKE_HEADER + 2 + 32)?; // header, legacy version, random
    if fields.list8()?.0.len() > 32 {
        return Err(HelloError::Malformed);
    }
    let suites = fields.list16()?.0.len();
    let compression = fields.list8()?.0.len();
    if suites == 0 || suites % 2 != 0 || compression == 0 {
        return Err(HelloError::Malformed);
    }
    let mut hello = Hello { sni: None, alpn: Vec::new(), ech: false, hello_bytes: message.len() };
    if fields.0.is_empty() {
        return Ok(hello); // TLS 1.2 without extensions
    }
    let mut extensions = fields.list16()?;
    fields.end()?;
    let mut seen = BTreeSet::new();
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let body = extensions.list16()?;
        if !seen.insert(kind) {
            return Err(if kind == EXT_SERVER_NAME { HelloError::NameList } else { HelloError::Malformed });
        }
        match kind {
            EXT_SERVER_NAME => hello.sni = Some(parse_sni(body)?),
            EXT_ALPN => hello.alpn = parse_alpn(body)?,
            _ => hello.ech |= EXT_ECH.contains(&kind),
        }
    }
    Ok(hello)
}

fn parse_sni(mut body: Fields<'_>) -> Result<HostName, HelloError> {
    let mut list = body.list16()?;
    body.end()?;
    let kind = list.take(1).or(Err(HelloError::NameList))?;
    let name = list.list16()?;
    if kind != [0] || !list.0.is_empty() {
        return Err(HelloError::NameList);
    }
    HostName::parse_without_dot(name.0).map_err(HelloError::Name)
}

fn parse_alpn(mut body: Fields<'_>) -> Result<Vec<Vec<u8>>, HelloError> {
    let mut list = body.list16()?;
    body.end()?;
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        let protocol = list.list8()?.0;
        if protocol.is_empty() {
            return Err(HelloError::Malformed);
        }
        protocols.push(protocol.to_vec());
    }
    if protocols.is_empty() { Err(HelloError::Malformed) } else { Ok(protocols) }
}

/// Bytes that are taken from the front, never past the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(HelloError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, HelloError> {
        match *self.take(2)? {
            [high, low] => Ok(u16::from_be_bytes([high, low])),
            _ => Err(HelloError::Malformed),
        }
    }

    fn list8(&mut self) -> Result<Self, HelloError> {
        let len = self.take(1)?.iter().map(|&b| usize::from(b)).sum();
        self.take(len).map(Self)
    }

    fn list16(&mut self) -> Result<Self, HelloError> {
        let len = usize::from(self.u16()?);
        self.take(len).map(Self)
    }

    const fn end(&self) -> Result<(), HelloError> {
        if self.0.is_empty() { Ok(()) } else { Err(HelloError::Malformed) }
    }
}

#[cfg(test)]
pub(super) mod tests;
