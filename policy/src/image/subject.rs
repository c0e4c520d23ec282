//! What the shell saw of one inode.

use std::fmt;

use super::{ImagePath, Visibility};

/// A SHA-256, printed as `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads `sha256:` and 64 hexadecimal digits, small letters only, as the OCI image specification writes them.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for &digit in pair {
                if digit.is_ascii_uppercase() {
                    return None;
                }
                let nibble = char::from(digit).to_digit(16)?;
                *byte = *byte << 4 | u8::try_from(nibble).ok()?;
            }
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What an inode is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file, or a type that no reader knows and that is therefore taken for one.
    File,
    /// A directory.
    Directory,
    /// A symlink, with its target as it is written.
    Symlink(Vec<u8>),
    /// A character device: major, minor.
    CharDevice(u64, u64),
    /// A block device: major, minor.
    BlockDevice(u64, u64),
    /// A pipe.
    Fifo,
    /// A socket; only a folder has these.
    Socket,
}

/// What a file's first bytes say that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A program or library for the kernel or the loader.
    Elf,
    /// It begins with `#!`.
    Script,
    /// Anything else.
    Other,
    /// Nothing in it.
    Empty,
    /// The content was not seen: it counts as a program.
    Unseen,
}

/// One inode of an image as one view shows it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Every name of the inode in this view; the first is where findings are put.
    pub names: Vec<ImagePath>,
    /// Symlinks that lead to it in this view.
    pub links: Vec<ImagePath>,
    /// What it is.
    pub kind: Kind,
    /// The 12 bits of POSIX: setuid, setgid, sticky and nine for access.
    pub mode: u16,
    /// What its first bytes say.
    pub form: Form,
    /// Of its content, where that was read to the end.
    pub digest: Option<Digest>,
    /// The value of `security.capability`.
    pub capability: Option<Vec<u8>>,
    /// Names of attributes that overlayfs obeys.
    pub overlay_xattrs: Vec<Vec<u8>>,
    /// Readings of its header on which readers differ, as text.
    pub anomalies: Vec<String>,
    /// The view.
    pub visibility: Visibility,
    /// Why the view is not the merged one, or what else an operator must know.
    pub note: Option<String>,
}
