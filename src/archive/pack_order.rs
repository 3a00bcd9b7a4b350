//! Lists all reachable objects in an order in which neighbours are similar. `gc` computes deltas in
//! this order.
//!
//! Versions of the same path (a message, a header, a lorebook entry, the tree of a folder) are
//! neighbours, oldest first. Different messages are in the order of the chat. So the best delta
//! base of an object is nearly always among the few objects before it: an earlier version, or the
//! last message of the same speaker.

use std::collections::{HashMap, HashSet};

use super::{Error, Result};
use crate::st::{LibraryPath, is_attachment};
use crate::store::Loss as _;
use crate::store::{Expiry, Kind, Mode, ObjectId, PackSlot, Reader, Store};

/// Classes of objects, in the order of the pack. Commits come first, because `stvc log` reads only
/// commits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ObjectClass {
    Commit,
    Tree,
    File,
    Entry,
    Message,
    Attachment,
}

pub struct Referenced {
    pub objects: Vec<PackSlot>,
    /// Objects that only attachments refer to. If one of these objects is lost, the others can
    /// still be packed.
    pub attachments: HashSet<ObjectId>,
    pub lost: HashSet<ObjectId>,
}

/// Returns every object that is reachable from a ref or an undoable operation, without those that
/// `expiry` drops. An unreadable tree is an error: its contents are unknown, so nothing may be
/// deleted. Only an unreadable tree of attachments is skipped, and returned in `lost`.
pub fn all_objects(store: &Store, expiry: &Expiry) -> Result<Referenced> {
    let reader = store.reader();
    let gone: HashSet<_> = expiry.refs.iter().map(|change| &change.name).collect();
    let refs = store.refs("refs/")?.refs.into_iter().filter(|(name, _)| !gone.contains(name));
    let mut tips: Vec<_> = refs.map(|(_, id)| id).chain(store.detached_head()?).collect();
    let mut blobs = Vec::new();
    // Objects of undoable operations count as reachable.
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
            let class = if is_attachment { ObjectClass::Attachment } else { ObjectClass::File };
            walk.place(id, Kind::Blob, class, (0, 3));
        }
    }
    let (attachments, lost) = (walk.attachments.clone(), walk.lost.clone());
    Ok(Referenced { objects: walk.in_order(), attachments, lost })
}

/// Returns every object that is reachable from `tips`, in the order of the pack, without `known`
/// commits and their ancestors. Missing or damaged commits and trees are skipped.
pub fn readable_beyond(
    store: &Store,
    tips: Vec<ObjectId>,
    known: &HashSet<ObjectId>,
) -> Result<Vec<PackSlot>> {
    Ok(walk(store, tips, known, Loss::IsPassedOver)?.in_order())
}

/// Policy for a commit or tree that is missing or damaged.
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
) -> Result<PackWalk> {
    let reader = store.reader();
    let mut walk = PackWalk::new(store.reader(), loss);
    let mut roots = Vec::new();
    // git may have created annotated tags, or a ref that does not point to a commit.
    while let Some(id) = tips.pop() {
        match reader.kind(id)? {
            Some(Kind::Tag) if walk.place(id, Kind::Tag, ObjectClass::Commit, (0, 1)) => {
                tips.push(reader.tag_target(id)?);
            }
            Some(Kind::Tag) => {}
            Some(Kind::Tree) => {
                walk.tree(id, TreePlace { path: 2, ..TreePlace::root(0) })?;
            }
            Some(Kind::Blob) => {
                walk.place(id, Kind::Blob, ObjectClass::File, (0, 3));
            }
            // `commits` reports missing commits.
            Some(Kind::Commit) | None => roots.push(id),
        }
    }
    for PlacedCommit { id, family, tree, .. } in
        commits(&reader, roots, &|id| known.contains(id), loss)?
    {
        walk.place(id, Kind::Commit, ObjectClass::Commit, (family, 0));
        walk.tree(tree, TreePlace::root(family))?;
    }
    Ok(walk)
}

/// Returns the `new` objects that are reachable from these commits. Each changed object comes after
/// its previous version, which is in the list too as a likely delta base. Returns an empty list if
/// an object cannot be read.
pub fn new_versions(
    store: &Store,
    commits: Vec<ObjectId>,
    new: &HashSet<ObjectId>,
) -> Vec<PackSlot> {
    placed_versions(store, commits, new).unwrap_or_default()
}

