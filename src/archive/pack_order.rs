//! All objects that anything refers to, in an order in which neighbours are alike: what `gc` makes
//! deltas of.
//!
//! The versions of one thing stand together (a message that was edited, a header, a lorebook entry,
//! the tree of a folder), oldest first; things follow each other as they do in the chat. So the
//! best base of an object is nearly always one of the last few: its own former version, or the last
//! message of the same speaker.

use std::collections::{HashMap, HashSet};

use super::{Error, Result};
use crate::st::{LibraryPath, is_attachment};
use crate::store::Loss as _;
use crate::store::{Expiry, Kind, Mode, ObjectId, Placed, Reader, Store};

/// In the order of the pack: a log needs the commits alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Class {
    Commit,
    Tree,
    File,
    Entry,
    Message,
    Attachment,
}

pub struct Referenced {
    pub objects: Vec<Placed>,
    /// Objects that only attachments need: their loss does not prevent packing.
    pub attachments: HashSet<ObjectId>,
    pub lost: HashSet<ObjectId>,
}

/// Returns every object that a ref or an operation that can be undone leads to, after `expiry`. An
/// unreadable tree is an error, unless it holds attachments: nothing may be dropped then.
pub fn all_objects(store: &Store, expiry: &Expiry) -> Result<Referenced> {
    let reader = store.reader();
    let gone: HashSet<_> = expiry.refs.iter().map(|change| &change.name).collect();
    let refs = store.refs("refs/")?.refs.into_iter().filter(|(name, _)| !gone.contains(name));
    let mut tips: Vec<_> = refs.map(|(_, id)| id).chain(store.detached_head()?).collect();
    let mut blobs = Vec::new();
    // Objects of operations that can be undone are kept.
    for operation in &expiry.operations {
        let moved = operation
            .effect
            .refs
            .iter()
            .flat_map(|change| change.before.iter().chain(&change.after));
        for id in moved.copied().chain(operation.commits()) {
            if reader.has(id)? {
                tips.push(id);
            }
        }
        for (path, id) in operation.blobs() {
            match reader.kind(id)? {
                Some(Kind::Blob) | None => blobs.push((path, id)),
                Some(_) => tips.push(id),
            }
        }
    }
    let mut walk = walk(store, tips, &HashSet::new(), Loss::IsAnError)?;
    for (path, id) in blobs {
        if reader.has(id)? {
            let is_attachment = LibraryPath::parse(path).is_ok_and(|path| is_attachment(&path));
            let class = if is_attachment { Class::Attachment } else { Class::File };
            walk.place(id, Kind::Blob, class, (0, 3));
        }
    }
    let (attachments, lost) = (walk.attachments.clone(), walk.lost.clone());
    Ok(Referenced { objects: walk.in_order(), attachments, lost })
}

/// Returns every object that `tips` lead to, in the same order, without `known` commits and those
/// before them. Below a lost commit or tree nothing is found.
pub fn readable_beyond(
    store: &Store,
    tips: Vec<ObjectId>,
    known: &HashSet<ObjectId>,
) -> Result<Vec<Placed>> {
    Ok(walk(store, tips, known, Loss::IsPassedOver)?.in_order())
}

/// The reaction to a commit or tree that is missing or damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    IsAnError,
    IsPassedOver,
}

