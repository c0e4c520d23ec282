//! What is no CONNECT is refused as it should be, without a look-up, and its twin passes.

use tokio::io::AsyncWriteExt;

use crate::stage::{Recorder, Stage, head, local, opaque, read_head};

/// Answer's status and code for a head, with `a.example` allowed.
const ROWS: &[(&str, &[u8], u16, &str)] = &[
    ("127.1", b"CONNECT 127.1:443 HTTP/1.1\r\nHost: 127.1:443\r\n\r\n", 400, "malformed_target"),
    ("2130706433", b"CONNECT 2130706433:443 HTTP/1.1\r\nHost: 2130706433\r\n\r\n", 400, "malformed_target"),
    ("0x7f000001", b"CONNECT 0x7f000001:443 HTTP/1.1\r\nHost: 0x7f000001\r\n\r\n", 400, "malformed_target"),
    ("0177.0.0.1", b"CONNECT 0177.0.0.1:443 HTTP/1.1\r\nHost: 0177.0.0.1\r\n\r\n", 400, "malformed_target"),
    (
        "mapped, dotted",
        b"CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:443\r\n\r\n",
        403,
        "ip_literal",
    ),
    (
        "mapped, hexadecimal",
        b"CONNECT [::ffff:7f00:1]:443 HTTP/1.1\r\nHost: [::ffff:7f00:1]\r\n\r\n",
        403,
        "ip_literal",
    ),
    (
        "a name in brackets",
        b"CONNECT [localhost]:443 HTTP/1.1\r\nHost: [localhost]:443\r\n\r\n",
        400,
        "malformed_target",
    ),
    (
        "localhost with a dot",
        b"CONNECT localhost.:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n",
        403,
        "host_not_allowed",
    ),
    ("localhost", b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", 403, "host_not_allowed"),
    (
        "user information",
        b"CONNECT user@127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        400,
        "malformed_target",
    ),
    ("port 84536", b"CONNECT a.example:84536 HTTP/1.1\r\nHost: a.example\r\n\r\n", 400, "malformed_target"),
    ("port 019000", b"CONNECT a.example:019000 HTTP/1.1\r\nHost: a.example\r\n\r\n", 400, "malformed_target"),
    ("port +19000", b"CONNECT a.example:+19000 HTTP/1.1\r\nHost: a.example\r\n\r\n", 400, "malformed_target"),
    ("no port", b"CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n", 400, "malformed_target"),
    (
        "NUL in the host",
        b"CONNECT e\0.a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        400,
        "malformed_head",
    ),
    (
        "encoded NUL",
        b"CONNECT e%00.a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        400,
        "malformed_target",
    ),
    (
        "vertical tab",
        b"CONNECT e\x0ba.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        400,
        "malformed_head",
    ),
    (
        "ideographic full stop",
        b"CONNECT 127\xe3\x80\x820.0.1:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        400,
        "malformed_target",
    ),
    (
        "two dots",
        b"CONNECT 169.254.169.254..:443 HTTP/1.1\r\nHost: a.example\r\n\r\n",
        400,
        "malformed_target",
    ),
    ("Host differs", b"CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", 400, "host_header"),
    (
        "two Hosts",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
        400,
        "host_header",
    ),
    ("no Host", b"CONNECT a.example:443 HTTP/1.1\r\n\r\n", 400, "host_header"),
    ("bare LF", b"CONNECT a.example:443 HTTP/1.1\nHost: a.example\n\n", 400, "malformed_head"),
    ("lower case", b"connect a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", 405, "method"),
    ("GET", b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 405, "method"),
    ("HTTP/9.9", b"CONNECT a.example:443 HTTP/9.9\r\nHost: a.example\r\n\r\n", 505, "version"),
    ("tabs", b"CONNECT\ta.example:443\tHTTP/1.1\r\nHost: a.example\r\n\r\n", 400, "malformed_head"),
    ("two spaces", b"CONNECT  a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", 400, "malformed_head"),
    (
        "Content-Length",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
        400,
        "body_not_allowed",
    ),
    (
        "chunked",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
        "body_not_allowed",
    ),
    (
        "folded header",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n",
        400,
        "malformed_head",
    ),
    (
        "space before the colon",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost : a.example\r\n\r\n",
        400,
        "malformed_head",
    ),
    ("a hello to the proxy's port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "not_http"),
    ("the HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 400, "http2"),
    ("an address", b"CONNECT 140.82.114.4:443 HTTP/1.1\r\nHost: 140.82.114.4:443\r\n\r\n", 403, "ip_literal"),
    (
        "an IPv6 address",
        b"CONNECT [2606:50c0::1]:443 HTTP/1.1\r\nHost: [2606:50c0::1]\r\n\r\n",
        403,
        "ip_literal",
    ),
    (
        "a metadata address",
        b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n",
        403,
        "metadata",
    ),
    ("a metadata name", b"CONNECT metadata.google.internal:80 HTTP/1.0\r\n\r\n", 403, "metadata"),
    ("another host", b"CONNECT e.example:443 HTTP/1.1\r\nHost: e.example\r\n\r\n", 403, "host_not_allowed"),
    ("another port", b"CONNECT a.example:9999 HTTP/1.1\r\nHost: a.example\r\n\r\n", 403, "port_not_allowed"),
];

#[tokio::test(flavor = "multi_thread")]
async fn malformed_and_refused_heads_get_their_answer_and_no_look_up() {
    let stage = Stage::new(&local("a.example", 443)).await;
    for (row, bytes, status, code) in ROWS {
        let answer = stage.say(bytes).await;
        assert_eq!((answer.status, answer.code()), (*status, *code), "{row}: {answer:?}");
        assert!(answer.head.contains(&format!(": {code}\r\n")), "{row}: {}", answer.head);
        assert!(answer.head.contains(&format!("details=\"{code}\"")), "{row}");
        assert!(answer.head.contains("Connection: close"), "{row}");
        assert_eq!(answer.body["error"]["final"], matches!(status, 400 | 403), "{row}");
    }
    let left = stage.finish().await;
    assert_eq!(left.asked, [], "a refused name was looked up");
    assert_eq!(left.lines.len(), ROWS.len(), "one line each");
    assert!(left.lines.iter().all(|line| line["verdict"] == "deny"));
    assert!(left.signal_names().contains(&"name_malformed"));
    assert!(left.signal_names().contains(&"ip_literal"));
    assert!(left.signal_names().contains(&"metadata_probe"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_head_is_431_and_its_answer_arrives() {
    let stage = Stage::new("").await;
    let large = format!("CONNECT a.example:443 HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    let answer = stage.say(large.as_bytes()).await;
    assert_eq!((answer.status, answer.code()), (431, "head_too_large"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connect_to_the_proxy_itself_is_a_loop() {
    let stage = Stage::new("").await;
    let port = stage.address.port();
    for host in ["127.0.0.1", "127.8.8.8", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let answer = stage.say(head(&format!("{host}:{port}")).as_bytes()).await;
        assert_eq!((answer.status, answer.code()), (403, "loop"), "{host}");
    }
    let left = stage.finish().await;
    assert_eq!(left.signal_names()[0], "loop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_resolves_to_the_proxy_is_a_loop() {
    let stage = Stage::new("").await;
    let own = stage.address.port();
    stage.write_policy(&opaque("a.example", own));
    stage.server.reload().await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let answer = stage.say(head(&format!("a.example:{own}")).as_bytes()).await;
    assert_eq!((answer.status, answer.code()), (403, "loop"));
    assert_eq!(stage.finish().await.signal_names(), ["loop"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_or_slow_head_is_closed_by_its_clock() {
    let stage = Stage::tuned("", |config| config.clocks.head = std::time::Duration::from_millis(300)).await;
    for bytes in [&b""[..], b"CONNECT a.exam"] {
        let answer = stage.say(bytes).await;
        assert_eq!((answer.status, answer.code()), (408, "head_timeout"));
    }
    let left = stage.finish().await;
    assert_eq!(left.lines.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_behind_the_head_reach_the_target_first() {
    let mut recorder = Recorder::new().await;
    let stage = Stage::new(&opaque("a.example", recorder.port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let mut client = stage.connect().await;
    let asked = head(&format!("a.example:{}", recorder.port)) + "early";
    client.write_all(asked.as_bytes()).await.unwrap();
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 200 "));
    client.write_all(b" late").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(recorder.next().await.unwrap(), b"early late");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_behind_a_refused_head_reach_nobody_and_do_not_reset_the_answer() {
    let stage = Stage::new("").await;
    let mut bytes = head("e.example:443").into_bytes();
    bytes.extend_from_slice(&[0x16; 8192]);
    let answer = stage.say(&bytes).await;
    assert_eq!(answer.code(), "host_not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_only_so_many_unjudged_connections() {
    let stage = Stage::tuned("", |config| config.caps.unjudged = 2).await;
    let held = [stage.connect().await, stage.connect().await];
    // The first two have been accepted once a third is told that it is too many.
    let mut third = stage.say(b"").await;
    for _ in 0..50 {
        if third.status == 503 {
            break;
        }
        third = stage.say(b"").await;
    }
    assert_eq!((third.status, third.code()), (503, "caller_busy"));
    assert!(third.head.contains("Retry-After: "));
    drop(held);
    let answer = loop {
        let answer = stage.say(head("e.example:443").as_bytes()).await;
        if answer.status != 503 {
            break answer;
        }
    };
    assert_eq!(answer.code(), "host_not_allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_refused_hosts_are_a_burst() {
    let stage = Stage::new("").await;
    for number in 0..12 {
        stage.say(head(&format!("h{number}.example:443")).as_bytes()).await;
    }
    let left = stage.finish().await;
    let bursts: Vec<_> = left.signals.iter().filter(|signal| signal["name"] == "deny_burst").collect();
    assert_eq!(bursts.len(), 2, "one at once, one for what was held back");
    assert_eq!(bursts[0]["agent"], "listen-1");
    assert_eq!(bursts[0]["source"], "proxy");
    assert_eq!(bursts[1]["count"], 2);
}
