//! The sample agents' image, made on the spot: one program, the libraries that it maps, and three small files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::spawn::{Program, SpawnError};

/// Where the program is inside.
pub const PROGRAM: &str = "/usr/bin/darwin-sample-agent";
/// Where the certificates that the program trusts are inside.
const ROOTS: &str = "etc/ssl/certs/ca-certificates.crt";
/// The forbidden file of the image that is refused.
pub const SETUID_FILE: &str = "usr/bin/helper";
/// Longest that the program may take to list its libraries.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootfsError {
    /// The program did not list its libraries.
    #[error("have {program} list its libraries")]
    List {
        /// Which.
        program: PathBuf,
        /// Why.
        #[source]
        source: SpawnError,
    },
    /// It ended badly.
    #[error("have {0} list its libraries: it ended with an error")]
    Listed(PathBuf),
    /// A file could not be made.
    #[error("put {path} into the image")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Makes the image in `folder`, which must not exist, with `roots_pem` as the certificates that are trusted.
///
/// # Errors
/// [`RootfsError`].
pub fn make(program: &Path, folder: &Path, roots_pem: &str) -> Result<(), RootfsError> {
    let image = Image { folder };
    let mapped = mapped_files(program)?;
    image.copy(program, Path::new(PROGRAM))?;
    for library in mapped.iter().filter(|file| *file != program) {
        image.copy(library, library)?;
        for alias in aliases(library) {
            image.copy(library, &alias)?;
        }
    }
    if let Some(loader) = loader_of(program) {
        image.copy(&loader, &loader)?;
    }
    image.write(ROOTS, roots_pem)?;
    image.write("etc/passwd", "agent:x:1000:1000:sample agent:/state:/nonexistent\n")?;
    image.write("etc/group", "agent:x:1000:\n")
}

/// Adds a program with a setuid bit to an image: what an audit must refuse.
///
/// # Errors
/// [`RootfsError::File`].
pub fn add_setuid_file(folder: &Path) -> Result<(), RootfsError> {
    let image = Image { folder };
    image.write(SETUID_FILE, "#!/bin/sh\nexec id\n")?;
    image.set_mode(&folder.join(SETUID_FILE), 0o4755)
}

struct Image<'a> {
    folder: &'a Path,
}

impl Image<'_> {
    fn copy(&self, from: &Path, to: &Path) -> Result<(), RootfsError> {
        let path = self.place(to)?;
        let failed = |source| RootfsError::File { path: path.clone(), source };
        if path.exists() {
            return Ok(());
        }
        fs::copy(from, &path).map_err(failed)?;
        self.set_mode(&path, 0o755)
    }

    fn write(&self, to: &str, text: &str) -> Result<(), RootfsError> {
        let path = self.place(Path::new(to))?;
        fs::write(&path, text).map_err(|source| RootfsError::File { path: path.clone(), source })?;
        self.set_mode(&path, 0o644)
    }

    /// The path of a file inside, its folders made.
    fn place(&self, inside: &Path) -> Result<PathBuf, RootfsError> {
        let path = self.folder.join(inside.strip_prefix("/").unwrap_or(inside));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|source| RootfsError::File { path: path.clone(), source })?;
        }
        Ok(path)
    }

    #[expect(clippy::unused_self, reason = "one receiver for all that is done to the image")]
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), RootfsError> {
        fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(|source| RootfsError::File { path: path.to_owned(), source })
    }
}

/// The files that the program maps when it runs, as it says itself.
fn mapped_files(program: &Path) -> Result<BTreeSet<PathBuf>, RootfsError> {
    let failed = |source| RootfsError::List { program: program.to_owned(), source };
    let listed = Program::new(program)
        .map_err(failed)?
        .arg("--list-libraries")
        .run(1 << 16, LIST_LIMIT)
        .map_err(failed)?;
    if !listed.status.success() {
        return Err(RootfsError::Listed(program.to_owned()));
    }
    let lines = listed.output.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect())
}

/// Other names of a library in its folder: a loader looks for `libc.so.6` where the file is `libc-2.31.so`.
fn aliases(library: &Path) -> Vec<PathBuf> {
    let Some(entries) = library.parent().and_then(|folder| fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let links = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links
        .map(|entry| entry.path())
        .filter(|path| path.canonicalize().is_ok_and(|real| real == library))
        .collect()
}

/// The loader that an ELF file of 64 bits names (its `PT_INTERP`); `None` for a static program.
fn loader_of(program: &Path) -> Option<PathBuf> {
    const PT_INTERP: u64 = 3;
    let bytes = fs::read(program).ok()?;
    let number = |at: usize, len: usize| {
        let field = bytes.get(at..at.checked_add(len)?)?;
        let little = field.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        usize::try_from(little).ok()
    };
    // Offsets of Elf64_Ehdr (e_phoff, e_phentsize, e_phnum) and Elf64_Phdr (p_type, p_offset, p_filesz).
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let headers = (0..count).map(|at| table.saturating_add(at.saturating_mul(size)));
    let interp =
        headers.into_iter().find(|&at| number(at, 4).is_some_and(|kind| kind as u64 == PT_INTERP))?;
    let (start, len) = (number(interp + 8, 8)?, number(interp + 32, 8)?);
    let path = bytes.get(start..start.checked_add(len)?)?;
    Some(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"\0").unwrap_or(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_a_dynamic_program_is_found() {
        let loader = loader_of(Path::new("/usr/bin/env")).unwrap();
        assert!(loader.is_absolute() && loader.exists(), "{}", loader.display());
        assert_eq!(loader_of(Path::new("/etc/passwd")), None);
    }
}
