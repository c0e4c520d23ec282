//! The only module with `unsafe`: one operation a block, each with its contract.
#![expect(unsafe_code, reason = "fork and descriptors out of control messages have no safe form in nix")]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::unistd::ForkResult;

/// The cookie of the network namespace that a socket belongs to; it is never used again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetnsCookie;

nix::getsockopt_impl!(
    NetnsCookie,
    libc::SOL_SOCKET,
    libc::SO_NETNS_COOKIE,
    u64,
    nix::sys::socket::sockopt::GetStruct<u64>
);

/// Takes ownership of descriptors that the kernel has just installed in this process from a control message.
pub(crate) fn own_received(raw: &[RawFd]) -> Vec<OwnedFd> {
    raw.iter()
        .map(|&fd| {
            // SAFETY: the caller passes what recvmsg(2) put into an SCM_RIGHTS message of this very call:
            // open descriptors that nothing else in this process knows, so this is their one owner.
            unsafe { OwnedFd::from_raw_fd(fd) }
        })
        .collect()
}

/// Marks every descriptor from 3 on, those that whoever started us left open among them, so that no program that
/// this process starts gets it: a folder of the host's in an agent's hand would be the whole host's file system.
///
/// # Errors
/// The kernel's, before 5.11 `EINVAL`.
pub(crate) fn keep_descriptors() -> Result<(), Errno> {
    // SAFETY: close_range(2) takes three numbers and no pointer; with CLOSE_RANGE_CLOEXEC it closes nothing, so
    // no owner of a descriptor in this process is wronged.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Errno::result(result).map(drop)
}

/// Forks. To be called before the first thread is made.
pub(crate) fn fork_single_threaded() -> Result<ForkResult, Errno> {
    // SAFETY: with one thread no lock can be held by a thread that the child lacks, so the child may do
    // whatever the parent may. `server::start` calls this first of all; it has made no thread.
    unsafe { nix::unistd::fork() }
}
