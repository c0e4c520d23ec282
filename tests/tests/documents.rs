//! What the documents say is checked where it can be.
#![expect(clippy::expect_used, reason = "a test's helpers may fail like the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder of the workspace") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Every function of the workspace that stands right behind a line `#[test]`, or inside `proptest!`.
fn functions() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a source file");
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some((_, rest)) = line.split_once("fn ") {
                if is_test {
                    found.extend(rest.split('(').next().map(str::to_owned));
                }
                is_test = false;
            }
        }
    }
    found
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).expect("docs/security.md");
    let tests = functions();
    let named: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|word| word.contains('_') && !word.contains(['.', '/', ' ']))
        .collect();
    assert!(named.len() > 30, "the table was not read: {named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(**name)).collect();
    assert!(missing.is_empty(), "docs/security.md names tests that do not exist: {missing:?}");
    for path in text.split('`').filter(|word| {
        word.contains('/') && Path::new(word).extension().is_some_and(|extension| extension == "rs")
    }) {
        assert!(root().join(path).exists(), "docs/security.md names {path}, which does not exist");
    }
}

fn packaged(file: &str) -> String {
    std::fs::read_to_string(root().join("packaging").join(file)).expect("a file of packaging/")
}

#[test]
fn what_the_packaged_control_plane_writes_is_its_users() {
    let unit = packaged("systemd/darwin.service");
    for line in ["User=darwin", "StateDirectory=darwin-core", "RuntimeDirectory=darwin-core"] {
        assert!(unit.lines().any(|found| found == line), "{line} is not in darwin.service");
    }
    let text = packaged("darwin.toml");
    for key in ["journal", "state_dir", "run_dir"] {
        let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).expect(key);
        let path = line.split('"').nth(1).expect("a path in quotes");
        let owned = path.starts_with("/var/lib/darwin-core") || path.starts_with("/run/darwin-core");
        assert!(owned, "{key} = {path}: the service's user cannot write there");
    }
    assert!(text.contains("\"unix:/run/darwin-core/"), "the interface's socket is not in the unit's folder");
}

#[test]
fn the_packaged_policy_has_the_profiles_that_the_economy_names() {
    let policy = packaged("policy.toml");
    let lives = orchestrator::core::settings::Settings::default().lives;
    for profile in [lives.profile, lives.condemned_profile] {
        assert!(policy.contains(&format!("[profiles.{profile}]")), "policy.toml has no profile {profile}");
    }
}
