//! Reads a file's content once: its digest, its size and what its first bytes say.

use policy::image::{Digest, Form};
use sha2::{Digest as _, Sha256};

use crate::entry::Content;

/// Takes a file's bytes as they come; keeps four of them.
#[derive(Debug, Default)]
pub(crate) struct ContentReader {
    hash: Sha256,
    head: [u8; 4],
    size_bytes: u64,
}

impl ContentReader {
    /// The next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let seen = usize::try_from(self.size_bytes).unwrap_or(usize::MAX).min(self.head.len());
        for (slot, byte) in self.head.iter_mut().skip(seen).zip(bytes) {
            *slot = *byte;
        }
        self.hash.update(bytes);
        self.size_bytes = self.size_bytes.saturating_add(bytes.len() as u64);
    }

    /// The content, all of which was pushed.
    pub(crate) fn finish(self) -> Content {
        let form = match self.head {
            _ if self.size_bytes == 0 => Form::Empty,
            [0x7f, b'E', b'L', b'F'] => Form::Elf,
            [b'#', b'!', ..] => Form::Script,
            _ => Form::Other,
        };
        Content { form, digest: Some(finish(self.hash)), size_bytes: self.size_bytes }
    }
}

/// The digest of what was hashed.
pub(crate) fn finish(hash: Sha256) -> Digest {
    Digest(hash.finalize().into())
}
