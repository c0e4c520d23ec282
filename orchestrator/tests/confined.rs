//! The inside of a confined run, for real: this test's own program runs as the agent and reports what it finds.
//! Each refusal has its twin: the same call where it must succeed.

#![expect(clippy::unwrap_used, reason = "a test's own helpers: a panic is the report")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use orchestrator::episode::{Limits, Plan};
use orchestrator::spawn::launch::Launch;
use orchestrator::spawn::{Program, Streams};

const DARWIN: &str = env!("CARGO_BIN_EXE_darwin");
const USER: u32 = 64_321;

/// What the probe prints: `NAME=VALUE` lines, a value of `ok` or an error's name.
fn told<T>(result: nix::Result<T>) -> String {
    result.map_or_else(|error| format!("{error:?}"), |_value| "ok".to_owned())
}

fn told_io<T>(result: std::io::Result<T>) -> String {
    result.map_or_else(
        |error| format!("{:?}", nix::Error::from_raw(error.raw_os_error().unwrap_or_default())),
        |_value| "ok".to_owned(),
    )
}

fn raw_socket() -> nix::Result<std::os::fd::OwnedFd> {
    socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)
}

fn netlink(protocol: SockProtocol) -> nix::Result<std::os::fd::OwnedFd> {
    socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
}

fn status(key: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_default().trim_start_matches(':').split_whitespace().next().unwrap_or_default().to_owned()
}

/// Run as the agent, by name; as a test of its own it says nothing.
#[test]
#[ignore = "it is the probe that the other tests run inside"]
fn probe() {
    let inet = |family| socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
    let facts = [
        ("pid", std::process::id().to_string()),
        ("parent", nix::unistd::getppid().to_string()),
        ("uid", nix::unistd::getuid().to_string()),
        ("capabilities", status("CapEff")),
        ("bounding", status("CapBnd")),
        ("no_new_privs", status("NoNewPrivs")),
        (
            "interfaces",
            fs::read_to_string("/proc/net/dev").unwrap_or_default().lines().skip(2).count().to_string(),
        ),
        ("write_root", told_io(fs::write("/new", "x"))),
        ("write_image", told_io(fs::write("/usr/new", "x"))),
        ("write_dev", told_io(fs::write("/dev/new", "x"))),
        ("write_state", told_io(fs::write("/state/new", "x"))),
        ("wake", fs::read_to_string("/wake.txt").unwrap_or_default()),
        ("write_wake", told_io(fs::write("/wake.txt", "x"))),
        ("write_tmp", told_io(fs::write("/tmp/new", "x"))),
        ("dev_null", told_io(fs::write("/dev/null", "x"))),
        ("init_fds", told_io(fs::read_dir("/proc/1/fd"))),
        ("own_fds", told_io(fs::read_dir("/proc/self/fd"))),
        ("packet", told(raw_socket())),
        ("inet", told(inet(AddressFamily::Inet))),
        ("inet6", told(inet(AddressFamily::Inet6))),
        ("unix", told(inet(AddressFamily::Unix))),
        ("vsock", told(inet(AddressFamily::Vsock))),
        ("netlink_route", told(netlink(SockProtocol::NetlinkRoute))),
        ("netlink_netfilter", told(netlink(SockProtocol::NetlinkNetFilter))),
        ("unshare_user", told(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER))),
        ("umount", told(nix::mount::umount("/tmp"))),
        ("host_files", Path::new("/etc/passwd").exists().to_string()),
        ("oom_score", fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default().trim().to_owned()),
        ("home", std::env::var("HOME").unwrap_or_else(|_unset| "unset".to_owned())),
        ("left_open", fs::symlink_metadata(LEFT_OPEN).is_ok().to_string()),
        ("given", std::env::var("GIVEN").unwrap_or_default()),
    ];
    for (name, value) in facts {
        println!("fact {name}={value}");
    }
}

/// A root that holds this test's program and the libraries that are mapped into it.
fn rootfs(at: &Path) {
    let copy = |from: &Path, to: &str| {
        let to = at.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, &to).unwrap();
    };
    copy(&std::env::current_exe().unwrap(), "/probe");
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    for path in maps.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| format!("/{path}")) {
        if path.contains(".so") {
            copy(Path::new(&path), &path);
        }
    }
    for loader in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"] {
        if Path::new(loader).exists() {
            copy(Path::new(loader), &format!("/usr{loader}"));
        }
    }
    for link in ["lib", "lib64"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), at.join(link)).unwrap();
    }
}

struct Site {
    _folder: tempfile::TempDir,
    plan: Plan,
}

fn site(command: &[&str]) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let dir = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        chown(&path, Some(USER), Some(USER)).unwrap();
        path
    };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (root, mount_point, state) = (dir("rootfs"), dir("mnt"), dir("state"));
    rootfs(&root);
    let wake = folder.path().join("wake.txt");
    fs::write(&wake, "Good morning.").unwrap();
    let plan = Plan {
        rootfs: root,
        mount_point,
        state,
        wake,
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        env: vec![("GIVEN".to_owned(), "1".to_owned())],
        limits: Limits::default(),
    };
    Site { _folder: folder, plan }
}

fn start(plan: &Plan) -> std::process::Child {
    let confined =
        Program::new(DARWIN).unwrap().args(["confined", "--parent", &std::process::id().to_string()]);
    let launch = Launch { user: Some((USER, USER)), ..Launch::default() };
    let launched = launch.program(confined).unwrap();
    // The launcher is this program's own in production; here it is the one beside the test.
    let program = launched.with_path(PathBuf::from(DARWIN));
    let mut child = program
        .start(Streams { input: Stdio::piped(), output: Stdio::piped(), errors: Stdio::piped() })
        .unwrap();
    let line = serde_json::to_string(plan).unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
    child
}

