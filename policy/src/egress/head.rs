//! The request head, by a grammar with no second reading.
//!
//! RFC 9112 as a sender must write it, not as a lenient receiver may take it: single spaces, CRLF, no folding, no
//! space before a colon, no body. A head that two programs could read differently is refused.

use super::{Authority, AuthorityError, Host};

/// Longest head, in bytes, the empty line included.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
const END: &[u8] = b"\r\n\r\n";
/// RFC 9113 section 3.4, as far as it is needed to know it.
const HTTP2_PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0";

/// The version that the client spoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// A head that was read whole: what it asks for and nothing that its headers said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The target.
    pub authority: Authority,
    /// The version.
    pub version: Version,
}

/// Why a head is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The first byte is none of a method: TLS, SSH, anything.
    #[error("the first byte is {byte:#04x}, which begins no request")]
    NotHttp {
        /// The byte.
        byte: u8,
    },
    /// The HTTP/2 preface.
    #[error("it is the HTTP/2 preface")]
    Http2,
    /// More bytes than [`HEAD_BYTES_MAX`].
    #[error("the head is larger than 16 KiB")]
    TooLarge,
    /// A request line that is not `METHOD SP TARGET SP VERSION`.
    #[error("the request line is not METHOD, TARGET and VERSION with single spaces")]
    RequestLine,
    /// Another method than CONNECT.
    #[error("the method is not CONNECT")]
    Method,
    /// Another version than 1.0 and 1.1.
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// A target that breaks the grammar.
    #[error("{0}")]
    Target(AuthorityError),
    /// A line ended by LF alone, CR alone, or a control byte.
    #[error("byte {at} is {byte:#04x}, which has no place in a head")]
    BadByte {
        /// Offset of the byte, from zero.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// A header line that is not `name: value`, folded lines among them.
    #[error("header line {line} is malformed")]
    Header {
        /// Number of the line, from one for the first header.
        line: usize,
    },
    /// Content-Length or Transfer-Encoding.
    #[error("it announces a body")]
    Body,
    /// No `Host` in HTTP/1.1.
    #[error("it has no Host header")]
    NoHost,
    /// Two `Host` headers.
    #[error("it has two Host headers")]
    TwoHosts,
    /// A `Host` that is neither the target nor its host alone.
    #[error("its Host header differs from the target")]
    OtherHost,
}

/// What the reader says after some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum HeadStep {
    /// The head is not whole.
    More,
    /// The head is whole; `early` came after it and belongs to the tunnel.
    Done {
        /// The head.
        head: Head,
        /// First bytes of the tunnel.
        early: Vec<u8>,
    },
}

/// Reads one head from pieces of any size; what is wrong is said at the first byte that proves it.
#[derive(Debug, Default)]
pub struct HeadReader {
    bytes: Vec<u8>,
    checked: usize,
    request: Option<(Authority, Version)>,
}

impl HeadReader {
    /// A reader that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes seen so far.
    pub fn bytes_seen(&self) -> usize {
        self.bytes.len()
    }

    /// The target as the client wrote it, for the log of a refusal: hostile bytes, at most `limit` of them.
    pub fn raw_target(&self, limit: usize) -> &[u8] {
        let line = self.bytes.split(|&b| matches!(b, b'\r' | b'\n')).next().unwrap_or_default();
        let target = line.splitn(3, |&b| b == b' ').nth(1).unwrap_or_default();
        target.get(..limit).unwrap_or(target)
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`HeadError`]; the reader is of no use after one.
    pub fn push(&mut self, piece: &[u8]) -> Result<HeadStep, HeadError> {
        let room = HEAD_BYTES_MAX - self.bytes.len().min(HEAD_BYTES_MAX);
        let (fits, over) = piece.split_at(piece.len().min(room));
        let searched = self.bytes.len().saturating_sub(END.len() - 1);
        self.bytes.extend_from_slice(fits);
        let tail = self.bytes.get(searched..).unwrap_or_default();
        let end = tail.windows(END.len()).position(|window| window == END).map(|at| searched + at);
        self.check_bytes(end.map_or(self.bytes.len(), |at| at + END.len()))?;
        self.read_request_line(searched)?;
        let Some(end) = end else {
            return if over.is_empty() { Ok(HeadStep::More) } else { Err(HeadError::TooLarge) };
        };
        let mut early = self.bytes.split_off(end + END.len());
        early.extend_from_slice(over);
        let (authority, version) = self.request.take().ok_or(HeadError::RequestLine)?;
        let lines = self.bytes.get(..end).unwrap_or_default();
        check_headers(lines, &authority, version)?;
        Ok(HeadStep::Done { head: Head { authority, version }, early })
    }

