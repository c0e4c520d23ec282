//! `proxy.toml`: sockets, files, clocks and caps.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::toml_text::{Notes, Table, read};
use super::{ConfigError, Mistake, load};

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}

/// How long each step of a connection may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clocks {
    /// From the accept to a whole head.
    pub head: Duration,
    /// The look-up.
    pub lookup: Duration,
    /// The dial, all addresses together.
    pub dial: Duration,
    /// From the 200 to a whole hello.
    pub hello: Duration,
    /// Silence of a tunnel that one side has closed.
    pub half_closed: Duration,
    /// From SIGTERM to the cut.
    pub drain: Duration,
}

/// What one caller may have at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Connections whose head or hello is not judged.
    pub unjudged: usize,
    /// Tunnels.
    pub tunnels: usize,
}

/// What `darwin-proxy serve` runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where log lines go.
    pub log: LogTarget,
    /// Where signals go; none, and they stand on stderr alone.
    pub spool: Option<PathBuf>,
    /// netd's socket; none, and only `--listen` serves.
    pub netd: Option<PathBuf>,
    /// The policy file.
    pub policy: PathBuf,
    /// Resolvers; none, and the host's own are asked.
    pub resolvers: Vec<SocketAddr>,
    /// Clocks.
    pub clocks: Clocks,
    /// Caps.
    pub caps: Caps,
}

const POLICY_DEFAULT: &str = "/etc/darwin/policy.toml";

impl Default for Config {
    fn default() -> Self {
        let clocks = Clocks {
            head: Duration::from_secs(10),
            lookup: Duration::from_secs(5),
            dial: Duration::from_secs(10),
            hello: Duration::from_secs(10),
            half_closed: Duration::from_mins(1),
            drain: Duration::from_secs(30),
        };
        Self {
            log: LogTarget::Stdout,
            spool: None,
            netd: None,
            policy: PathBuf::from(POLICY_DEFAULT),
            resolvers: Vec::new(),
            clocks,
            caps: Caps { unjudged: 256, tunnels: 1024 },
        }
    }
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// [`ConfigError`], with every mistake.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        load(path, Self::parse)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Every mistake, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        read(text, |mut top, notes| {
            let mut config = Self::default();
            config.log = match top.text("log", notes) {
                None => config.log,
                Some(word) if word == "stdout" => LogTarget::Stdout,
                Some(path) => absolute(&top, "log", path, notes).map_or(LogTarget::Stdout, LogTarget::File),
            };
            config.spool = read_path(&mut top, "spool", notes);
            config.netd = read_path(&mut top, "netd", notes);
            config.policy = read_path(&mut top, "policy", notes).unwrap_or(config.policy);
            refuse_unserved(&mut top, "metrics", notes);
            refuse_unserved(&mut top, "upstream_proxy", notes);
            config.resolvers =
                top.table("resolver", notes).map_or_else(Vec::new, |table| read_resolvers(table, notes));
            if let Some(table) = top.table("clocks", notes) {
                read_clocks(table, &mut config.clocks, notes);
            }
            if let Some(table) = top.table("caps", notes) {
                read_caps(table, &mut config.caps, notes);
            }
            top.finish(notes);
            config
        })
    }
}

fn absolute(table: &Table<'_, '_>, key: &str, text: String, notes: &mut Notes) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        return Some(path);
    }
    notes.add_at(&table.path_of(key), format!("{:?} is no absolute path", path.display()));
    None
}

fn read_path(table: &mut Table<'_, '_>, key: &'static str, notes: &mut Notes) -> Option<PathBuf> {
    let text = table.text(key, notes)?;
    absolute(table, key, text, notes)
}

/// A setting that this version does not serve must not be taken for one that works.
fn refuse_unserved(table: &mut Table<'_, '_>, key: &'static str, notes: &mut Notes) {
    if table.text(key, notes).is_some_and(|text| !text.is_empty()) {
        notes.add_at(&table.path_of(key), format!("{key} is not served by this version; leave it out"));
    }
}

fn read_resolvers(mut table: Table<'_, '_>, notes: &mut Notes) -> Vec<SocketAddr> {
    let mut resolvers = Vec::new();
    for (index, text) in table.texts("servers", notes).unwrap_or_default().into_iter().enumerate() {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => resolvers.push(address),
            Ok(_) | Err(_) => notes.add_at(
                &format!("{}[{index}]", table.path_of("servers")),
                format!("{text:?} is not \"IP:PORT\""),
            ),
        }
    }
    table.finish(notes);
    resolvers
}

const CLOCK_S_MAX: i64 = 3_600;

fn read_clocks(mut table: Table<'_, '_>, clocks: &mut Clocks, notes: &mut Notes) {
    for (key, clock) in [
        ("head_s", &mut clocks.head),
        ("lookup_s", &mut clocks.lookup),
        ("dial_s", &mut clocks.dial),
        ("hello_s", &mut clocks.hello),
        ("half_closed_s", &mut clocks.half_closed),
        ("drain_s", &mut clocks.drain),
    ] {
        if let Some(seconds) = read_within(&mut table, key, CLOCK_S_MAX, notes) {
            *clock = Duration::from_secs(seconds);
        }
    }
    table.finish(notes);
}

fn read_caps(mut table: Table<'_, '_>, caps: &mut Caps, notes: &mut Notes) {
    for (key, cap) in [("unjudged", &mut caps.unjudged), ("tunnels", &mut caps.tunnels)] {
        if let Some(count) = read_within(&mut table, key, 1_000_000, notes) {
            *cap = usize::try_from(count).unwrap_or(*cap);
        }
    }
    table.finish(notes);
}

fn read_within(table: &mut Table<'_, '_>, key: &'static str, most: i64, notes: &mut Notes) -> Option<u64> {
    let number = table.number(key, notes)?;
    if !(1..=most).contains(&number) {
        notes.add_at(&table.path_of(key), format!("{number} is not between 1 and {most}"));
        return None;
    }
    u64::try_from(number).ok()
}
