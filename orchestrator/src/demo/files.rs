//! The configuration files that an operator would write, for the demo's processes.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use policy::Instant;
use policy::time::DAY_MS;
use serde_json::{Value, json};

use super::users::Users;
use super::world::{LIBRARY, MARKET};
use super::{rootfs, scratch::Scratch, scratch::ScratchError};

/// When the demo's agents are born: noon, so that they are more than ten days old at the first cull.
pub const BORN: Instant = Instant::from_ms(20_878 * DAY_MS + DAY_MS / 2);
/// The first cull: midnight, ten and a half days later.
pub const FIRST_CULL: Instant = Instant::from_ms(20_889 * DAY_MS);
/// Bound of the shortest prompt: the constitution stands before every call, and a token may be one byte. An agent
/// that cannot pay for that much starves.
const PROMPT_TOKENS_MIN: u64 = 8_000;
/// The proxy's end of the link to the world.
pub const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 231, 77, 1);
/// The market, and the name server.
pub const MARKET_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 231, 77, 2);
/// The library.
pub const LIBRARY_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 231, 77, 3);

/// Why a file is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A folder.
    #[error(transparent)]
    Folder(#[from] ScratchError),
    /// A file.
    #[error("write {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Values that TOML cannot say.
    #[error("write {path} as TOML")]
    Toml {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: toml::ser::Error,
    },
}

/// Where everything of one run is.
#[derive(Debug, Clone)]
pub struct Places {
    /// netd's folder: its configuration and socket.
    pub netd: PathBuf,
    /// The proxy's folder: configuration, policy, log.
    pub proxy: PathBuf,
    /// The control plane's folder: configuration, journal, the agents' state.
    pub serve: PathBuf,
    /// The world's folder: certificates, and what it saw.
    pub world: PathBuf,
    /// The provider's folder: certificates, and what it saw.
    pub provider: PathBuf,
    /// Where signals are spooled.
    pub spool: PathBuf,
    /// Sockets.
    pub run: PathBuf,
    /// What the processes say on standard error.
    pub logs: PathBuf,
    /// The sample agents' image.
    pub image: PathBuf,
    /// The image that is refused.
    pub bad_image: PathBuf,
}

impl Places {
    /// Makes the folders, each for the user that needs it.
    ///
    /// # Errors
    /// [`ScratchError::Folder`].
    pub fn make(scratch: &Scratch, users: &Users) -> Result<Self, ScratchError> {
        let of = |user: u32| users.apart().then_some((user, users.group));
        let shared = scratch.folder("spool", 0o3775, of(0))?;
        Ok(Self {
            netd: scratch.folder("netd", 0o755, None)?,
            proxy: scratch.folder("proxy", 0o755, of(users.proxy))?,
            serve: scratch.folder("serve", 0o710, of(users.serve))?,
            world: scratch.folder("world", 0o700, of(users.world))?,
            provider: scratch.folder("provider", 0o700, of(users.provider))?,
            spool: shared,
            run: scratch.folder("run", 0o3775, of(0))?,
            logs: scratch.folder("logs", 0o755, None)?,
            image: scratch.folder("image", 0o755, None)?,
            bad_image: scratch.folder("bad-image", 0o755, None)?,
        })
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.serve.join("journal.sqlite")
    }

    /// The control plane's API.
    pub fn api(&self) -> PathBuf {
        self.serve.join("run/api.sock")
    }

    /// netd's socket.
    pub fn netd_socket(&self) -> PathBuf {
        self.run.join("netd.sock")
    }

    /// The proxy's log.
    pub fn proxy_log(&self) -> PathBuf {
        self.proxy.join("proxy.jsonl")
    }

    /// A spool of signals.
    pub fn spool_of(&self, source: &str) -> PathBuf {
        self.spool.join(format!("{source}.jsonl"))
    }
}

/// How fast the accelerated clock runs, in its milliseconds for one of the host's.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// While an episode or an effect is open.
    pub busy: u32,
    /// While nothing is.
    pub idle: u32,
    /// Longest wait of the host's time before an idle clock jumps to what is due, in milliseconds.
    pub idle_max_ms: u32,
}

impl Rates {
    /// The host's own pace, without jumps: for the births, and for people who look round afterwards.
    pub const fn birth() -> Self {
        Self { busy: 1, idle: 1, idle_max_ms: u32::MAX }
    }

    /// For people who watch: ten days in about a minute, most of it waits between two things that happen.
    pub const fn watch() -> Self {
        Self { busy: 600, idle: 40_000, idle_max_ms: 300 }
    }
}

