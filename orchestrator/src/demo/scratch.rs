//! The demo's scratch folder: one a run, locked while the run lives, and taken away at its end or by the next run.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// What every scratch folder's name begins with.
const PREFIX: &str = "darwin-demo-";
/// The file inside that is locked while the run lives.
const LOCK: &str = "lock";

/// Why there is no scratch folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScratchError {
    /// The folder for temporary files does not take it.
    #[error("make a scratch folder in {parent} (TMPDIR names another place)")]
    Make {
        /// Where.
        parent: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A folder inside.
    #[error("make {path}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A folder that is gone when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Held for its lock: the next run takes away folders whose lock is free.
    _lock: Flock<File>,
}

impl Scratch {
    /// Takes away what dead runs left, and makes a new folder that everyone may pass through and nobody list.
    ///
    /// # Errors
    /// [`ScratchError::Make`].
    pub fn make() -> Result<Self, ScratchError> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let failed = |source| ScratchError::Make { parent: parent.clone(), source };
        let path = nix::unistd::mkdtemp(&parent.join(format!("{PREFIX}XXXXXX")))
            .map_err(|errno| failed(errno.into()))?;
        let lock = File::create_new(path.join(LOCK)).map_err(failed)?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock)
            .map_err(|(_file, errno)| failed(errno.into()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o711)).map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder inside with this mode, owned by `owner` (user and group) if one is given.
    ///
    /// # Errors
    /// [`ScratchError::Folder`].
    pub fn folder(&self, name: &str, mode: u32, owner: Option<(u32, u32)>) -> Result<PathBuf, ScratchError> {
        let path = self.path.join(name);
        let failed = |source| ScratchError::Folder { path: path.clone(), source };
        fs::create_dir(&path).map_err(failed)?;
        fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(failed)?;
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).map_err(failed)?;
        }
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the scratch folder");
        }
    }
}

/// Removes scratch folders of our own user whose run is dead. What cannot be removed stays for the next run.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours
            && is_dead(&entry.path())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::debug!(path = %entry.path().display(), %error, "a dead run's folder stays");
        }
    }
}

/// Whether it is a folder of our own user (no link) whose lock nobody holds. One without a lock file may be a
/// run that has only begun, so it counts as dead a minute later.
fn is_dead(path: &Path) -> bool {
    let Ok(seen) = fs::symlink_metadata(path) else { return false };
    if !seen.is_dir() || seen.uid() != nix::unistd::geteuid().as_raw() {
        return false;
    }
    match File::open(path.join(LOCK)) {
        Ok(lock) => Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_ok(),
        Err(_none) => {
            let age = seen.modified().ok().and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age.as_secs() > 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_runs_folder_stays_and_a_dead_ones_goes() {
        let parent = tempfile::tempdir().unwrap();
        let (live, dead) = (parent.path().join("darwin-demo-live"), parent.path().join("darwin-demo-dead"));
        let other = parent.path().join("somebody-elses");
        for folder in [&live, &dead, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(LOCK), "").unwrap();
        }
        let held =
            Flock::lock(File::open(live.join(LOCK)).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
        sweep(parent.path());
        assert!(live.exists() && other.exists() && !dead.exists());
        drop(held);
        sweep(parent.path());
        assert!(!live.exists() && other.exists());
    }
}
