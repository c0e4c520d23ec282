//! What one image may carry: rules, severities and the verdict of a scan.
//!
//! The shell gathers [`Subject`]s, each one inode of an image with all its names; [`findings`] says what is held
//! against one, and [`verdict`] what follows from all of them. Nothing here opens a file.

mod allow;
mod capability;
mod class;
mod finding;
mod path;
mod rule;
mod subject;
mod verdict;

pub use allow::{Allow, AllowState, Binding};
pub use capability::{FileCapability, MalformedCapability};
pub use class::{Class, Classes, family};
pub use finding::{Evidence, Finding, Rung, findings};
pub use path::{ImagePath, MalformedEscape, escape};
pub use rule::{Rule, Severity, Visibility};
pub use subject::{Digest, Form, Kind, Subject};
pub use verdict::{Policy, Thresholds, Verdict, verdict};

#[cfg(test)]
mod tests;
