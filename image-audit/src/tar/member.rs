//! A member: its header with what extended headers made of it, and how other readers see it.

use policy::image::{ImagePath, escape};

use super::header::RawHeader;
use super::number::{decimal, text};
use super::pax::{Records, records, smuggled};

/// The most that twelve octal digits of a header's size say; a PAX size up to here was not needed.
const HEADER_SIZE_MAX: i64 = 0o777_7777_7777;

/// One member of an archive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Member {
    /// Its name, as the readers of container engines take it.
    pub name: Vec<u8>,
    /// The target of a link.
    pub link: Vec<u8>,
    /// The type, `0` where an old header left it out.
    pub type_flag: u8,
    /// As it stands: more than 12 bits are possible.
    pub mode: i64,
    /// Major and minor.
    pub device: (i64, i64),
    /// `SCHILY.xattr.` records, the one spelling that Docker takes.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether its content is stored with holes, so that the bytes are not those of the file.
    pub sparse: bool,
    /// Names that other readers give it.
    pub other_names: Vec<Vec<u8>>,
    /// On what readers differ, as text that is safe to print.
    pub anomalies: Vec<String>,
    /// It stands after the end marker, where no engine looks.
    pub after_end: bool,
}

impl Member {
    /// Its name, cleaned.
    pub(crate) fn path(&self) -> ImagePath {
        ImagePath::clean(&self.name)
    }

    /// What is kept of it beyond its name, in bytes.
    pub(crate) fn anomaly_bytes(&self) -> usize {
        let names: usize = self.other_names.iter().map(Vec::len).sum();
        names.saturating_add(texts_bytes(&self.anomalies))
    }
}

fn texts_bytes(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

/// What extended headers say about the next member.
#[derive(Debug, Default)]
pub(super) struct Extended {
    pax: Option<Records>,
    long_name: Vec<u8>,
    long_link: Vec<u8>,
    /// Of a global header, which Docker ignores and GNU tar obeys from there on.
    global: Records,
    global_bytes: usize,
    anomalies: Vec<String>,
}

impl Extended {
    /// Whether something waits for a member.
    pub(super) fn is_pending(&self) -> bool {
        self.pax.is_some() || !self.long_name.is_empty() || !self.long_link.is_empty()
    }

    /// How many global records hold, and their keys and values in bytes.
    pub(super) fn global_size(&self) -> (usize, usize) {
        (self.global.len(), self.global_bytes)
    }

    /// Texts that wait for a member, in bytes.
    pub(super) fn anomaly_bytes(&self) -> usize {
        texts_bytes(&self.anomalies)
    }

    /// Takes an extended header of type `kind`; `None` for one that Go refuses.
    pub(super) fn add(&mut self, kind: u8, bytes: &[u8]) -> Option<()> {
        match kind {
            b'x' => {
                if self.pax.replace(records(bytes)?).is_some() {
                    self.anomalies.push("two extended headers: Go forgets the first, others do not".into());
                }
            }
            b'g' => {
                self.global.extend(records(bytes)?);
                self.global_bytes = self.global.iter().map(|(key, value)| key.len() + value.len()).sum();
            }
            b'L' => self.long_name = text(bytes).to_vec(),
            _ => self.long_link = text(bytes).to_vec(),
        }
        Some(())
    }

    /// The member that `raw` begins, and how many bytes of content follow; `None` for what Go refuses.
    ///
    /// The order is Go's: PAX over the header, GNU long names over PAX, and `GNU.sparse.name` over both.
    pub(super) fn take(&mut self, raw: &RawHeader) -> Option<(Member, u64)> {
        let Self { pax, long_name, long_link, anomalies, .. } = std::mem::take(self).keep_global(self);
        let pax = pax.unwrap_or_default();
        let mut member = Member {
            name: raw.name.clone(),
            link: raw.link.clone(),
            type_flag: raw.type_flag,
            mode: raw.mode,
            device: raw.device,
            sparse: raw.type_flag == b'S',
            anomalies,
            ..Member::default()
        };
        self.global_readings(&mut member, &pax);
        let size = apply_pax(&mut member, raw, &pax)?;
        if !long_name.is_empty() {
            if pax_text(&pax, b"path").is_some_and(|path| *path != long_name) {
                member
                    .anomalies
                    .push("a GNU long name and a PAX path: Go takes the first, others the second".into());
                member.other_names.push(member.name.clone());
            }
            member.name = long_name;
        }
        if !long_link.is_empty() {
            member.link = long_link;
        }
        if member.type_flag == 0 {
            member.type_flag = if member.name.ends_with(b"/") { b'5' } else { b'0' };
        }
        sparse(&mut member, &pax)?;
        let size = content_size(&mut member, size)?;
        note_names(&mut member);
        Some((member, size))
    }

    /// What was taken out, while the global records stay in `kept`.
    fn keep_global(mut self, kept: &mut Self) -> Self {
        kept.global = std::mem::take(&mut self.global);
        kept.global_bytes = self.global_bytes;
        self
    }

    fn global_readings(&self, member: &mut Member, pax: &Records) {
        if let Some(path) = pax_text(&self.global, b"path")
            && pax_text(pax, b"path").is_none()
        {
            let shown = escape(path);
            member
                .anomalies
                .push(format!("a global header names it {shown:?}: Docker ignores that, GNU tar does not"));
            member.other_names.push(path.clone());
        }
        if ["size", "linkpath"].iter().any(|key| pax_text(&self.global, key.as_bytes()).is_some()) {
            let what = "a global header sets its size or its target: Docker ignores that, GNU tar does not";
            member.anomalies.push(what.into());
        }
    }
}

/// A record that counts: Go takes an empty value for none.
fn pax_text<'a>(pax: &'a Records, key: &[u8]) -> Option<&'a Vec<u8>> {
    pax.get(key).filter(|value| !value.is_empty())
}

