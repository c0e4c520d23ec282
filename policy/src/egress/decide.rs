//! The decision on one CONNECT, before any name is looked up.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::profile::Rule;
use super::{
    Action, AddressClass, Authority, Code, EchRule, Host, HostName, Mode, Port, Profile, RuleId, TlsRule,
    classify, is_metadata_name, is_resolver_name,
};

/// What the decision needs to know of the machine that the proxy runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Every address of the host's own interfaces.
    pub own_addresses: Vec<IpAddr>,
    /// Every port that the proxy itself listens on in the host's namespace.
    pub own_ports: Vec<u16>,
}

impl Surroundings {
    /// Whether the address is one of the host's own, the unspecified ones and loopback among them.
    pub fn is_own(&self, address: IpAddr) -> bool {
        let class = classify(address);
        matches!(class, AddressClass::Loopback | AddressClass::Unspecified)
            || self.own_addresses.contains(&address)
            || self.own_addresses.contains(&address.to_canonical())
            || address.to_canonical().is_loopback()
    }

    /// Whether a connection there would come back to the proxy.
    pub fn is_loop(&self, address: IpAddr, port: Port) -> bool {
        self.own_ports.contains(&port.number()) && self.is_own(address)
    }
}

/// What let a connection pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grounds {
    /// A rule that allows it.
    Rule(RuleId),
    /// The profile's mode `public`.
    PublicMode,
    /// A rule or profile that only reports, and what would have been said.
    ReportOnly(Refusal),
}

impl Grounds {
    /// The rule that decided, if one did.
    pub const fn rule(&self) -> Option<&RuleId> {
        match self {
            Self::Rule(rule) => Some(rule),
            Self::PublicMode => None,
            Self::ReportOnly(refusal) => refusal.rule.as_ref(),
        }
    }
}

/// Proof that [`decide`] allowed one tunnel; only it can make one.
///
/// It carries what the later steps are judged by, so that none of them asks the policy a second time.
#[must_use = "a permit that opens no tunnel is a bug"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    authority: Authority,
    grounds: Grounds,
    pub(super) terms: Terms,
}

/// What a permit holds a tunnel to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) tls: TlsRule,
    pub(super) ech: EchRule,
    /// Further server names, each with the rule that denies it all the same.
    pub(super) sni: Vec<(HostName, Option<RuleId>)>,
    pub(super) pin: Vec<IpAddr>,
    pub(super) idle_s: u32,
    /// Whether a server name that would be refused passes and is logged.
    pub(super) report_sni: bool,
}

impl Permit {
    /// What may be reached.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// What let it pass.
    pub const fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// How long the tunnel may be silent.
    pub const fn idle(&self) -> Duration {
        Duration::from_secs(self.terms.idle_s as u64)
    }

    /// For an opaque rule: the tunnel may begin at once, unread.
    pub fn without_hello(&self) -> Option<Cleared> {
        (self.terms.tls == TlsRule::Opaque).then_some(Cleared { would_deny: None })
    }
}

/// Proof that the first bytes of a tunnel were judged, or need not be; without one nothing reaches the target.
#[must_use = "a tunnel that was cleared is to be opened"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    pub(super) would_deny: Option<Refusal>,
}

impl Cleared {
    /// What would have been refused, had the rule not only reported.
    pub const fn would_deny(&self) -> Option<&Refusal> {
        self.would_deny.as_ref()
    }
}

/// Why a connection is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The cause.
    pub code: Code,
    /// The rule that refused, if one did.
    pub rule: Option<RuleId>,
}

