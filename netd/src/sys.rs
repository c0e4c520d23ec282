//! The only module with `unsafe`: one operation a block, each with its contract.
#![expect(unsafe_code, reason = "descriptors out of a control message have no safe constructor in nix")]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

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
