//! The binary: exit codes, what it prints, that it does not run as root.
#![expect(clippy::disallowed_methods, reason = "a test starts the program under test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::stage::PATIENCE;

/// `nobody`, where the test itself runs as root.
const NOBODY: u32 = 65_534;
const POLICY: &str = "[profiles.p]\n[[profiles.p.rules]]\nhost = \"a.example\"\naction = \"allow\"\n\
                      [[profiles.p.rules]]\nhost = \"b.example\"\naction = \"deny\"\n\
                      [[profiles.p.rules]]\nhost = \"c.example\"\naction = \"report\"\n";

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_darwin-proxy"))
}

fn run(args: &[&str]) -> Output {
    program().args(args).output().unwrap()
}

/// A folder that `nobody` can read, with a copy of the program: the build folder may be closed to others.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new(policy: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::write(folder.path().join("policy.toml"), policy).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_darwin-proxy"), folder.path().join("darwin-proxy")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn serve(&self, more: &[&str]) -> Child {
        let mut command = Command::new(self.path("darwin-proxy"));
        command.args(["serve", "--policy", &self.path("policy.toml")]).args(more);
        command.stderr(Stdio::piped()).stdout(Stdio::piped()).stdin(Stdio::null());
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().unwrap()
    }
}

/// Reads stderr up to the line that says where it serves; the lines after it come one by one.
fn address(child: &mut Child) -> (String, Receiver<String>) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("it ended").unwrap();
        if let Some((_, rest)) = line.split_once("darwin-proxy: serving ") {
            break rest.split(' ').next().unwrap().to_owned();
        }
    };
    // Somebody must go on reading, or the program would get a broken pipe.
    let (tell, told) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(tell.send(line))));
    (address, told)
}

#[test]
fn check_prints_the_verdict_and_exits_by_it() {
    let home = Home::new(POLICY);
    let policy = home.path("policy.toml");
    for (target, exit, expected) in [
        ("A.example.:443", 0, r#"{"verdict":"allow","rule":"rules[0] allow a.example","reason":"rule"}"#),
        (
            "b.example:443",
            1,
            r#"{"verdict":"deny","rule":"rules[1] deny b.example","reason":"denied_by_rule"}"#,
        ),
        (
            "c.example:443",
            0,
            r#"{"verdict":"report","rule":"rules[2] report c.example","reason":"host_not_allowed"}"#,
        ),
        ("d.example:443", 1, r#"{"verdict":"deny","rule":null,"reason":"host_not_allowed"}"#),
        ("a.example", 1, r#"{"verdict":"deny","rule":null,"reason":"malformed_target"}"#),
        ("169.254.169.254:80", 1, r#"{"verdict":"deny","rule":null,"reason":"metadata"}"#),
    ] {
        let out = run(&["check", "--policy", &policy, "--profile", "p", target]);
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), expected);
        assert_eq!(out.status.code(), Some(exit), "{target}");
    }
    let out = run(&["check", "--policy", &policy, "--profile", "other", "a.example:443"]);
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn a_bad_policy_is_told_whole_with_places_and_exit_3() {
    let home = Home::new(
        "[profiles.p]\nmode = \"x\"\nwhat = 1\n[[profiles.p.rules]]\nhost = \"*\"\naction = \"allow\"\n",
    );
    let policy = home.path("policy.toml");
    for args in [
        &["check", "--policy", &policy, "--profile", "p", "a:1"][..],
        &["serve", "--policy", &policy, "--listen", "127.0.0.1:0", "--profile", "p", "--check-config"],
    ] {
        let out = run(args);
        assert_eq!(out.status.code(), Some(3));
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        for place in [":2:8: ", ":3:1: ", ":5:8: "] {
            assert!(told.contains(&format!("{policy}{place}")), "{told}");
        }
    }
}

#[test]
fn wrong_usage_exits_3() {
    let home = Home::new(POLICY);
    let policy = home.path("policy.toml");
    for args in [
        &["serve", "--what"][..],
        &["serve", "--policy", &policy, "--listen", "127.0.0.1:0"],
        &["serve", "--policy", &policy],
        &["serve", "--policy", "/does/not/exist", "--listen", "127.0.0.1:0", "--profile", "p"],
        &[],
    ] {
        assert_eq!(run(args).status.code(), Some(3), "{args:?}");
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    let sound = ["serve", "--policy", &policy, "--listen", "127.0.0.1:0", "--profile", "p", "--check-config"];
    assert_eq!(run(&sound).status.code(), Some(0));
}

#[test]
fn it_does_not_serve_as_root() {
    if !nix::unistd::geteuid().is_root() {
        return; // whoever runs this cannot become root to be refused; the twin below runs
    }
    let home = Home::new(POLICY);
    let out =
        run(&["serve", "--policy", &home.path("policy.toml"), "--listen", "127.0.0.1:0", "--profile", "p"]);
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("refuses to run as root"));
}

#[test]
fn it_serves_reloads_drains_and_logs_to_stdout() {
    let home = Home::new(POLICY);
    let mut child = home.serve(&["--listen", "127.0.0.1:0", "--profile", "p"]);
    let (address, told) = address(&mut child);
    assert!(ask(&address, "b.example:443").starts_with("HTTP/1.1 403 Forbidden: denied_by_rule\r\n"));
    rewrite(&home, "[profiles.p]\n");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGHUP).unwrap();
    // The first look at the file loads as well; the new policy is the one load that changes something.
    while !told.recv_timeout(PATIENCE).unwrap().contains("changed=true") {}
    assert!(ask(&address, "b.example:443").starts_with("HTTP/1.1 403 Forbidden: host_not_allowed\r\n"));
    kill(pid, Signal::SIGTERM).unwrap();
    let mut log = String::new();
    child.stdout.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!((&first["agent"], &first["reason"]), (&"listen-1".into(), &"denied_by_rule".into()));
}

fn rewrite(home: &Home, policy: &str) {
    std::fs::write(home.folder.path().join("fresh"), policy).unwrap();
    std::fs::rename(home.folder.path().join("fresh"), Path::new(&home.path("policy.toml"))).unwrap();
}

fn ask(address: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
