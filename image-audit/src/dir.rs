//! Reads a root filesystem from a folder: by descriptor, without following a single symlink.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use policy::image::{ImagePath, Kind};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};

use crate::content::ContentReader;
use crate::entry::{Content, Entry, OverlayXattr, What};
use crate::limits::Limits;
use crate::tally::Tally;
use crate::{AuditError, NotAnImage};

/// Reads everything below `root`, in the order of the names.
///
/// What cannot be read is named in `tally` and the walk goes on: one unreadable folder must not hide the rest.
pub(crate) fn read(root: &Path, limits: &Limits, tally: &mut Tally) -> Result<Vec<Entry>, AuditError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = fs::open(root, flags, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::NOTDIR => AuditError::NotAnImage { source: NotAnImage::NotAFolder },
        errno => AuditError::Open { source: errno.into() },
    });
    let directory = opened?;
    let stat = fs::fstat(&directory).map_err(|errno| AuditError::Open { source: errno.into() })?;
    let mut walk = Walk {
        limits,
        tally,
        device: stat.st_dev,
        entries: Vec::new(),
        inodes: BTreeMap::new(),
        full: false,
    };
    walk.push(ImagePath::root(), &stat, Kind::Directory, directory_extras(directory.as_fd()));
    walk.tree(directory);
    Ok(walk.entries)
}

struct Walk<'a> {
    limits: &'a Limits,
    tally: &'a mut Tally,
    device: u64,
    entries: Vec<Entry>,
    /// First name of every inode that has several.
    inodes: BTreeMap<u64, ImagePath>,
    /// Whether a limit was reached, so that the walk ends.
    full: bool,
}

/// A directory whose names are being visited.
struct Level {
    directory: OwnedFd,
    path: ImagePath,
    /// Last first.
    names: Vec<Vec<u8>>,
}

/// What an open file adds to its status.
#[derive(Default)]
struct Extras {
    content: Option<Content>,
    capability: Option<Vec<u8>>,
    overlay: Vec<OverlayXattr>,
}

