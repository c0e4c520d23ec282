//! From text to a profile: everything that is wrong is found in one pass.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::pattern::parse_name;
use super::{
    Action, EchRule, HostPattern, Mistake, MistakeKind, Mode, Profile, ProfileText, QuotaText, RULES_MAX,
    Rule, RuleId, RuleText, TlsRule,
};
use crate::ProfileName;
use crate::egress::{AddressClass, HostName, Port, classify, is_metadata_name, is_public_suffix};

/// Seconds that a tunnel may be silent unless its rule says otherwise: a model that thinks is silent for minutes.
pub(in crate::egress) const IDLE_S_DEFAULT: u32 = 600;
const IDLE_S_MAX: i64 = 86_400;

/// Compiles one profile.
///
/// # Errors
/// Every [`Mistake`], in the order of the text.
pub fn compile(name: &ProfileName, text: &ProfileText) -> Result<Profile, Vec<Mistake>> {
    let mut wrong = Mistakes { path: String::new(), found: Vec::new() };
    let mode = wrong.word("mode", text.mode.as_deref(), MODES).unwrap_or(Mode::DenyByDefault);
    if text.rules.len() > RULES_MAX {
        wrong.add("rules", MistakeKind::TooManyRules { found: text.rules.len() });
    }
    let mut rules = Vec::with_capacity(text.rules.len());
    for (index, rule) in text.rules.iter().enumerate() {
        wrong.path = format!("rules[{index}]");
        rules.extend(compile_rule(index, rule, &mut wrong));
    }
    check_duplicates(&rules, &mut wrong);
    if !wrong.found.is_empty() {
        return Err(wrong.found);
    }
    Ok(indexed(name.clone(), mode, text.report_only.unwrap_or(false), rules))
}

type Words<T> = (&'static [(&'static str, T)], &'static str);

const MODES: Words<Mode> =
    (&[("deny-by-default", Mode::DenyByDefault), ("public", Mode::Public)], "deny-by-default, public");
const ACTIONS: Words<Action> =
    (&[("allow", Action::Allow), ("deny", Action::Deny), ("report", Action::Report)], "allow, deny, report");
const TLS: Words<TlsRule> = (
    &[("required", TlsRule::Required), ("no-sni", TlsRule::NoSni), ("opaque", TlsRule::Opaque)],
    "required, no-sni, opaque",
);
const ECH: Words<EchRule> = (&[("allow", EchRule::Allow), ("refuse", EchRule::Refuse)], "allow, refuse");

/// Collects mistakes, each under the rule that is being read.
struct Mistakes {
    path: String,
    found: Vec<Mistake>,
}

impl Mistakes {
    fn add(&mut self, key: &str, kind: MistakeKind) {
        let dot = if self.path.is_empty() || key.is_empty() { "" } else { "." };
        self.found.push(Mistake { path: format!("{}{dot}{key}", self.path), kind });
    }

    /// Reads one of a few words; `None` if it is left out or wrong.
    fn word<T: Copy>(&mut self, key: &str, text: Option<&str>, (words, known): Words<T>) -> Option<T> {
        let text = text?;
        let found = words.iter().find(|(word, _)| *word == text).map(|&(_, value)| value);
        if found.is_none() {
            self.add(key, MistakeKind::UnknownWord { found: text.to_owned(), known });
        }
        found
    }

    /// Takes the value or notes why there is none.
    fn take<T>(&mut self, key: &str, result: Result<T, MistakeKind>) -> Option<T> {
        result.map_err(|kind| self.add(key, kind)).ok()
    }

    /// Sorts a list and notes what is there twice.
    fn sorted<T: Ord + ToString>(&mut self, key: &str, mut list: Vec<T>) -> Vec<T> {
        list.sort_unstable();
        for pair in list.windows(2) {
            if let [a, b] = pair
                && a == b
            {
                self.add(key, MistakeKind::Twice { found: a.to_string() });
            }
        }
        list
    }
}

