//! An archive of blobs: what `docker save` writes, and the archive form of an OCI layout.
//!
//! One pass, in whatever order things stand: layers may come before the manifest that names them, so each blob is
//! read for what it is, and what the image makes of it is asked afterwards.

use std::collections::BTreeMap;
use std::io::{self, Read};

use policy::image::ImagePath;

use crate::blob::{Blob, BlobReader};
use crate::layer::{LayerRead, LayerReader, ending_problem};
use crate::limits::Limits;
use crate::tally::Tally;
use crate::tar::{Event, Member, TarReader};
use crate::unpack::{Compression, Unpacker};

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

    /// Adds a further name.
    pub(crate) fn link(&mut self, name: ImagePath, target: ImagePath) {
        self.links.insert(name, target);
    }

    /// Adds one; gives back what had its name.
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

/// What one pass over a tar makes of it.
pub(crate) struct Pass {
    /// As an archive of blobs, with what was read of them.
    pub archive: (Result<Blobs, ArchiveError>, Tally),
    /// As the tar of a root filesystem, where that was asked for.
    pub rootfs: Option<(LayerRead, Tally)>,
}

/// What a caller wants to know of a tar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It is an archive of blobs.
    Archive,
    /// It is a root filesystem.
    Rootfs,
    /// Its bytes decide.
    Either,
}

/// Reads a tar in one pass, unpacking it as it comes. What is broken is named, and what came before it is kept.
pub(crate) fn read(mut source: impl Read, wanted: Wanted, limits: &Limits) -> Result<Pass, ArchiveError> {
    let mut head = vec![0; 64 << 10];
    let mut filled = 0;
    while filled < 512 {
        match source.read(head.get_mut(filled..).unwrap_or_default())? {
            0 => break,
            count => filled += count,
        }
    }
    head.truncate(filled);
    let unpacker = Unpacker::new(Compression::of(&head), limits);
    let mut unpacker = unpacker.map_err(|error| ArchiveError::NotATar(error.to_string()))?;
    let mut outer = Outer::new(wanted, limits);
    let mut broken = None;
    let mut chunk = head;
    while !chunk.is_empty() {
        if broken.is_none() {
            broken = unpacker.push(&chunk, &mut |bytes| outer.push(bytes)).err();
        }
        chunk.resize(64 << 10, 0);
        let count = source.read(&mut chunk)?;
        chunk.truncate(count);
    }
    if broken.is_none() {
        broken = unpacker.finish(&mut |bytes| outer.push(bytes)).err();
    }
    Ok(outer.finish(broken.map(|error| error.to_string())))
}

/// The tar in hand, as an archive of blobs and as a root filesystem.
struct Outer<'a> {
    tar: TarReader,
    blobs: Blobs,
    tally: Tally,
    /// The blob in hand, with its name.
    open: Option<(ImagePath, BlobReader)>,
    members: u64,
    failed: Option<String>,
    is_archive: bool,
    rootfs: Option<(LayerReader, Tally)>,
    limits: &'a Limits,
}

impl<'a> Outer<'a> {
    fn new(wanted: Wanted, limits: &'a Limits) -> Self {
        let rootfs = (wanted != Wanted::Archive).then(|| (LayerReader::new(limits), Tally::default()));
        Self {
            tar: TarReader::new(limits),
            blobs: Blobs::default(),
            tally: Tally::default(),
            open: None,
            members: 0,
            failed: None,
            is_archive: wanted != Wanted::Rootfs,
            rootfs,
            limits,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        if let Some((layer, tally)) = &mut self.rootfs {
            layer.push(bytes, tally);
        }
        while self.is_archive && self.failed.is_none() && (!bytes.is_empty() || self.tar.is_due()) {
            match self.tar.step(bytes) {
                Ok((taken, event)) => {
                    if let Some(event) = event {
                        self.event(event);
                    }
                    bytes = bytes.get(taken..).unwrap_or_default();
                }
                Err(error) => self.failed = Some(error.to_string()),
            }
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Member(member) => {
                self.members += 1;
                if self.members > self.limits.entries_max {
                    self.failed = Some(format!("more than {} members", self.limits.entries_max));
                } else {
                    self.member(&member);
                }
            }
            Event::Data(bytes) => {
                if let Some((_, blob)) = &mut self.open {
                    blob.push(bytes, &mut self.tally);
                }
            }
            Event::MemberEnd => self.close(),
        }
    }

    fn member(&mut self, member: &Member) {
        let path = member.path();
        if let Err(limit) = self.tally.anomalies(member.anomaly_bytes(), self.limits) {
            self.failed = Some(limit);
            return;
        }
        for anomaly in &member.anomalies {
            self.tally.incomplete(&path.to_string(), &format!("in the archive itself: {anomaly}"));
        }
        match member.type_flag {
            b'1' => self.blobs.link(path, ImagePath::clean(&member.link)),
            b'2' => {
                let target = path.parent().join(&member.link);
                self.blobs.link(path, target);
            }
            b'3'..=b'6' => {}
            _ => self.open = Some((path, BlobReader::new(self.limits))),
        }
    }

    fn close(&mut self) {
        let Some((path, blob)) = self.open.take() else { return };
        let shown = path.to_string();
        let blob = blob.finish(&mut self.tally);
        if self.blobs.insert(path, blob).is_some() {
            self.tally.incomplete(&shown, "two members of the archive have this name");
        }
    }

    fn finish(mut self, broken: Option<String>) -> Pass {
        let rootfs = self.rootfs.take().map(|(layer, tally)| {
            let mut read = layer.finish();
            read.problem = broken.clone().or(read.problem);
            (read, tally)
        });
        let ending = || ending_problem(self.tar.ending()).map(str::to_owned);
        let problem = self.failed.take().or(broken).or_else(ending);
        let archive = match problem {
            Some(problem) if self.members == 0 => Err(ArchiveError::NotATar(problem)),
            Some(problem) => {
                // What is in hand was cut off: its findings count, and the scan is not complete anyway.
                self.close();
                self.tally.incomplete("the archive", &problem);
                Ok(self.blobs)
            }
            None => Ok(self.blobs),
        };
        Pass { archive: (archive, self.tally), rootfs }
    }
}
