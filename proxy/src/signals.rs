//! Signals: one JSON object a line on an append-only spool, and on stderr.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use netd::lines::Lines;
use policy::signal::{Detail, Severity, Signal, Source};
use policy::{AgentId, Instant};

use crate::record::append;

/// What else is known of a signal.
pub(crate) type Details = BTreeMap<String, Detail>;

/// Where signals go.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Option<Mutex<Lines<File>>>,
    /// Tells this life of the process from every other one.
    life: String,
    count: AtomicU64,
}

impl Spool {
    /// Opens the spool; without a path signals stand on stderr alone.
    pub(crate) fn open(path: Option<&Path>, life: String) -> io::Result<Self> {
        let file = path.map(append).transpose()?.map(|file| Mutex::new(Lines::new(file)));
        Ok(Self { file, life, count: AtomicU64::new(0) })
    }

    /// Writes one signal in one call, so that lines of several processes never mix.
    pub(crate) fn raise(&self, seen: Seen<'_>) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let signal = Signal {
            time_ms: seen.since,
            id: format!("proxy-{}-{number}", self.life),
            source: Source::Proxy,
            agent: seen.agent.clone(),
            name: seen.name.to_owned(),
            severity: seen.severity,
            count: seen.count,
            detail: seen.detail,
        };
        tracing::warn!(agent = %signal.agent, name = signal.name, count = signal.count, detail = ?signal.detail, "signal");
        let Some(file) = &self.file else { return };
        let mut line = serde_json::to_vec(&signal).unwrap_or_default();
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(news) = file.write(&line).news("signals to the spool") {
            tracing::error!("{news}");
        }
    }
}

/// One signal, before it has an id.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) since: Instant,
    pub(crate) agent: &'a AgentId,
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    pub(crate) count: u64,
    pub(crate) detail: Details,
}
