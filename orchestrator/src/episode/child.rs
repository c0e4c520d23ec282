//! The inside of a confined run: two lives of this program, each single-threaded.
//!
//! The *stager* makes the namespaces, says `ready` and waits for `go`: only then has netd confined the network.
//! The *init* is process 1 of the new process namespace: it builds the root, gives up every right, starts the
//! agent and reaps. When the stager dies the kernel kills the init, and with it everything inside.
//!
//! On standard output, lines for the host: `ready`, `running`, `failed WHY`, and last `exit CODE`.

use std::fs;
use std::io::{BufRead as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitCode, Stdio};

use caps::CapSet;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sched::CloneFlags;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, Uid};
use policy::Exit;

use super::root::RootError;
use super::seccomp::SeccompError;
use super::{Limits, Plan};
use crate::spawn::{OURSELVES, Program, SpawnError, Streams};

/// Arguments of `darwin confined`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Be process 1 of the namespaces that are there
    #[arg(long)]
    init: bool,
    /// Process whose death is ours
    #[arg(long, default_value_t = 0)]
    parent: i32,
}

/// Why nothing ran.
#[derive(Debug, thiserror::Error)]
enum InsideError {
    #[error("read the plan")]
    Plan(#[source] std::io::Error),
    #[error("understand the plan")]
    Understand(#[source] serde_json::Error),
    #[error("go on: whoever started this is gone")]
    ParentGone,
    #[error(
        "make namespaces as an ordinary user: allow it with `sysctl user.max_user_namespaces=100000`, and on Ubuntu \
         `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    )]
    Namespaces(#[source] nix::Error),
    #[error("map our user into the namespace")]
    Map(#[source] std::io::Error),
    #[error("{step}")]
    Kernel {
        step: &'static str,
        #[source]
        source: nix::Error,
    },
    #[error("{step}")]
    Caps { step: &'static str, source: caps::errors::CapsError },
    #[error("build the root")]
    Root(#[source] RootError),
    #[error("forbid system calls")]
    Seccomp(#[source] SeccompError),
    #[error("start a process inside")]
    Spawn(#[source] SpawnError),
    #[error("hand over standard error")]
    Streams(#[source] std::io::Error),
}

fn kernel(step: &'static str) -> impl Fn(nix::Error) -> InsideError {
    move |source| InsideError::Kernel { step, source }
}

fn capability(step: &'static str) -> impl Fn(caps::errors::CapsError) -> InsideError {
    move |source| InsideError::Caps { step, source }
}

/// Runs one of the two lives.
pub fn run(args: &Args) -> ExitCode {
    let ended = if args.init { init() } else { stage(args.parent) };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report(&format!("failed {}", crate::cli::with_causes(&error)));
            ExitCode::from(Exit::Io.code())
        }
    }
}

/// One line to the host. A host that is gone has killed us, or is about to.
fn report(line: &str) {
    let line = line.replace('\n', " ");
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}

/// One line into the episode's log.
pub(super) fn remark(line: &str) {
    drop(writeln!(std::io::stderr(), "darwin: {line}"));
}

/// The first life.
fn stage(parent: i32) -> Result<u8, InsideError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(kernel("tie our death to our parent's"))?;
    if nix::unistd::getppid() != Pid::from_raw(parent) {
        return Err(InsideError::ParentGone);
    }
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let line = next_line()?;
    let flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    nix::sched::unshare(flags).map_err(InsideError::Namespaces)?;
    map_user(uid, gid.as_raw()).map_err(InsideError::Map)?;
    report("ready");
    if next_line()?.trim() != "go" {
        return Err(InsideError::ParentGone);
    }
    pass_capabilities_on()?;
    // Blocked before there is a child, so that no end of one is missed; a started program begins with none blocked.
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGCHLD);
    ends.thread_block().map_err(kernel("wait for signals"))?;
    let ends = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC).map_err(kernel("wait for signals"))?;
    let mut init = start_init(&line)?;
    // Held open for as long as we live: its end tells the init that we are gone.
    let pipe = init.stdin.take();
    give_up_capabilities()?;
    let status = attend(&mut init, &ends)?;
    drop(pipe);
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    report(&format!("exit {code}"));
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Waits for the init's end, and brings it about when the host closes our input: we then reap it, and the kernel
/// has reaped all that was inside.
fn attend(init: &mut Child, ends: &SignalFd) -> Result<std::process::ExitStatus, InsideError> {
    let stdin = std::io::stdin();
    let mut told = false;
    loop {
        if let Some(status) = init.try_wait().map_err(InsideError::Plan)? {
            return Ok(status);
        }
        let mut polled = vec![PollFd::new(ends.as_fd(), PollFlags::POLLIN)];
        if !told {
            polled.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        }
        match nix::poll::poll(&mut polled, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(source) => return Err(kernel("wait for the init")(source)),
        }
        let happened = |at: usize| polled.get(at).and_then(PollFd::any).unwrap_or(false);
        let (ended, closed) = (happened(0), happened(1));
        if ended {
            // Read, so that it is not told again; which child it was the loop's head finds out.
            let _which = ends.read_signal();
        }
        if closed {
            told = true;
            init.kill().map_err(InsideError::Plan)?;
        }
    }
}

fn next_line() -> Result<String, InsideError> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(InsideError::Plan)?;
    Ok(line)
}

/// One user, mapped to itself: inside, the agent is nobody special, and a program that is setuid changes nothing.
fn map_user(uid: Uid, gid: u32) -> std::io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// The init is a new program and no root: only ambient capabilities reach it.
fn pass_capabilities_on() -> Result<(), InsideError> {
    let all = caps::read(None, CapSet::Permitted).map_err(capability("read our capabilities"))?;
    caps::set(None, CapSet::Inheritable, &all).map_err(capability("pass capabilities on"))?;
    caps::set(None, CapSet::Ambient, &all).map_err(capability("pass capabilities on"))
}

fn start_init(plan: &str) -> Result<Child, InsideError> {
    let program = Program::new(OURSELVES).map_err(InsideError::Spawn)?.args(["confined", "--init"]);
    let streams = Streams { input: Stdio::piped(), output: Stdio::inherit(), errors: Stdio::inherit() };
    let mut init = program.start(streams).map_err(InsideError::Spawn)?;
    if let Some(pipe) = &mut init.stdin {
        pipe.write_all(plan.as_bytes()).map_err(InsideError::Plan)?;
    }
    Ok(init)
}

fn give_up_capabilities() -> Result<(), InsideError> {
    let step = "give up our capabilities";
    let bounding = caps::read(None, CapSet::Bounding).map_err(capability(step))?;
    if caps::has_cap(None, CapSet::Effective, caps::Capability::CAP_SETPCAP).map_err(capability(step))? {
        for cap in bounding {
            caps::drop(None, CapSet::Bounding, cap).map_err(capability(step))?;
        }
    }
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(capability(step))?;
    }
    Ok(())
}

/// The second life: process 1.
fn init() -> Result<u8, InsideError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(kernel("tie our death to our parent's"))?;
    parent_lives()?;
    let plan: Plan = serde_json::from_str(&next_line()?).map_err(InsideError::Understand)?;
    nix::unistd::sethostname("agent").map_err(kernel("name the host"))?;
    super::root::enter(&plan).map_err(InsideError::Root)?;
    limit(plan.limits)?;
    // Where memory ends, the agent is to go before the control plane, whose user it has. Without a /proc it is not told.
    drop(fs::write("/proc/self/oom_score_adj", "1000"));
    give_up_capabilities()?;
    nix::sys::prctl::set_no_new_privs().map_err(kernel("rule out new rights"))?;
    // The agent has our user: without this it could open our descriptors through /proc/1/fd.
    nix::sys::prctl::set_dumpable(false).map_err(kernel("hide our memory"))?;
    super::seccomp::install().map_err(InsideError::Seccomp)?;
    let agent = start_agent(&plan)?;
    report("running");
    let null = fs::File::open("/dev/null").map_err(InsideError::Streams)?;
    nix::unistd::dup2_stdin(&null).map_err(kernel("close our input"))?;
    nix::unistd::dup2_stdout(&null).map_err(kernel("close our output"))?;
    reap(Pid::from_raw(agent.id().cast_signed()))
}

/// A parent that died before the death signal was set sends none, but it has closed its end of our input.
fn parent_lives() -> Result<(), InsideError> {
    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    nix::poll::poll(&mut polled, PollTimeout::ZERO).map_err(kernel("look for our parent"))?;
    let gone = polled.iter().any(|fd| fd.revents().is_none_or(|events| events.contains(PollFlags::POLLHUP)));
    if gone { Err(InsideError::ParentGone) } else { Ok(()) }
}

fn limit(limits: Limits) -> Result<(), InsideError> {
    for (resource, most) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, limits.processes_max),
        (Resource::RLIMIT_NOFILE, limits.files_max),
        (Resource::RLIMIT_FSIZE, limits.file_bytes_max),
        (Resource::RLIMIT_DATA, limits.data_bytes_max),
    ] {
        setrlimit(resource, most, most).map_err(kernel("set a resource limit"))?;
    }
    Ok(())
}

fn start_agent(plan: &Plan) -> Result<Child, InsideError> {
    let path = plan.command.first().cloned().unwrap_or_default();
    let mut program =
        Program::new(path).map_err(InsideError::Spawn)?.args(plan.command.iter().skip(1)).dir("/state");
    for (name, value) in &plan.env {
        program = program.env(name, value);
    }
    let log =
        || std::io::stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(InsideError::Streams);
    program
        .start(Streams { input: Stdio::null(), output: log()?, errors: log()? })
        .map_err(InsideError::Spawn)
}

/// Reaps whatever ends until the agent does; our own end is then the end of all the others.
fn reap(agent: Pid) -> Result<u8, InsideError> {
    loop {
        let code = match nix::sys::wait::wait() {
            Ok(WaitStatus::Exited(pid, code)) if pid == agent => code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == agent => 128 + signal as i32,
            Ok(_) | Err(nix::Error::EINTR) => continue,
            Err(source) => return Err(kernel("wait for the agent")(source)),
        };
        return Ok(u8::try_from(code).unwrap_or(u8::MAX));
    }
}
