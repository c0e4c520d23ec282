//! One layer by itself: what its entries leave in a folder of its own, and what it takes from those below.

use std::collections::{BTreeMap, BTreeSet};

use policy::image::{ImagePath, Kind};

use super::{Inode, InodeId, Tree};
use crate::entry::{Content, Entry, What};

/// Names that only the OCI rules make special: exact, as bytes.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What a layer adds and takes away.
#[derive(Debug, Default)]
pub(super) struct Diff {
    /// Its own names.
    pub(super) nodes: BTreeMap<ImagePath, InodeId>,
    /// Names that it takes from the layers below.
    pub(super) whiteouts: BTreeSet<ImagePath>,
    /// Directories of which it takes all that is below; whether only an overlayfs attribute says so.
    pub(super) opaque: BTreeMap<ImagePath, bool>,
}

impl Diff {
    /// Reads a layer's entries in order, as an engine that unpacks them into an empty folder does.
    pub(super) fn read(tree: &mut Tree, layer: usize, entries: &[Entry]) -> Self {
        let mut diff = Self::default();
        for entry in entries {
            diff.apply(tree, layer, entry);
        }
        diff
    }

    fn apply(&mut self, tree: &mut Tree, layer: usize, entry: &Entry) {
        let mut inode = Inode {
            layer,
            kind: Kind::File,
            mode: entry.mode,
            other_mode: None,
            content: entry.content,
            capability: entry.capability.clone(),
            overlay: entry.overlay.clone(),
            anomalies: entry.anomalies.clone(),
            doubt: None,
        };
        if let What::Node(kind) = &entry.what {
            inode.kind = kind.clone();
        }
        if entry.after_end {
            inode.doubt = Some("it stands after the end of its archive, where no engine looks");
            let id = tree.add(inode);
            tree.hide(entry.path.clone(), id);
            return;
        }
        for other in &entry.other_names {
            let id = tree.add(Inode { anomalies: Vec::new(), ..inode.clone() });
            tree.ambiguous.push((id, vec![other.clone()], "other readers of tar give it this name"));
        }
        let path = self.followed(tree, &entry.path, &mut inode);
        if path.base() == WHITEOUT {
            inode
                .anomalies
                .push("a whiteout that names nothing: engines refuse it, or empty the directory".into());
        } else if let Some(name) = path.base().strip_prefix(WHITEOUT) {
            self.whiteout(tree, &path, name);
            // The marker itself reaches no container, but what it carries stays in the blob.
            if entry.content.size_bytes > 0 {
                let id = tree.add(inode);
                tree.hide(path, id);
            }
            return;
        }
        if inode.overlay.iter().any(crate::entry::OverlayXattr::is_opaque) {
            self.opaque.entry(path.clone()).or_insert(true);
        }
        match &entry.what {
            What::Hardlink(target) => self.hardlink(tree, path, target, inode),
            What::Node(Kind::CharDevice(0, 0)) => self.device_whiteout(tree, path, inode),
            What::Node(_) => self.node(tree, path, inode),
        }
    }

    /// Where an entry lands when its parents are symlinks of this same layer: every engine follows those.
    fn followed(&self, tree: &Tree, path: &ImagePath, inode: &mut Inode) -> ImagePath {
        let parent = path.parent();
        let kind = |path: &ImagePath| self.nodes.get(path).and_then(|&id| tree.kind(id));
        let directory = |path: &ImagePath| kind(path).is_none_or(|kind| *kind == Kind::Directory);
        match resolve(&parent, kind).filter(directory) {
            Some(resolved) if resolved == parent => path.clone(),
            Some(resolved) => resolved.join(path.base()),
            None => {
                inode.anomalies.push(format!(
                    "its parent {parent} is a file, or symlinks without end, in the same layer"
                ));
                inode.doubt = Some("engines refuse to write below its parent");
                path.clone()
            }
        }
    }

    fn whiteout(&mut self, tree: &mut Tree, path: &ImagePath, name: &[u8]) {
        if path.base() == OPAQUE {
            // At the root it does nothing on overlay2: the attribute would be on the layer's own folder.
            if path.parent().is_root() {
                return;
            }
            self.opaque.insert(path.parent(), false);
            return;
        }
        // Whiteouts count for lower layers alone, wherever they stand; but one driver applies them in order.
        let covered = path.parent().join(name);
        for path in below(&self.nodes, &covered).iter().chain([&covered]) {
            let inode = self.nodes.get(path).and_then(|&id| tree.inodes.get_mut(id));
            if let Some(inode) = inode {
                inode.doubt = Some("a whiteout of it follows in the same layer: some drivers remove it");
            }
        }
        self.whiteouts.insert(covered);
    }

    /// Device 0:0 is how overlayfs itself writes a whiteout; other drivers make the device.
    fn device_whiteout(&mut self, tree: &mut Tree, path: ImagePath, inode: Inode) {
        let id = tree.add(inode);
        let why = "overlayfs takes device 0:0 for a whiteout; other drivers make the device";
        tree.ambiguous.push((id, vec![path.clone()], why));
        self.supersede(tree, &path, false);
        self.whiteouts.insert(path);
    }

