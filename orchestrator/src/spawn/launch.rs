//! `darwin launch`: changes its own namespace, user, capabilities and limits, and then becomes the program.
//!
//! Single-threaded from start to exec, so every change holds for the whole process. It dies with whoever started
//! it: the kernel sends SIGKILL when the parent *thread* ends.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use caps::{CapSet, Capability, CapsHashSet};
use nix::fcntl::{AtFlags, OFlag};
use nix::sched::CloneFlags;
use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid};
use policy::Exit;

use super::{OURSELVES, Program, SpawnError};

/// Arguments of `darwin launch`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Args {
    /// Network namespace to enter, as a file such as /proc/PID/ns/net
    #[arg(long)]
    netns: Option<PathBuf>,
    /// User to become, with no groups but --gid
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    /// Group to become
    #[arg(long, requires = "uid")]
    gid: Option<u32>,
    /// Capability to keep, such as `CAP_NET_ADMIN`; all others go, for ever
    #[arg(long = "cap")]
    caps: Vec<Capability>,
    /// Resource limit, hard and soft, such as `nofile=1024`: `nofile`, `nproc`, `fsize`, `core`, `data`
    #[arg(long = "limit")]
    limits: Vec<Limit>,
    /// Process whose death is ours
    #[arg(long)]
    parent: Option<i32>,
    /// Program, by absolute path, and its arguments
    #[arg(last = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// One resource limit.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    name: &'static str,
    resource: Resource,
    most: u64,
}

/// Why a text is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not NAME=NUMBER with NAME one of nofile, nproc, fsize, core, data")]
pub struct BadLimit;

const LIMITS: [(&str, Resource); 5] = [
    ("nofile", Resource::RLIMIT_NOFILE),
    ("nproc", Resource::RLIMIT_NPROC),
    ("fsize", Resource::RLIMIT_FSIZE),
    ("core", Resource::RLIMIT_CORE),
    ("data", Resource::RLIMIT_DATA),
];

impl FromStr for Limit {
    type Err = BadLimit;
    fn from_str(text: &str) -> Result<Self, BadLimit> {
        let (name, most) = text.split_once('=').ok_or(BadLimit)?;
        let (name, resource) = LIMITS.into_iter().find(|(known, _)| *known == name).ok_or(BadLimit)?;
        let most = most.parse().map_err(|_not_a_number| BadLimit)?;
        Ok(Self { name, resource, most })
    }
}

impl Limit {
    /// Puts it in force for this process and what it starts.
    ///
    /// # Errors
    /// The kernel's.
    pub fn apply(self) -> nix::Result<()> {
        nix::sys::resource::setrlimit(self.resource, self.most, self.most)
    }
}

/// What a launched program becomes; build one, then [`Launch::program`].
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// Network namespace to enter, as a file.
    pub netns: Option<PathBuf>,
    /// User and group to become; none, and they stay.
    pub user: Option<(u32, u32)>,
    /// Capabilities to keep.
    pub caps: Vec<Capability>,
    /// Resource limits.
    pub limits: Vec<Limit>,
}

impl Launch {
    /// The program that launches `program`: environment and folder pass through. Start it from a thread that
    /// lives as long as the program may: the thread's end is the program's.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn program(&self, program: Program) -> Result<Program, SpawnError> {
        let mut args: Vec<std::ffi::OsString> = vec!["launch".into(), "--parent".into()];
        args.push(std::process::id().to_string().into());
        if let Some(netns) = &self.netns {
            args.extend(["--netns".into(), netns.clone().into_os_string()]);
        }
        if let Some((uid, gid)) = self.user {
            args.extend(["--uid".into(), uid.to_string().into(), "--gid".into(), gid.to_string().into()]);
        }
        for cap in &self.caps {
            args.extend(["--cap".into(), cap.to_string().into()]);
        }
        for limit in &self.limits {
            args.extend(["--limit".into(), format!("{}={}", limit.name, limit.most).into()]);
        }
        args.extend(["--".into(), program.path.into_os_string()]);
        args.extend(program.args);
        Ok(Program { path: PathBuf::from(OURSELVES), args, env: program.env, dir: program.dir })
    }
}

