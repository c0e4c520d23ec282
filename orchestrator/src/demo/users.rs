//! Who the demo's processes are: users of their own where it is root, one user in a namespace where it is not.
//!
//! Nothing is created: a number that nobody has is user enough for a process.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use caps::{CapSet, CapsHashSet};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, User, getegid, geteuid};

/// First number that is tried; systemd's own range for users that come and go.
const FIRST: u32 = 61_184;
/// First number after that range.
const END: u32 = 65_520;

/// Why the demo cannot have its users.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserError {
    /// All numbers are in use.
    #[error("find five user numbers that nobody has between {FIRST} and {END}")]
    NoneFree,
    /// The kernel does not let an ordinary user make a user namespace.
    #[error(
        "make a user namespace as an ordinary user: run it as root, or allow it with `sysctl \
         user.max_user_namespaces=100000`, `sysctl kernel.unprivileged_userns_clone=1` (Debian) or `sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu)"
    )]
    Namespace(#[source] nix::Error),
    /// The user could not be mapped into it.
    #[error("map this user into a user namespace")]
    Map(#[source] io::Error),
    /// The namespace gave no capabilities.
    #[error("hand capabilities on inside a user namespace: {0}")]
    Capabilities(caps::errors::CapsError),
}

/// The demo's users, and their common group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Users {
    /// netd's head.
    pub netd: u32,
    /// The proxy.
    pub proxy: u32,
    /// The control plane.
    pub serve: u32,
    /// The two sites and the name server.
    pub world: u32,
    /// The stand-in model provider.
    pub provider: u32,
    /// The group of all five.
    pub group: u32,
}

impl Users {
    /// Five free numbers for root; for anyone else its own number five times, in a user namespace that this
    /// process enters. Must be called while the process has one thread.
    ///
    /// # Errors
    /// [`UserError`].
    pub fn prepare() -> Result<Self, UserError> {
        if geteuid().is_root() {
            return Self::free();
        }
        let (uid, gid) = (geteuid(), getegid());
        enter_user_namespace(uid, gid)?;
        let (one, group) = (uid.as_raw(), gid.as_raw());
        Ok(Self { netd: one, proxy: one, serve: one, world: one, provider: one, group })
    }

    /// Whether each process has a user of its own.
    pub const fn apart(&self) -> bool {
        self.netd != self.proxy
    }

    fn free() -> Result<Self, UserError> {
        let busy = owners_of_processes();
        let is_free =
            |uid: u32| !busy.contains(&uid) && matches!(User::from_uid(Uid::from_raw(uid)), Ok(None));
        let first = (FIRST..END - 5).step_by(5).find(|first| (*first..first + 5).all(is_free));
        let first = first.ok_or(UserError::NoneFree)?;
        Ok(Self {
            netd: first,
            proxy: first + 1,
            serve: first + 2,
            world: first + 3,
            provider: first + 4,
            group: first,
        })
    }
}

/// The users that any process runs as: another demo's numbers are among them.
fn owners_of_processes() -> BTreeSet<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|seen| seen.uid()).collect()
}

fn enter_user_namespace(uid: Uid, gid: Gid) -> Result<(), UserError> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(UserError::Namespace)?;
    let write = |path: &str, text: String| fs::write(path, text).map_err(UserError::Map);
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    // Required before a group may be mapped without privilege (user_namespaces(7)).
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    // A process that is not number 0 loses its capabilities at exec, but for those that are ambient.
    let all: CapsHashSet = caps::read(None, CapSet::Permitted).map_err(UserError::Capabilities)?;
    caps::set(None, CapSet::Inheritable, &all).map_err(UserError::Capabilities)?;
    caps::set(None, CapSet::Ambient, &all).map_err(UserError::Capabilities)
}