    fn node(&mut self, tree: &mut Tree, path: ImagePath, mut inode: Inode) {
        let directory = inode.is_directory();
        if self.supersede(tree, &path, directory) {
            inode.anomalies.push(
                "two entries of one layer have this name: the last counts, or the engine refuses".into(),
            );
        }
        if directory {
            // On overlay2 a directory after a whiteout of its name takes the whiteout's place: lower files are back.
            self.whiteouts.remove(&path);
        }
        let id = tree.add(inode);
        self.nodes.insert(path, id);
    }

    /// Hides what this layer had at `path`; `true` if that is worth a word. A directory twice is none.
    fn supersede(&mut self, tree: &mut Tree, path: &ImagePath, by_directory: bool) -> bool {
        let Some(&earlier) = self.nodes.get(path) else { return false };
        if by_directory && tree.is_directory(earlier) {
            return false;
        }
        for path in below(&self.nodes, path).into_iter().chain([path.clone()]) {
            if let Some(id) = self.nodes.remove(&path) {
                tree.hide(path, id);
            }
        }
        true
    }

    /// One more name. Its header sets the shared inode's mode and attributes in Docker.
    fn hardlink(&mut self, tree: &mut Tree, path: ImagePath, target: &ImagePath, header: Inode) {
        let kind = |path: &ImagePath| self.nodes.get(path).and_then(|&id| tree.kind(id));
        let target =
            resolve(&target.parent(), kind).map_or_else(|| target.clone(), |p| p.join(target.base()));
        let here = self.nodes.get(&target).copied().filter(|&id| !tree.is_directory(id));
        let Some(id) = here else { return self.foreign_link(tree, path, &target, header) };
        if path != target && self.supersede(tree, &path, false) {
            let anomaly = "two entries of one layer have this name: the last counts, or the engine refuses";
            tree.inodes.get_mut(id).into_iter().for_each(|inode| inode.anomalies.push(anomaly.into()));
        }
        if let Some(inode) = tree.inodes.get_mut(id) {
            if inode.mode != header.mode && !matches!(inode.kind, Kind::Symlink(_)) {
                inode.other_mode.get_or_insert(inode.mode);
                inode.mode = header.mode;
            }
            inode.capability = header.capability.or(inode.capability.take());
            inode.overlay.extend(header.overlay);
            inode.anomalies.extend(header.anomalies);
            inode.doubt = inode.doubt.or(header.doubt);
        }
        self.nodes.insert(path, id);
    }

    /// A link to a file of a lower layer, or of none: overlay2 does not load it, another driver changes the file.
    fn foreign_link(&mut self, tree: &mut Tree, path: ImagePath, target: &ImagePath, header: Inode) {
        let lower = tree
            .resolve(target)
            .and_then(|t| tree.merged.get(&t).copied())
            .and_then(|id| tree.inodes.get(id));
        let mut inode = match lower {
            Some(lower) => Inode { content: lower.content, kind: lower.kind.clone(), ..header },
            None => Inode { content: Content::UNSEEN, ..header },
        };
        let found = lower.is_some();
        inode.anomalies.push(if found {
            format!(
                "a hardlink to {target} of a lower layer: overlay2 refuses it, others change the file below"
            )
        } else {
            format!("a hardlink to {target}, which is not there")
        });
        inode.doubt = Some("engines do not agree about a hardlink across layers");
        let _superseded = self.supersede(tree, &path, false);
        let id = tree.add(inode);
        if found {
            tree.ambiguous.push((
                id,
                vec![target.clone()],
                "a hardlink across layers changes it in some drivers",
            ));
        }
        self.nodes.insert(path, id);
    }
}

/// The names below a directory.
pub(super) fn below(map: &BTreeMap<ImagePath, InodeId>, directory: &ImagePath) -> Vec<ImagePath> {
    if directory.is_root() {
        return map.keys().filter(|path| !path.is_root()).cloned().collect();
    }
    // All of them stand together: after the slash comes at least a NUL, and `0` is the byte after `/`.
    let bound = |end: &[u8]| ImagePath::clean(&[directory.as_bytes(), end].concat());
    map.range(bound(b"/\0")..bound(b"0")).map(|(path, _)| path.clone()).collect()
}

/// Follows the symlinks of a path inside the root, at most 40; `None` for more, or below what is no directory.
pub(super) fn resolve<'a>(
    path: &ImagePath,
    kind: impl Fn(&ImagePath) -> Option<&'a Kind>,
) -> Option<ImagePath> {
    let mut left: Vec<Vec<u8>> = components(path.as_bytes());
    let mut at = ImagePath::root();
    let mut links = 0;
    while let Some(name) = left.pop() {
        let next = at.join(&name);
        match kind(&next) {
            Some(Kind::Symlink(target)) => {
                links += 1;
                if links > 40 {
                    return None;
                }
                if target.first() == Some(&b'/') {
                    at = ImagePath::root();
                }
                left.extend(components(target));
            }
            Some(Kind::Directory) | None => at = next,
            Some(_) if left.is_empty() => at = next,
            Some(_) => return None,
        }
    }
    Some(at)
}

/// The components of a path, last first: `..` among them, which [`ImagePath::join`] takes.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|&b| b == b'/').rev().filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
}