struct Ran {
    reports: Vec<String>,
    log: String,
    code: Option<i32>,
}

fn run(command: &[&str]) -> Ran {
    let site = site(command);
    let mut child = start(&site.plan);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut reports = vec![out.next().unwrap_or_default()];
    if reports == ["ready"] {
        writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    }
    reports.extend(out);
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    Ran { reports, log, code: child.wait().unwrap().code() }
}

/// The first free descriptor from 77 on.
const LEFT_OPEN: &str = "/proc/self/fd/77";
const PROBE: [&str; 5] = ["/probe", "--ignored", "--exact", "probe", "--nocapture"];

fn facts(log: &str) -> BTreeMap<&str, &str> {
    log.lines().filter_map(|line| line.split_once("fact ")?.1.split_once('=')).collect()
}

#[test]
fn a_confined_run_has_only_what_it_needs() {
    // Somebody who starts us may have left the host's root folder open.
    let root = fs::File::open("/").unwrap();
    nix::fcntl::fcntl(&root, nix::fcntl::FcntlArg::F_DUPFD(77)).unwrap();
    assert!(fs::symlink_metadata(LEFT_OPEN).is_ok());
    let ran = run(&PROBE);
    assert_eq!(ran.reports, ["ready", "running", "exit 0"], "{}", ran.log);
    assert_eq!(ran.code, Some(0));
    let found = facts(&ran.log);
    let expected = [
        ("parent", "1"),
        ("uid", "64321"),
        ("capabilities", "0000000000000000"),
        ("bounding", "0000000000000000"),
        ("no_new_privs", "1"),
        ("interfaces", "1"),
        ("write_root", "EROFS"),
        ("write_image", "EROFS"),
        ("write_dev", "EROFS"),
        ("write_state", "ok"),
        ("wake", "Good morning."),
        ("write_wake", "EROFS"),
        ("write_tmp", "ok"),
        ("dev_null", "ok"),
        ("init_fds", "EACCES"),
        ("own_fds", "ok"),
        ("packet", "EPERM"),
        ("inet", "ok"),
        ("inet6", "ok"),
        ("unix", "ok"),
        ("vsock", "EPERM"),
        ("netlink_route", "ok"),
        ("netlink_netfilter", "EPERM"),
        ("unshare_user", "EPERM"),
        ("umount", "EPERM"),
        ("host_files", "false"),
        ("oom_score", "1000"),
        ("home", "unset"),
        ("left_open", "false"),
        ("given", "1"),
    ];
    for (name, value) in expected {
        assert_eq!(found.get(name), Some(&value), "{name} in {found:?}");
    }
}

/// The allow twin: outside, as the user that the test runs as, the same calls work.
#[test]
fn the_probe_is_not_dead() {
    assert!(nix::unistd::geteuid().is_root(), "run as root: a raw socket is the twin of a refused one");
    assert_eq!(told(raw_socket()), "ok");
    assert_eq!(told(netlink(SockProtocol::NetlinkNetFilter)), "ok");
    let vsock = socket(AddressFamily::Vsock, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
    assert_ne!(told(vsock), "EPERM");
    assert_ne!(status("CapEff"), "0000000000000000");
    assert!(Path::new("/etc/passwd").exists());
    assert_eq!(libc::AF_PACKET, 17);
}

#[test]
fn the_agents_exit_code_comes_out() {
    let ran = run(&["/probe", "--no-such-flag"]);
    assert_eq!(ran.reports.last().map(String::as_str), Some("exit 101"), "{:?}", ran.log);
}

#[test]
fn a_program_that_is_not_there_is_told_and_runs_nothing() {
    let ran = run(&["/missing"]);
    assert!(ran.reports.get(1).is_some_and(|line| line.starts_with("failed ")), "{:?}", ran.reports);
    assert!(!ran.reports.contains(&"running".to_owned()));
}

#[test]
fn no_instruction_of_the_agent_runs_before_the_word() {
    let site = site(&PROBE);
    let mut child = start(&site.plan);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(out.next().unwrap().unwrap(), "ready");
    // The host goes away without a word.
    drop(child.stdin.take());
    let rest: Vec<String> = out.map(Result::unwrap).collect();
    assert!(!rest.contains(&"running".to_owned()), "{rest:?}");
    child.wait().unwrap();
    assert!(!site.plan.state.join("new").exists());
}

#[test]
fn killing_the_stager_ends_everything_inside() {
    let site = site(&["/probe", "--ignored", "--exact", "sleeper", "--nocapture"]);
    let mut child = start(&site.plan);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(out.next().as_deref(), Some("ready"));
    writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    assert_eq!(out.next().as_deref(), Some("running"));
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("asleep") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the sleeper never slept");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The sleeper holds the pipe for as long as it lives: its end is the witness.
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
}

#[test]
#[ignore = "it is run inside by another test"]
fn sleeper() {
    println!("asleep");
    std::thread::sleep(std::time::Duration::from_mins(10));
}

#[test]
fn a_host_that_closes_the_line_gets_an_end_and_no_orphan() {
    let site = site(&["/probe", "--ignored", "--exact", "sleeper", "--nocapture"]);
    let mut child = start(&site.plan);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(out.next().as_deref(), Some("ready"));
    writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    assert_eq!(out.next().as_deref(), Some("running"));
    drop(child.stdin.take());
    assert_eq!(out.next().as_deref(), Some("exit 137"));
    assert_eq!(child.wait().unwrap().code(), Some(137));
}