impl Walk<'_> {
    /// Depth first with a stack of its own: a tree made to be deep must not end the process.
    fn tree(&mut self, root: OwnedFd) {
        let mut stack: Vec<Level> = self.level(root, ImagePath::root()).into_iter().collect();
        while let Some(level) = stack.last_mut() {
            if self.full {
                return;
            }
            let Some(name) = level.names.pop() else {
                stack.pop();
                continue;
            };
            // A name of the host's folder is one component; `clean` only guards against a hostile filesystem.
            let path = level.path.join(&name);
            match self.visit(level.directory.as_fd(), &name, &path) {
                Ok(Some(directory)) if stack.len() < self.limits.depth_max => {
                    stack.extend(self.level(directory, path));
                }
                Ok(Some(_)) => {
                    let why = format!("deeper than {} directories", self.limits.depth_max);
                    self.tally.incomplete(&path.to_string(), &why);
                }
                Ok(None) => {}
                Err(error) => self.tally.incomplete(&path.to_string(), &error.to_string()),
            }
        }
    }

    fn level(&mut self, directory: OwnedFd, path: ImagePath) -> Option<Level> {
        match names(directory.as_fd()) {
            Ok(names) => Some(Level { directory, path, names }),
            Err(error) => {
                self.tally.incomplete(&path.to_string(), &error.to_string());
                None
            }
        }
    }

    /// One name; a directory comes back open.
    fn visit(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &ImagePath,
    ) -> io::Result<Option<OwnedFd>> {
        if let Err(limit) = self.tally.entry(self.limits) {
            self.full = true;
            self.tally.incomplete(&path.to_string(), &limit);
            return Ok(None);
        }
        let stat = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let (major, minor) = (u64::from(fs::major(stat.st_rdev)), u64::from(fs::minor(stat.st_rdev)));
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                self.file(parent, name, path, &stat);
                return Ok(None);
            }
            FileType::Directory => return self.directory(parent, name, path, &stat),
            FileType::Symlink => Kind::Symlink(fs::readlinkat(parent, name, Vec::new())?.into_bytes()),
            FileType::CharacterDevice => Kind::CharDevice(major, minor),
            FileType::BlockDevice => Kind::BlockDevice(major, minor),
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::Unknown => Kind::File,
        };
        self.push(path.clone(), &stat, kind, Extras::default());
        Ok(None)
    }

    fn directory(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &ImagePath,
        stat: &Stat,
    ) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = fs::openat(parent, name, flags, Mode::empty());
        let extras = opened.as_ref().map(|d| directory_extras(d.as_fd())).unwrap_or_default();
        self.push(path.clone(), stat, Kind::Directory, extras);
        let directory = opened?;
        if fs::fstat(&directory)?.st_dev != self.device {
            self.tally
                .incomplete(&path.to_string(), "another filesystem is mounted here; it was not entered");
            return Ok(None);
        }
        Ok(Some(directory))
    }

    /// A regular file. One that cannot be opened still counts by its mode and name.
    fn file(&mut self, parent: BorrowedFd<'_>, name: &[u8], path: &ImagePath, stat: &Stat) {
        let known = stat.st_nlink > 1 && self.inodes.contains_key(&stat.st_ino);
        let extras = if known { Ok(Extras::default()) } else { self.contents(parent, name, stat) };
        let extras = extras.unwrap_or_else(|error| {
            self.tally.incomplete(&path.to_string(), &error.to_string());
            self.tally.read.entries_unanalysed += 1;
            Extras { content: Some(Content::UNSEEN), ..Extras::default() }
        });
        self.push(path.clone(), stat, Kind::File, extras);
    }

    fn contents(&mut self, parent: BorrowedFd<'_>, name: &[u8], stat: &Stat) -> io::Result<Extras> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut file = File::from(fs::openat(parent, name, flags, Mode::empty())?);
        let opened = fs::fstat(&file)?;
        if opened.st_ino != stat.st_ino || opened.st_dev != stat.st_dev {
            return Err(io::Error::other("it was replaced while it was looked at"));
        }
        let capability = attribute(file.as_fd(), "security.capability")?;
        let mut reader = ContentReader::default();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = file.read(&mut buffer)?;
            let bytes = buffer.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            reader.push(bytes);
            if let Err(limit) = self.tally.bytes(count as u64, self.limits) {
                self.full = true;
                return Err(io::Error::other(limit));
            }
        }
        Ok(Extras { content: Some(reader.finish()), capability, overlay: Vec::new() })
    }

    fn push(&mut self, path: ImagePath, stat: &Stat, kind: Kind, extras: Extras) {
        let first = (kind != Kind::Directory && stat.st_nlink > 1)
            .then(|| self.inodes.entry(stat.st_ino).or_insert_with(|| path.clone()).clone());
        let what = match first {
            Some(first) if first != path => What::Hardlink(first),
            _ => What::Node(kind),
        };
        self.entries.push(Entry {
            path,
            what,
            mode: u16::try_from(stat.st_mode & 0o7777).unwrap_or(0o7777),
            content: extras.content.unwrap_or(Content::NONE),
            capability: extras.capability,
            overlay: extras.overlay,
            anomalies: Vec::new(),
            other_names: Vec::new(),
            after_end: false,
        });
    }
}

/// The names in a directory, last first.
pub(crate) fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

/// An attribute's value; `None` where there is none, or the filesystem has none at all.
fn attribute(file: BorrowedFd<'_>, name: &str) -> io::Result<Option<Vec<u8>>> {
    // The kernel's own bound for one value is 64 KiB (XATTR_SIZE_MAX).
    let mut value = vec![0; 64 << 10];
    match fs::fgetxattr(file, name, value.as_mut_slice()) {
        Ok(size) => {
            value.truncate(size);
            Ok(Some(value))
        }
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::NOTSUP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Attributes of overlayfs on a directory. A folder is what it shows: here they are only worth a finding.
fn directory_extras(directory: BorrowedFd<'_>) -> Extras {
    let names = ["trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.opaque"];
    let found = names.iter().filter_map(|name| Some((name, attribute(directory, name).ok()??)));
    let overlay = found.filter_map(|(name, value)| OverlayXattr::new(name.as_bytes(), &value)).collect();
    Extras { overlay, ..Extras::default() }
}
