//! What becomes a signal: thresholds and rate limits, for one caller.

use std::collections::{BTreeMap, VecDeque};

use super::{Code, Fault};
use crate::Instant;
use crate::signal::Severity;

/// Different refused hosts in [`BURST_WINDOW_MS`] that make a `deny_burst`.
const BURST_HOSTS: usize = 10;
const BURST_WINDOW_MS: i64 = 60_000;
/// A signal of one kind is raised at most once in this time; what comes between is counted into the next.
const QUIET_MS: i64 = 60_000;
/// Most refused hosts that are remembered: more than enough to pass the threshold.
const REMEMBERED_MAX: usize = 64;

/// The kinds of signal that one connection can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeenKind {
    /// A target or head that breaks the grammar.
    NameMalformed,
    /// A CONNECT to an address that no rule names.
    IpLiteral,
    /// A metadata service, by name or address, asked for or answered.
    MetadataProbe,
    /// A name with an answer that may not be dialled.
    PrivateAnswer,
    /// A CONNECT that would come back.
    Loop,
    /// A hello for another host.
    SniMismatch,
    /// A hello without a name.
    SniMissing,
    /// A tunnel that begins with something else.
    NotTls,
    /// An encrypted hello whose outer name is not the host.
    EchReal,
    /// A public resolver.
    DohHost,
    /// Many refused hosts.
    DenyBurst,
}

impl SeenKind {
    /// The signal's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NameMalformed => "name_malformed",
            Self::IpLiteral => "ip_literal",
            Self::MetadataProbe => "metadata_probe",
            Self::PrivateAnswer => "private_answer",
            Self::Loop => "loop",
            Self::SniMismatch => "sni_mismatch",
            Self::SniMissing => "sni_missing",
            Self::NotTls => "not_tls",
            Self::EchReal => "ech_real",
            Self::DohHost => "doh_host",
            Self::DenyBurst => "deny_burst",
        }
    }

    /// What a refusal is a sign of, if of anything; `ech` says whether the hello was encrypted.
    pub const fn of(code: Code, ech: bool) -> Option<Self> {
        match code {
            Code::MalformedTarget | Code::MalformedHead | Code::HostHeader => Some(Self::NameMalformed),
            Code::IpLiteral => Some(Self::IpLiteral),
            Code::Metadata => Some(Self::MetadataProbe),
            Code::AddressRefused | Code::PinMismatch => Some(Self::PrivateAnswer),
            Code::Loop => Some(Self::Loop),
            Code::SniMismatch | Code::SniDenied if ech => Some(Self::EchReal),
            Code::SniMismatch | Code::SniDenied | Code::SniMalformed => Some(Self::SniMismatch),
            Code::SniMissing => Some(Self::SniMissing),
            Code::NotTls | Code::HelloMalformed | Code::HelloTooLarge => Some(Self::NotTls),
            Code::Resolver => Some(Self::DohHost),
            Code::BodyNotAllowed
            | Code::Http2
            | Code::NotHttp
            | Code::Method
            | Code::HeadTimeout
            | Code::HeadTooLarge
            | Code::Version
            | Code::NoPolicy
            | Code::NoProfile
            | Code::HostNotAllowed
            | Code::PortNotAllowed
            | Code::DeniedByRule
            | Code::HelloTimeout
            | Code::NoClientBytes
            | Code::EchRefused
            | Code::NameNotFound
            | Code::LookupFailed
            | Code::LookupTimeout
            | Code::DialFailed
            | Code::DialTimeout
            | Code::CallerBusy
            | Code::ProxyBusy
            | Code::Draining
            | Code::ClientGone => None,
        }
    }

    /// How much it matters: what honest software does by accident warns, what only a search for a way out does alarms.
    pub const fn severity(self) -> Severity {
        match self {
            Self::MetadataProbe | Self::SniMismatch | Self::EchReal | Self::Loop => Severity::Alarm,
            Self::NameMalformed
            | Self::IpLiteral
            | Self::PrivateAnswer
            | Self::SniMissing
            | Self::NotTls
            | Self::DohHost
            | Self::DenyBurst => Severity::Warn,
        }
    }
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Something that is a signal of itself.
    Kind(SeenKind),
    /// A refused host, which counts towards a burst.
    Refused(String),
}

impl Seen {
    /// What a refusal of `host` counts as: a sign of its own, and, where policy refused it, one more refused host.
    pub fn of(code: Code, ech: bool, host: Option<&str>) -> Vec<Self> {
        let refused =
            host.filter(|_| code.fault() == Fault::Policy).map(|host| Self::Refused(host.to_owned()));
        SeenKind::of(code, ech).map(Self::Kind).into_iter().chain(refused).collect()
    }
}

