//! `proxy.toml` and `policy.toml`: read whole, all mistakes at once, before anything starts.

mod policies;
mod proxy;
mod toml_text;

use std::path::{Path, PathBuf};

pub use policies::Policies;
pub use policy::Mistake;
pub use proxy::{Caps, Clocks, Config, LogTarget};

/// Why there is no configuration. Texts read after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file itself.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its content; each mistake on a line of its own as `PATH:LINE:COLUMN: WHAT`.
    #[error("use {}:\n{}", path.display(), shown(path, mistakes))]
    Wrong {
        /// Which.
        path: PathBuf,
        /// All of them, in the order of the file.
        mistakes: Vec<Mistake>,
    },
}

fn shown(path: &Path, mistakes: &[Mistake]) -> String {
    Mistake::list(&path.display().to_string(), mistakes)
}

/// Reads a file and has its text parsed.
fn load<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, Vec<Mistake>>) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    parse(&text).map_err(|mistakes| ConfigError::Wrong { path: path.to_owned(), mistakes })
}

#[cfg(test)]
mod tests;
