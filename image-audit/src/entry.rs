//! What one header of an archive, or one name in a folder, says: the common currency of all readers.

use policy::image::{Digest, Form, ImagePath, Kind};

/// One name with its inode, or one more name of an inode.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its name, cleaned.
    pub path: ImagePath,
    /// What it adds.
    pub what: What,
    /// 12 bits. On a hardlink: what its own header says, which Docker gives the shared inode.
    pub mode: u16,
    /// The file's content, as far as it was seen.
    pub content: Content,
    /// `security.capability`.
    pub capability: Option<Vec<u8>>,
    /// Attributes of overlayfs.
    pub overlay: Vec<OverlayXattr>,
    /// Readings on which readers differ.
    pub anomalies: Vec<String>,
    /// Names that other readers give it.
    pub other_names: Vec<ImagePath>,
    /// It stands after the end of its archive, where no engine looks.
    pub after_end: bool,
}

/// What an entry adds to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// An inode.
    Node(Kind),
    /// One more name of the inode at that path.
    Hardlink(ImagePath),
}

/// What was seen of a file's content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    /// By its first bytes.
    pub form: Form,
    /// Of all of it; `None` where it was not read to its end.
    pub digest: Option<Digest>,
    /// Its size.
    pub size_bytes: u64,
}

impl Content {
    /// That of an inode that has none.
    pub(crate) const NONE: Self = Self { form: Form::Empty, digest: None, size_bytes: 0 };
    /// That of a file which could not be read.
    pub(crate) const UNSEEN: Self = Self { form: Form::Unseen, digest: None, size_bytes: 0 };
}

/// An extended attribute by which overlayfs changes what a container shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverlayXattr {
    /// `trusted.overlay.opaque` and so on.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

impl OverlayXattr {
    /// The attribute, if overlayfs obeys one of this name.
    pub(crate) fn new(name: &[u8], value: &[u8]) -> Option<Self> {
        let obeyed = name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.");
        obeyed.then(|| Self { name: name.to_vec(), value: value.to_vec() })
    }

    /// Whether it makes a directory opaque on overlay2.
    pub(crate) fn is_opaque(&self) -> bool {
        self.name == b"trusted.overlay.opaque" && matches!(self.value.as_slice(), b"y" | b"x")
    }
}