impl Refusal {
    pub(super) const fn of(code: Code) -> Self {
        Self { code, rule: None }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "{} by {rule}", self.code),
            None => self.code.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

/// Decides one CONNECT. Total: every input has an answer, and none panics; the order of the rules does not matter.
///
/// # Errors
/// [`Refusal`], which the caller logs before it answers the client. A profile that does not exist refuses everything.
pub fn decide(
    profile: Option<&Profile>,
    wanted: &Authority,
    surroundings: &Surroundings,
) -> Result<Permit, Refusal> {
    let profile = profile.ok_or(Refusal::of(Code::NoProfile))?;
    refuse_always(&wanted.host, wanted.port, surroundings)?;
    let matching = || profile.rules_of(&wanted.host).filter(|rule| rule.covers(wanted.port));
    let first = |action| matching().find(|rule| rule.id.action == action);
    let refusal = if let Some(rule) = first(Action::Deny) {
        Refusal { code: Code::DeniedByRule, rule: Some(rule.id.clone()) }
    } else if let Some(rule) = first(Action::Allow) {
        return Ok(permit(profile, wanted, Grounds::Rule(rule.id.clone()), Some(rule)));
    } else if let Some(rule) = first(Action::Report) {
        let refusal = Refusal { code: Code::HostNotAllowed, rule: Some(rule.id.clone()) };
        return Ok(permit(profile, wanted, Grounds::ReportOnly(refusal), Some(rule)));
    } else {
        match by_mode(profile, wanted) {
            Ok(()) => return Ok(permit(profile, wanted, Grounds::PublicMode, None)),
            Err(code) => Refusal::of(code),
        }
    };
    if profile.report_only && is_reportable(wanted) {
        return Ok(permit(profile, wanted, Grounds::ReportOnly(refusal), None));
    }
    Err(refusal)
}

/// What no rule opens.
fn refuse_always(host: &Host, port: Port, surroundings: &Surroundings) -> Result<(), Refusal> {
    let metadata = match host {
        Host::Name(name) => is_metadata_name(name),
        Host::Address(address) if surroundings.is_loop(*address, port) => {
            return Err(Refusal::of(Code::Loop));
        }
        Host::Address(address) => classify(*address) == AddressClass::Metadata,
    };
    if metadata { Err(Refusal::of(Code::Metadata)) } else { Ok(()) }
}

/// What is said of a host that no rule names on this port.
fn by_mode(profile: &Profile, wanted: &Authority) -> Result<(), Code> {
    if profile.rules_of(&wanted.host).any(|rule| rule.id.action == Action::Allow)
        && !is_open_port(profile, wanted)
    {
        return Err(Code::PortNotAllowed);
    }
    let Host::Name(name) = &wanted.host else { return Err(Code::IpLiteral) };
    match profile.mode {
        Mode::DenyByDefault => Err(Code::HostNotAllowed),
        Mode::Public if is_resolver_name(name) => Err(Code::Resolver),
        Mode::Public if wanted.port != Port::HTTPS => Err(Code::PortNotAllowed),
        Mode::Public => Ok(()),
    }
}

fn is_open_port(profile: &Profile, wanted: &Authority) -> bool {
    profile.mode == Mode::Public && wanted.port == Port::HTTPS
}

/// Report-only never opens a private address; a name's addresses are judged after the look-up in any case.
fn is_reportable(wanted: &Authority) -> bool {
    match &wanted.host {
        Host::Name(_) => true,
        Host::Address(address) => classify(*address) == AddressClass::Public,
    }
}

fn permit(profile: &Profile, wanted: &Authority, grounds: Grounds, rule: Option<&Rule>) -> Permit {
    let reports = profile.report_only || matches!(grounds, Grounds::ReportOnly(_));
    let denied = |name: &HostName| {
        let host = Host::Name(name.clone());
        profile
            .rules_of(&host)
            .find(|rule| rule.id.action == Action::Deny && rule.covers(wanted.port))
            .map(|rule| rule.id.clone())
    };
    let terms = Terms {
        tls: rule.map_or(TlsRule::Required, |rule| rule.tls),
        ech: rule.map_or(EchRule::Allow, |rule| rule.ech),
        sni: rule.into_iter().flat_map(|rule| &rule.sni).map(|name| (name.clone(), denied(name))).collect(),
        pin: rule.map_or_else(Vec::new, |rule| rule.pin.clone()),
        idle_s: rule.map_or(super::profile::IDLE_S_DEFAULT, |rule| rule.idle_s),
        report_sni: reports,
    };
    Permit { authority: wanted.clone(), grounds, terms }
}

#[cfg(test)]
mod tests;
