//! The policy as values, and the verdict of a scan.

use std::collections::BTreeMap;

use super::{Allow, Classes, Finding, Rule, Severity, Visibility};
use crate::Exit;

/// From which severity on a finding fails the build, for each view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// What a container shows.
    pub merged: Severity,
    /// What some engine shows.
    pub ambiguous: Severity,
    /// What only a blob holds.
    pub hidden: Severity,
}

impl Thresholds {
    /// The same for every view.
    pub const fn all(severity: Severity) -> Self {
        Self { merged: severity, ambiguous: severity, hidden: severity }
    }

    /// That of one view.
    pub const fn of(self, visibility: Visibility) -> Severity {
        match visibility {
            Visibility::Merged => self.merged,
            Visibility::Ambiguous => self.ambiguous,
            Visibility::Hidden => self.hidden,
        }
    }
}

/// What an image may carry.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Which names are forbidden.
    pub classes: Classes,
    /// Severities that differ from [`Rule::severity`].
    pub severities: BTreeMap<Rule, Severity>,
    /// Where a build begins to fail.
    pub fail_on: Thresholds,
    /// What is allowed all the same.
    pub allows: Vec<Allow>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            classes: Classes::default(),
            severities: BTreeMap::new(),
            fail_on: Thresholds::all(Severity::High),
            allows: Vec::new(),
        }
    }
}

impl Policy {
    /// What a finding of `rule` weighs, where the evidence alone would make it `evident`.
    ///
    /// A policy's word is final, in both directions: it knows what the image is for.
    pub fn severity(&self, rule: Rule, evident: Severity) -> Severity {
        self.severities.get(&rule).copied().unwrap_or(evident)
    }

    /// Whether a finding counts: not allowed, and at or over the threshold of its view.
    pub fn counts(&self, finding: &Finding) -> bool {
        finding.allowed_by.is_none() && finding.severity >= self.fail_on.of(finding.visibility)
    }
}

/// What a scan comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was read and nothing counts.
    Clean,
    /// Everything was read, and something counts.
    Refused,
    /// Something was not read, or engines disagree about something that counts.
    CouldNotTell,
}

impl Verdict {
    /// The exit code that says so.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Clean => Exit::Done,
            Self::Refused => Exit::Negative,
            Self::CouldNotTell => Exit::Unknown,
        }
    }

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Refused => "refused",
            Self::CouldNotTell => "could not tell",
        }
    }
}

/// Judges a scan: what could not be told outranks what was found.
pub fn verdict<'a>(
    policy: &Policy,
    findings: impl IntoIterator<Item = &'a Finding>,
    complete: bool,
) -> Verdict {
    let mut verdict = if complete { Verdict::Clean } else { Verdict::CouldNotTell };
    for finding in findings.into_iter().filter(|f| policy.counts(f)) {
        verdict = match (verdict, finding.visibility) {
            (Verdict::CouldNotTell, _) | (_, Visibility::Ambiguous) => Verdict::CouldNotTell,
            (Verdict::Clean | Verdict::Refused, Visibility::Merged | Visibility::Hidden) => Verdict::Refused,
        };
    }
    verdict
}
