//! What netd hands over: a listener for each confined agent, over a connection that comes back after every end.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use netd::client::{Event, Role, Subscription};
use policy::AgentId;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use crate::caller::Caller;
use crate::server::Shared;

/// Waits between attempts to reach netd: the first, and the longest.
const BACK_OFF: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// After a reconnect everything that exists is told again; what is not, in this time, ended while nobody told us.
const RECONCILE: Duration = Duration::from_secs(10);

/// What the thread tells the server.
enum Told {
    /// A new subscription: everything that exists follows.
    Again,
    Event(Event),
}

/// Starts the thread and the task that takes what it tells.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(path) = shared.config.netd.clone() else { return Ok(()) };
    let (tell, told) = unbounded_channel();
    // The thread blocks in netd's client and ends with the process, or with the first event after the task's end.
    std::thread::Builder::new().name("netd".to_owned()).spawn(move || subscribe_for_ever(&path, &tell))?;
    tokio::spawn(take_all(Arc::clone(shared), told));
    Ok(())
}

fn subscribe_for_ever(path: &Path, tell: &UnboundedSender<Told>) {
    let mut wait = BACK_OFF;
    while !tell.is_closed() {
        match subscribe(path, tell) {
            Ended::NeverOpened(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot subscribe at netd; trying again"
                );
                wait = (wait * 2).min(BACK_OFF_MAX);
            }
            Ended::Lost(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "lost netd; the listeners that we have still serve"
                );
                wait = BACK_OFF;
            }
            Ended::NobodyListens => return,
        }
        std::thread::sleep(wait);
    }
}

enum Ended {
    NeverOpened(netd::client::ClientError),
    Lost(netd::client::ClientError),
    NobodyListens,
}

fn subscribe(path: &Path, tell: &UnboundedSender<Told>) -> Ended {
    let mut subscription = match Subscription::open(PathBuf::from(path), Role::Proxy) {
        Ok(subscription) => subscription,
        Err(error) => return Ended::NeverOpened(error),
    };
    let mut told = Told::Again;
    loop {
        if tell.send(told).is_err() {
            return Ended::NobodyListens;
        }
        told = match subscription.next() {
            Ok(event) => Told::Event(event),
            Err(error) => return Ended::Lost(error),
        };
    }
}

async fn take_all(shared: Arc<Shared>, mut told: UnboundedReceiver<Told>) {
    // Confinements that were served before the reconnect and have not been told again.
    let mut doubtful: BTreeSet<(AgentId, u64)> = BTreeSet::new();
    let mut reconcile = Instant::now();
    loop {
        tokio::select! {
            told = told.recv() => match told {
                None => return,
                Some(Told::Again) => {
                    doubtful = shared.confined().into_iter().collect();
                    reconcile = Instant::now() + RECONCILE;
                }
                Some(Told::Event(event)) => take(&shared, event, &mut doubtful),
            },
            () = sleep_until(reconcile), if !doubtful.is_empty() => {
                for (agent, generation) in std::mem::take(&mut doubtful) {
                    tracing::warn!(%agent, generation, "netd no longer knows this confinement");
                    shared.dismiss(&agent, generation);
                }
            }
            () = shared.draining.cancelled() => return,
        }
    }
}

fn take(shared: &Arc<Shared>, event: Event, doubtful: &mut BTreeSet<(AgentId, u64)>) {
    match event {
        Event::Released { agent, generation } => shared.dismiss(&agent, generation),
        Event::Listener { agent, profile, generation, listener } => {
            doubtful.remove(&(agent.clone(), generation));
            // The same socket again, after a reconnect: the copy that we serve is as good.
            if shared.serves(&agent, generation) {
                return;
            }
            let listener = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
            match listener {
                Ok(listener) => {
                    shared.admit(Caller::new(agent, profile, generation, &shared.config.caps), listener);
                }
                Err(error) => {
                    tracing::error!(%error, %agent, "cannot serve a listener that netd handed over");
                }
            }
        }
    }
}
