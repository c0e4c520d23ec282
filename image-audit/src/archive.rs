//! An archive of blobs: what `docker save` writes, and the archive form of an OCI layout.
//!
//! One pass, in whatever order things stand: layers may come before the manifest that names them, so each blob is
//! read for what it is, and what the image makes of it is asked afterwards.

use std::collections::BTreeMap;
use std::io::{self, Read};

use policy::image::ImagePath;

use crate::blob::{Blob, BlobReader};
use crate::layer::ending_problem;
use crate::limits::Limits;
use crate::tally::Tally;
use crate::tar::{Event, TarReader};
use crate::unpack::{Compression, UnpackError, Unpacker};

/// Blobs by the names that they have in the archive.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    named: BTreeMap<ImagePath, Blob>,
    links: BTreeMap<ImagePath, ImagePath>,
}

impl Blobs {
    /// The blob of that name, behind any links, and the name that it stands under.
    pub(crate) fn find(&self, name: &ImagePath) -> Option<(&ImagePath, &Blob)> {
        let mut name = name;
        // A chain of links is as long as there are links, or it is a ring.
        for _ in 0..=self.links.len() {
            if let Some(found) = self.named.get_key_value(name) {
                return Some(found);
            }
            name = self.links.get(name)?;
        }
        None
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ImagePath, &Blob)> {
        self.named.iter()
    }

    /// Adds one that was read elsewhere.
    pub(crate) fn insert(&mut self, name: ImagePath, blob: Blob) -> Option<Blob> {
        self.named.insert(name, blob)
    }
}

/// Why there is nothing of an archive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// The file could not be read.
    #[error("read the archive")]
    Read(#[from] io::Error),
    /// The first thing in it is no tar.
    #[error("it is no tar: {0}")]
    NotATar(String),
}

/// Reads every blob. What is broken is named in `tally`, and what came before it is kept.
pub(crate) fn read(mut source: impl Read, limits: &Limits, tally: &mut Tally) -> Result<Blobs, ArchiveError> {
    let mut head = vec![0; 64 << 10];
    let mut filled = 0;
    while filled < 512 {
        match source.read(head.get_mut(filled..).unwrap_or_default())? {
            0 => break,
            count => filled += count,
        }
    }
    head.truncate(filled);
    let compression = Compression::of(&head);
    let mut unpacker =
        Unpacker::new(compression, limits).map_err(|e| ArchiveError::NotATar(e.to_string()))?;
    let mut outer = Outer::new(limits);
    let mut chunk = head;
    while !chunk.is_empty() {
        outer.unpack(|outer| unpacker.push(&chunk, &mut |bytes| outer.push(bytes, tally)));
        chunk.resize(64 << 10, 0);
        let count = source.read(&mut chunk)?;
        chunk.truncate(count);
    }
    outer.unpack(|outer| unpacker.finish(&mut |bytes| outer.push(bytes, tally)));
    outer.finish(tally)
}

struct Outer<'a> {
    tar: TarReader,
    blobs: Blobs,
    /// The blob in hand, with its name.
    open: Option<(ImagePath, BlobReader)>,
    members: u64,
    failed: Option<String>,
    limits: &'a Limits,
}

impl<'a> Outer<'a> {
    fn new(limits: &'a Limits) -> Self {
        let tar = TarReader::new(limits);
        Self { tar, blobs: Blobs::default(), open: None, members: 0, failed: None, limits }
    }

    fn unpack(&mut self, step: impl FnOnce(&mut Self) -> Result<(), UnpackError>) {
        if self.failed.is_none()
            && let Err(error) = step(self)
        {
            self.failed.get_or_insert(error.to_string());
        }
    }

    fn push(&mut self, mut bytes: &[u8], tally: &mut Tally) {
        while self.failed.is_none() && (!bytes.is_empty() || self.tar.is_due()) {
            match self.tar.step(bytes) {
                Ok((taken, event)) => {
                    if let Some(event) = event {
                        self.event(event, tally);
                    }
                    bytes = bytes.get(taken..).unwrap_or_default();
                }
                Err(error) => self.failed = Some(error.to_string()),
            }
        }
    }

    fn event(&mut self, event: Event<'_>, tally: &mut Tally) {
        match event {
            Event::Member(member) => {
                self.members += 1;
                if self.members > self.limits.entries_max {
                    self.failed = Some(format!("more than {} members", self.limits.entries_max));
                    return;
                }
                let path = member.path();
                for anomaly in &member.anomalies {
                    tally.incomplete(&path.to_string(), &format!("in the archive itself: {anomaly}"));
                }
                match member.type_flag {
                    b'1' => {
                        self.blobs.links.insert(path, ImagePath::clean(&member.link));
                    }
                    b'2' => {
                        let target = path.parent().join(&member.link);
                        self.blobs.links.insert(path, target);
                    }
                    b'3'..=b'6' => {}
                    _ => self.open = Some((path, BlobReader::new(self.limits))),
                }
            }
            Event::Data(bytes) => {
                if let Some((_, blob)) = &mut self.open {
                    blob.push(bytes, tally);
                }
            }
            Event::MemberEnd => self.close(tally),
        }
    }

    fn close(&mut self, tally: &mut Tally) {
        let Some((path, blob)) = self.open.take() else { return };
        let shown = path.to_string();
        if self.blobs.insert(path, blob.finish(tally)).is_some() {
            tally.incomplete(&shown, "two members of the archive have this name");
        }
    }

    fn finish(mut self, tally: &mut Tally) -> Result<Blobs, ArchiveError> {
        let problem = self.failed.take().or_else(|| ending_problem(self.tar.ending()).map(str::to_owned));
        if let Some(problem) = problem {
            if self.members == 0 {
                return Err(ArchiveError::NotATar(problem));
            }
            // What is in hand was cut off: its findings count, and the scan is not complete anyway.
            self.close(tally);
            tally.incomplete("the archive", &problem);
        }
        Ok(self.blobs)
    }
}