/// Applies PAX records and says the size that counts.
fn apply_pax(member: &mut Member, raw: &RawHeader, pax: &Records) -> Option<i64> {
    let mut size = raw.size;
    for (key, value) in pax.iter().filter(|(_, value)| !value.is_empty()) {
        match key.as_slice() {
            b"path" => {
                member.name.clone_from(value);
                // Writers put a shortened name in the header only where the whole one does not fit.
                let fits = value.len() <= 100 && value.is_ascii();
                if fits && ImagePath::clean(value) != ImagePath::clean(&raw.name) {
                    let (path, name) = (escape(value), escape(&raw.name));
                    let what =
                        format!("PAX names it {path:?}, its header {name:?}: old readers take the second");
                    member.anomalies.push(what);
                    member.other_names.push(raw.name.clone());
                }
            }
            b"linkpath" => member.link.clone_from(value),
            b"size" => {
                size = decimal(value)?;
                if size != raw.size && size <= HEADER_SIZE_MAX {
                    let what = format!("PAX gives it {size} bytes, its header {}: readers differ", raw.size);
                    member.anomalies.push(what);
                }
            }
            b"uid" | b"gid" => {
                decimal(value)?;
            }
            key => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    member.xattrs.push((name.to_vec(), value.clone()));
                }
            }
        }
        if let Some((inner, reading)) = smuggled(value) {
            let (key, inner) = (escape(key), escape(inner));
            let what = format!(
                "the PAX value of {key:?} holds what looks like a record of {inner:?}: readers that split at newlines obey it"
            );
            member.anomalies.push(what);
            if inner == "path" {
                member.other_names.push(reading.to_vec());
            }
        }
    }
    Some(size)
}

/// `GNU.sparse.*`: the file's own name and size stand there, and what is stored is a map and pieces.
fn sparse(member: &mut Member, pax: &Records) -> Option<()> {
    let value = |key: &str| pax_text(pax, key.as_bytes()).map_or(b"".as_slice(), Vec::as_slice);
    let sparse = match (value("GNU.sparse.major"), value("GNU.sparse.minor")) {
        (b"0", b"0" | b"1") | (b"1", b"0") => true,
        (b"", b"") => !value("GNU.sparse.map").is_empty(),
        _ => false,
    };
    if !sparse {
        return Some(());
    }
    member.sparse = true;
    let name = value("GNU.sparse.name");
    if !name.is_empty() && name != member.name {
        let stored = std::mem::replace(&mut member.name, name.to_vec());
        // GNU tar itself stores `dir/GNUSparseFile.PID/name`: no reader means that as the file's name.
        if !stored.split(|&b| b == b'/').any(|part| part.starts_with(b"GNUSparseFile.")) {
            let shown = escape(&stored);
            member.anomalies.push(format!("its sparse header renames it: other readers take {shown:?}"));
            member.other_names.push(stored);
        }
    }
    let stated = [value("GNU.sparse.size"), value("GNU.sparse.realsize")];
    let size = stated.into_iter().find(|size| !size.is_empty()).unwrap_or(b"0");
    // Go refuses a size that is none, and a sparse link or directory.
    (decimal(size)? >= 0 && !is_header_only(member.type_flag)).then_some(())
}

const fn is_header_only(type_flag: u8) -> bool {
    matches!(type_flag, b'1'..=b'6')
}

/// How many bytes of content follow the header.
fn content_size(member: &mut Member, size: i64) -> Option<u64> {
    if is_header_only(member.type_flag) {
        if size != 0 && matches!(member.type_flag, b'1' | b'2') {
            member.anomalies.push(format!("a link of {size} bytes: readers differ on whether they follow"));
        }
        return Some(0);
    }
    u64::try_from(size).ok()
}

fn note_names(member: &mut Member) {
    if member.name.split(|&b| b == b'/').any(|part| part == b"..") {
        let name = escape(&member.name);
        member.anomalies.push(format!("its name {name:?} climbs: engines refuse it, or stop at the root"));
    }
    if !matches!(member.type_flag, b'0'..=b'6') {
        let type_flag = escape(&[member.type_flag]);
        let what = format!("its type {type_flag:?} is none that Docker loads: taken for a file");
        member.anomalies.push(what);
    }
}
