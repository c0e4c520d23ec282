//! Names and addresses on the wire: one spelling, one look-up, only what was judged is dialled.

use hickory_proto::rr::RecordType;
use tokio::io::AsyncWriteExt;

use crate::stage::{Recorder, Site, Stage, head, local, opaque};

#[tokio::test(flavor = "multi_thread")]
async fn one_canonical_name_is_judged_resolved_compared_and_logged() {
    let site = Site::new(&["a.example"]).await;
    let stage = Stage::new(&local("a.example", site.port)).await;
    stage.names.set("a.example", &["127.0.0.1"]);
    let tunnel = stage.tunnel(&format!("A.Example.:{}", site.port)).await;
    let mut tls = site.handshake(tunnel, "a.EXAMPLE").await.unwrap();
    tls.shutdown().await.unwrap();
    let left = stage.finish().await;
    let line = left.line();
    assert_eq!((&line["host"], &line["sni"]), (&"a.example".into(), &"a.example".into()));
    assert_eq!(line["dialled"], format!("127.0.0.1:{}", site.port));
    assert_eq!(line["rule"], "rules[0] allow a.example");
    assert_eq!(line["verdict"], "allow");
    let mut asked = left.asked;
    asked.sort();
    let name = || "a.example.".to_owned();
    assert_eq!(asked, [(name(), RecordType::A), (name(), RecordType::AAAA)], "one look-up");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_name_that_points_inside_is_refused_with_a_signal() {
    let rule = "[[profiles.p.rules]]\nhost = \"a.example\"\naction = \"allow\"\n";
    for (address, code, signal) in [
        ("10.0.0.5", "address_refused", "private_answer"),
        ("127.0.0.1", "address_refused", "private_answer"),
        ("64:ff9b::a00:5", "address_refused", "private_answer"),
        ("2002:7f00:1::", "address_refused", "private_answer"),
        ("169.254.169.254", "metadata", "metadata_probe"),
        ("64:ff9b::a9fe:a9fe", "metadata", "metadata_probe"),
    ] {
        let stage = Stage::new(rule).await;
        stage.names.set("a.example", &[address]);
        let answer = stage.say(head("a.example:443").as_bytes()).await;
        assert_eq!((answer.status, answer.code()), (403, code), "{address}");
        let left = stage.finish().await;
        assert_eq!(left.signal_names(), [signal], "{address}");
        assert_eq!(left.line()["resolved"][0], address.parse::<std::net::IpAddr>().unwrap().to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_name_goes_to_its_pin_alone() {
    let mut recorder = Recorder::new().await;
    let stage = Stage::new(&opaque("git.corp", recorder.port)).await;
    let target = format!("git.corp:{}", recorder.port);
    stage.names.set("git.corp", &["10.9.9.9", "127.0.0.1", "9.9.9.9"]);
    let mut client = stage.tunnel(&target).await;
    client.write_all(b"x").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(recorder.next().await.unwrap(), b"x");
    stage.names.set("git.corp", &["127.0.0.2"]);
    let answer = stage.say(head(&target).as_bytes()).await;
    assert_eq!((answer.status, answer.code()), (403, "pin_mismatch"));
}

#[tokio::test(flavor = "multi_thread")]
async fn network_failures_are_no_policy() {
    let stage = Stage::tuned(
        &[opaque("gone.example", 443), opaque("silent.example", 443), opaque("closed.example", 1)].concat(),
        |config| config.clocks.lookup = std::time::Duration::from_millis(400),
    )
    .await;
    stage.names.set("closed.example", &["127.0.0.1"]);
    for (target, status, code) in [
        ("gone.example:443", 502, "name_not_found"),
        ("silent.example:443", 504, "lookup_timeout"),
        ("closed.example:1", 502, "dial_failed"),
    ] {
        let answer = stage.say(head(target).as_bytes()).await;
        assert_eq!((answer.status, answer.code()), (status, code));
        assert_eq!(answer.body["error"]["final"], false);
    }
    assert!(stage.finish().await.lines.iter().all(|line| line["verdict"] == "error"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_names_the_deny_rule_and_the_nearest_thing() {
    let rules = [
        local("api.example.com", 443),
        local("a.example", 443),
        "[[profiles.p.rules]]\nhost = \"a.example\"\naction = \"deny\"\n".to_owned(),
    ];
    let stage = Stage::new(&rules.concat()).await;
    let denied = stage.say(head("a.example:443").as_bytes()).await;
    assert_eq!((denied.status, denied.code()), (403, "denied_by_rule"));
    assert_eq!(denied.body["error"]["rule"], "rules[2] deny a.example");
    let typo = stage.say(head("api.exampel.com:443").as_bytes()).await;
    assert_eq!(typo.body["error"]["nearest"], "api.example.com:443");
    let port = stage.say(head("api.example.com:80").as_bytes()).await;
    assert_eq!(
        (port.code(), &port.body["error"]["nearest"]),
        ("port_not_allowed", &"api.example.com:443".into())
    );
}
