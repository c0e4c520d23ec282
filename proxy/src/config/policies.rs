//! `policy.toml`: the egress profiles and the revision that every log line names.

use std::collections::BTreeMap;
use std::path::Path;

use policy::ProfileName;
use policy::egress::{Profile, ProfileText, QuotaText, RuleText, compile};
use sha2::{Digest, Sha256};

use super::toml_text::{Notes, Table, read};
use super::{ConfigError, Mistake, load};

/// Every profile of one policy file, swapped as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    /// First 12 hexadecimal digits of the SHA-256 of the file.
    pub revision: String,
    /// The profiles.
    pub profiles: BTreeMap<ProfileName, Profile>,
}

impl Policies {
    /// Reads the file.
    ///
    /// # Errors
    /// [`ConfigError`], with every mistake.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        load(path, Self::parse)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Every mistake, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let profiles = read(text, |mut top, notes| {
            let table = top.table("profiles", notes);
            if table.is_none() && notes.is_empty() {
                notes.add(0, "it has no [profiles.NAME]; without one nothing could be allowed");
            }
            let profiles = table.map(|table| read_profiles(table, notes)).unwrap_or_default();
            top.finish(notes);
            profiles
        })?;
        let digest = Sha256::digest(text.as_bytes());
        let digits = digest.iter().take(6).flat_map(|byte| [byte >> 4, byte & 15]);
        let revision = digits.filter_map(|half| char::from_digit(half.into(), 16)).collect();
        Ok(Self { revision, profiles })
    }
}

fn read_profiles(table: Table<'_, '_>, notes: &mut Notes) -> BTreeMap<ProfileName, Profile> {
    let mut profiles = BTreeMap::new();
    for (key, at, profile) in table.entries(notes) {
        let text = read_profile(profile, notes);
        let name = match ProfileName::parse(&key) {
            Ok(name) => name,
            Err(why) => {
                notes.add(at, format!("{key:?} is no profile name: {why}"));
                continue;
            }
        };
        match compile(&name, &text) {
            Ok(profile) => {
                profiles.insert(name, profile);
            }
            Err(mistakes) => {
                for mistake in mistakes {
                    let last = mistake.path.rsplit('.').next().filter(|last| !last.starts_with("rules["));
                    let key = last.map_or_else(String::new, |last| format!("{last}: "));
                    notes.add_at(
                        &format!("profiles.{name}.{}", mistake.path),
                        format!("{key}{}", mistake.kind),
                    );
                }
            }
        }
    }
    profiles
}

fn read_profile(mut table: Table<'_, '_>, notes: &mut Notes) -> ProfileText {
    let text = ProfileText {
        mode: table.text("mode", notes),
        report_only: table.flag("report_only", notes),
        rules: table.tables("rules", notes).into_iter().map(|rule| read_rule(rule, notes)).collect(),
    };
    table.finish(notes);
    text
}

fn read_rule(mut table: Table<'_, '_>, notes: &mut Notes) -> RuleText {
    let text = RuleText {
        host: table.text("host", notes),
        address: table.text("address", notes),
        ports: table.numbers("ports", notes),
        action: table.text("action", notes),
        tls: table.text("tls", notes),
        sni: table.texts("sni", notes).unwrap_or_default(),
        pin: table.texts("pin", notes).unwrap_or_default(),
        ech: table.text("ech", notes),
        idle_s: table.number("idle_s", notes),
        quota: table.table("quota", notes).map(|quota| read_quota(quota, notes)),
    };
    table.finish(notes);
    text
}

fn read_quota(mut table: Table<'_, '_>, notes: &mut Notes) -> QuotaText {
    let text = QuotaText {
        up_bytes: table.number("up_bytes", notes),
        down_bytes: table.number("down_bytes", notes),
        connects_per_min: table.number("connects_per_min", notes),
        tunnels: table.number("tunnels", notes),
        new_names_per_min: table.number("new_names_per_min", notes),
    };
    table.finish(notes);
    text
}