/// A signal to raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    /// Its kind.
    pub kind: SeenKind,
    /// When the first of `count` was seen.
    pub since: Instant,
    /// How often it was seen since the last of its kind.
    pub count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    raised: Instant,
    since: Option<Instant>,
    count: u64,
}

/// The thresholds and rate limits of one caller; its memory is bounded.
#[derive(Debug, Default)]
pub struct Watch {
    kinds: BTreeMap<SeenKind, Counted>,
    refused: VecDeque<(Instant, String)>,
}

impl Watch {
    /// A watch that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one observation; the signal to raise for it, if it is due.
    pub fn see(&mut self, seen: Seen, now: Instant) -> Option<Alert> {
        match seen {
            Seen::Kind(kind) => self.count(kind, now),
            Seen::Refused(host) => self.refuse(host, now),
        }
    }

    /// What was held back by the rate limit and is due now; with `all`, also what is not due (the caller is going).
    pub fn flush(&mut self, now: Instant, all: bool) -> Vec<Alert> {
        let due = |counted: &Counted| all || now.since_ms(counted.raised) >= QUIET_MS;
        let mut alerts = Vec::new();
        for (&kind, counted) in &mut self.kinds {
            if let (true, Some(since)) = (due(counted), counted.since) {
                alerts.push(Alert { kind, since, count: counted.count });
                *counted = Counted { raised: now, since: None, count: 0 };
            }
        }
        alerts
    }

    fn count(&mut self, kind: SeenKind, now: Instant) -> Option<Alert> {
        let Some(counted) = self.kinds.get_mut(&kind) else {
            self.kinds.insert(kind, Counted { raised: now, since: None, count: 0 });
            return Some(Alert { kind, since: now, count: 1 });
        };
        let since = *counted.since.get_or_insert(now);
        counted.count += 1;
        if now.since_ms(counted.raised) < QUIET_MS {
            return None;
        }
        let alert = Alert { kind, since, count: counted.count };
        *counted = Counted { raised: now, since: None, count: 0 };
        Some(alert)
    }

    fn refuse(&mut self, host: String, now: Instant) -> Option<Alert> {
        self.refused.retain(|(at, known)| now.since_ms(*at) < BURST_WINDOW_MS && *known != host);
        if self.refused.len() >= REMEMBERED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back((now, host));
        if self.refused.len() < BURST_HOSTS { None } else { self.count(SeenKind::DenyBurst, now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Instant {
        Instant::from_ms(s * 1000)
    }

    fn refuse(watch: &mut Watch, host: usize, s: i64) -> Option<Alert> {
        watch.see(Seen::Refused(format!("h{host}.example")), at(s))
    }

    #[test]
    fn ten_refused_hosts_in_a_minute_are_a_burst() {
        let mut watch = Watch::new();
        for host in 0..9 {
            assert_eq!(refuse(&mut watch, host, 1), None);
        }
        assert_eq!(refuse(&mut watch, 8, 2), None, "the same host counts once");
        let alert = refuse(&mut watch, 9, 60).unwrap();
        assert_eq!((alert.kind, alert.count, alert.since), (SeenKind::DenyBurst, 1, at(60)));
    }

    #[test]
    fn ten_refused_hosts_in_more_than_a_minute_are_none() {
        let mut watch = Watch::new();
        for host in 0..30 {
            assert_eq!(refuse(&mut watch, host, i64::try_from(host).unwrap() * 7), None);
        }
    }

    #[test]
    fn a_kind_is_raised_once_a_minute_and_nothing_is_lost() {
        let mut watch = Watch::new();
        let mut see =
            |s| watch.see(Seen::Kind(SeenKind::IpLiteral), at(s)).map(|alert| (alert.since, alert.count));
        assert_eq!(see(0), Some((at(0), 1)));
        assert_eq!(see(1), None);
        assert_eq!(see(59), None);
        assert_eq!(see(60), Some((at(1), 3)));
        assert_eq!(see(61), None);
        assert_eq!(watch.flush(at(119), false), []);
        let due = [Alert { kind: SeenKind::IpLiteral, since: at(61), count: 1 }];
        assert_eq!(watch.flush(at(120), false), due);
        assert_eq!(watch.flush(at(999), true), []);
    }

    #[test]
    fn a_caller_that_goes_leaves_its_counts() {
        let mut watch = Watch::new();
        for _ in 0..3 {
            let _ = watch.see(Seen::Kind(SeenKind::NotTls), at(0));
        }
        assert_eq!(watch.flush(at(1), true), [Alert { kind: SeenKind::NotTls, since: at(0), count: 2 }]);
    }
}
