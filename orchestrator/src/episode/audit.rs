//! An image is audited before anything runs from it: once a life of the process, by the
//! built-in rules and the threshold that its configuration names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use policy::image::{Policy, Thresholds, Verdict};

use crate::config::Image;

/// Findings that a refusal names; the report has all.
const FINDINGS_NAMED: usize = 3;

/// Why nothing runs from an image. Said again for each try until the process starts anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The audit holds something against it, or could not read all of it.
    #[error("run from image {image}: its audit fails ({why}); the report is {report}")]
    Findings {
        /// Its name in the configuration.
        image: String,
        /// The first findings.
        why: String,
        /// Where the report is.
        report: String,
    },
    /// It could not be audited.
    #[error("audit image {image}: {why}")]
    NotAudited {
        /// Its name in the configuration.
        image: String,
        /// Why.
        why: String,
    },
}

/// The verdicts so far.
#[derive(Debug)]
pub struct Audits {
    reports: PathBuf,
    verdicts: Mutex<HashMap<String, Result<(), Rejected>>>,
}

impl Audits {
    /// None yet; reports will be written into this folder.
    pub fn new(reports: PathBuf) -> Self {
        Self { reports, verdicts: Mutex::default() }
    }

    /// Whether anything may run from this image. Slow the first time: it reads the whole of it.
    ///
    /// # Errors
    /// [`Rejected`].
    pub fn pass(&self, name: &str, image: &Image) -> Result<(), Rejected> {
        // Held over the audit: two agents of one image wait for one reading of it.
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        verdicts.entry(name.to_owned()).or_insert_with(|| audit(name, image, &self.reports)).clone()
    }
}

fn audit(name: &str, image: &Image, reports: &Path) -> Result<(), Rejected> {
    let not_audited = |why: String| Rejected::NotAudited { image: name.to_owned(), why };
    let source = image_audit::Source::Dir(image.rootfs.clone());
    let policy = Policy { fail_on: Thresholds::all(image.audit_fail_on), ..Policy::default() };
    let report = image_audit::audit(&source, &policy, &image_audit::Limits::default())
        .map_err(|error| not_audited(format!("cannot {}", crate::cli::with_causes(&error))))?;
    let path = reports.join(format!("{name}.json"));
    std::fs::write(&path, report.to_json())
        .map_err(|error| not_audited(format!("cannot write {}: {error}", path.display())))?;
    if report.verdict() == Verdict::Clean {
        return Ok(());
    }
    let named = report.counting().take(FINDINGS_NAMED);
    let named =
        named.map(|held| format!("{} {}", held.finding.rule.name(), held.finding.path)).collect::<Vec<_>>();
    let why = if named.is_empty() { "not all of it could be read".to_owned() } else { named.join(", ") };
    Err(Rejected::Findings { image: name.to_owned(), why, report: path.display().to_string() })
}