fn placed_versions(
    store: &Store,
    tips: Vec<ObjectId>,
    new: &HashSet<ObjectId>,
) -> Result<Vec<PackSlot>> {
    let reader = store.reader();
    let mut walk = PackWalk::new(store.reader(), Loss::IsAnError);
    for commit in commits(&reader, tips, &|id| !new.contains(id), Loss::IsAnError)? {
        let PlacedCommit { id, family, tree, parent } = commit;
        let mut before = None;
        if let Some(parent) = parent {
            walk.place(parent, Kind::Commit, ObjectClass::Commit, (family, 0));
            before = Some(reader.commit(parent)?.tree);
        }
        walk.place(id, Kind::Commit, ObjectClass::Commit, (family, 0));
        walk.new_tree(tree, before, TreePlace::root(family), new)?;
    }
    Ok(walk.in_order())
}

/// Commit with the data that determines its position in the pack.
struct PlacedCommit {
    id: ObjectId,
    /// Number of the family. Timelines that begin with the same first snapshot belong to one
    /// family.
    family: u32,
    tree: ObjectId,
    parent: Option<ObjectId>,
}

/// Returns all commits that are reachable from `open`, oldest first, without known commits and
/// their ancestors.
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
    // Place parents before their children, even if clocks were wrong.
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

/// Maximum depth of nested trees. The walk is recursive, so each level uses stack space.
const MAX_TREE_DEPTH: usize = 1000;

struct PackWalk {
    reader: Reader,
    loss: Loss,
    seen: HashSet<ObjectId>,
    slots: HashMap<(u32, u64), u32>,
    found: Vec<(ObjectClass, PackSlot)>,
    attachments: HashSet<ObjectId>,
    lost: HashSet<ObjectId>,
}

#[derive(Clone, Copy)]
struct TreePlace {
    family: u32,
    path: u64,
    class: Option<ObjectClass>,
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
            (b"messages", 1) => Some(ObjectClass::Message),
            (b"entries", 2) => Some(ObjectClass::Entry),
            (b"attachments", 0) => Some(ObjectClass::Attachment),
            _ => self.class,
        };
        Self { path, class, depth: self.depth + 1, ..self }
    }
}

impl PackWalk {
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

    /// Sorts the objects by class and slot. Within a slot, objects stay in the order in which they
    /// were placed, oldest first.
    fn in_order(mut self) -> Vec<PackSlot> {
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
        // A tree that is not new does not contain new objects.
        if self.seen.contains(&id) || !new.contains(&id) || place.depth > MAX_TREE_DEPTH {
            return Ok(());
        }
        let mut former = HashMap::new();
        if let Some(before) = before {
            self.place(before, Kind::Tree, ObjectClass::Tree, (place.family, place.path));
            let tree = self.reader.raw_tree(before)?;
            former
                .extend(tree.entries.into_iter().map(|entry| (entry.name, (entry.mode, entry.id))));
        }
        self.place(id, Kind::Tree, ObjectClass::Tree, (place.family, place.path));
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
                let class = within.class.unwrap_or(ObjectClass::File);
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
        if place.depth > MAX_TREE_DEPTH {
            let why = format!("its folders are nested more than {MAX_TREE_DEPTH} levels deep");
            return Err(Error::Incomplete { tree: id, why });
        }
        // Entries that this version of stvc does not know are included too.
        let loss = match place.class {
            Some(ObjectClass::Attachment) => Loss::IsPassedOver,
            _ => self.loss,
        };
        let Some(tree) = loss.pass(self.reader.raw_tree(id))? else {
            self.lost.insert(id);
            return Ok(());
        };
        self.place(id, Kind::Tree, ObjectClass::Tree, (place.family, place.path));
        for entry in tree.entries {
            let within = place.within(&entry.name);
            if entry.mode == Mode::Folder {
                self.tree(entry.id, within)?;
            } else if entry.mode.is_blob() {
                let class = within.class.unwrap_or(ObjectClass::File);
                self.place(entry.id, Kind::Blob, class, (place.family, within.path));
            }
        }
        Ok(())
    }

    /// Adds an object to the slot for `key`. Returns false if the object was added before.
    fn place(&mut self, id: ObjectId, kind: Kind, class: ObjectClass, key: (u32, u64)) -> bool {
        if !self.seen.insert(id) {
            if class != ObjectClass::Attachment {
                self.attachments.remove(&id);
            }
            return false;
        }
        if class == ObjectClass::Attachment {
            self.attachments.insert(id);
        }
        let next = self.slots.len() as u32;
        let slot = *self.slots.entry(key).or_insert(next);
        self.found.push((class, PackSlot { id, kind, slot }));
        true
    }
}
