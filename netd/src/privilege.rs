//! Gives rights up, and proves that they are gone.

use std::fs::File;

use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, getppid, setgroups, setresgid, setresuid};

use crate::config::User;

/// Why rights could not be given up. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// A right that is needed is not there.
    #[error(
        "work without {0}: start netd as root, or in a user namespace that owns the agents' with CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    Missing(Capability),
    /// The user.
    #[error("become user {uid}")]
    User {
        /// Its number.
        uid: u32,
        /// The system's answer.
        #[source]
        source: Errno,
    },
    /// The capabilities.
    #[error("set the capabilities")]
    Capabilities(#[source] caps::errors::CapsError),
    /// The bit that keeps programs from giving rights back.
    #[error("rule out new rights")]
    NoNewRights(#[source] Errno),
    /// What must fail did not.
    #[error("go on: {0} still works after the right to it was given up")]
    NotGone(&'static str),
    /// What must fail failed in another way than it must.
    #[error("prove that {what} is given up")]
    Unproved {
        /// What was tried.
        what: &'static str,
        /// How it failed.
        #[source]
        source: Errno,
    },
}

/// Says at once when a right is missing that will be needed.
///
/// # Errors
/// [`PrivilegeError::Missing`].
pub(crate) fn require(needed: &[Capability]) -> Result<(), PrivilegeError> {
    for &capability in needed {
        let has = caps::has_cap(None, CapSet::Permitted, capability).map_err(PrivilegeError::Capabilities)?;
        if !has {
            return Err(PrivilegeError::Missing(capability));
        }
    }
    Ok(())
}

/// Becomes `user`, keeps `kept` and nothing else, for good.
///
/// # Errors
/// [`PrivilegeError`]; the process must end then, since it may be halfway.
pub(crate) fn keep_only(kept: &[Capability], user: Option<User>) -> Result<(), PrivilegeError> {
    let kept: CapsHashSet = kept.iter().copied().collect();
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)
        .map_err(PrivilegeError::Capabilities)?
    {
        for capability in caps::runtime::thread_all_supported().difference(&kept) {
            caps::drop(None, CapSet::Bounding, *capability).map_err(PrivilegeError::Capabilities)?;
        }
    }
    if let Some(user) = user {
        become_user(user).map_err(|source| PrivilegeError::User { uid: user.uid, source })?;
    }
    if caps::runtime::ambient_set_supported().is_ok() {
        caps::clear(None, CapSet::Ambient).map_err(PrivilegeError::Capabilities)?;
    }
    caps::set(None, CapSet::Effective, &kept).map_err(PrivilegeError::Capabilities)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(PrivilegeError::Capabilities)?;
    caps::set(None, CapSet::Inheritable, &CapsHashSet::new()).map_err(PrivilegeError::Capabilities)?;
    prctl::set_no_new_privs().map_err(PrivilegeError::NoNewRights)
}

fn become_user(user: User) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    if Uid::effective() == uid {
        return Ok(());
    }
    // Otherwise the capabilities would go with the user; what is not kept is dropped right after.
    prctl::set_keepcaps(true)?;
    let (tied, parent) = (prctl::get_pdeathsig()?, getppid());
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    // Whoever started us may have tied our death to its own; the kernel unties it with the user.
    prctl::set_pdeathsig(tied)?;
    if tied.is_some() && getppid() != parent { Err(Errno::ESRCH) } else { Ok(()) }
}

/// Tries what a process with `CAP_SYS_ADMIN` may do, and what root may: both must fail.
///
/// # Errors
/// [`PrivilegeError::NotGone`].
pub(crate) fn prove_no_admin(own_netns: &File, user: Option<User>) -> Result<(), PrivilegeError> {
    must_fail("entering a namespace", setns(own_netns, CloneFlags::CLONE_NEWNET))?;
    if user.is_some_and(|user| user.uid != 0) {
        let root = Uid::from_raw(0);
        must_fail("becoming root", setresuid(root, root, root))?;
    }
    Ok(())
}

fn must_fail(what: &'static str, tried: Result<(), Errno>) -> Result<(), PrivilegeError> {
    match tried {
        Err(Errno::EPERM) => Ok(()),
        Ok(()) => Err(PrivilegeError::NotGone(what)),
        Err(source) => Err(PrivilegeError::Unproved { what, source }),
    }
}
