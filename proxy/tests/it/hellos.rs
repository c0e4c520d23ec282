//! The vectors of hellos: what reaches the target and what does not. One rule: the server name is the host.

use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{Recorder, Site, Stage, local, opaque, within};

const HOST: &str = "allowed.example";

fn list16(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &list16(body)].concat()
}

fn names(names: &[&str]) -> Vec<u8> {
    let list: Vec<u8> = names.iter().flat_map(|name| [vec![0], list16(name.as_bytes())].concat()).collect();
    extension(0, &list16(&list))
}

fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = [&[3, 3][..], &[9; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    body.extend(list16(&extensions.concat()));
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1, len[1], len[2], len[3]][..], &body].concat()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|chunk| [vec![22, 3, 1], list16(chunk)].concat()).collect()
}

fn wire(extensions: &[Vec<u8>]) -> Vec<u8> {
    records(&message(extensions), 16_384)
}

fn share(bytes: usize) -> Vec<u8> {
    extension(51, &vec![0x55; bytes])
}

const ECH: u16 = 0xfe0d;

/// Sends pieces through a tunnel for [`HOST`], each alone on the wire; what the target got.
async fn through(stage: &Stage, recorder: &mut Recorder, pieces: &[&[u8]]) -> Vec<u8> {
    let mut client = stage.tunnel(&format!("{HOST}:{}", recorder.port)).await;
    for piece in pieces {
        if client.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(client.shutdown().await);
    let mut rest = Vec::new();
    drop(within(client.read_to_end(&mut rest)).await);
    recorder.next().await.unwrap_or_default()
}

async fn stage(recorder: &Recorder, more: &str) -> Stage {
    let stage = Stage::tuned(&(local(HOST, recorder.port) + more), |config| {
        config.clocks.hello = Duration::from_millis(600);
    })
    .await;
    stage.names.set(HOST, &["127.0.0.1"]);
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn hellos_for_the_host_reach_the_target_whole() {
    let mut recorder = Recorder::new().await;
    let stage = stage(&recorder, "").await;
    let plain = message(&[names(&[HOST])]);
    let upper = wire(&[names(&["ALLOWED.Example"])]);
    let two_records = records(&plain, 50);
    let large = |bytes: usize| records(&message(&[share(bytes), names(&[HOST])]), 16_384);
    let vectors: Vec<(&str, Vec<u8>, Vec<usize>)> = vec![
        ("normal", records(&plain, 16_384), vec![]),
        ("upper case", upper, vec![]),
        ("two segments", records(&plain, 16_384), vec![40]),
        ("byte by byte", records(&plain, 16_384), (1..plain.len()).collect()),
        ("two records, cut inside the name", records(&plain, plain.len() - 6), vec![]),
        ("records of one byte", records(&plain, 1), vec![]),
        ("segment boundary 5 bytes into record two", two_records, vec![60]),
        ("key share before the name", large(1_216), vec![]),
        ("key share before the name, cut at 1024", large(1_216), vec![1024]),
        ("12 KiB", large(12 << 10), vec![]),
        ("20 KiB", large(20 << 10), vec![]),
        ("60 KiB", large(60 << 10), vec![]),
        ("ECH with the host outside", wire(&[names(&[HOST]), extension(ECH, &[1; 60])]), vec![]),
    ];
    for (vector, bytes, cuts) in vectors {
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        let mut from = 0;
        for cut in cuts {
            let (piece, after) = rest.split_at(cut - from);
            pieces.push(piece);
            (rest, from) = (after, cut);
        }
        pieces.push(rest);
        assert!(through(&stage, &mut recorder, &pieces).await == bytes, "{vector}");
    }
    let left = stage.finish().await;
    assert!(left.lines.iter().all(|line| line["verdict"] == "allow" && line["sni"] == HOST));
    assert_eq!(left.signals.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_first_byte_reaches_nobody() {
    let mut recorder = Recorder::new().await;
    let stage = stage(&recorder, "").await;
    let vectors: Vec<(&str, Vec<u8>, &str)> = vec![
        ("another name", wire(&[names(&["evil.example"])]), "sni_mismatch"),
        ("no name", wire(&[share(8)]), "sni_missing"),
        ("an empty name", wire(&[names(&[""])]), "sni_malformed"),
        ("an address", wire(&[names(&["127.0.0.1"])]), "sni_malformed"),
        ("NUL inside", wire(&[names(&["allowed.example\0.evil"])]), "sni_malformed"),
        ("a trailing dot", wire(&[names(&["allowed.example."])]), "sni_malformed"),
        ("two names, the host first", wire(&[names(&[HOST, "evil.example"])]), "sni_malformed"),
        ("two names, the host last", wire(&[names(&["evil.example", HOST])]), "sni_malformed"),
        ("two extensions", wire(&[names(&[HOST]), names(&[HOST])]), "sni_malformed"),
        (
            "ECH with another name outside",
            wire(&[names(&["evil.example"]), extension(ECH, &[1; 60])]),
            "sni_mismatch",
        ),
        ("an alert first", [&[21, 3, 1, 0, 2, 1, 0][..], &wire(&[names(&[HOST])])].concat(), "not_tls"),
        (
            "change-cipher-spec first",
            [&[20, 3, 1, 0, 1, 1][..], &wire(&[names(&[HOST])])].concat(),
            "not_tls",
        ),
        (
            "a record without bytes first",
            [&[22, 3, 1, 0, 0][..], &wire(&[names(&[HOST])])].concat(),
            "hello_malformed",
        ),
        ("a record of 65535", vec![22, 3, 1, 255, 255], "hello_malformed"),
        ("an SSLv2 hello", vec![0x80, 0x2e, 1, 3, 1], "not_tls"),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n".to_vec(), "not_tls"),
        ("an SSH banner", b"SSH-2.0-x\r\n".to_vec(), "not_tls"),
        (
            "more than 64 KiB",
            records(&message(&[share(65_400), names(&[HOST]), extension(7, &[0; 80])]), 16_384),
            "hello_too_large",
        ),
    ];
    for (vector, bytes, _) in &vectors {
        assert_eq!(through(&stage, &mut recorder, &[bytes]).await, b"", "{vector}");
    }
    let left = stage.finish().await;
    for ((vector, _, code), line) in vectors.iter().zip(&left.lines) {
        assert_eq!((&line["reason"], &line["verdict"]), (&(*code).into(), &"deny".into()), "{vector}");
        assert_eq!(line["up_bytes"], 0, "{vector}");
    }
    assert_eq!(left.lines.len(), vectors.len());
    for signal in ["sni_mismatch", "sni_missing", "not_tls", "ech_real"] {
        assert!(left.signal_names().contains(&signal), "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_that_does_not_come_is_closed_by_its_clock() {
    let mut recorder = Recorder::new().await;
    let stage = stage(&recorder, "").await;
    for (bytes, _) in [(&b""[..], "no_client_bytes"), (b"\x16\x03\x01", "hello_timeout")] {
        let mut client = stage.tunnel(&format!("{HOST}:{}", recorder.port)).await;
        client.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        within(client.read_to_end(&mut rest)).await.unwrap();
        assert_eq!(recorder.next().await.unwrap(), b"");
    }
    let reasons: Vec<_> = stage.finish().await.lines.iter().map(|line| line["reason"].clone()).collect();
    assert_eq!(reasons, ["no_client_bytes", "hello_timeout"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_an_opaque_rule_the_server_may_speak_first() {
    let (listener, port) = crate::stage::target().await;
    let stage = Stage::new(&opaque(HOST, port)).await;
    stage.names.set(HOST, &["127.0.0.1"]);
    let mut client = stage.tunnel(&format!("{HOST}:{port}")).await;
    let (mut origin, _) = within(listener.accept()).await.unwrap();
    origin.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    let mut banner = [0; 11];
    within(client.read_exact(&mut banner)).await.unwrap();
    assert_eq!(&banner, b"SSH-2.0-x\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_may_refuse_encrypted_hellos() {
    let mut recorder = Recorder::new().await;
    let stage = stage(&recorder, "ech = \"refuse\"\n").await;
    let plain = wire(&[names(&[HOST])]);
    let greased = wire(&[names(&[HOST]), extension(ECH, &[1; 60])]);
    assert!(through(&stage, &mut recorder, &[&plain]).await == plain);
    assert_eq!(through(&stage, &mut recorder, &[&greased]).await, b"");
    assert_eq!(stage.finish().await.lines[1]["reason"], "ech_refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_only_lets_pass_and_says_what_it_would_have_refused() {
    let mut recorder = Recorder::new().await;
    let rules = format!("report_only = true\n{}", local(HOST, recorder.port));
    let stage = Stage::new(&rules).await;
    stage.names.set(HOST, &["127.0.0.1"]);
    let other = wire(&[names(&["other.example"])]);
    assert!(through(&stage, &mut recorder, &[&other]).await == other);
    let left = stage.finish().await;
    assert_eq!(left.line()["verdict"], "report");
    assert!(left.line()["would_deny"].as_str().unwrap().starts_with("sni_mismatch"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tls_client_that_names_another_host_gets_an_alert() {
    let site = Site::new(&[HOST, "evil.example"]).await;
    let stage = Stage::new(&local(HOST, site.port)).await;
    stage.names.set(HOST, &["127.0.0.1"]);
    let target = format!("{HOST}:{}", site.port);
    let refused = site.handshake(stage.tunnel(&target).await, "evil.example").await.unwrap_err();
    assert!(refused.to_string().contains("AccessDenied"), "{refused}");
    assert!(site.handshake(stage.tunnel(&target).await, HOST).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_of_a_real_library_passes_in_whatever_pieces() {
    let site = Site::new(&[HOST]).await;
    let mut recorder = Recorder::new().await;
    let stage = stage(&recorder, "").await;
    for cut in [1, 5, 6, 9, 43, 100, 150] {
        let name = ServerName::try_from(HOST).unwrap();
        let mut connection = ClientConnection::new(std::sync::Arc::new(site.client()), name).unwrap();
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).unwrap();
        let (first, second) = bytes.split_at(cut);
        assert!(through(&stage, &mut recorder, &[first, second]).await == bytes, "{cut}");
    }
}
