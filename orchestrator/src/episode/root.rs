//! The agent's root: its image, read-only, and the few folders that every program expects.
//!
//! The root itself is a small tmpfs into which the image's top folders are bound: so an image needs no mount
//! points of its own, and an image that brings a `/dev` or a `/proc` brings nothing.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::Plan;

/// Top entries that are ours, whatever an image has.
const OURS: [&str; 6] = ["dev", "proc", "state", "sys", "tmp", "wake.txt"];
/// Devices that are bound from the host: they hold nothing and tell nothing.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// Why there is no root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// A mount.
    #[error("{what} at {path}")]
    Mount {
        /// What was being done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: nix::Error,
    },
    /// A folder, file or link.
    #[error("make {path}")]
    Make {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The image.
    #[error("read the image's root {path}")]
    Image {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Makes the root in the mount namespace that this process is in, and moves into it. The old root is gone after.
///
/// # Errors
/// [`RootError`].
pub fn enter(plan: &Plan) -> Result<(), RootError> {
    let root = plan.mount_point.as_path();
    mount_on(
        "keep mounts to ourselves",
        None,
        Path::new("/"),
        None,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        "",
    )?;
    tmpfs(root, "size=1m,mode=0755")?;
    bind_image(&plan.rootfs, root)?;
    for folder in ["dev", "proc", "state", "sys", "tmp"] {
        make_dir(&root.join(folder))?;
    }
    devices(&root.join("dev"))?;
    processes(&root.join("proc"));
    tmpfs(&root.join("tmp"), &format!("size={},mode=1777", plan.limits.tmp_bytes_max))?;
    bind(&plan.state, &root.join("state"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
    make_file(&root.join("wake.txt"))?;
    let sealed = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    bind(&plan.wake, &root.join("wake.txt"), sealed)?;
    seal(root)?;
    pivot(root)?;
    no_resolver();
    Ok(())
}

fn bind_image(rootfs: &Path, root: &Path) -> Result<(), RootError> {
    let image = |source| RootError::Image { path: rootfs.to_owned(), source };
    for entry in fs::read_dir(rootfs).map_err(image)? {
        let entry = entry.map_err(image)?;
        let name = entry.file_name();
        if OURS.iter().any(|ours| OsStr::new(ours) == name) {
            continue;
        }
        let (from, to) = (entry.path(), root.join(&name));
        let kind = entry.file_type().map_err(image)?;
        if kind.is_symlink() {
            let target = fs::read_link(&from).map_err(image)?;
            std::os::unix::fs::symlink(target, &to).map_err(|source| RootError::Make { path: to, source })?;
        } else if kind.is_dir() {
            make_dir(&to)?;
            bind(&from, &to, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
        } else if kind.is_file() {
            make_file(&to)?;
            bind(&from, &to, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
        }
        // Sockets, pipes and devices of an image have no use in a run.
    }
    Ok(())
}

fn devices(dev: &Path) -> Result<(), RootError> {
    tmpfs(dev, "size=64k,mode=0755")?;
    for name in DEVICES {
        let node = dev.join(name);
        make_file(&node)?;
        // `nodev` on the bind would make it a dead file, so it is the one bind without flags.
        mount_on("bind a device", Some(&Path::new("/dev").join(name)), &node, None, MsFlags::MS_BIND, "")?;
    }
    for (name, target) in [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
    {
        let link = dev.join(name);
        std::os::unix::fs::symlink(target, &link).map_err(|source| RootError::Make { path: link, source })?;
    }
    make_dir(&dev.join("shm"))?;
    tmpfs(&dev.join("shm"), "size=16m,mode=1777")?;
    seal(dev)
}

/// A `/proc` of the new process namespace. Where the host's own is masked (inside some containers) the kernel
/// gives none: the agent then runs without one, which is less, never more.
fn processes(proc: &Path) {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if let Err(error) = mount_on("mount /proc", Some(Path::new("proc")), proc, Some("proc"), flags, "") {
        super::child::remark(&format!("no /proc inside: {}", crate::cli::with_causes(&error)));
    }
}

/// An image's `resolv.conf` must name no resolver, and there is none to name.
fn no_resolver() {
    let path = Path::new("/etc/resolv.conf");
    if path.is_file() {
        let bound = mount_on("empty", Some(Path::new("/dev/null")), path, None, MsFlags::MS_BIND, "");
        if let Err(error) = bound {
            super::child::remark(&format!(
                "resolv.conf is the image's own: {}",
                crate::cli::with_causes(&error)
            ));
        }
    }
}

/// Binds without what is mounted below: a folder with mounts inside is refused by the kernel, so that nothing
/// below escapes the flags.
fn bind(from: &Path, to: &Path, flags: MsFlags) -> Result<(), RootError> {
    mount_on("bind", Some(from), to, None, MsFlags::MS_BIND, "")?;
    let mut flags = flags;
    // Flags that the host's mount has are locked in our user namespace and must be named again.
    let held =
        statvfs(to).map_err(|source| RootError::Mount { what: "look", path: to.to_owned(), source })?;
    for (has, flag) in [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
    ] {
        if held.flags().contains(has) {
            flags |= flag;
        }
    }
    mount_on("set the flags", None, to, None, MsFlags::MS_BIND | MsFlags::MS_REMOUNT | flags, "")
}

fn seal(path: &Path) -> Result<(), RootError> {
    let flags =
        MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_on("make read-only", None, path, None, flags, "")
}

/// `pivot_root(".", ".")`: the old root ends up below the new one and is taken off at once.
fn pivot(root: &Path) -> Result<(), RootError> {
    let failed = |what| move |source| RootError::Mount { what, path: root.to_owned(), source };
    nix::unistd::chdir(root).map_err(failed("enter the root"))?;
    nix::unistd::pivot_root(".", ".").map_err(failed("change the root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed("leave the old root"))?;
    nix::unistd::chdir("/").map_err(failed("enter the root"))
}

fn tmpfs(path: &Path, options: &str) -> Result<(), RootError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_on("mount memory", Some(Path::new("tmpfs")), path, Some("tmpfs"), flags, options)
}

fn make_dir(path: &Path) -> Result<(), RootError> {
    fs::create_dir(path).map_err(|source| RootError::Make { path: path.to_owned(), source })
}

fn make_file(path: &Path) -> Result<(), RootError> {
    fs::File::create_new(path).map(drop).map_err(|source| RootError::Make { path: path.to_owned(), source })
}

fn mount_on(
    what: &'static str,
    source: Option<&Path>,
    target: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    options: &str,
) -> Result<(), RootError> {
    let options = (!options.is_empty()).then_some(options);
    mount(source, target, kind, flags, options).map_err(|source| RootError::Mount {
        what,
        path: target.to_owned(),
        source,
    })
}
