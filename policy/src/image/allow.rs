//! What a policy allows all the same: one rule at one path, for a reason, until a day.

use super::{Digest, ImagePath, Rule};

/// What an allowance is bound to besides the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// The file's content.
    Digest(Digest),
    /// Whatever is there: said out loud in the report.
    Any,
}

/// Whether an allowance is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowState {
    /// It is.
    InForce,
    /// Its day has passed: what it covered is a finding again.
    Expired,
}

/// One allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// The rule that it silences.
    pub rule: Rule,
    /// Where.
    pub path: ImagePath,
    /// For which content.
    pub binding: Binding,
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The last day of its force, as text `YYYY-MM-DD`.
    pub expires: String,
    /// Whether that day has passed.
    pub state: AllowState,
}

impl Allow {
    /// Whether it covers a finding of `rule` at `path` on content of `digest`.
    ///
    /// Content that was not read to its end matches no digest.
    pub fn covers(&self, rule: Rule, path: &ImagePath, digest: Option<Digest>) -> bool {
        let bound = match self.binding {
            Binding::Digest(wanted) => digest == Some(wanted),
            Binding::Any => true,
        };
        self.state == AllowState::InForce && self.rule == rule && self.path == *path && bound
    }
}
