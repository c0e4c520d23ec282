//! A profile as text gave it, and what can be wrong with it.

use std::fmt;

use crate::egress::NameError;

/// One profile as it stands in the file, unread: every value is still text or a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct ProfileText {
    /// `deny-by-default` or `public`.
    pub mode: Option<String>,
    /// Whether what would be refused passes and is logged.
    pub report_only: Option<bool>,
    /// The rules.
    pub rules: Vec<RuleText>,
}

/// One rule as it stands in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct RuleText {
    /// A name, `*.` and a name, or `*` (deny rules alone).
    pub host: Option<String>,
    /// An address, in place of a name.
    pub address: Option<String>,
    /// Ports; 443 unless said, every port in a deny rule.
    pub ports: Option<Vec<i64>>,
    /// `allow`, `deny` or `report`.
    pub action: Option<String>,
    /// `required`, `no-sni` or `opaque`.
    pub tls: Option<String>,
    /// Further server names that its hello may carry.
    pub sni: Vec<String>,
    /// The only addresses that its names may resolve to.
    pub pin: Vec<String>,
    /// `allow` or `refuse`.
    pub ech: Option<String>,
    /// Seconds that a tunnel may be silent.
    pub idle_s: Option<i64>,
    /// Quotas.
    pub quota: Option<QuotaText>,
}

/// Quotas as they stand in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct QuotaText {
    /// Bytes to the host in a sliding day.
    pub up_bytes: Option<i64>,
    /// Bytes from the host in a sliding day.
    pub down_bytes: Option<i64>,
    /// Connections in a minute.
    pub connects_per_min: Option<i64>,
    /// Tunnels at once.
    pub tunnels: Option<i64>,
    /// New names in a minute under a wildcard.
    pub new_names_per_min: Option<i64>,
}

/// One thing that is wrong, and where: the keys from the profile down, such as `rules[2].host`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where, by keys from the profile down; empty for the profile itself.
    pub path: String,
    /// What.
    pub kind: MistakeKind,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.kind)
    }
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MistakeKind {
    /// A word that the key does not know.
    #[error("{found:?} is none of {known}")]
    UnknownWord {
        /// The word.
        found: String,
        /// The words that it knows.
        known: &'static str,
    },
    /// A key that must be there.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// Both `host` and `address`.
    #[error("it has both host and address; write two rules")]
    HostAndAddress,
    /// A host that is no name.
    #[error("{found:?} is no host name: {why}")]
    BadHost {
        /// What was written.
        found: String,
        /// Why it is none.
        why: NameError,
    },
    /// A host that is written with other letters.
    #[error("{found:?} is not ASCII; write {a_label:?}")]
    NotAscii {
        /// What was written.
        found: String,
        /// Its A-label form (RFC 3492).
        a_label: String,
    },
    /// A port inside the host.
    #[error("{found:?} has a port in the host; write it under ports")]
    PortInHost {
        /// What was written.
        found: String,
    },
    /// An address inside the host.
    #[error("{found:?} is an address; write address = {found:?} in place of host")]
    AddressInHost {
        /// What was written.
        found: String,
    },
    /// A `*` anywhere but as the whole first label.
    #[error("{found:?} has a `*` elsewhere than in front of a dot")]
    BadWildcard {
        /// What was written.
        found: String,
    },
    /// A wildcard under which strangers register names.
    #[error("{found:?} covers a public suffix: anyone can register a name under it")]
    PublicSuffix {
        /// What was written.
        found: String,
    },
    /// `*` in a rule that allows.
    #[error("`*` is for deny rules; to allow every public host write mode = \"public\"")]
    EveryHost,
    /// An address that is none.
    #[error("{found:?} is no IPv4 or IPv6 address")]
    BadAddress {
        /// What was written.
        found: String,
    },
    /// A rule for a metadata service.
    #[error("{found:?} is a metadata service, which no rule opens")]
    Metadata {
        /// What was written.
        found: String,
    },
    /// An address that no rule can open, or not without a pin.
    #[error("{found:?} is {class}, which is always refused{}", if *.pinnable { "; a pin that lists it opens it" } else { "" })]
    RefusedAddress {
        /// What was written.
        found: String,
        /// Its class.
        class: &'static str,
        /// Whether a pin would open it.
        pinnable: bool,
    },
    /// A port that is none.
    #[error("{found} is no port; a port is 1 to 65535")]
    BadPort {
        /// What was written.
        found: i64,
    },
    /// An empty list where one entry is needed.
    #[error("it is empty, so the rule can never match; leave the key out or fill it")]
    Empty,
    /// The same entry twice.
    #[error("{found} is there twice")]
    Twice {
        /// The entry.
        found: String,
    },
    /// A key that has no meaning for this rule.
    #[error("it has no effect in a rule that {0}")]
    NoEffect(&'static str),
    /// Two rules say the same of one host and port.
    #[error("rules[{other}] already has this host, action and port {port}")]
    Duplicate {
        /// The other rule.
        other: usize,
        /// The port that both have.
        port: String,
    },
    /// A number that is out of range.
    #[error("{found} is not between {least} and {most}")]
    OutOfRange {
        /// What was written.
        found: i64,
        /// Least that it may be.
        least: i64,
        /// Most that it may be.
        most: i64,
    },
    /// A quota.
    #[error("this version enforces no quota of this kind, and does not load one that it would ignore")]
    NotEnforced,
    /// Too many rules.
    #[error("it has {found} rules, more than {}", super::RULES_MAX)]
    TooManyRules {
        /// How many it has.
        found: usize,
    },
}
