//! The nearest allowed thing to what was refused: one hint, never the rest of the policy.

use super::profile::HostPattern;
use super::{Action, Authority, Host, HostName, Profile};

/// Most rules that are looked at for a hint: it is a courtesy, and a refusal must stay cheap.
const CANDIDATES_MAX: usize = 2_000;
/// Most letters in which the nearest name may differ.
const DISTANCE_MAX: usize = 2;

/// The nearest allowed thing, if there is one near: the same host on another port, else a name that differs in at
/// most two letters.
pub fn nearest(profile: &Profile, wanted: &Authority) -> Option<String> {
    let allows = |action| action == Action::Allow;
    let on_other_port = profile
        .rules_of(&wanted.host)
        .filter(|rule| allows(rule.id.action) && !rule.covers(wanted.port))
        .find_map(|rule| rule.ports.first().copied());
    if let Some(port) = on_other_port {
        return Some(Authority { host: wanted.host.clone(), port }.to_string());
    }
    let Host::Name(name) = &wanted.host else { return None };
    let mut best: Option<(usize, String)> = None;
    for rule in profile.rules.iter().take(CANDIDATES_MAX).filter(|rule| allows(rule.id.action)) {
        let Some(distance) = distance_to(&rule.id.host, name) else { continue };
        let Some(port) = rule.ports.iter().find(|&&port| port == wanted.port).or(rule.ports.first()) else {
            continue;
        };
        let candidate = (distance, format!("{}:{port}", rule.id.host));
        if best.as_ref().is_none_or(|best| candidate < *best) {
            best = Some(candidate);
        }
    }
    best.map(|(_, text)| text)
}

fn distance_to(pattern: &HostPattern, name: &HostName) -> Option<usize> {
    match pattern {
        HostPattern::Name(known) => distance(known.as_str().as_bytes(), name.as_str().as_bytes()),
        HostPattern::Under(parent) if parent == name => Some(0),
        HostPattern::Under(_) | HostPattern::Address(_) | HostPattern::Any => None,
    }
}

/// Levenshtein's distance, or nothing if it is more than [`DISTANCE_MAX`].
fn distance(a: &[u8], b: &[u8]) -> Option<usize> {
    if a.len().abs_diff(b.len()) > DISTANCE_MAX {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for (j, (y, pair)) in b.iter().zip(row.windows(2)).enumerate() {
            let [diagonal, above] = *pair else { continue };
            let left = next.get(j).copied().unwrap_or(usize::MAX);
            next.push((diagonal + usize::from(x != y)).min(above + 1).min(left.saturating_add(1)));
        }
        if next.iter().all(|&d| d > DISTANCE_MAX) {
            return None;
        }
        row = next;
    }
    row.last().copied().filter(|&distance| distance <= DISTANCE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_up_to_two() {
        for (a, b, expected) in [
            ("api.example.com", "api.example.com", Some(0)),
            ("api.example.com", "api.exmple.com", Some(1)),
            ("api.example.com", "apl.exampl.com", Some(2)),
            ("api.example.com", "apx.exampl.con", None),
            ("kitten", "sitting", None),
            ("", "ab", Some(2)),
        ] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }
}
