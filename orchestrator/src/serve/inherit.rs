//! What a child has from its parent: copies of two files, before its first run (E9).
//!
//! Both folders are agents' own, and what lies in them is hostile: no link is followed, nothing but a plain file is
//! read, and no more of it than the limit.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use policy::AgentId;

use crate::episode::host::state_folder;

/// The files that a child has copies of.
const INHERITED: [&str; 2] = ["history.md", "lessons.md"];
/// Most bytes of each.
const BYTES_MAX: u64 = 1 << 20;

/// Why a child got no copies.
#[derive(Debug, thiserror::Error)]
pub(super) enum InheritError {
    /// The child's folder or file.
    #[error("copy what it inherits to {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Copies what the parent has of the files. A copy that is there already stays: the second time is a no-op. What of the
/// parent's cannot be read is left out: a parent must not be able to keep its child from running.
pub(super) fn copy(state_dir: &Path, parent: &AgentId, child: &AgentId) -> Result<(), InheritError> {
    let to = state_folder(state_dir, child);
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |source| InheritError::Write { path, source }
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&to).map_err(wrong(&to))?;
    for name in INHERITED {
        let Some(text) = read(state_dir, parent, name) else { continue };
        let path = to.join(name);
        match write(&path, &text) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => written.map_err(wrong(&path))?,
        }
    }
    Ok(())
}

/// A parent that has died meanwhile is read where its state was put.
fn read(state_dir: &Path, parent: &AgentId, name: &str) -> Option<Vec<u8>> {
    let archived = state_dir.join("archive").join(parent.as_str());
    [state_folder(state_dir, parent), archived].into_iter().find_map(|folder| {
        // Without blocking: a FIFO would keep us waiting for a writer.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(folder.join(name)).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
        Some(text)
    })
}

/// Whole or not at all: a copy that a crash cut short would stay.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    // One that an earlier try left: the child may have run since, and made it a link.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::create_new(&part)?;
    file.write_all(text)?;
    file.sync_all()?;
    let linked = fs::hard_link(&part, path);
    fs::remove_file(&part)?;
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    struct House(tempfile::TempDir);

    impl House {
        fn new() -> Self {
            let house = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(house.parent()).unwrap();
            house
        }

        fn parent(&self) -> PathBuf {
            state_folder(self.0.path(), &id("ada"))
        }

        fn copy(&self) -> Vec<(String, Vec<u8>)> {
            copy(self.0.path(), &id("ada"), &id("child-2")).unwrap();
            let folder = fs::read_dir(state_folder(self.0.path(), &id("child-2"))).unwrap();
            let mut found: Vec<_> = folder
                .map(|entry| entry.unwrap().path())
                .map(|path| {
                    (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
                })
                .collect();
            found.sort();
            found
        }
    }

    fn id(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    fn file(name: &str, text: &str) -> (String, Vec<u8>) {
        (name.to_owned(), text.as_bytes().to_vec())
    }

    #[test]
    fn history_and_lessons_are_copied_once_and_nothing_else() {
        let house = House::new();
        for name in ["history.md", "lessons.md", "secret.md"] {
            fs::write(house.parent().join(name), name).unwrap();
        }
        let both = vec![file("history.md", "history.md"), file("lessons.md", "lessons.md")];
        assert_eq!(house.copy(), both);
        fs::write(house.parent().join("history.md"), "changed").unwrap();
        assert_eq!(house.copy(), both, "the child's own may have grown since");
    }

    #[test]
    fn links_pipes_and_folders_are_left_out_and_a_long_file_is_cut() {
        let house = House::new();
        let host = house.0.path().join("key");
        fs::write(&host, "the host's").unwrap();
        std::os::unix::fs::symlink(&host, house.parent().join("history.md")).unwrap();
        nix::unistd::mkfifo(&house.parent().join("lessons.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(house.copy(), []);
        fs::remove_file(house.parent().join("history.md")).unwrap();
        fs::remove_file(house.parent().join("lessons.md")).unwrap();
        fs::create_dir(house.parent().join("history.md")).unwrap();
        fs::write(house.parent().join("lessons.md"), vec![b'x'; (1 << 20) + 1]).unwrap();
        let copied = house.copy();
        assert_eq!((copied.len(), copied[0].1.len()), (1, 1 << 20));
    }

    #[test]
    fn a_parent_that_died_meanwhile_leaves_it_all_the_same() {
        let house = House::new();
        fs::write(house.parent().join("lessons.md"), "learned").unwrap();
        fs::create_dir(house.0.path().join("archive")).unwrap();
        fs::rename(house.parent(), house.0.path().join("archive/ada")).unwrap();
        assert_eq!(house.copy(), [file("lessons.md", "learned")]);
    }
}