impl Loss {
    fn pass<T>(self, read: crate::store::Result<T>) -> Result<Option<T>> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(error) if self == Loss::IsPassedOver && error.is_loss() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn walk(
    store: &Store,
    mut tips: Vec<ObjectId>,
    known: &HashSet<ObjectId>,
    loss: Loss,
) -> Result<Walk> {
    let reader = store.reader();
    let mut walk = Walk::new(store.reader(), loss);
    let mut roots = Vec::new();
    // A git may have made tags of its own, or have led a ref to something that is no commit.
    while let Some(id) = tips.pop() {
        match reader.kind(id)? {
            Some(Kind::Tag) if walk.place(id, Kind::Tag, Class::Commit, (0, 1)) => {
                tips.push(reader.tag_target(id)?);
            }
            Some(Kind::Tag) => {}
            Some(Kind::Tree) => {
                walk.tree(id, TreePlace { path: 2, ..TreePlace::root(0) })?;
            }
            Some(Kind::Blob) => {
                walk.place(id, Kind::Blob, Class::File, (0, 3));
            }
            // The walk reports missing ones.
            Some(Kind::Commit) | None => roots.push(id),
        }
    }
    for PlacedCommit { id, family, tree, .. } in
        commits(&reader, roots, &|id| known.contains(id), loss)?
    {
        walk.place(id, Kind::Commit, Class::Commit, (family, 0));
        walk.tree(tree, TreePlace::root(family))?;
    }
    Ok(walk)
}

/// Returns the `new` objects that these commits lead to, each after its version before, which is a
/// likely base. Empty if some of it cannot be read.
pub fn new_versions(store: &Store, commits: Vec<ObjectId>, new: &HashSet<ObjectId>) -> Vec<Placed> {
    placed_versions(store, commits, new).unwrap_or_default()
}

fn placed_versions(
    store: &Store,
    tips: Vec<ObjectId>,
    new: &HashSet<ObjectId>,
) -> Result<Vec<Placed>> {
    let reader = store.reader();
    let mut walk = Walk::new(store.reader(), Loss::IsAnError);
    for commit in commits(&reader, tips, &|id| !new.contains(id), Loss::IsAnError)? {
        let PlacedCommit { id, family, tree, parent } = commit;
        let mut before = None;
        if let Some(parent) = parent {
            walk.place(parent, Kind::Commit, Class::Commit, (family, 0));
            before = Some(reader.commit(parent)?.tree);
        }
        walk.place(id, Kind::Commit, Class::Commit, (family, 0));
        walk.new_tree(tree, before, TreePlace::root(family), new)?;
    }
    Ok(walk.in_order())
}

/// A commit, and what else must be known to place it.
struct PlacedCommit {
    id: ObjectId,
    /// Timelines that come from one first snapshot are a family.
    family: u32,
    tree: ObjectId,
    parent: Option<ObjectId>,
}

/// Returns all commits that `open` lead to, oldest first, without known ones and their ancestors.
fn commits(
    reader: &Reader,
    mut open: Vec<ObjectId>,
    is_known: &dyn Fn(&ObjectId) -> bool,
    loss: Loss,
) -> Result<Vec<PlacedCommit>> {
    let mut known = HashMap::new();
    let mut lost = HashSet::new();
    while let Some(id) = open.pop() {
        if known.contains_key(&id) || is_known(&id) || lost.contains(&id) {
            continue;
        }
        let Some(commit) = loss.pass(reader.commit(id))? else {
            lost.insert(id);
            continue;
        };
        open.extend(&commit.parents);
        let first = commit.parents.first().copied();
        known.insert(id, (commit.time.seconds, first, commit.tree));
    }
    // Parents before children, whatever the clocks said.
    let mut order: Vec<_> = known.iter().map(|(id, (seconds, ..))| (*seconds, *id)).collect();
    order.sort_unstable();
    let mut families: HashMap<ObjectId, u32> = HashMap::new();
    let mut placed = Vec::with_capacity(order.len());
    for (_, id) in order {
        let mut line = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next.filter(|id| !families.contains_key(id) && known.contains_key(id))
        {
            line.push(id);
            next = known.get(&id).and_then(|(_, parent, _)| *parent);
        }
        let family = next.and_then(|id| families.get(&id).copied());
        let family = family.unwrap_or(families.len() as u32);
        for id in line.into_iter().rev() {
            families.insert(id, family);
            let placed_commit = |(_, parent, tree): &(_, Option<ObjectId>, ObjectId)| {
                PlacedCommit { id, family, tree: *tree, parent: *parent }
            };
            placed.extend(known.get(&id).map(placed_commit));
        }
    }
    Ok(placed)
}

/// No folder is that deep; and each takes a piece of the stack.
const DEEPEST: usize = 1000;

struct Walk {
    reader: Reader,
    loss: Loss,
    seen: HashSet<ObjectId>,
    slots: HashMap<(u32, u64), u32>,
    found: Vec<(Class, Placed)>,
    attachments: HashSet<ObjectId>,
    lost: HashSet<ObjectId>,
}

#[derive(Clone, Copy)]
struct TreePlace {
    family: u32,
    path: u64,
    class: Option<Class>,
    depth: usize,
}

impl TreePlace {
    fn root(family: u32) -> Self {
        Self { family, path: 0, class: None, depth: 0 }
    }

