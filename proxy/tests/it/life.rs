//! The life of a tunnel: every byte, every kind of end, the drain.

use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{Recorder, Site, Stage, local, opaque, target, within};

#[tokio::test(flavor = "multi_thread")]
async fn a_real_handshake_and_an_echo_pass_byte_for_byte() {
    let site = Site::new(&["a.example"]).await;
    let stage = Stage::new(&local("a.example", site.port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let tunnel = stage.tunnel(&format!("a.example:{}", site.port)).await;
    let mut tls = site.handshake(tunnel, "a.example").await.unwrap();
    let sent: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
    let (mut from, mut to) = tokio::io::split(&mut tls);
    let mut back = vec![0; sent.len()];
    let (written, read) =
        within(async { tokio::join!(to.write_all(&sent), from.read_exact(&mut back)) }).await;
    written.unwrap();
    read.unwrap();
    assert!(back == sent);
    tls.shutdown().await.unwrap();
    drop(tls);
    let left = stage.finish().await;
    let line = left.line();
    assert!(line["up_bytes"].as_u64().unwrap() > 300_000);
    assert!(line["down_bytes"].as_u64().unwrap() > 300_000);
    assert!(line["hello_bytes"].as_u64().unwrap() > 100);
    for key in ["lookup_us", "dial_us", "first_byte_us", "total_us"] {
        assert!(line[key].is_u64(), "{key}: {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_close_its_half_and_still_hear_the_reply() {
    let (listener, port) = target().await;
    let stage = Stage::new(&opaque("a.example", port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let mut client = stage.tunnel(&format!("a.example:{port}")).await;
    let (mut origin, _) = within(listener.accept()).await.unwrap();
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = Vec::new();
    within(origin.read_to_end(&mut question)).await.unwrap();
    origin.write_all(b"answer").await.unwrap();
    origin.shutdown().await.unwrap();
    let mut answer = Vec::new();
    within(client.read_to_end(&mut answer)).await.unwrap();
    assert_eq!((question.as_slice(), answer.as_slice()), (&b"question"[..], &b"answer"[..]));
    let left = stage.finish().await;
    assert_eq!(left.line()["closed_by"], "client_fin");
    assert_eq!((&left.line()["up_bytes"], &left.line()["down_bytes"]), (&8.into(), &6.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_closes_at_once_loses_no_byte() {
    let (listener, port) = target().await;
    let stage = Stage::new(&opaque("a.example", port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let sent: Vec<u8> = (0..7_728_u32).map(|i| (i % 253) as u8).collect();
    for _ in 0..50 {
        let mut client = stage.tunnel(&format!("a.example:{port}")).await;
        let (mut origin, _) = within(listener.accept()).await.unwrap();
        client.write_all(b"request").await.unwrap();
        let mut request = [0; 7];
        within(origin.read_exact(&mut request)).await.unwrap();
        origin.write_all(&sent).await.unwrap();
        drop(origin);
        let mut got = Vec::new();
        within(client.read_to_end(&mut got)).await.unwrap();
        assert!(got == sent, "{} bytes", got.len());
    }
    assert!(stage.finish().await.lines.iter().all(|line| line["closed_by"] == "target_fin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_passed_on_as_a_reset() {
    let mut recorder = Recorder::new().await;
    let stage = Stage::new(&opaque("a.example", recorder.port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let client = stage.tunnel(&format!("a.example:{}", recorder.port)).await;
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    assert_eq!(recorder.next().await, None, "the target saw a clean end");
    let (listener, port) = target().await;
    stage.write_policy(&opaque("a.example", port));
    stage.server.reload().await;
    let mut client = stage.tunnel(&format!("a.example:{port}")).await;
    let (origin, _) = within(listener.accept()).await.unwrap();
    SockRef::from(&origin).set_linger(Some(Duration::ZERO)).unwrap();
    drop(origin);
    let ended = within(client.read_u8()).await.unwrap_err();
    assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
    let ends: Vec<_> = stage.finish().await.lines.iter().map(|line| line["closed_by"].clone()).collect();
    assert_eq!(ends, ["client_rst", "target_rst"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_tunnel_ends_by_its_rule_and_says_so() {
    let (listener, port) = target().await;
    let stage = Stage::new(&(opaque("a.example", port) + "idle_s = 1\n")).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let mut client = stage.tunnel(&format!("a.example:{port}")).await;
    let (_origin, _) = within(listener.accept()).await.unwrap();
    let mut rest = Vec::new();
    within(client.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(stage.finish().await.line()["closed_by"], "idle");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_closed_tunnel_ends_by_its_clock() {
    let (listener, port) = target().await;
    let tune = |config: &mut proxy::config::Config| config.clocks.half_closed = Duration::from_millis(300);
    let stage = Stage::tuned(&opaque("a.example", port), tune).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let mut client = stage.tunnel(&format!("a.example:{port}")).await;
    let (_origin, _) = within(listener.accept()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    within(client.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(stage.finish().await.line()["closed_by"], "half_closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_waits_for_tunnels_and_cuts_what_is_left() {
    let (listener, port) = target().await;
    let stage = Stage::new(&opaque("a.example", port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let mut client = stage.tunnel(&format!("a.example:{port}")).await;
    let (_origin, _) = within(listener.accept()).await.unwrap();
    let left = stage.finish_when(std::future::ready(())).await;
    assert_eq!(left.cut, 1);
    assert_eq!(left.line()["closed_by"], "drain");
    assert!(within(client.read_u8()).await.is_err());
}