fn compile_rule(index: usize, text: &RuleText, wrong: &mut Mistakes) -> Option<Rule> {
    let before = wrong.found.len();
    if text.action.is_none() {
        wrong.add("", MistakeKind::Missing("action"));
    }
    // A wrong action is read on as `allow`: its stricter checks apply, and the rule is not kept anyway.
    let action = wrong.word("action", text.action.as_deref(), ACTIONS).unwrap_or(Action::Allow);
    let pin = read_pin(text, wrong);
    let host = read_host(text, wrong);
    if let Some(host) = &host {
        check_host(host, action, &pin, wrong);
    }
    let tls = wrong.word("tls", text.tls.as_deref(), TLS).unwrap_or(TlsRule::Required);
    let ech = wrong.word("ech", text.ech.as_deref(), ECH).unwrap_or(EchRule::Allow);
    let rule = Rule {
        id: RuleId { index, action, host: host.unwrap_or(HostPattern::Any) },
        ports: read_ports(text, action, wrong),
        tls,
        ech,
        sni: read_sni(text, wrong),
        pin,
        idle_s: read_idle(text, wrong),
    };
    check_quota(text.quota.as_ref(), wrong);
    check_effect(text, action, tls, wrong);
    (wrong.found.len() == before).then_some(rule)
}

fn read_host(text: &RuleText, wrong: &mut Mistakes) -> Option<HostPattern> {
    match (&text.host, &text.address) {
        (Some(_), Some(_)) => wrong.take("address", Err(MistakeKind::HostAndAddress)),
        (None, None) => wrong.take("", Err(MistakeKind::Missing("host or address"))),
        (Some(host), None) => wrong.take("host", HostPattern::parse(host)),
        (None, Some(address)) => wrong.take("address", read_address(address).map(HostPattern::Address)),
    }
}

fn read_address(text: &str) -> Result<IpAddr, MistakeKind> {
    text.parse().map_err(|_error| MistakeKind::BadAddress { found: text.to_owned() })
}

/// A rule that allows must be able to match: not a metadata service, not a range that is always refused.
fn check_host(host: &HostPattern, action: Action, pin: &[IpAddr], wrong: &mut Mistakes) {
    if action == Action::Deny {
        return;
    }
    let found = host.to_string();
    match host {
        HostPattern::Any => wrong.add("host", MistakeKind::EveryHost),
        HostPattern::Name(name) if is_metadata_name(name) => {
            wrong.add("host", MistakeKind::Metadata { found });
        }
        HostPattern::Under(name) if is_metadata_name(name) => {
            wrong.add("host", MistakeKind::Metadata { found });
        }
        HostPattern::Under(name) if is_public_suffix(name) => {
            wrong.add("host", MistakeKind::PublicSuffix { found });
        }
        HostPattern::Name(_) | HostPattern::Under(_) => {}
        HostPattern::Address(address) => {
            if let Some(kind) = refused(*address, found, pin.contains(address)) {
                wrong.add("address", kind);
            }
        }
    }
}

/// Why no rule can open the address, pinned or not.
fn refused(address: IpAddr, found: String, pinned: bool) -> Option<MistakeKind> {
    let class = classify(address);
    if class == AddressClass::Metadata {
        return Some(MistakeKind::Metadata { found });
    }
    let opens = class == AddressClass::Public || (pinned && class.is_pinnable());
    let pinnable = class.is_pinnable() && !pinned;
    (!opens).then_some(MistakeKind::RefusedAddress { found, class: class.as_str(), pinnable })
}

fn read_ports(text: &RuleText, action: Action, wrong: &mut Mistakes) -> Vec<Port> {
    let Some(numbers) = &text.ports else {
        return if action == Action::Deny { Vec::new() } else { vec![Port::HTTPS] };
    };
    if numbers.is_empty() {
        wrong.add("ports", MistakeKind::Empty);
    }
    let mut ports = Vec::with_capacity(numbers.len());
    for (at, &found) in numbers.iter().enumerate() {
        let port = u16::try_from(found).ok().and_then(|number| Port::new(number).ok());
        ports.extend(wrong.take(&format!("ports[{at}]"), port.ok_or(MistakeKind::BadPort { found })));
    }
    wrong.sorted("ports", ports)
}

fn read_sni(text: &RuleText, wrong: &mut Mistakes) -> Vec<HostName> {
    let mut names = Vec::with_capacity(text.sni.len());
    for (at, name) in text.sni.iter().enumerate() {
        names.extend(wrong.take(&format!("sni[{at}]"), parse_name(name, name)));
    }
    wrong.sorted("sni", names)
}

