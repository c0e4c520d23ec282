//! Lays layers over each other: which inode each name shows, and what is only in a blob.
//!
//! `merged` is what Docker shows on overlay2. Where another engine or unpacker shows something else, the thing is
//! seen a second time as `ambiguous`; what no engine shows any more is `hidden`. Nothing that an entry brought in
//! is ever dropped: it ends in one of the three.

mod layer;

use std::collections::{BTreeMap, BTreeSet};

use policy::image::{ImagePath, Kind, Subject, Visibility};

use crate::entry::{Content, Entry, OverlayXattr};
use layer::Diff;

/// One inode in one view, with the layer that it came in.
#[derive(Debug)]
pub(crate) struct Seen {
    /// For the rules.
    pub subject: Subject,
    /// The number of its layer, from 0.
    pub layer: usize,
}

/// The views of an image whose layers hold `layers`, lowest first.
pub(crate) fn views<'a>(layers: impl IntoIterator<Item = &'a [Entry]>) -> Vec<Seen> {
    let mut tree = Tree::default();
    for (number, entries) in layers.into_iter().enumerate() {
        let diff = Diff::read(&mut tree, number, entries);
        tree.lay(diff);
    }
    tree.seen()
}

/// The number of an inode in [`Tree::inodes`].
type InodeId = usize;

/// An inode as one layer brought it.
#[derive(Debug, Clone)]
struct Inode {
    layer: usize,
    kind: Kind,
    mode: u16,
    /// The mode that another unpacker gives it, and why.
    other_mode: Option<u16>,
    content: Content,
    capability: Option<Vec<u8>>,
    overlay: Vec<OverlayXattr>,
    anomalies: Vec<String>,
    /// Why engines do not agree that it is there.
    doubt: Option<&'static str>,
}

impl Inode {
    fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// All inodes, and what each name shows so far.
#[derive(Debug, Default)]
struct Tree {
    inodes: Vec<Inode>,
    merged: BTreeMap<ImagePath, InodeId>,
    hidden: BTreeMap<InodeId, Vec<ImagePath>>,
    /// Seen by some engine only: names, and why.
    ambiguous: Vec<(InodeId, Vec<ImagePath>, &'static str)>,
}

impl Tree {
    fn add(&mut self, inode: Inode) -> InodeId {
        self.inodes.push(inode);
        self.inodes.len() - 1
    }

    fn kind(&self, id: InodeId) -> Option<&Kind> {
        self.inodes.get(id).map(|inode| &inode.kind)
    }

    fn is_directory(&self, id: InodeId) -> bool {
        self.inodes.get(id).is_some_and(Inode::is_directory)
    }

    fn hide(&mut self, path: ImagePath, id: InodeId) {
        self.hidden.entry(id).or_default().push(path);
    }

    /// The names below a directory of the merged view.
    fn below(&self, directory: &ImagePath) -> Vec<ImagePath> {
        layer::below(&self.merged, directory)
    }

    /// Takes `path` and all below it out of the merged view.
    fn cover(&mut self, path: &ImagePath) {
        self.cover_below(path);
        if let Some(id) = self.merged.remove(path) {
            self.hide(path.clone(), id);
        }
    }

    fn cover_below(&mut self, directory: &ImagePath) {
        for path in self.below(directory) {
            if let Some(id) = self.merged.remove(&path) {
                self.hide(path, id);
            }
        }
    }

    /// Lays one layer over what is there.
    fn lay(&mut self, diff: Diff) {
        for (directory, by_xattr) in &diff.opaque {
            if *by_xattr {
                self.doubt_below(directory);
            } else {
                self.cover_below(directory);
            }
        }
        for path in &diff.whiteouts {
            self.cover(path);
        }
        self.doubt_followed(&diff);
        let mut done = BTreeSet::new();
        for directory in diff.opaque.keys() {
            self.make_directory(directory, &mut done);
        }
        for path in diff.whiteouts.iter().chain(diff.nodes.keys()) {
            self.make_directory(&path.parent(), &mut done);
        }
        for (path, id) in diff.nodes {
            self.put(path, id);
        }
    }

    /// Lower files under a directory that only overlayfs takes for opaque.
    fn doubt_below(&mut self, directory: &ImagePath) {
        for path in self.below(directory) {
            if let Some(id) = self.merged.remove(&path) {
                let why = "an attribute of overlayfs hides it there; other drivers show it";
                self.ambiguous.push((id, vec![path], why));
            }
        }
    }

