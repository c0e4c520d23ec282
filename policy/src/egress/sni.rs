//! Whether a hello may go on to the target of its permit.

use super::{Cleared, Code, EchRule, Hello, Host, HostName, Permit, Refusal, RuleId, TlsRule};

/// Judges a hello by its permit: the server name must be the CONNECT host, or one that the rule lists and none denies.
///
/// A host that is an address has no server name of its own (RFC 6066 section 3): there the extension may be missing.
///
/// # Errors
/// [`Refusal`], unless the rule or the profile only reports: then [`Cleared::would_deny`] has it.
pub fn judge_hello(permit: &Permit, hello: &Hello) -> Result<Cleared, Refusal> {
    let verdict = judge_ech(permit, hello).and_then(|()| judge_name(permit, hello.sni.as_ref()));
    match verdict {
        Ok(()) => Ok(Cleared { would_deny: None }),
        Err(refusal) if permit.terms.report_sni => Ok(Cleared { would_deny: Some(refusal) }),
        Err(refusal) => Err(refusal),
    }
}

fn refuse(permit: &Permit, code: Code) -> Refusal {
    Refusal { code, rule: permit.grounds().rule().cloned() }
}

fn judge_ech(permit: &Permit, hello: &Hello) -> Result<(), Refusal> {
    match permit.terms.ech {
        EchRule::Refuse if hello.ech => Err(refuse(permit, Code::EchRefused)),
        EchRule::Refuse | EchRule::Allow => Ok(()),
    }
}

fn judge_name(permit: &Permit, sni: Option<&HostName>) -> Result<(), Refusal> {
    let Some(name) = sni else {
        return match (permit.terms.tls, &permit.authority().host) {
            (TlsRule::NoSni | TlsRule::Opaque, _) | (TlsRule::Required, Host::Address(_)) => Ok(()),
            (TlsRule::Required, Host::Name(_)) => Err(refuse(permit, Code::SniMissing)),
        };
    };
    if permit.authority().host.name() == Some(name) {
        return Ok(());
    }
    let listed: Option<&(HostName, Option<RuleId>)> =
        permit.terms.sni.iter().find(|(listed, _)| listed == name);
    match listed {
        Some((_, None)) => Ok(()),
        Some((_, Some(rule))) => Err(Refusal { code: Code::SniDenied, rule: Some(rule.clone()) }),
        None => Err(refuse(permit, Code::SniMismatch)),
    }
}
