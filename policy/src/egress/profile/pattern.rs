//! Whom a rule names.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use unicode_normalization::UnicodeNormalization;

use super::MistakeKind;
use crate::egress::{Authority, HostName, NameError};

/// Whom a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostPattern {
    /// One name.
    Name(HostName),
    /// Every name strictly under this one.
    Under(HostName),
    /// One address, asked for as such.
    Address(IpAddr),
    /// Every host: somebody wrote `*`.
    Any,
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Under(name) => write!(f, "*.{name}"),
            Self::Address(address) => address.fmt(f),
            Self::Any => f.write_str("*"),
        }
    }
}

impl HostPattern {
    /// Parses a rule's `host`.
    pub(super) fn parse(text: &str) -> Result<Self, MistakeKind> {
        if text == "*" {
            return Ok(Self::Any);
        }
        match text.strip_prefix("*.") {
            Some(rest) => parse_name(rest, text).map(Self::Under),
            None => parse_name(text, text).map(Self::Name),
        }
    }
}

/// Parses a name of the policy text; `whole` is what the mistake quotes.
pub(super) fn parse_name(text: &str, whole: &str) -> Result<HostName, MistakeKind> {
    let found = || whole.to_owned();
    if text.contains('*') {
        return Err(MistakeKind::BadWildcard { found: found() });
    }
    if !text.is_ascii() {
        return Err(MistakeKind::NotAscii {
            found: found(),
            a_label: whole.split('.').map(a_label).collect::<Vec<_>>().join("."),
        });
    }
    HostName::parse(text.as_bytes()).map_err(|why| explain(text, why, found()))
}

fn explain(text: &str, why: NameError, found: String) -> MistakeKind {
    let bare = text.trim_matches(['[', ']']);
    if bare.parse::<Ipv4Addr>().is_ok() || bare.parse::<Ipv6Addr>().is_ok() {
        return MistakeKind::AddressInHost { found };
    }
    if Authority::parse(text.as_bytes()).is_ok() {
        return MistakeKind::PortInHost { found };
    }
    MistakeKind::BadHost { found, why }
}

/// The A-label of a label: lower case, NFC, then punycode (RFC 3492); for the remedy in a mistake, never for a match.
fn a_label(label: &str) -> String {
    let text: Vec<char> = label.chars().flat_map(char::to_lowercase).nfc().collect();
    if text.iter().all(char::is_ascii) {
        return text.into_iter().collect();
    }
    format!("xn--{}", punycode(&text))
}

/// RFC 3492 section 6.3, with wide arithmetic in place of its overflow checks.
fn punycode(text: &[char]) -> String {
    let basic: String = text.iter().filter(|c| c.is_ascii()).collect();
    let (mut n, mut delta, mut bias, mut handled) = (128_u64, 0_u64, 72_u64, basic.len() as u64);
    let first = handled;
    let mut out = if basic.is_empty() { basic } else { basic + "-" };
    while handled < text.len() as u64 {
        let Some(next) = text.iter().map(|&c| u64::from(c)).filter(|&c| c >= n).min() else { break };
        delta = delta.saturating_add((next - n).saturating_mul(handled + 1));
        n = next;
        for point in text.iter().map(|&c| u64::from(c)) {
            if point < n {
                delta += 1;
            }
            if point == n {
                push_delta(&mut out, delta, bias);
                bias = adapt(delta, handled + 1, handled == first);
                delta = 0;
                handled += 1;
            }
        }
        delta += 1;
        n += 1;
    }
    out
}

fn push_delta(out: &mut String, delta: u64, bias: u64) {
    let mut q = delta;
    let steps: [u64; 12] = std::array::from_fn(|step| 36 * (step as u64 + 1));
    for k in steps {
        let t = k.saturating_sub(bias).clamp(1, 26);
        if q < t {
            break;
        }
        out.push(digit(t + (q - t) % (36 - t)));
        q = (q - t) / (36 - t);
    }
    out.push(digit(q));
}

fn digit(value: u64) -> char {
    let byte = u8::try_from(value).unwrap_or(0);
    char::from(if byte < 26 { b'a' + byte } else { b'0' + byte.saturating_sub(26) })
}

const fn adapt(delta: u64, points: u64, first: bool) -> u64 {
    let mut delta = if first { delta / 700 } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > 455 {
        delta /= 35;
        k += 36;
    }
    k + 36 * delta / (delta + 38)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_labels_are_answered_with_their_a_label() {
        for (text, expected) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("*.BÜCHER.example", "*.xn--bcher-kva.example"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("münchen.de", "xn--mnchen-3ya.de"),
        ] {
            match HostPattern::parse(text) {
                Err(MistakeKind::NotAscii { a_label, .. }) => assert_eq!(a_label, expected),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn patterns_are_names_wildcards_or_everything() {
        for text in ["a.example", "*.a.example", "*"] {
            assert_eq!(HostPattern::parse(text).unwrap().to_string(), text);
        }
        for text in ["a.*.example", "*a.example", "**.example", "*.", "a*", "*.*"] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
