//! A new policy is in force at once and for live tunnels too; a bad one changes nothing.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{Recorder, Stage, head, opaque, within};

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_closes_what_is_now_refused_and_nothing_else() {
    let mut recorder = Recorder::new().await;
    let port = recorder.port;
    let both = [opaque("a.example", port), opaque("b.example", port)].concat();
    let stage = Stage::new(&both).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    stage.names.set("b.example", &["127.0.0.1"]);
    let before = stage.server.revision();
    let mut refused = stage.tunnel(&format!("a.example:{port}")).await;
    let mut kept = stage.tunnel(&format!("b.example:{port}")).await;
    stage.write_policy(&opaque("b.example", port));
    stage.server.reload().await;
    assert_ne!(stage.server.revision(), before);
    assert!(within(refused.read_u8()).await.is_err());
    assert_eq!(recorder.next().await, None);
    kept.write_all(b"still here").await.unwrap();
    kept.shutdown().await.unwrap();
    assert_eq!(recorder.next().await.unwrap(), b"still here");
    let answer = stage.say(head(&format!("a.example:{port}")).as_bytes()).await;
    assert_eq!(answer.code(), "host_not_allowed");
    let left = stage.finish().await;
    let ends: Vec<_> = left.lines.iter().map(|line| line["closed_by"].clone()).collect();
    assert_eq!(ends, [serde_json::json!("policy"), serde_json::json!("client_fin"), serde_json::Value::Null]);
    assert_eq!(left.lines[0]["revision"], before);
    assert_ne!(left.lines[2]["revision"], before);
}

/// Both ends on threads of their own, so that the proxy's one worker always finds something to move.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_closes_a_tunnel_that_is_never_idle() {
    let origin = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    let drain = std::thread::spawn(move || {
        let (mut from, _client) = origin.accept().unwrap();
        let mut buffer = vec![0; 1 << 20];
        while from.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    let stage = Stage::new(&opaque("a.example", port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let mut client = stage.tunnel(&format!("a.example:{port}")).await.into_std().unwrap();
    client.set_nonblocking(false).unwrap();
    let (moving, moves) = tokio::sync::oneshot::channel();
    let flood = std::thread::spawn(move || {
        let bytes = vec![7; 1 << 20];
        for _ in 0..64 {
            client.write_all(&bytes).unwrap();
        }
        moving.send(()).unwrap();
        while client.write_all(&bytes).is_ok() {}
        Instant::now()
    });
    within(moves).await.unwrap();
    stage.write_policy(&opaque("b.example", port));
    let begun = Instant::now();
    stage.server.reload().await;
    let ended = within(tokio::task::spawn_blocking(move || flood.join().unwrap())).await.unwrap();
    let took = ended.saturating_duration_since(begun);
    assert!(took < Duration::from_secs(1), "it was closed after {took:?}");
    drain.join().unwrap();
    let left = stage.finish().await;
    assert_eq!(left.line()["closed_by"], "policy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_policy_keeps_the_old_one_and_raises_a_signal() {
    let recorder = Recorder::new().await;
    let stage = Stage::new(&opaque("a.example", recorder.port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let before = stage.server.revision();
    for broken in ["[[profiles.p.rules]]\nhost = \"*\"\naction = \"allow\"\n", "mode = \n", "surprise = 1\n"]
    {
        stage.write_policy(broken);
        stage.server.reload().await;
        assert_eq!(stage.server.revision(), before);
        assert_eq!(stage.say(head("e.example:443").as_bytes()).await.code(), "host_not_allowed");
    }
    let mut client = stage.tunnel(&format!("a.example:{}", recorder.port)).await;
    client.shutdown().await.unwrap();
    let left = stage.finish().await;
    assert!(left.signal_names().contains(&"policy_load_failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_in_force_without_being_told() {
    let recorder = Recorder::new().await;
    let stage = Stage::new(&opaque("a.example", recorder.port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let before = stage.server.revision();
    let mut tunnel = stage.tunnel(&format!("a.example:{}", recorder.port)).await;
    stage.write_policy("");
    // What the new policy refuses is closed: that is the event to wait for.
    assert!(within(tunnel.read_u8()).await.is_err());
    assert_ne!(stage.server.revision(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_gone_refuses_everything() {
    let stage = Stage::new("").await;
    std::fs::write(stage.folder.path().join("policy.toml"), "[profiles.other]\n").unwrap();
    stage.server.reload().await;
    assert_eq!(stage.say(head("a.example:443").as_bytes()).await.code(), "no_profile");
}
