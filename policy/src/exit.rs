//! Exit codes, the same for every program.

/// What a command's exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: a negative answer (findings, refused, a broken check).
    Negative,
    /// 2: it could not be told.
    Unknown,
    /// 3: usage, configuration or policy error.
    Usage,
    /// 4: I/O, or another program.
    Io,
}

impl Exit {
    /// The code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Negative => 1,
            Self::Unknown => 2,
            Self::Usage => 3,
            Self::Io => 4,
        }
    }
}
