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
