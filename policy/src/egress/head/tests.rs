use proptest::prelude::*;

use super::*;
use crate::egress::Code;

fn read(bytes: &[u8]) -> Result<HeadStep, HeadError> {
    HeadReader::new().push(bytes)
}

fn code(text: &str) -> Option<Code> {
    read(text.as_bytes()).err().map(|error| error.code())
}

fn accepted(text: &str) -> (String, Vec<u8>) {
    match read(text.as_bytes()) {
        Ok(HeadStep::Done { head, early }) => (head.authority.to_string(), early),
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn plain_heads_are_read() {
    for text in [
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
        "CONNECT A.Example.:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.0\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nhOST:\ta.example:443 \t\r\nUser-Agent: \u{e9}\r\nProxy-Connection: keep-alive\r\nX-Empty:\r\n\r\n",
    ] {
        assert_eq!(accepted(text), ("a.example:443".to_owned(), Vec::new()));
    }
}

#[test]
fn bytes_after_the_head_are_the_tunnels() {
    let (_, early) = accepted("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n\u{16}\u{3}\u{1}\r\n\r\n");
    assert_eq!(early, b"\x16\x03\x01\r\n\r\n");
}

#[test]
fn malformed_heads_are_refused_with_their_code() {
    let line = "CONNECT a.example:443 HTTP/1.1\r\n";
    let host = "Host: a.example:443\r\n";
    for (text, expected) in [
        (format!("{line}\r\n"), Code::HostHeader),
        (format!("{line}{host}{host}\r\n"), Code::HostHeader),
        (format!("{line}Host: b.example:443\r\n\r\n"), Code::HostHeader),
        (format!("{line}Host: a.example:80\r\n\r\n"), Code::HostHeader),
        (format!("{line}Host:\r\n\r\n"), Code::HostHeader),
        (format!("{line}{host}Content-Length: 0\r\n\r\n"), Code::BodyNotAllowed),
        (format!("{line}{host}transfer-encoding: chunked\r\n\r\n"), Code::BodyNotAllowed),
        (format!("{line}{host}X: a\r\n folded\r\n\r\n"), Code::MalformedHead),
        (format!("{line} {host}\r\n"), Code::MalformedHead),
        (format!("{line}Host : a.example\r\n\r\n"), Code::MalformedHead),
        (format!("{line}{host}nocolon\r\n\r\n"), Code::MalformedHead),
        (format!("{line}{host}: empty\r\n\r\n"), Code::MalformedHead),
        (format!("{line}{host}X: \0\r\n\r\n"), Code::MalformedHead),
        (format!("{line}{host}X: a\rb\r\n\r\n"), Code::MalformedHead),
        ("CONNECT a.example:443 HTTP/1.1\nHost: a.example\n\n".to_owned(), Code::MalformedHead),
        ("CONNECT\ta.example:443\tHTTP/1.1\r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT  a.example:443 HTTP/1.1\r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT a.example:443  HTTP/1.1\r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT a.example:443\r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT a.example:443 HTTP/1.1 \r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT a.example:443 http/1.1\r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT a.example:443 HTTP/9.9\r\n\r\n".to_owned(), Code::Version),
        ("CONNECT a.example:443 HTTP/2.0\r\n\r\n".to_owned(), Code::Version),
        ("connect a.example:443 HTTP/1.1\r\n\r\n".to_owned(), Code::Method),
        ("GET http://a.example/ HTTP/1.1\r\n\r\n".to_owned(), Code::Method),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), Code::Http2),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}".to_owned(), Code::NotHttp),
        ("\r\nCONNECT a.example:443 HTTP/1.1\r\n\r\n".to_owned(), Code::NotHttp),
        ("CONNECT user@127.0.0.1:443 HTTP/1.1\r\n\r\n".to_owned(), Code::MalformedTarget),
        ("CONNECT a\0b:443 HTTP/1.1\r\n\r\n".to_owned(), Code::MalformedHead),
        ("CONNECT a%00b:443 HTTP/1.1\r\n\r\n".to_owned(), Code::MalformedTarget),
        ("CONNECT [a.example]:443 HTTP/1.1\r\n\r\n".to_owned(), Code::MalformedTarget),
    ] {
        assert_eq!(code(&text), Some(expected), "{text:?}");
    }
}

#[test]
fn a_wrong_start_is_refused_before_the_head_is_whole() {
    assert_eq!(code("\u{16}"), Some(Code::NotHttp));
    assert_eq!(code("GET / HTTP/1.1\r\n"), Some(Code::Method));
    assert_eq!(code("CONNECT 127.1:443 HTTP/1.1\r\n"), Some(Code::MalformedTarget));
    assert_eq!(code("CONNECT a:443 HTTP/1.1\n"), Some(Code::MalformedHead));
    assert_eq!(read(b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n"), Ok(HeadStep::More));
}

#[test]
fn a_head_ends_within_16_kib() {
    let head = |pad: usize| format!("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(pad));
    let fits = HEAD_BYTES_MAX - head(0).len();
    assert_eq!(accepted(&head(fits)).0, "a:443");
    assert_eq!(accepted(&(head(fits) + "early")).1, b"early");
    assert_eq!(code(&head(fits + 1)), Some(Code::HeadTooLarge));
    assert_eq!(code(&head(64 * 1024)), Some(Code::HeadTooLarge));
}

#[test]
fn the_raw_target_is_kept_for_the_log() {
    let mut reader = HeadReader::new();
    assert!(reader.push(b"CONNECT a%0d%0ab:443 HTTP/1.1\r\n").is_err());
    assert_eq!(reader.raw_target(64), b"a%0d%0ab:443");
    assert_eq!(reader.raw_target(3), b"a%0");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut reader = HeadReader::new();
        let verdict = reader.push(&bytes);
        prop_assert!(verdict.is_err() || reader.bytes_seen() <= HEAD_BYTES_MAX);
    }

    #[test]
    fn pieces_make_no_difference(
        text in "(CONNECT|GET) [a-c.:0-9\\[\\]]{1,12} HTTP/1.[01]\r\n(Host: [a-c.]{1,3}(:443)?\r\n|X: y\r\n| z\r\n|\n){0,3}\r\n[a-z]{0,4}",
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let bytes = text.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let mut reader = HeadReader::new();
        let mut verdict = Ok(HeadStep::More);
        let mut rest = Vec::new();
        for pair in at.windows(2) {
            let piece = &bytes[pair[0]..pair[1]];
            match verdict {
                Ok(HeadStep::More) => verdict = reader.push(piece),
                Ok(HeadStep::Done { .. }) => rest.extend_from_slice(piece),
                Err(_) => {}
            }
        }
        if let Ok(HeadStep::Done { early, .. }) = &mut verdict {
            early.extend_from_slice(&rest);
        }
        let whole = read(bytes);
        prop_assert!(whole.is_err() == verdict.is_err());
        if whole.is_ok() {
            prop_assert_eq!(whole, verdict);
        }
    }
}
