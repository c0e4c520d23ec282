//! The simulator's report: one HTML file with SVG charts, for people (E35).
//!
//! It shows outcomes and decides nothing. The same outcomes give the same bytes: nothing here reads a clock, and
//! `wall_ms`, the one figure that two runs do not share, is left out.

mod axis;
mod chart;
mod compare;
mod culls;
mod group;
mod interval;
mod lives;
mod page;
mod population;
mod purses;
mod survival;
mod text;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use interval::Estimate;

use self::group::Group;
use super::outcome::Outcome;

/// Name of the page in its folder.
pub const PAGE: &str = "index.html";

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder.
    #[error("make the report's folder {path}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The page.
    #[error("write the report {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes `dir/index.html`. Each group is one set of rules, by its name; its outcomes are its seeds. With several
/// groups the page begins with what the change did.
///
/// A page of an earlier run is replaced whole, or not at all.
///
/// # Errors
/// `Folder` or `Write`.
pub fn write(dir: &Path, title: &str, groups: &[(String, Vec<Outcome>)]) -> Result<(), ReportError> {
    std::fs::create_dir_all(dir).map_err(|source| ReportError::Folder { path: dir.to_owned(), source })?;
    let path = dir.join(PAGE);
    let begun = dir.join(".index.html.begun");
    std::fs::write(&begun, html(title, groups))
        .and_then(|()| std::fs::rename(&begun, &path))
        .map_err(|source| ReportError::Write { path, source })
}

/// The page that [`write`] writes.
pub fn html(title: &str, groups: &[(String, Vec<Outcome>)]) -> String {
    let groups: Vec<Group<'_>> = groups.iter().map(|(name, runs)| Group { name, runs }).collect();
    page::page(title, &groups)
}
