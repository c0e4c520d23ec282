//! A new policy: read whole, swapped in one step, or not at all.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use policy::AgentId;
use policy::signal::{Detail, Severity};

use crate::config::{ConfigError, Policies};
use crate::host;
use crate::server::Shared;
use crate::signals::{Details, Seen};

/// How often the file is looked at: a change is in force within two seconds.
const LOOK: Duration = Duration::from_millis(500);
/// Longest text of a failure in a signal, in characters.
const FAILURE_CHARS_MAX: usize = 400;

/// What tells one state of a file from another.
type Mark = Option<(SystemTime, u64, u64)>;

/// Follows the policy file until the drain.
pub(crate) async fn follow(shared: Arc<Shared>) {
    // The first look reads again: the file may have changed between its loading and now.
    let mut seen = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = shared.draining.cancelled() => return,
        }
        let found = mark(&shared.config.policy);
        // A file that is gone for a moment is being replaced; the old policy holds.
        if found != seen && found.is_some() {
            seen = found;
            now(&shared).await;
        }
    }
}

/// Reads the file and swaps the policy, or keeps the old one and says so.
pub(crate) async fn now(shared: &Shared) {
    let path = shared.config.policy.clone();
    match tokio::task::spawn_blocking(move || Policies::load(&path)).await {
        Ok(Ok(policies)) => swap(shared, policies),
        Ok(Err(error)) => keep(shared, &error),
        Err(error) => {
            tracing::error!(%error, "cannot read the policy: its reader died; the old policy holds");
        }
    }
}

fn swap(shared: &Shared, policies: Policies) {
    let revision = policies.revision.clone();
    let changed = shared.policies.send_if_modified(|current| {
        let changed = **current != policies;
        *current = Arc::new(policies);
        changed
    });
    tracing::info!(revision, changed, "policy loaded");
}

fn keep(shared: &Shared, error: &ConfigError) {
    tracing::error!(error = error as &dyn std::error::Error, "the old policy holds");
    let text: String = error.to_string().chars().take(FAILURE_CHARS_MAX).collect();
    raise_own(shared, "policy_load_failed", 1, &text);
}

/// Raises a signal of the proxy's own, against no agent.
pub(crate) fn raise_own(shared: &Shared, name: &'static str, count: u64, what: &str) {
    let Ok(agent) = AgentId::parse("darwin-proxy") else { return };
    let detail = Details::from([("what".to_owned(), Detail::Text(what.to_owned()))]);
    let severity = Severity::Alarm;
    shared.spool.raise(Seen { since: host::now(), agent: &agent, name, severity, count, detail });
}

fn mark(path: &Path) -> Mark {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}
