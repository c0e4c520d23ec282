//! One layer's tar as a list of entries, read in one pass with its digest.

use policy::image::{Digest, Form, ImagePath, Kind};
use sha2::{Digest as _, Sha256};

use crate::content::{ContentReader, finish};
use crate::entry::{Content, Entry, OverlayXattr, What};
use crate::limits::Limits;
use crate::tally::Tally;
use crate::tar::{Ending, Event, Member, TarReader};

/// A layer that was read, to its end or to where it breaks.
#[derive(Debug)]
pub(crate) struct LayerRead {
    /// In the order of the archive.
    pub entries: Vec<Entry>,
    /// Of all its bytes, after decompression.
    pub diff_id: Digest,
    /// Why it was not read to its end.
    pub problem: Option<String>,
    /// Whether something that is no tar follows its end.
    pub trailing: bool,
}

/// A layer being read.
#[derive(Debug)]
pub(crate) struct LayerReader {
    tar: TarReader,
    hash: Sha256,
    entries: Vec<Entry>,
    content: ContentReader,
    failed: Option<String>,
    limits: Limits,
}

impl LayerReader {
    /// A reader at a layer's first byte.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            tar: TarReader::new(limits),
            hash: Sha256::new(),
            entries: Vec::new(),
            content: ContentReader::default(),
            failed: None,
            limits: *limits,
        }
    }

    /// The next bytes. After a failure they are only hashed: the findings so far stand.
    pub(crate) fn push(&mut self, mut bytes: &[u8], tally: &mut Tally) {
        self.hash.update(bytes);
        if let Err(limit) = tally.bytes(bytes.len() as u64, &self.limits) {
            self.failed.get_or_insert(limit);
        }
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

    /// The layer, after its last byte.
    pub(crate) fn finish(mut self) -> LayerRead {
        let ending = self.tar.ending();
        let problem = self.failed.take().or_else(|| ending_problem(ending).map(str::to_owned));
        let trailing = problem.is_none() && ending == Ending::Trailing;
        LayerRead { entries: self.entries, diff_id: finish(self.hash), problem, trailing }
    }

    fn event(&mut self, event: Event<'_>, tally: &mut Tally) {
        match event {
            Event::Member(member) => {
                let anomalies = tally.anomalies(member.anomaly_bytes(), &self.limits);
                if let Err(limit) = tally.entry(&self.limits).and(anomalies) {
                    self.failed = Some(limit);
                    return;
                }
                let entry = entry(*member);
                if entry.content.form == Form::Unseen {
                    tally.read.entries_unanalysed += 1;
                    let why = "its content is stored with holes, which this version does not fill in";
                    tally.incomplete(&entry.path.to_string(), why);
                }
                self.entries.push(entry);
                self.content = ContentReader::default();
            }
            Event::Data(bytes) => self.content.push(bytes),
            Event::MemberEnd => {
                let content = std::mem::take(&mut self.content).finish();
                if let Some(entry) = self.entries.last_mut()
                    && entry.what == What::Node(Kind::File)
                    && entry.content.form != Form::Unseen
                {
                    entry.content = content;
                }
            }
        }
    }
}

/// What an ending leaves to be desired; `None` for a whole archive.
pub(crate) const fn ending_problem(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::Whole | Ending::Trailing => None,
        Ending::NoEndMarker => Some("the tar has no end marker: it may have been cut off"),
        Ending::HalfEndMarker => Some("the tar ends after one zero block of two: it may have been cut off"),
        Ending::Truncated => Some("the tar ends in the middle of a member"),
        Ending::Dangling => Some("the tar ends with an extended header that nothing follows"),
    }
}

fn entry(member: Member) -> Entry {
    let (major, minor) = member.device;
    let device = |n: i64| u64::try_from(n).unwrap_or(u64::MAX);
    let kind = match member.type_flag {
        b'2' => Kind::Symlink(member.link.clone()),
        b'3' => Kind::CharDevice(device(major), device(minor)),
        b'4' => Kind::BlockDevice(device(major), device(minor)),
        b'5' => Kind::Directory,
        b'6' => Kind::Fifo,
        _ => Kind::File,
    };
    let what = match member.type_flag {
        b'1' => What::Hardlink(ImagePath::clean(&member.link)),
        _ => What::Node(kind),
    };
    let last = |name: &[u8]| member.xattrs.iter().rev().find(|(known, _)| known == name);
    let capability = last(b"security.capability").map(|(_, value)| value.clone());
    Entry {
        path: member.path(),
        what,
        // Twelve bits of whatever the number is, as Go's FileInfo takes them.
        mode: u16::try_from(member.mode & 0o7777).unwrap_or(0o7777),
        content: if member.sparse { Content::UNSEEN } else { Content::NONE },
        capability,
        overlay: member.xattrs.iter().filter_map(|(name, value)| OverlayXattr::new(name, value)).collect(),
        anomalies: member.anomalies,
        other_names: member.other_names.iter().map(|name| ImagePath::clean(name)).collect(),
        after_end: member.after_end,
    }
}
