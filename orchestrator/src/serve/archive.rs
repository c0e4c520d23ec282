//! Where the state of a dead agent goes: out of reach of any run, for people to look at.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use policy::AgentId;

use crate::episode::host::{self, Site};

/// How often it is tried. Nothing runs for the agent by then, so that a death need not wait for its archive.
const TRIES_MAX: u32 = 7;
/// Wait after the first failure; each further one is twice as long, about 25 seconds in all.
const WAIT: Duration = Duration::from_millis(200);

/// Puts a dead agent's state where no run writes to it. What cannot be moved stays where it is, and is said.
pub(super) async fn keep(site: &Site, agent: &AgentId) {
    insist(&site.state_dir, agent, WAIT).await;
}

async fn insist(state_dir: &Path, agent: &AgentId, wait: Duration) {
    for tries in 0..TRIES_MAX {
        let (state_dir, whose) = (state_dir.to_owned(), agent.clone());
        let moved = tokio::task::spawn_blocking(move || archive(&state_dir, &whose)).await;
        let why = match moved {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(agent = %agent, "cannot archive the agent's state: {why}");
        tokio::time::sleep(wait * 2_u32.pow(tries)).await;
    }
    tracing::error!(agent = %agent, "the agent's state stays in place; nothing runs for it any more");
}

/// Moves an agent's state; done before, it is a no-op.
fn archive(state_dir: &Path, agent: &AgentId) -> std::io::Result<()> {
    let from = host::state_folder(state_dir, agent);
    let archive = state_dir.join("archive");
    std::fs::create_dir_all(&archive)?;
    let to = archive.join(agent.as_str());
    // The folder is the agent's to chmod, and one that its owner may not write to cannot be moved to another parent.
    match std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o700)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => {
            opened?;
            std::fs::rename(&from, &to)?;
        }
    }
    match std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o500)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        closed => closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, setfsuid};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::chown;

    const NOBODY: u32 = 65_534;

    struct House {
        folder: tempfile::TempDir,
        agent: AgentId,
    }

    /// A state folder with a file, of the mode that the agent left it in.
    fn house(mode: u32) -> House {
        let folder = tempfile::tempdir().unwrap();
        let agent = AgentId::parse("ada").unwrap();
        let state = host::state_folder(folder.path(), &agent);
        fs::create_dir_all(&state).unwrap();
        fs::write(state.join("note"), "mine").unwrap();
        fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
        House { folder, agent }
    }

    impl House {
        /// Archives as the control plane does, who is not root: root would not be kept out by a mode.
        fn archive(&self) -> std::io::Result<()> {
            if !Uid::effective().is_root() {
                return archive(self.folder.path(), &self.agent);
            }
            let agents = self.folder.path().join("agents");
            for path in [self.folder.path(), &agents, &agents.join("ada")] {
                if path.exists() {
                    chown(path, Some(NOBODY), None).unwrap();
                }
            }
            setfsuid(Uid::from_raw(NOBODY));
            let archived = archive(self.folder.path(), &self.agent);
            setfsuid(Uid::from_raw(0));
            archived
        }
    }

    #[test]
    fn no_mode_of_its_folder_keeps_an_agent_from_dying() {
        for mode in [0o700, 0o500, 0o000] {
            let house = house(mode);
            house.archive().unwrap();
            let kept = house.folder.path().join("archive/ada");
            assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o500, "{mode:o}");
            assert_eq!(fs::read_to_string(kept.join("note")).unwrap(), "mine");
            house.archive().unwrap();
        }
    }

    #[test]
    fn an_agent_that_never_ran_leaves_nothing() {
        let house = house(0o700);
        fs::remove_dir_all(house.folder.path().join("agents/ada")).unwrap();
        house.archive().unwrap();
        assert!(!house.folder.path().join("archive/ada").exists());
    }

    #[tokio::test]
    async fn a_state_that_cannot_be_moved_stays_and_the_death_goes_on() {
        let house = house(0o700);
        fs::create_dir_all(house.folder.path().join("archive/ada")).unwrap();
        fs::write(house.folder.path().join("archive/ada/other"), "").unwrap();
        insist(house.folder.path(), &house.agent, Duration::ZERO).await;
        assert!(house.folder.path().join("agents/ada/note").exists());
    }
}
