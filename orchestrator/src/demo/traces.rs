//! What a run could leave behind on the host, looked at before and after.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::users::Users;

/// The host's network links, and the processes of the demo's own users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    links: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Traces {
    /// Looks now.
    pub fn look(users: &Users) -> Self {
        Self { links: links(), processes: processes(users) }
    }

    /// What is there now and was not there before; empty when nothing was left behind.
    pub fn since(&self, before: &Self) -> Vec<String> {
        let links = self.links.difference(&before.links).map(|link| format!("link {link}"));
        let processes =
            self.processes.difference(&before.processes).map(|process| format!("process {process}"));
        links.chain(processes).collect()
    }
}

/// Links of the namespace that this process is in (`/proc/net/dev`, after its two lines of heading).
fn links() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Processes that are not ours alone: those of the demo's users; where it has none of its own, our children.
fn processes(users: &Users) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
    let own = std::process::id().to_string();
    let theirs = users.netd..=users.provider;
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|entry| {
            if users.apart() {
                entry.metadata().is_ok_and(|seen| theirs.contains(&seen.uid()))
            } else {
                parent_of(&entry.path()).is_some_and(|parent| parent == own)
            }
        })
        .map(|entry| {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            format!("{} {}", entry.file_name().to_string_lossy(), name.trim())
        })
        .collect()
}

/// The parent's number in `/proc/PID/stat`: the second field after the name, which may hold anything.
fn parent_of(process: &std::path::Path) -> Option<String> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_name, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1).map(str::to_owned)
}
