//! How often an agent may put a new version of one text: each is kept for good, so their number has an end (E17, E27).

/// Most versions of one text: of a day's report, or of a case's appeal or death report.
pub const VERSIONS_MAX: usize = 16;

/// A version too many. What was kept before stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{VERSIONS_MAX} versions of this text are kept, and more are not; the last one stands")]
pub struct TooManyVersions;

/// Whether a further version may be kept where `kept` are; gives its number, from 1.
///
/// # Errors
/// [`TooManyVersions`] from [`VERSIONS_MAX`] on.
pub const fn next_version(kept: usize) -> Result<usize, TooManyVersions> {
    if kept < VERSIONS_MAX { Ok(kept + 1) } else { Err(TooManyVersions) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_versions_are_kept_and_no_more() {
        assert_eq!(next_version(0), Ok(1));
        assert_eq!(next_version(15), Ok(16));
        for kept in [16, 17, usize::MAX] {
            assert_eq!(next_version(kept), Err(TooManyVersions), "{kept}");
        }
    }
}
