//! Egress profiles: a named set of host rules, compiled from text with every mistake reported at once.

mod compile;
mod pattern;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

pub(super) use compile::IDLE_S_DEFAULT;
pub use compile::compile;
pub use pattern::HostPattern;
pub use text::{Mistake, MistakeKind, ProfileText, QuotaText, RuleText};

use super::{Host, HostName, Port};
use crate::ProfileName;

/// Most rules in one profile.
pub const RULES_MAX: usize = 10_000;

/// What is done with a host that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Refused.
    DenyByDefault,
    /// Allowed on 443 if it is public and no public resolver.
    Public,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Action {
    /// Refuses; beats every other rule.
    Deny,
    /// Lets pass.
    Allow,
    /// Lets pass and logs that it would have refused.
    Report,
}

/// What a tunnel must begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsRule {
    /// A `ClientHello` whose server name is the CONNECT host (or one of the rule's `sni`).
    Required,
    /// A `ClientHello`; its server name may be missing, but not be another.
    NoSni,
    /// Anything, unread: SSH, Postgres, plain HTTP.
    Opaque,
}

/// What an encrypted client hello means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchRule {
    /// It is logged; the outer name is judged.
    Allow,
    /// It is refused, a browser's greased one as well: the wire does not tell them apart.
    Refuse,
}

/// Names a rule in logs, refusals and answers: its place in the profile and what it says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId {
    /// Place among the profile's rules, from zero.
    pub index: usize,
    /// What it does.
    pub action: Action,
    /// Whom it names.
    pub host: HostPattern,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Deny => "deny",
            Action::Allow => "allow",
            Action::Report => "report",
        };
        write!(f, "rules[{}] {action} {}", self.index, self.host)
    }
}

/// One compiled rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    /// Sorted; none means every port (deny rules alone).
    pub(super) ports: Vec<Port>,
    pub(super) tls: TlsRule,
    pub(super) ech: EchRule,
    /// Further server names, sorted.
    pub(super) sni: Vec<HostName>,
    /// Sorted; none means public addresses.
    pub(super) pin: Vec<IpAddr>,
    pub(super) idle_s: u32,
}

impl Rule {
    pub(super) fn covers(&self, port: Port) -> bool {
        self.ports.is_empty() || self.ports.binary_search(&port).is_ok()
    }
}

/// One compiled egress profile; an empty one allows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub(super) name: ProfileName,
    pub(super) mode: Mode,
    pub(super) report_only: bool,
    pub(super) rules: Vec<Rule>,
    /// Indices into `rules` by what they name, so that a decision does not grow with their number.
    pub(super) by_name: BTreeMap<Box<str>, Vec<usize>>,
    pub(super) by_parent: BTreeMap<Box<str>, Vec<usize>>,
    pub(super) by_address: BTreeMap<IpAddr, Vec<usize>>,
    pub(super) any: Vec<usize>,
}

impl Profile {
    /// Its name.
    pub const fn name(&self) -> &ProfileName {
        &self.name
    }

    /// How many rules it has.
    pub const fn rules_len(&self) -> usize {
        self.rules.len()
    }

    /// Every rule that names `host`, the most specific first: the host itself, then wildcards from the longest.
    pub(super) fn rules_of<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = &'a Rule> {
        let exact = match host {
            Host::Name(name) => self.by_name.get(name.as_str()),
            Host::Address(address) => self.by_address.get(address),
        };
        let wild =
            host.name().into_iter().flat_map(HostName::parents).filter_map(|above| self.by_parent.get(above));
        exact
            .into_iter()
            .chain(wild)
            .chain(Some(&self.any))
            .flatten()
            .filter_map(|&index| self.rules.get(index))
    }
}

#[cfg(test)]
mod tests;