    /// Where a parent is a symlink below and no directory of this layer, some engines write through it.
    fn doubt_followed(&mut self, diff: &Diff) {
        let mut last: Option<(ImagePath, Option<ImagePath>)> = None;
        for (path, &id) in &diff.nodes {
            let parent = path.parent();
            if last.as_ref().is_none_or(|(known, _)| *known != parent) {
                let kind = |path: &ImagePath| {
                    let id = diff.nodes.get(path).or_else(|| self.merged.get(path));
                    id.and_then(|&id| self.kind(id))
                };
                let led = layer::resolve(&parent, kind).filter(|resolved| *resolved != parent);
                last = Some((parent, led));
            }
            if let Some((_, Some(led))) = &last {
                let why = "a parent is a symlink in a lower layer: some drivers write through it to here";
                self.ambiguous.push((id, vec![led.join(path.base())], why));
            }
        }
    }

    /// `path` and all above it become directories, as they do in the layer's own folder on overlay2.
    fn make_directory(&mut self, path: &ImagePath, done: &mut BTreeSet<ImagePath>) {
        if path.is_root() || done.contains(path) {
            return;
        }
        for directory in path.ancestors().chain([path.clone()]) {
            if self.merged.get(&directory).is_some_and(|&lower| !self.is_directory(lower)) {
                self.cover(&directory);
            }
            done.insert(directory);
        }
    }

    fn put(&mut self, path: ImagePath, id: InodeId) {
        if !self.is_directory(id) {
            self.cover(&path);
        } else if let Some(&lower) = self.merged.get(&path) {
            if !self.is_directory(lower) {
                self.cover(&path);
            } else if !self.alike(lower, id) {
                self.hide(path.clone(), lower);
            }
        }
        self.merged.insert(path, id);
    }

    /// Whether two directories are the same but for their layer: builders list a parent again in every layer.
    fn alike(&self, one: InodeId, other: InodeId) -> bool {
        match (self.inodes.get(one), self.inodes.get(other)) {
            (Some(one), Some(other)) => {
                one.mode == other.mode && one.overlay == other.overlay && one.anomalies.is_empty()
            }
            _ => false,
        }
    }

    /// Follows symlinks in the merged view inside the root, at most 40 as the kernel does.
    ///
    /// A component that the view does not have is taken for a directory, since a tar need not list those.
    fn resolve(&self, path: &ImagePath) -> Option<ImagePath> {
        layer::resolve(path, |path| self.merged.get(path).and_then(|&id| self.kind(id)))
    }

    /// What all views show.
    fn seen(self) -> Vec<Seen> {
        let mut names: BTreeMap<InodeId, Vec<ImagePath>> = BTreeMap::new();
        let mut links: BTreeMap<InodeId, Vec<ImagePath>> = BTreeMap::new();
        for (path, &id) in &self.merged {
            if matches!(self.kind(id), Some(Kind::Symlink(_)))
                && let Some(&target) = self.resolve(path).and_then(|target| self.merged.get(&target))
                && !matches!(self.kind(target), Some(Kind::Symlink(_)))
            {
                links.entry(target).or_default().push(path.clone());
                if self.inodes.get(id).is_none_or(|link| link.anomalies.is_empty() && link.overlay.is_empty())
                {
                    continue;
                }
            }
            names.entry(id).or_default().push(path.clone());
        }
        let mut seen = Vec::new();
        for (id, names) in names {
            let Some(inode) = self.inodes.get(id) else { continue };
            let links = links.remove(&id).unwrap_or_default();
            if let Some(mode) = inode.other_mode {
                let why = "the header of a hardlink sets its mode; GNU tar and umoci keep the file's own";
                let mut other = view(inode, names.clone(), Visibility::Ambiguous, Some(why));
                other.subject.mode = mode;
                seen.push(other);
            }
            let visibility = if inode.doubt.is_some() { Visibility::Ambiguous } else { Visibility::Merged };
            let mut shown = view(inode, names, visibility, inode.doubt);
            shown.subject.links = links;
            seen.push(shown);
        }
        for (id, names, why) in &self.ambiguous {
            seen.extend(
                self.inodes.get(*id).map(|i| view(i, names.clone(), Visibility::Ambiguous, Some(why))),
            );
        }
        for (id, names) in &self.hidden {
            let why = "a later entry covers it; the layer's blob still holds it";
            let hidden = |i: &Inode| view(i, names.clone(), Visibility::Hidden, i.doubt.or(Some(why)));
            seen.extend(self.inodes.get(*id).map(hidden));
        }
        seen
    }
}

fn view(
    inode: &Inode,
    mut names: Vec<ImagePath>,
    visibility: Visibility,
    note: Option<&'static str>,
) -> Seen {
    names.sort();
    names.dedup();
    let subject = Subject {
        names,
        links: Vec::new(),
        kind: inode.kind.clone(),
        mode: inode.mode,
        form: inode.content.form,
        digest: inode.content.digest,
        capability: inode.capability.clone(),
        overlay_xattrs: inode.overlay.iter().map(|x| x.name.clone()).collect(),
        anomalies: inode.anomalies.clone(),
        visibility,
        note: note.map(str::to_owned),
    };
    Seen { subject, layer: inode.layer }
}