fn read_pin(text: &RuleText, wrong: &mut Mistakes) -> Vec<IpAddr> {
    let mut pin = Vec::with_capacity(text.pin.len());
    for (at, found) in text.pin.iter().enumerate() {
        let address = read_address(found).and_then(|address| match refused(address, found.clone(), true) {
            Some(kind) => Err(kind),
            None => Ok(address),
        });
        pin.extend(wrong.take(&format!("pin[{at}]"), address));
    }
    wrong.sorted("pin", pin)
}

fn read_idle(text: &RuleText, wrong: &mut Mistakes) -> u32 {
    let Some(found) = text.idle_s else { return IDLE_S_DEFAULT };
    let seconds = u32::try_from(found).ok().filter(|_| (1..=IDLE_S_MAX).contains(&found));
    let result = seconds.ok_or(MistakeKind::OutOfRange { found, least: 1, most: IDLE_S_MAX });
    wrong.take("idle_s", result).unwrap_or(IDLE_S_DEFAULT)
}

/// A quota that is not enforced must not load: an operator would believe in it.
fn check_quota(quota: Option<&QuotaText>, wrong: &mut Mistakes) {
    let Some(quota) = quota else { return };
    let keys = [
        ("quota.up_bytes", quota.up_bytes),
        ("quota.down_bytes", quota.down_bytes),
        ("quota.connects_per_min", quota.connects_per_min),
        ("quota.tunnels", quota.tunnels),
        ("quota.new_names_per_min", quota.new_names_per_min),
    ];
    for (key, _) in keys.into_iter().filter(|(_, value)| value.is_some()) {
        wrong.add(key, MistakeKind::NotEnforced);
    }
}

/// A key without an effect is a mistake: whoever wrote it believes that it does something.
fn check_effect(text: &RuleText, action: Action, tls: TlsRule, wrong: &mut Mistakes) {
    let set = [
        ("tls", text.tls.is_some()),
        ("sni", !text.sni.is_empty()),
        ("pin", !text.pin.is_empty()),
        ("ech", text.ech.is_some()),
        ("idle_s", text.idle_s.is_some()),
    ];
    for (key, _) in set.into_iter().filter(|&(_, set)| set) {
        match (action, tls, key) {
            (Action::Deny, _, _) => wrong.add(key, MistakeKind::NoEffect("denies")),
            (_, TlsRule::Opaque, "sni" | "ech") => wrong.add(key, MistakeKind::NoEffect("is opaque")),
            _ => {}
        }
    }
}

/// Two rules that say the same of one host and port would make the order matter wherever they differ.
fn check_duplicates(rules: &[Rule], wrong: &mut Mistakes) {
    let mut seen: BTreeMap<(Action, &HostPattern, Option<Port>), usize> = BTreeMap::new();
    for rule in rules {
        let every = rule.ports.is_empty().then_some(None);
        for port in rule.ports.iter().map(|&port| Some(port)).chain(every) {
            if let Some(&other) = seen.get(&(rule.id.action, &rule.id.host, port)) {
                wrong.path = format!("rules[{}]", rule.id.index);
                let port = port.map_or_else(|| "any".to_owned(), |port| port.to_string());
                wrong.add("", MistakeKind::Duplicate { other, port });
                break;
            }
            seen.insert((rule.id.action, &rule.id.host, port), rule.id.index);
        }
    }
}

fn indexed(name: ProfileName, mode: Mode, report_only: bool, rules: Vec<Rule>) -> Profile {
    let mut profile = Profile {
        name,
        mode,
        report_only,
        rules: Vec::new(),
        by_name: BTreeMap::new(),
        by_parent: BTreeMap::new(),
        by_address: BTreeMap::new(),
        any: Vec::new(),
    };
    for (at, rule) in rules.iter().enumerate() {
        match &rule.id.host {
            HostPattern::Name(host) => profile.by_name.entry(host.as_str().into()).or_default().push(at),
            HostPattern::Under(host) => profile.by_parent.entry(host.as_str().into()).or_default().push(at),
            HostPattern::Address(address) => profile.by_address.entry(*address).or_default().push(at),
            HostPattern::Any => profile.any.push(at),
        }
    }
    profile.rules = rules;
    profile
}