    fn within(self, name: &[u8]) -> Self {
        let mut path = self.path.wrapping_add(0x9e37_79b9_7f4a_7c15);
        for byte in name {
            path = (path ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let class = match (name, self.depth) {
            (b"messages", 1) => Some(Class::Message),
            (b"entries", 2) => Some(Class::Entry),
            (b"attachments", 0) => Some(Class::Attachment),
            _ => self.class,
        };
        Self { path, class, depth: self.depth + 1, ..self }
    }
}

impl Walk {
    fn new(reader: Reader, loss: Loss) -> Self {
        Self {
            reader,
            loss,
            seen: HashSet::new(),
            slots: HashMap::new(),
            found: Vec::new(),
            attachments: HashSet::new(),
            lost: HashSet::new(),
        }
    }

    /// Within a slot the order is that of placing, oldest first.
    fn in_order(mut self) -> Vec<Placed> {
        self.found.sort_by_key(|(class, object)| (*class, object.slot));
        self.found.into_iter().map(|(_, object)| object).collect()
    }

    fn new_tree(
        &mut self,
        id: ObjectId,
        before: Option<ObjectId>,
        place: TreePlace,
        new: &HashSet<ObjectId>,
    ) -> Result<()> {
        // A tree that is not new has nothing new in it.
        if self.seen.contains(&id) || !new.contains(&id) || place.depth > DEEPEST {
            return Ok(());
        }
        let mut former = HashMap::new();
        if let Some(before) = before {
            self.place(before, Kind::Tree, Class::Tree, (place.family, place.path));
            let tree = self.reader.raw_tree(before)?;
            former
                .extend(tree.entries.into_iter().map(|entry| (entry.name, (entry.mode, entry.id))));
        }
        self.place(id, Kind::Tree, Class::Tree, (place.family, place.path));
        for entry in self.reader.raw_tree(id)?.entries {
            let within = place.within(&entry.name);
            let is_alike = |(mode, _): &&(Mode, ObjectId)| *mode == entry.mode;
            let before = former.get(&entry.name).filter(is_alike).map(|(_, id)| *id);
            if before == Some(entry.id) || !new.contains(&entry.id) {
                continue;
            }
            if entry.mode == Mode::Folder {
                self.new_tree(entry.id, before, within, new)?;
            } else if entry.mode.is_blob() {
                let class = within.class.unwrap_or(Class::File);
                let slot = (place.family, within.path);
                if let Some(before) = before {
                    self.place(before, Kind::Blob, class, slot);
                }
                self.place(entry.id, Kind::Blob, class, slot);
            }
        }
        Ok(())
    }

    fn tree(&mut self, id: ObjectId, place: TreePlace) -> Result<()> {
        if self.seen.contains(&id) {
            return Ok(());
        }
        if place.depth > DEEPEST {
            let why = format!("its folders are more than {DEEPEST} deep");
            return Err(Error::Incomplete { tree: id, why });
        }
        // As it was written: entries that this program does not know are kept, too.
        let loss = match place.class {
            Some(Class::Attachment) => Loss::IsPassedOver,
            _ => self.loss,
        };
        let Some(tree) = loss.pass(self.reader.raw_tree(id))? else {
            self.lost.insert(id);
            return Ok(());
        };
        self.place(id, Kind::Tree, Class::Tree, (place.family, place.path));
        for entry in tree.entries {
            let within = place.within(&entry.name);
            if entry.mode == Mode::Folder {
                self.tree(entry.id, within)?;
            } else if entry.mode.is_blob() {
                let class = within.class.unwrap_or(Class::File);
                self.place(entry.id, Kind::Blob, class, (place.family, within.path));
            }
        }
        Ok(())
    }

    /// Puts an object into its slot; whether it was not there yet.
    fn place(&mut self, id: ObjectId, kind: Kind, class: Class, key: (u32, u64)) -> bool {
        if !self.seen.insert(id) {
            if class != Class::Attachment {
                self.attachments.remove(&id);
            }
            return false;
        }
        if class == Class::Attachment {
            self.attachments.insert(id);
        }
        let next = self.slots.len() as u32;
        let slot = *self.slots.entry(key).or_insert(next);
        self.found.push((class, Placed { id, kind, slot }));
        true
    }
}
