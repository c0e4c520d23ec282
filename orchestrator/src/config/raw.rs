//! The file as it is written, and the check that turns it into a [`Config`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::image::Severity;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use toml::Spanned;

use super::read::Mistakes;
use super::{Acceleration, Api, ApiKey, ClockMode, Config, Endpoint, Image, Listen, WebhookSecret};
use crate::core::settings::Settings;

type Text = Spanned<String>;

/// The end of the year 9999: text of instants has four digits for a year.
const START_MS_MAX: i64 = 253_402_300_799_999;

/// Longest wait for a provider's whole answer, unless told otherwise.
const TIMEOUT_S: u64 = 600;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    journal: Option<Text>,
    state_dir: Option<Text>,
    run_dir: Option<Text>,
    seed: Option<Text>,
    #[serde(default)]
    spools: Vec<Text>,
    #[serde(default)]
    netd: RawNetd,
    #[serde(default)]
    api: RawApi,
    #[serde(default)]
    provider: RawEndpoint,
    #[serde(default)]
    judge: RawEndpoint,
    #[serde(default)]
    digest: RawEndpoint,
    #[serde(default)]
    webhooks: RawWebhooks,
    #[serde(default)]
    images: BTreeMap<Spanned<String>, RawImage>,
    #[serde(default)]
    economy: Option<Settings>,
    #[serde(default)]
    clock: RawClock,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawNetd {
    socket: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawApi {
    listen: Vec<Text>,
    operators: Vec<Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawEndpoint {
    base_url: Option<Text>,
    ca_file: Option<Text>,
    api_key_env: Option<Text>,
    timeout_s: Option<Spanned<u64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawWebhooks {
    secret_file: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawImage {
    rootfs: Option<Text>,
    command: Option<Spanned<Vec<String>>>,
    audit_fail_on: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawClock {
    accelerated: Option<Spanned<RawAcceleration>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAcceleration {
    start_ms: i64,
    busy_rate: u32,
    idle_rate: u32,
    #[serde(default = "idle_max_ms")]
    idle_max_ms: u32,
}

const fn idle_max_ms() -> u32 {
    20
}

impl File {
    /// The checked configuration; every `None` on the way has left a note.
    pub(super) fn check(
        self,
        environment: &dyn Fn(&str) -> Option<String>,
        notes: &mut Mistakes<'_>,
    ) -> Option<Config> {
        let journal = required(self.journal.as_ref(), "journal", notes);
        let state_dir = required(self.state_dir.as_ref(), "state_dir", notes);
        let run_dir = required(self.run_dir.as_ref(), "run_dir", notes);
        let netd_socket = required(self.netd.socket.as_ref(), "netd.socket", notes);
        let spools = self.spools.iter().filter_map(|spool| absolute(spool, notes)).collect();
        let api = self.api.check(notes);
        let provider = self.provider.check(None, environment, notes);
        let judge = self.judge.check(provider.as_ref(), environment, notes);
        let digest = self.digest.check(provider.as_ref(), environment, notes);
        if self.provider.base_url.is_none() {
            let what = "provider.base_url is missing, such as \"https://api.anthropic.com\"";
            notes.note_missing("provider.base_url", what);
        }
        let webhook_secrets = self.webhooks.secret_file.as_ref().map(|file| webhook_secrets(file, notes));
        let images = check_images(self.images, notes);
        let clock = self.clock.check(notes);
        let seed = self.seed.as_ref().and_then(|text| check_seed(text, notes));
        let settings = check_economy(self.economy, notes);
        Some(Config {
            journal: journal?,
            state_dir: state_dir?,
            run_dir: run_dir?,
            netd_socket: netd_socket?,
            spools,
            api,
            provider: provider?,
            judge: judge?,
            digest: digest?,
            webhook_secrets: webhook_secrets.unwrap_or_default(),
            images,
            settings,
            clock,
            seed,
        })
    }
}

impl File {
    /// Where the control plane listens, whatever else the file says.
    pub(super) fn listen(self, notes: &mut Mistakes<'_>) -> Vec<Listen> {
        self.api.check(notes).listen
    }
}

impl RawApi {
    fn check(self, notes: &mut Mistakes<'_>) -> Api {
        let listen = self.listen.iter().filter_map(|text| check_listen(text, notes)).collect();
        let operators = self.operators.iter().filter_map(|user| check_user(user, notes)).collect();
        Api { listen, operators }
    }
}

fn check_user(user: &Spanned<u32>, notes: &mut Mistakes<'_>) -> Option<u32> {
    // The kernel's word for "no user": it is nobody's.
    if *user.get_ref() == u32::MAX {
        notes.note(&user.span(), format!("{} is no user's number", u32::MAX));
        return None;
    }
    Some(*user.get_ref())
}

fn check_listen(text: &Text, notes: &mut Mistakes<'_>) -> Option<Listen> {
    if let Some(path) = text.get_ref().strip_prefix("unix:") {
        let path = Path::new(path);
        if path.is_absolute() {
            return Some(Listen::Unix(path.to_owned()));
        }
        notes.note(&text.span(), "the path after `unix:` must be absolute");
        return None;
    }
    match text.get_ref().parse::<std::net::SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Some(Listen::Loopback(address)),
        Ok(address) => {
            let what =
                format!("{address} is not a loopback address; put a TLS front end before it for others");
            notes.note(&text.span(), what);
            None
        }
        Err(_not_an_address) => {
            notes.note(&text.span(), "neither `unix:/PATH` nor `127.0.0.1:PORT`");
            None
        }
    }
}

impl RawEndpoint {
    /// What is left out comes from `fallback`, but never its key for another host.
    fn check(
        &self,
        fallback: Option<&Endpoint>,
        environment: &dyn Fn(&str) -> Option<String>,
        notes: &mut Mistakes<'_>,
    ) -> Option<Endpoint> {
        let roots = self.ca_file.as_ref().map(|file| certificates(file, notes));
        let api_key = self.api_key_env.as_ref().map(|name| key(name, environment, notes));
        let timeout = self.timeout_s.as_ref().map(|seconds| check_timeout(seconds, notes));
        let base = match (&self.base_url, fallback) {
            (Some(url), _) => check_base(url, notes)?,
            (None, Some(fallback)) => {
                return Some(Endpoint {
                    base: fallback.base.clone(),
                    roots: roots.unwrap_or_else(|| fallback.roots.clone()),
                    api_key: api_key.unwrap_or_else(|| fallback.api_key.clone()),
                    timeout: timeout.unwrap_or(fallback.timeout),
                });
            }
            (None, None) => return None,
        };
        Some(Endpoint {
            base,
            roots: roots.unwrap_or_default(),
            api_key: api_key.flatten(),
            timeout: timeout.unwrap_or(Duration::from_secs(TIMEOUT_S)),
        })
    }
}

fn check_timeout(seconds: &Spanned<u64>, notes: &mut Mistakes<'_>) -> Duration {
    if !(1..=3_600).contains(seconds.get_ref()) {
        notes.note(&seconds.span(), "a timeout is 1 to 3600 seconds");
    }
    Duration::from_secs(*seconds.get_ref())
}

fn check_base(url: &Text, notes: &mut Mistakes<'_>) -> Option<hyper::Uri> {
    let uri = url.get_ref().parse::<hyper::Uri>().ok();
    let fits = |uri: &hyper::Uri| {
        uri.scheme_str() == Some("https")
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
    };
    let uri = uri.filter(fits);
    if uri.is_none() {
        notes.note(
            &url.span(),
            "not an address such as \"https://api.anthropic.com\" (https, no user, no query)",
        );
    }
    uri
}

fn key(
    name: &Text,
    environment: &dyn Fn(&str) -> Option<String>,
    notes: &mut Mistakes<'_>,
) -> Option<ApiKey> {
    let key = environment(name.get_ref()).and_then(|text| ApiKey::parse(&text));
    if key.is_none() {
        let what =
            format!("the environment variable {} is not set to a key of visible ASCII", name.get_ref());
        notes.note(&name.span(), what);
    }
    key
}

fn certificates(file: &Text, notes: &mut Mistakes<'_>) -> Vec<CertificateDer<'static>> {
    let Some(path) = absolute(file, notes) else { return Vec::new() };
    let read = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(roots) if !roots.is_empty() => roots,
        Ok(_none) => {
            notes.note(&file.span(), "no certificate in the file");
            Vec::new()
        }
        Err(error) => {
            notes.note(&file.span(), format!("cannot read certificates: {error}"));
            Vec::new()
        }
    }
}

fn webhook_secrets(file: &Text, notes: &mut Mistakes<'_>) -> Vec<WebhookSecret> {
    let Some(path) = absolute(file, notes) else { return Vec::new() };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            notes.note(&file.span(), format!("cannot read the secrets: {error}"));
            return Vec::new();
        }
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let secrets: Option<Vec<_>> = lines.map(WebhookSecret::parse).collect();
    match secrets {
        Some(secrets) if !secrets.is_empty() => secrets,
        Some(_) | None => {
            notes.note(&file.span(), "each line must be `whsec_` and the base64 of 24 to 64 bytes");
            Vec::new()
        }
    }
}

fn check_images(
    raw: BTreeMap<Spanned<String>, RawImage>,
    notes: &mut Mistakes<'_>,
) -> BTreeMap<String, Image> {
    raw.into_iter()
        .filter_map(|(name, image)| Some((name.get_ref().clone(), image.check(&name, notes)?)))
        .collect()
}

impl RawImage {
    fn check(self, name: &Text, notes: &mut Mistakes<'_>) -> Option<Image> {
        let rootfs = self.rootfs.as_ref().and_then(|path| absolute(path, notes));
        if let (Some(path), Some(text)) = (&rootfs, &self.rootfs)
            && !path.is_dir()
        {
            notes.note(&text.span(), "there is no such folder, or this user may not see it");
        }
        if self.rootfs.is_none() {
            notes.note(&name.span(), format!("images.{}.rootfs is missing", name.get_ref()));
        }
        let program = |command: &Vec<String>| command.first().is_some_and(|first| first.starts_with('/'));
        let command = self.command.as_ref().map(Spanned::get_ref).filter(|command| program(command)).cloned();
        if command.is_none() {
            let span = self.command.as_ref().map_or(name.span(), Spanned::span);
            let what = format!("images.{}.command must be [\"/PROGRAM\", ARGUMENTS..]", name.get_ref());
            notes.note(&span, what);
        }
        let audit_fail_on = self.audit_fail_on.as_ref().map_or(Some(Severity::High), |name| {
            let severity = Severity::parse(name.get_ref());
            if severity.is_none() {
                notes.note(&name.span(), "a severity is one of info, low, medium, high");
            }
            severity
        });
        Some(Image { rootfs: rootfs?, command: command?, audit_fail_on: audit_fail_on? })
    }
}

fn check_seed(text: &Text, notes: &mut Mistakes<'_>) -> Option<String> {
    let digits = text.get_ref();
    if digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Some(digits.clone());
    }
    notes.note(&text.span(), "a seed is 64 hexadecimal digits in lower case");
    None
}

/// What genesis would say of them, said before there is a journal.
fn check_economy(raw: Option<Settings>, notes: &mut Mistakes<'_>) -> Settings {
    let settings = raw.unwrap_or_default();
    for mistake in crate::core::rules::check(&settings) {
        notes.note_at(&format!("economy.{}", mistake.key), mistake.what);
    }
    settings
}

impl RawClock {
    fn check(self, notes: &mut Mistakes<'_>) -> ClockMode {
        let Some(raw) = self.accelerated else { return ClockMode::Real };
        let span = raw.span();
        let raw = raw.into_inner();
        if !(0..=START_MS_MAX).contains(&raw.start_ms) {
            notes.note(&span, format!("start_ms is milliseconds since 1970, at most {START_MS_MAX}"));
        }
        if raw.busy_rate == 0 || raw.idle_rate < raw.busy_rate {
            notes.note(&span, "an accelerated clock needs 1 <= busy_rate <= idle_rate");
        }
        ClockMode::Accelerated(Acceleration {
            start_ms: raw.start_ms,
            busy_rate: raw.busy_rate,
            idle_rate: raw.idle_rate,
            idle_max: Duration::from_millis(raw.idle_max_ms.into()),
        })
    }
}

fn required(text: Option<&Text>, key: &str, notes: &mut Mistakes<'_>) -> Option<PathBuf> {
    if text.is_none() {
        notes.note_missing(key, &format!("{key} is missing"));
    }
    text.and_then(|text| absolute(text, notes))
}

fn absolute(text: &Text, notes: &mut Mistakes<'_>) -> Option<PathBuf> {
    let path = Path::new(text.get_ref());
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    notes.note(&text.span(), "the path must be absolute");
    None
}
