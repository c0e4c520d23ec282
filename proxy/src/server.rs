//! The server: callers and their listeners, the shared state of all connections, the drain.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use policy::egress::Surroundings;
use policy::{AgentId, ProfileName};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::Caller;
use crate::config::{Config, Policies};
use crate::record::Log;
use crate::resolve::{Resolver, ResolverError};
use crate::signals::Spool;
use crate::{connection, feed, host, reload};

/// After an accept that failed for want of descriptors or memory: others must get their turn to free some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often held-back signals and the host's own addresses are looked at.
const HOUSEKEEPING: Duration = Duration::from_secs(2);
/// How long cut connections have to write their line.
const CUT_GRACE: Duration = Duration::from_secs(2);

/// Why the server does not start. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log.
    #[error("open the log {target}")]
    Log {
        /// Which.
        target: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The spool.
    #[error("open the spool {}: does its folder exist, and may this user write there?", path.display())]
    Spool {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The resolver.
    #[error("look names up")]
    Resolver(#[from] ResolverError),
    /// The host's addresses.
    #[error("read the host's own addresses")]
    OwnAddresses(#[source] nix::Error),
    /// A listener.
    #[error("listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The thread that talks to netd.
    #[error("start the thread that talks to netd")]
    Thread(#[source] io::Error),
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) policies: watch::Sender<Arc<Policies>>,
    pub(crate) resolver: Resolver,
    pub(crate) log: Log,
    pub(crate) spool: Spool,
    /// No new work.
    pub(crate) draining: CancellationToken,
    /// The drain is over: what is left is cut.
    pub(crate) cut: CancellationToken,
    surroundings: RwLock<Arc<Surroundings>>,
    connections: TaskTracker,
    callers: Mutex<BTreeMap<AgentId, Arc<Caller>>>,
    life: String,
    count: AtomicU64,
}

impl Shared {
    pub(crate) fn next_id(&self) -> String {
        format!("{}-{}", self.life, self.count.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn surroundings(&self) -> Arc<Surroundings> {
        Arc::clone(&self.surroundings.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn refresh_surroundings(&self) {
        let own_ports = self.surroundings().own_ports.clone();
        match host::own_addresses() {
            Ok(own_addresses) => {
                let fresh = Arc::new(Surroundings { own_addresses, own_ports });
                *self.surroundings.write().unwrap_or_else(PoisonError::into_inner) = fresh;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the host's own addresses; the last known ones hold");
            }
        }
    }

    fn callers(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentId, Arc<Caller>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a caller on its listener; an older one of the same agent ends.
    pub(crate) fn admit(self: &Arc<Self>, caller: Caller, listener: TcpListener) {
        let caller = Arc::new(caller);
        let before = self.callers().insert(caller.agent.clone(), Arc::clone(&caller));
        if let Some(before) = before {
            self.end(&before);
        }
        tracing::info!(agent = %caller.agent, profile = %caller.profile, generation = caller.generation, "serving");
        tokio::spawn(accept_all(Arc::clone(self), caller, listener));
    }

    /// Whether this very confinement is served already.
    pub(crate) fn serves(&self, agent: &AgentId, generation: u64) -> bool {
        self.callers().get(agent).is_some_and(|caller| caller.generation == generation)
    }

    /// Ends a caller whose generation is this or lower: its listener, its connections, its tunnels.
    pub(crate) fn dismiss(&self, agent: &AgentId, generation: u64) {
        let mut callers = self.callers();
        if callers.get(agent).is_some_and(|caller| caller.generation <= generation) {
            let gone = callers.remove(agent);
            drop(callers);
            if let Some(gone) = gone {
                self.end(&gone);
            }
        }
    }

    /// Every caller that netd gave, with its generation.
    pub(crate) fn confined(&self) -> Vec<(AgentId, u64)> {
        let callers = self.callers();
        let confined = callers.values().filter(|caller| caller.generation > 0);
        confined.map(|caller| (caller.agent.clone(), caller.generation)).collect()
    }

    fn end(&self, caller: &Caller) {
        tracing::info!(agent = %caller.agent, generation = caller.generation, "ended");
        caller.gone.cancel();
        caller.flush(true, &self.spool);
    }

    fn flush(&self, all: bool) {
        let callers: Vec<Arc<Caller>> = self.callers().values().cloned().collect();
        for caller in callers {
            caller.flush(all, &self.spool);
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    log_thread: JoinHandle<()>,
}

impl Server {
    /// Opens everything and begins to serve: the `--listen` addresses as `listen-N`, and what netd hands over.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(
        config: Config,
        policies: Policies,
        listen: &[(SocketAddr, ProfileName)],
    ) -> Result<Self, StartError> {
        let life = format!("{:x}-{:x}", host::now().ms(), std::process::id());
        let spool = Spool::open(config.spool.as_deref(), life.clone())
            .map_err(|source| StartError::Spool { path: config.spool.clone().unwrap_or_default(), source })?;
        let resolver = Resolver::new(&config.resolvers, config.clocks.lookup)?;
        let listeners = bind(listen).await?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok()).collect();
        let own_addresses = host::own_addresses().map_err(StartError::OwnAddresses)?;
        let own_ports = addresses.iter().map(SocketAddr::port).collect();
        let (log, log_thread) = Log::open(&config.log)
            .map_err(|source| StartError::Log { target: format!("{:?}", config.log), source })?;
        let shared = Arc::new(Shared {
            policies: watch::Sender::new(Arc::new(policies)),
            resolver,
            log,
            spool,
            draining: CancellationToken::new(),
            cut: CancellationToken::new(),
            surroundings: RwLock::new(Arc::new(Surroundings { own_addresses, own_ports })),
            connections: TaskTracker::new(),
            callers: Mutex::new(BTreeMap::new()),
            life,
            count: AtomicU64::new(0),
            config,
        });
        for (number, (listener, profile)) in (1..).zip(listeners) {
            if let Ok(agent) = AgentId::parse(&format!("listen-{number}")) {
                shared.admit(Caller::new(agent, profile, 0, &shared.config.caps), listener);
            }
        }
        if shared.config.netd.is_some() {
            feed::start(&shared).map_err(StartError::Thread)?;
        }
        tokio::spawn(keep_house(Arc::clone(&shared)));
        tokio::spawn(reload::follow(Arc::clone(&shared)));
        Ok(Self { shared, addresses, log_thread })
    }

    /// Where the `--listen` callers are served, in their order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The revision in force.
    pub fn revision(&self) -> String {
        self.shared.policies.borrow().revision.clone()
    }

    /// Reads the policy file again, now.
    pub async fn reload(&self) {
        reload::now(&self.shared).await;
    }

    /// Takes no new work, waits for what there is until the deadline or `at_once`, cuts the rest and closes the log.
    ///
    /// Returns how many connections had to be cut.
    pub async fn drain(self, at_once: impl Future<Output = ()>) -> usize {
        let shared = &self.shared;
        shared.draining.cancel();
        shared.connections.close();
        tokio::select! {
            () = shared.connections.wait() => {}
            () = tokio::time::sleep(shared.config.clocks.drain) => {}
            () = at_once => {}
        }
        let left = shared.connections.len();
        shared.cut.cancel();
        if tokio::time::timeout(CUT_GRACE, shared.connections.wait()).await.is_err() {
            tracing::error!(left = shared.connections.len(), "connections did not end when they were cut");
        }
        shared.flush(true);
        drop(self.shared);
        // The thread ends with the last copy of the queue; one that a stuck task holds must not keep us here.
        let thread = self.log_thread;
        for _ in 0..100 {
            if thread.is_finished() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        left
    }
}

async fn bind(listen: &[(SocketAddr, ProfileName)]) -> Result<Vec<(TcpListener, ProfileName)>, StartError> {
    let mut listeners = Vec::with_capacity(listen.len());
    for (address, profile) in listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| StartError::Listen { address: *address, source })?;
        listeners.push((listener, profile.clone()));
    }
    Ok(listeners)
}

/// Accepts until the caller is gone or the drain begins; an error never ends it.
async fn accept_all(shared: Arc<Shared>, caller: Arc<Caller>, listener: TcpListener) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = caller.gone.cancelled() => return,
            () = shared.draining.cancelled() => return,
        };
        match accepted {
            Ok((client, _)) => {
                // Without it a small answer waits for the acknowledgement of the one before.
                if let Err(error) = client.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                shared.connections.spawn(connection::serve(Arc::clone(&shared), Arc::clone(&caller), client));
            }
            // Whoever made the listener has shut it down: its namespace is gone, or going.
            Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => {
                shared.dismiss(&caller.agent, caller.generation);
                return;
            }
            Err(error) => {
                tracing::warn!(%error, agent = %caller.agent, "cannot accept; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn keep_house(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(HOUSEKEEPING) => {}
            () = shared.draining.cancelled() => return,
        }
        shared.flush(false);
        shared.refresh_surroundings();
        let dropped = shared.log.take_dropped();
        if dropped > 0 {
            reload::raise_own(&shared, "log_pressure", dropped, "log lines were dropped");
        }
    }
}
