//! An OCI layout in a folder: the same blobs as in an archive, each in a file of its own.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use policy::image::ImagePath;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

use crate::archive::Blobs;
use crate::blob::BlobReader;
use crate::limits::Limits;
use crate::tally::Tally;
use crate::{AuditError, NotAnImage};

/// Directories below the layout's own: `blobs/sha256` needs two.
const DEPTH_MAX: usize = 4;

/// Reads every file of the layout. No symlink leaves it: a target is looked for among its own blobs.
pub(crate) fn read(root: &Path, limits: &Limits, tally: &mut Tally) -> Result<Blobs, AuditError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = fs::open(root, flags, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::NOTDIR => AuditError::from(NotAnImage::NotAFolder),
        errno => AuditError::Open { source: errno.into() },
    })?;
    let mut layout = Layout { blobs: Blobs::default(), limits, tally, files: 0 };
    layout.directory(directory.as_fd(), &ImagePath::root(), DEPTH_MAX);
    Ok(layout.blobs)
}

struct Layout<'a> {
    blobs: Blobs,
    limits: &'a Limits,
    tally: &'a mut Tally,
    files: u64,
}

impl Layout<'_> {
    fn directory(&mut self, directory: BorrowedFd<'_>, path: &ImagePath, depth: usize) {
        let names = match crate::dir::names(directory) {
            Ok(names) => names,
            Err(error) => return self.tally.incomplete(&path.to_string(), &error.to_string()),
        };
        for name in names.iter().rev() {
            let below = path.join(name);
            self.files += 1;
            if self.files > self.limits.entries_max {
                let why = format!("more than {} files", self.limits.entries_max);
                return self.tally.incomplete(&below.to_string(), &why);
            }
            if let Err(error) = self.visit(directory, name, &below, depth) {
                self.tally.incomplete(&below.to_string(), &error.to_string());
            }
        }
    }

    fn visit(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &ImagePath,
        depth: usize,
    ) -> io::Result<()> {
        let stat = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let nofollow =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let mut file = File::from(fs::openat(parent, name, nofollow, Mode::empty())?);
                let mut blob = BlobReader::new(self.limits);
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let count = file.read(&mut buffer)?;
                    if count == 0 {
                        break;
                    }
                    blob.push(buffer.get(..count).unwrap_or_default(), self.tally);
                }
                let blob = blob.finish(self.tally);
                self.blobs.insert(path.clone(), blob);
            }
            FileType::Directory if depth > 0 => {
                let directory = fs::openat(parent, name, nofollow | OFlags::DIRECTORY, Mode::empty())?;
                self.directory(directory.as_fd(), path, depth - 1);
            }
            FileType::Directory => return Err(io::Error::other("deeper than a layout goes")),
            FileType::Symlink => {
                let target = fs::readlinkat(parent, name, Vec::new())?;
                self.blobs.link(path.clone(), path.parent().join(target.as_bytes()));
            }
            FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Fifo
            | FileType::Socket
            | FileType::Unknown => return Err(io::Error::other("neither a file nor a folder")),
        }
        Ok(())
    }
}