/// Why the program was not launched.
#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error("launch {0}: its path is not absolute")]
    NotAbsolute(PathBuf),
    #[error("launch a program: an argument holds a zero byte")]
    ZeroByte,
    #[error("open {path}")]
    Open {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{step}")]
    Kernel {
        step: &'static str,
        #[source]
        source: nix::Error,
    },
    #[error("{step}")]
    Caps { step: &'static str, source: caps::errors::CapsError },
    #[error("launch a program: its parent is gone")]
    ParentGone,
}

fn kernel(step: &'static str) -> impl Fn(nix::Error) -> LaunchError {
    move |source| LaunchError::Kernel { step, source }
}

fn capability(step: &'static str) -> impl Fn(caps::errors::CapsError) -> LaunchError {
    move |source| LaunchError::Caps { step, source }
}

/// Runs it: returns only if it failed, with the exit code for I/O.
#[expect(clippy::print_stderr, reason = "stderr is where a launcher can speak")]
pub fn run(args: Args) -> ExitCode {
    let Err(error) = launch(args);
    eprintln!("darwin launch: cannot {}", crate::cli::with_causes(&error));
    ExitCode::from(Exit::Io.code())
}

fn launch(args: Args) -> Result<std::convert::Infallible, LaunchError> {
    let path = args.command.first().map(PathBuf::from).unwrap_or_default();
    if !path.is_absolute() {
        return Err(LaunchError::NotAbsolute(path));
    }
    let words: Result<Vec<CString>, _> =
        args.command.into_iter().map(|arg| CString::new(arg.into_vec())).collect();
    let words = words.map_err(|_zero| LaunchError::ZeroByte)?;
    // Opened while we still may: the new user need not be able to look into the program's folder.
    let program = nix::fcntl::open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC, nix::sys::stat::Mode::empty())
        .map_err(|source| LaunchError::Open { path, source: source.into() })?;
    if let Some(netns) = args.netns {
        enter(&netns)?;
    }
    for limit in args.limits {
        limit.apply().map_err(kernel("set a resource limit"))?;
    }
    if let (Some(uid), Some(gid)) = (args.uid, args.gid) {
        become_user(Uid::from_raw(uid), Gid::from_raw(gid), &args.caps.into_iter().collect())?;
    }
    // After the change of user, which would have cleared it.
    if let Some(parent) = args.parent {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(kernel("tie our death to our parent's"))?;
        if nix::unistd::getppid() != Pid::from_raw(parent) {
            return Err(LaunchError::ParentGone);
        }
    }
    let env: Vec<CString> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let mut pair = name.into_vec();
            pair.push(b'=');
            pair.extend(value.into_vec());
            CString::new(pair).ok()
        })
        .collect();
    nix::unistd::execveat(program.as_fd(), c"", &words, &env, AtFlags::AT_EMPTY_PATH)
        .map_err(kernel("become the program"))
}

fn enter(netns: &std::path::Path) -> Result<(), LaunchError> {
    let file = File::open(netns).map_err(|source| LaunchError::Open { path: netns.to_owned(), source })?;
    nix::sched::setns(file, CloneFlags::CLONE_NEWNET).map_err(kernel("enter the network namespace"))
}

/// An ordinary user in a user namespace of its own has no right to leave its groups (`user_namespaces(7)`): it may
/// keep those that it has if it stays who it is, and nobody else may.
fn leave_groups(uid: Uid, gid: Gid) -> nix::Result<()> {
    let stays = nix::unistd::getuid() == uid && nix::unistd::getgid() == gid && !uid.is_root();
    match nix::unistd::setgroups(&[]) {
        Err(nix::Error::EPERM) if stays => Ok(()),
        left => left,
    }
}

/// Becomes a user with exactly `keep`: in the ambient set, so that they survive the exec, and in no bounding set
/// beyond, so that nothing gives more back.
fn become_user(uid: Uid, gid: Gid, keep: &CapsHashSet) -> Result<(), LaunchError> {
    let bounding = caps::read(None, CapSet::Bounding).map_err(capability("read the bounding set"))?;
    for cap in bounding.difference(keep) {
        caps::drop(None, CapSet::Bounding, *cap).map_err(capability("leave the bounding set"))?;
    }
    caps::securebits::set_keepcaps(true).map_err(capability("keep capabilities"))?;
    leave_groups(uid, gid).map_err(kernel("leave all groups"))?;
    nix::unistd::setresgid(gid, gid, gid).map_err(kernel("become the group"))?;
    nix::unistd::setresuid(uid, uid, uid).map_err(kernel("become the user"))?;
    for set in [CapSet::Effective, CapSet::Inheritable] {
        caps::set(None, set, keep).map_err(capability("set the capabilities"))?;
    }
    caps::set(None, CapSet::Permitted, keep).map_err(capability("set the capabilities"))?;
    caps::set(None, CapSet::Ambient, keep).map_err(capability("pass the capabilities on"))
}
