//! `darwin.toml`: read whole, all mistakes at once, before anything starts.
//!
//! Inside, every value has been parsed: no function behind this door takes a path that may be relative, an address
//! that may be public or a key that may be empty.

mod raw;
pub mod read;
mod secret;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::image::Severity;
use rustls::pki_types::CertificateDer;

use crate::core::settings::Settings;
pub use policy::Mistake;
pub use secret::{ApiKey, WebhookSecret};

/// What `darwin serve` runs with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The journal's file.
    pub journal: PathBuf,
    /// Holds the agents' state folders, logs and audit reports.
    pub state_dir: PathBuf,
    /// Holds what lives no longer than the process: sockets, the mount point of roots.
    pub run_dir: PathBuf,
    /// netd's socket.
    pub netd_socket: PathBuf,
    /// Spools whose signals are followed.
    pub spools: Vec<PathBuf>,
    /// The interface for operators and webhooks.
    pub api: Api,
    /// Where the agents' model calls go.
    pub provider: Endpoint,
    /// Where the judge is asked: the provider, unless told otherwise.
    pub judge: Endpoint,
    /// Where the digest is asked for: the provider, unless told otherwise.
    pub digest: Endpoint,
    /// Secrets that may sign webhooks; none, and no webhook is accepted.
    pub webhook_secrets: Vec<WebhookSecret>,
    /// What agents may run from.
    pub images: BTreeMap<String, Image>,
    /// The economy.
    pub settings: Settings,
    /// The clock.
    pub clock: ClockMode,
    /// The seed of a new journal, 64 hexadecimal digits: for tests and demonstrations. None: from the host's
    /// random source, and secret.
    pub seed: Option<String>,
}

/// The interface for operators and webhooks.
#[derive(Debug, Clone, Default)]
pub struct Api {
    /// Where it listens.
    pub listen: Vec<Listen>,
    /// Users besides root and our own that may operate it over the Unix socket.
    pub operators: Vec<u32>,
}

/// One address to listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket: operators and webhooks.
    Unix(PathBuf),
    /// An address of the host's own loopback: webhooks alone.
    Loopback(SocketAddr),
}

/// One Messages API.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `https://HOST[:PORT]`, and a path in front of `/v1/messages` if there is one.
    pub base: hyper::Uri,
    /// The only roots trusted; none, and the host's own are.
    pub roots: Vec<CertificateDer<'static>>,
    /// The key, if the provider wants one.
    pub api_key: Option<ApiKey>,
    /// Longest wait for a whole answer.
    pub timeout: Duration,
}

/// What an agent may run from.
#[derive(Debug, Clone)]
pub struct Image {
    /// The folder that becomes its read-only root.
    pub rootfs: PathBuf,
    /// The program inside, by absolute path, and its arguments.
    pub command: Vec<String>,
    /// From which severity on a finding of the audit keeps it from being run.
    pub audit_fail_on: Severity,
}

/// How the platform's time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// As the host's.
    Real,
    /// Faster, for a demonstration.
    Accelerated(Acceleration),
}

/// Milliseconds of the platform's clock for one of the host's, and where it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceleration {
    /// The instant that a new journal starts at.
    pub start_ms: i64,
    /// While an episode or an effect is open.
    pub busy_rate: u32,
    /// While nothing is.
    pub idle_rate: u32,
    /// The longest wait of the host's time before an idle clock jumps to what is due.
    pub idle_max: Duration,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file itself.
    #[error("read the configuration file {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its content; each mistake on a line of its own as `PATH:LINE:COLUMN: WHAT`.
    #[error("use the configuration:\n{}", shown(path, mistakes))]
    Wrong {
        /// Which.
        path: PathBuf,
        /// All of them, in the order of the file.
        mistakes: Vec<Mistake>,
    },
}

fn shown(path: &Path, mistakes: &[Mistake]) -> String {
    Mistake::list(&path.display().to_string(), mistakes)
}

impl Config {
    /// Reads and checks the file and what it names: certificates, secrets, keys in the environment.
    ///
    /// # Errors
    /// [`ConfigError`], with every mistake.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, &|name| std::env::var(name).ok())
            .map_err(|mistakes| ConfigError::Wrong { path: path.to_owned(), mistakes })
    }

    /// The Unix socket that the file's control plane listens on. Keys, secrets and images are not looked at: who
    /// operates it need not be able to run it.
    ///
    /// # Errors
    /// [`ConfigError`], if it is no file of ours or its listeners are wrong.
    pub fn api_socket(path: &Path) -> Result<Option<PathBuf>, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut mistakes = read::Mistakes::new(&text);
        let raw: Option<raw::File> = read::read(&text, &mut mistakes);
        let listen = raw.map(|raw| raw.listen(&mut mistakes)).unwrap_or_default();
        let wrong = |mistakes| ConfigError::Wrong { path: path.to_owned(), mistakes };
        mistakes.none_or_all().map_err(wrong)?;
        Ok(listen.into_iter().find_map(|listen| match listen {
            Listen::Unix(path) => Some(path),
            Listen::Loopback(_) => None,
        }))
    }

    /// Checks a text; `environment` finds the keys that it names.
    ///
    /// # Errors
    /// Every mistake, in the order of the text.
    pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = read::Mistakes::new(text);
        let raw: Option<raw::File> = read::read(text, &mut mistakes);
        let config = raw.and_then(|raw| raw.check(environment, &mut mistakes));
        match (mistakes.none_or_all(), config) {
            (Ok(()), Some(config)) => Ok(config),
            (Err(mistakes), _) => Err(mistakes),
            // A check that answers nothing has noted why; this line keeps a forgotten note from passing.
            (Ok(()), None) => Err(vec![Mistake { line: 1, column: 1, what: "it cannot be read".to_owned() }]),
        }
    }
}
