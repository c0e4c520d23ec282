//! Start-up of `darwin-netd serve`: what needs rights is acquired, then hand and head part.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use caps::Capability;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket, socketpair,
};
use nix::unistd::ForkResult;

use crate::config::Config;
use crate::hand::{self, Plan};
use crate::head::{self, Given, HeadError};
use crate::privilege::{self, PrivilegeError};
use crate::seqpacket::PacketError;

/// Why netd did not start, or ended. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Rights.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The folder of the socket or of the spool.
    #[error("find the folder {}: make it first", .0.display())]
    Folder(PathBuf),
    /// Another netd.
    #[error("be the only netd: another one holds {}", .0.display())]
    Another(PathBuf),
    /// A file of ours.
    #[error("open {}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The API's socket.
    #[error("listen at {}", path.display())]
    Listen {
        /// Where.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: Errno,
    },
    /// Something of the process itself.
    #[error("{doing}")]
    Process {
        /// What was being done.
        doing: &'static str,
        /// The system's answer.
        #[source]
        source: Errno,
    },
    /// The kernel.
    #[error("tell namespaces apart: SO_NETNS_COOKIE is missing; use Linux 5.14 or later")]
    NoCookies(#[source] Errno),
    /// The hand's end.
    #[error("serve as the hand")]
    Hand(#[source] PacketError),
    /// The head's end.
    #[error(transparent)]
    Head(#[from] HeadError),
}

fn process(doing: &'static str) -> impl FnOnce(Errno) -> ServeError {
    move |source| ServeError::Process { doing, source }
}

/// Serves until a signal to stop or the end of either process. To be called before any thread is made.
///
/// # Errors
/// [`ServeError`] names what is missing and what to do about it.
pub fn serve(config: Config) -> Result<(), ServeError> {
    privilege::require(&[Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN])?;
    let host_cookie = hand::own_cookie().map_err(ServeError::NoCookies)?;
    // Held by both processes for as long as they live.
    let alone = only_one(&config.socket)?;
    let spool = open_spool(&config.spool)?;
    let listener = listen_at(&config.socket)?;
    let files_max = raise_files().map_err(process("raise the limit on open files"))?;
    let stop = stop_signals().map_err(process("take signals"))?;
    let own_netns = File::open("/proc/self/ns/net")
        .map_err(|source| ServeError::Open { path: PathBuf::from("/proc/self/ns/net"), source })?;
    let (to_hand, to_head) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(process("make the socket between hand and head"))?;

    match crate::sys::fork_single_threaded().map_err(process("make the hand"))? {
        ForkResult::Child => {
            drop((listener, spool, stop, to_hand, own_netns));
            let served = serve_as_hand(&config, &to_head, host_cookie);
            drop(alone);
            served
        }
        ForkResult::Parent { child: _ } => {
            drop(to_head);
            privilege::keep_only(&[Capability::CAP_NET_ADMIN], config.user)?;
            privilege::prove_no_admin(&own_netns, config.user)?;
            crate::say(&format!("ready at {}", config.socket.display()));
            let socket = config.socket.clone();
            let given = Given { config, listener, hand: to_hand, stop, spool, run: start_us(), files_max };
            head::serve(given)?;
            // Without the right to the folder it stays, and the next netd removes it.
            drop(std::fs::remove_file(socket));
            drop(alone);
            Ok(())
        }
    }
}

fn serve_as_hand(config: &Config, to_head: &OwnedFd, host_cookie: u64) -> Result<(), ServeError> {
    privilege::keep_only(&[Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN], None)?;
    hand::serve(to_head.as_fd(), Plan::new(config, host_cookie)).map_err(ServeError::Hand)
}

fn start_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}

fn in_a_folder(path: &Path) -> Result<(), ServeError> {
    match path.parent() {
        Some(folder) if !folder.is_dir() => Err(ServeError::Folder(folder.to_owned())),
        _ => Ok(()),
    }
}

fn only_one(socket: &Path) -> Result<Flock<File>, ServeError> {
    in_a_folder(socket)?;
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = opened.map_err(|source| ServeError::Open { path: path.clone(), source })?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_file, _errno)| ServeError::Another(path))
}

/// Readable for all: the control plane reads it as another user.
fn open_spool(path: &Path) -> Result<File, ServeError> {
    in_a_folder(path)?;
    let failed = |source| ServeError::Open { path: path.to_owned(), source };
    let file = OpenOptions::new().create(true).append(true).mode(0o644).open(path).map_err(failed)?;
    file.set_permissions(Permissions::from_mode(0o644)).map_err(failed)?;
    Ok(file)
}

/// Everybody may connect; what a client may ask depends on its user, which the kernel names.
fn listen_at(path: &Path) -> Result<UnixListener, ServeError> {
    let failed = |source| ServeError::Listen { path: path.to_owned(), source };
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(ServeError::Open { path: path.to_owned(), source }),
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let end = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(failed)?;
    let address = UnixAddr::new(path).map_err(failed)?;
    bind(std::os::fd::AsRawFd::as_raw_fd(&end), &address).map_err(failed)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o666))
        .map_err(|source| ServeError::Open { path: path.to_owned(), source })?;
    listen(&end, Backlog::MAXCONN).map_err(failed)?;
    Ok(UnixListener::from(end))
}

fn raise_files() -> Result<u64, Errno> {
    let (_soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

/// Blocked in both processes: the hand ends with the head, not before it.
fn stop_signals() -> Result<SignalFd, Errno> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block()?;
    signals.remove(Signal::SIGHUP);
    SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}
