//! One caller: who it is, what it may have at once, what it was seen doing.
//!
//! The listener that a connection came in on is the caller's identity; nothing that a client says is.

use std::sync::{Arc, Mutex, PoisonError};

use policy::egress::{Alert, Seen, Watch};
use policy::{AgentId, ProfileName};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::Caps;
use crate::host;
use crate::signals::{self, Details, Spool};

/// Refusals for want of room that are answered at once; beyond them connections are closed without a word.
const TURNED_AWAY_MAX: usize = 32;

/// One caller, shared by all its connections.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) agent: AgentId,
    pub(crate) profile: ProfileName,
    /// Which confinement of the agent this is; zero for `--listen`.
    pub(crate) generation: u64,
    /// Ends the accept loop and every connection.
    pub(crate) gone: CancellationToken,
    pub(crate) unjudged: Arc<Semaphore>,
    pub(crate) tunnels: Arc<Semaphore>,
    pub(crate) turned_away: Arc<Semaphore>,
    watch: Mutex<Watch>,
}

impl Caller {
    pub(crate) fn new(agent: AgentId, profile: ProfileName, generation: u64, caps: &Caps) -> Self {
        Self {
            agent,
            profile,
            generation,
            gone: CancellationToken::new(),
            unjudged: Arc::new(Semaphore::new(caps.unjudged)),
            tunnels: Arc::new(Semaphore::new(caps.tunnels)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
            watch: Mutex::new(Watch::new()),
        }
    }

    /// Takes observations and raises what is due.
    pub(crate) fn see(&self, all: Vec<Seen>, detail: &Details, spool: &Spool) {
        let now = host::now();
        for seen in all {
            let alert = self.watch.lock().unwrap_or_else(PoisonError::into_inner).see(seen, now);
            if let Some(alert) = alert {
                self.raise(alert, detail.clone(), spool);
            }
        }
    }

    /// Raises what the rate limit held back and is due; at the end of the caller, all of it.
    pub(crate) fn flush(&self, all: bool, spool: &Spool) {
        let alerts = self.watch.lock().unwrap_or_else(PoisonError::into_inner).flush(host::now(), all);
        for alert in alerts {
            self.raise(alert, Details::new(), spool);
        }
    }

    fn raise(&self, alert: Alert, detail: Details, spool: &Spool) {
        spool.raise(signals::Seen {
            since: alert.since,
            agent: &self.agent,
            name: alert.kind.as_str(),
            severity: alert.kind.severity(),
            count: alert.count,
            detail,
        });
    }
}
