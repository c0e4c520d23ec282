//! As much of HTTP/1.1 as this program needs: one request on a connection, one answer.

use std::io::{self, BufRead, BufReader, Read, Write};

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The value of `Mcp-Session-Id`, if it was sent.
    pub(crate) session: Option<String>,
    /// The body, as text.
    pub(crate) body: String,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    /// `GET` or `POST`.
    pub(crate) method: &'a str,
    /// The path.
    pub(crate) path: &'a str,
    /// The host that is asked.
    pub(crate) host: &'a str,
    /// Further headers.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub(crate) body: &'a str,
}

/// Sends one request and reads its answer.
pub(crate) fn exchange<S: Read + Write>(mut stream: S, ask: &Ask<'_>) -> io::Result<Answer> {
    let mut head = format!(
        "{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        ask.method,
        ask.path,
        ask.host,
        ask.body.len()
    );
    for (name, value) in ask.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(ask.body.as_bytes())?;
    stream.flush()?;
    read_answer(&mut BufReader::new(stream.take(ANSWER_BYTES_MAX)))
}

/// Reads a head up to its blank line: the status and the headers, names in lower case.
pub(crate) fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no status line"))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok((status, headers));
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

fn read_answer(reader: &mut impl BufRead) -> io::Result<Answer> {
    let (status, headers) = read_head(reader)?;
    let value =
        |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        read_chunks(reader, &mut body)?;
    } else if let Some(len) = value("content-length").and_then(|len| len.parse().ok()) {
        reader.take(len).read_to_end(&mut body)?;
    } else {
        reader.read_to_end(&mut body)?;
    }
    let session = value("mcp-session-id").map(str::to_owned);
    Ok(Answer { status, session, body: String::from_utf8_lossy(&body).into_owned() })
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let len = u64::from_str_radix(digits, 16)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if len == 0 {
            return Ok(());
        }
        reader.take(len).read_to_end(body)?;
        line.clear();
        reader.read_line(&mut line)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Answer {
        read_answer(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn answers_are_read_whole_by_length_by_chunks_and_to_the_end() {
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, more").body, "hi");
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3;x=y\r\n!!!\r\n0\r\n\r\n";
        assert_eq!(read(chunked).body, "hi!!!");
        let answer = read("HTTP/1.1 403 Forbidden\r\nMcp-Session-Id: 7\r\n\r\nno");
        assert_eq!((answer.status, answer.session.as_deref(), answer.body.as_str()), (403, Some("7"), "no"));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(read_answer(&mut "hello".as_bytes()).is_err());
        assert!(read_answer(&mut "".as_bytes()).is_err());
    }
}