    /// Looks at each byte up to `end` once: a bare LF or CR and control bytes are refused where they stand.
    fn check_bytes(&mut self, end: usize) -> Result<(), HeadError> {
        if let Some(&byte) = self.bytes.first()
            && !is_token_byte(byte)
        {
            return Err(HeadError::NotHttp { byte });
        }
        for at in self.checked..end {
            let byte = self.bytes.get(at).copied().unwrap_or_default();
            let before = at.checked_sub(1).and_then(|at| self.bytes.get(at)).copied();
            let fits = match byte {
                b'\n' => before == Some(b'\r'),
                b'\r' | b'\t' | 0x20..=0x7e | 0x80..=0xff => before != Some(b'\r'),
                _ => false,
            };
            if !fits {
                return Err(HeadError::BadByte { at, byte });
            }
        }
        self.checked = end;
        Ok(())
    }

    /// Reads the request line once it is whole, so that a wrong one is refused before its headers come.
    /// No line ends before `searched`.
    fn read_request_line(&mut self, searched: usize) -> Result<(), HeadError> {
        if self.request.is_some() {
            return Ok(());
        }
        let tail = self.bytes.get(searched..).unwrap_or_default();
        if let Some(end) = tail.windows(2).position(|window| window == b"\r\n") {
            let line = self.bytes.get(..searched + end).unwrap_or_default();
            self.request = Some(read_request_line(line)?);
        }
        Ok(())
    }
}

fn read_request_line(line: &[u8]) -> Result<(Authority, Version), HeadError> {
    if line == HTTP2_PREFACE_LINE {
        return Err(HeadError::Http2);
    }
    let parts: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
    let [method, target, version] = *parts else { return Err(HeadError::RequestLine) };
    if method.is_empty() || target.is_empty() || !method.iter().all(|&b| is_token_byte(b)) {
        return Err(HeadError::RequestLine);
    }
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(HeadError::Version);
        }
        _ => return Err(HeadError::RequestLine),
    };
    if method != b"CONNECT" {
        return Err(HeadError::Method);
    }
    Ok((Authority::parse(target).map_err(HeadError::Target)?, version))
}

/// `lines` is the head without its last two CRLF.
fn check_headers(lines: &[u8], authority: &Authority, version: Version) -> Result<(), HeadError> {
    let mut hosts = 0;
    let headers = lines.split(|&b| b == b'\n').skip(1);
    for (line, header) in (1..).zip(headers) {
        let header = header.strip_suffix(b"\r").unwrap_or(header);
        let colon = header.iter().position(|&b| b == b':').ok_or(HeadError::Header { line })?;
        let (name, value) = header.split_at(colon);
        if name.is_empty() || !name.iter().all(|&b| is_token_byte(b)) {
            return Err(HeadError::Header { line });
        }
        if name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err(HeadError::Body);
        }
        if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
            if hosts > 1 {
                return Err(HeadError::TwoHosts);
            }
            if !is_same_host(trim(value.get(1..).unwrap_or_default()), authority) {
                return Err(HeadError::OtherHost);
            }
        }
    }
    if hosts == 0 && version == Version::Http11 { Err(HeadError::NoHost) } else { Ok(()) }
}

fn is_same_host(value: &[u8], authority: &Authority) -> bool {
    Authority::parse(value).is_ok_and(|named| named == *authority)
        || Host::parse(value).is_ok_and(|named| named == authority.host)
}

fn trim(value: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let start = value.iter().position(|b| !blank(b)).unwrap_or(value.len());
    let end = value.iter().rposition(|b| !blank(b)).map_or(start, |at| at + 1);
    value.get(start..end).unwrap_or_default()
}

/// RFC 9110 section 5.6.2.
const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

impl HeadError {
    /// The code of the refusal.
    pub const fn code(&self) -> super::Code {
        use super::Code;
        match self {
            Self::NotHttp { .. } => Code::NotHttp,
            Self::Http2 => Code::Http2,
            Self::TooLarge => Code::HeadTooLarge,
            Self::Method => Code::Method,
            Self::Version => Code::Version,
            Self::Target(_) => Code::MalformedTarget,
            Self::Body => Code::BodyNotAllowed,
            Self::NoHost | Self::TwoHosts | Self::OtherHost => Code::HostHeader,
            Self::RequestLine | Self::BadByte { .. } | Self::Header { .. } => Code::MalformedHead,
        }
    }
}

#[cfg(test)]
mod tests;