impl Default for Rates {
    /// Ten minutes a second while somebody works, and a day in less than a second while nobody does.
    fn default() -> Self {
        Self { busy: 600, idle: 100_000_000, idle_max_ms: 5 }
    }
}

/// netd's configuration.
///
/// # Errors
/// [`FilesError`].
pub fn write_netd(places: &Places, users: &Users) -> Result<PathBuf, FilesError> {
    let name = |user: u32| json!([user.to_string()]);
    let mut config = json!({
        "socket": places.netd_socket(),
        "spool": places.spool_of("netd"),
        "clients": {
            "control": ["0", users.serve.to_string()],
            "proxy": name(users.proxy),
            "gateway": name(users.serve),
        },
    });
    if users.apart()
        && let Some(config) = config.as_object_mut()
    {
        config.insert("user".to_owned(), json!(users.netd.to_string()));
    }
    write_toml(&places.netd.join("netd.toml"), &config)
}

/// The proxy's configuration and its policy: two pinned names, and a profile that allows nothing.
///
/// # Errors
/// [`FilesError`].
pub fn write_proxy(places: &Places) -> Result<(PathBuf, PathBuf), FilesError> {
    let config = json!({
        "log": places.proxy_log(),
        "spool": places.spool_of("proxy"),
        "netd": places.netd_socket(),
        "resolver": {"servers": [SocketAddr::from((MARKET_ADDRESS, 53)).to_string()]},
    });
    let rule = |host: &str, address: Ipv4Addr| json!({"host": host, "ports": [443], "action": "allow", "pin": [address.to_string()]});
    let policy = json!({"profiles": {
        "agents": {
            "mode": "deny-by-default",
            "rules": [rule(MARKET, MARKET_ADDRESS), rule(LIBRARY, LIBRARY_ADDRESS)],
        },
        "nothing": {"mode": "deny-by-default"},
    }});
    Ok((
        write_toml(&places.proxy.join("proxy.toml"), &config)?,
        write_toml(&places.proxy.join("policy.toml"), &policy)?,
    ))
}

/// The control plane's configuration.
///
/// # Errors
/// [`FilesError`].
pub fn write_serve(
    places: &Places,
    provider: SocketAddr,
    rates: Rates,
    live_judge: bool,
) -> Result<PathBuf, FilesError> {
    let mut config = json!({
        "journal": places.journal(),
        "state_dir": places.serve.join("state"),
        "run_dir": places.serve.join("run"),
        "spools": [places.spool_of("netd"), places.spool_of("proxy")],
        "netd": {"socket": places.netd_socket()},
        "api": {"listen": [format!("unix:{}", places.api().display())]},
        "provider": {
            "base_url": format!("https://127.0.0.1:{}", provider.port()),
            "ca_file": places.serve.join("ca.pem"),
        },
        "webhooks": {"secret_file": places.serve.join("webhook.secret")},
        "images": {"sample": {"rootfs": places.image, "command": [rootfs::PROGRAM]}},
        "clock": {"accelerated": {
            "start_ms": BORN.ms(),
            "busy_rate": rates.busy,
            "idle_rate": rates.idle,
            "idle_max_ms": rates.idle_max_ms,
        }},
        "economy": {
            "schedule": {"first_ms": FIRST_CULL.ms()},
            "models": {"prompt_tokens_min": PROMPT_TOKENS_MIN},
        },
    });
    if live_judge && let Some(config) = config.as_object_mut() {
        let judge = json!({"base_url": "https://api.anthropic.com", "api_key_env": "ANTHROPIC_API_KEY"});
        config.insert("judge".to_owned(), judge);
    }
    write_toml(&places.serve.join("darwin.toml"), &config)
}

fn write_toml(path: &Path, value: &Value) -> Result<PathBuf, FilesError> {
    let text = toml::to_string(value).map_err(|source| FilesError::Toml { path: path.to_owned(), source })?;
    write(path, &text, 0o644)?;
    Ok(path.to_owned())
}

/// Writes a file with this mode.
///
/// # Errors
/// [`FilesError::Write`].
pub fn write(path: &Path, text: &str, mode: u32) -> Result<(), FilesError> {
    let failed = |source| FilesError::Write { path: path.to_owned(), source };
    fs::write(path, text).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_older_than_ten_days_at_the_first_cull() {
        assert_eq!(BORN.to_string(), "2027-03-01T12:00:00.000Z");
        assert_eq!(FIRST_CULL.midnight(), FIRST_CULL);
        assert_eq!(FIRST_CULL.since_ms(BORN), 10 * DAY_MS + DAY_MS / 2);
    }
}
