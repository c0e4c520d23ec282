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

/// Forks. To be called before the first thread is made.
pub(crate) fn fork_single_threaded() -> Result<ForkResult, Errno> {
    // SAFETY: with one thread no lock can be held by a thread that the child lacks, so the child may do
    // whatever the parent may. `server::start` calls this first of all; it has made no thread.
    unsafe { nix::unistd::fork() }
}
