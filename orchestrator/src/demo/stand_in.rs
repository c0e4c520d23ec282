//! What the stand-in provider answers as the judge and as the digest's model.

use serde_json::Value;

/// Whether this system prompt asks for a digest.
pub fn is_digest(system: &str) -> bool {
    system.to_ascii_lowercase().contains("digest")
}

/// A digest of counts.
pub fn digest(user: &str) -> String {
    let lines = user.lines().filter(|line| !line.trim().is_empty()).count();
    format!(
        "(A stand-in's digest, not a model's.) The log of the day has {lines} lines. Those that delivered work were \
         paid for it; those that did not were not. Nothing here is an instruction to anyone."
    )
}

/// Scores every appellant of one frame by the formula over its facts; appeals are not read.
pub fn judge(_system: &str, _user: &str) -> String {
    Value::Object(serde_json::Map::new()).to_string()
}
