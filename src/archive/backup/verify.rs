//! Is what a backup holds a history of snapshots, and nothing else? Its objects were hashed while they were read, so they are what their ids say; here they are held against
//! the format, because somebody else may have written it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{BackupError, Result};
use crate::archive::{Manifest, Role, Snapshot, Tree, Verifier, manifest};
use crate::progress::Monitor;
use crate::store::{EntryKind, Kind, ObjectId, Reader, RefName, Store, TreeEntry, names, tree};

/// Kind and length of every object that a backup holds.
pub type Lengths = HashMap<ObjectId, (Kind, u64)>;

/// Longer files are refused, so that rebuilding one cannot take all memory.
const LONGEST_FILE: u64 = 1 << 30;

/// What a tree is in a snapshot. A tree that holds anything that does not belong there is refused, which also bounds how deep trees can be.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Root,
    Chat,
    Messages,
    Folder,
    Books,
    Book,
    Entries,
}

/// What an entry of a tree is.
enum Part {
    File,
    Tree(Shape),
}

impl Shape {
    fn part(self, name: &str) -> Option<Part> {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        Some(match (self, name) {
            (Shape::Root, "snapshot.json" | "group.json") => Part::File,
            (Shape::Root, "chat") => Part::Tree(Shape::Chat),
            (Shape::Root, "lorebooks") => Part::Tree(Shape::Books),
            (Shape::Chat, "header.json") => Part::File,
            (Shape::Chat, "messages") => Part::Tree(Shape::Messages),
            (Shape::Messages, name) if number(name) => Part::Tree(Shape::Folder),
            (Shape::Folder, name) if name.strip_suffix(".json").is_some_and(number) => Part::File,
            (Shape::Books, _) => Part::Tree(Shape::Book),
            (Shape::Book, "book.json") => Part::File,
            (Shape::Book, "entries") => Part::Tree(Shape::Entries),
            (Shape::Entries, _) => Part::File,
            _ => return None,
        })
    }
}

/// Hold the objects of `store`, which are those of a backup and no others, against the format. `refs` are its branches and tags. All snapshots.
pub fn verify(
    store: &Store,
    refs: &BTreeMap<RefName, ObjectId>,
    lengths: &Lengths,
    monitor: &mut dyn Monitor,
) -> Result<Vec<Snapshot>> {
    let mut walk = Walk { reader: store.reader(), lengths, seen: HashSet::new() };
    let snapshots = walk.commits(refs.values().copied().collect())?;
    let mut trees = HashSet::new();
    for snapshot in &snapshots {
        walk.tree(snapshot.tree, &mut trees)?;
    }
    if walk.seen.len() != lengths.len() {
        return Err(BackupError::hostile("objects that no snapshot has"));
    }
    monitor.begin("rebuilding snapshots", Some(snapshots.len() as u64));
    let mut verifier = Verifier::new(store.reader());
    let mut rebuilt = HashMap::new();
    // Timeline by timeline: neighbours share most of their messages.
    let mut order: Vec<_> = snapshots.iter().collect();
    order.sort_by(|a, b| (&a.timeline, a.time.seconds).cmp(&(&b.timeline, b.time.seconds)));
    for snapshot in order {
        let manifest = match rebuilt.get(&snapshot.tree) {
            Some(manifest) => manifest,
            None => {
                let manifest = walk.rebuild(snapshot.tree, &mut verifier)?;
                rebuilt.entry(snapshot.tree).or_insert(manifest)
            }
        };
        let (timeline, content) = manifest;
        if timeline != snapshot.timeline.as_str() || *content != snapshot.content {
            let why = format!("snapshot {} that says something else than its tree", snapshot.id);
            return Err(BackupError::hostile(why));
        }
        monitor.advance(1);
    }
    Ok(snapshots)
}

struct Walk<'l> {
    reader: Reader,
    lengths: &'l Lengths,
    seen: HashSet<ObjectId>,
}

impl Walk<'_> {
    /// All commits, each of which must be a snapshot.
    fn commits(&mut self, mut open: Vec<ObjectId>) -> Result<Vec<Snapshot>> {
        let mut snapshots = Vec::new();
        while let Some(id) = open.pop() {
            if self.seen.contains(&id) {
                continue;
            }
            self.must_be(id, Kind::Commit)?;
            let commit = self.reader.commit(id)?;
            open.extend(&commit.parents);
            let snapshot =
                Snapshot::read(&commit).map_err(|error| BackupError::hostile(error.to_string()))?;
            snapshots.push(snapshot);
        }
        Ok(snapshots)
    }

    /// All trees below a snapshot's, each once in every shape.
    fn tree(&mut self, root: ObjectId, done: &mut HashSet<(ObjectId, Shape)>) -> Result<()> {
        let mut open = vec![(root, Shape::Root)];
        while let Some((id, shape)) = open.pop() {
            if !done.insert((id, shape)) {
                continue;
            }
            self.must_be(id, Kind::Tree)?;
            for entry in self.entries(id)? {
                let part = shape
                    .part(&entry.name)
                    .filter(|part| matches!(part, Part::File) == (entry.kind == EntryKind::Blob));
                match part {
                    Some(Part::Tree(shape)) => open.push((entry.id, shape)),
                    Some(Part::File) => self.must_be(entry.id, Kind::Blob)?,
                    None => {
                        let why = format!("{:?} in tree {id}, no part of a snapshot", entry.name);
                        return Err(BackupError::hostile(why));
                    }
                }
            }
        }
        Ok(())
    }

    /// The entries of a tree, in git's order and with names that are safe everywhere.
    fn entries(&self, id: ObjectId) -> Result<Vec<TreeEntry>> {
        let mut buffer = Vec::new();
        let bytes = self.reader.read(id, Kind::Tree, &mut buffer)?;
        let entries =
            tree::decode(id, bytes).map_err(|error| BackupError::hostile(error.to_string()))?;
        if let Some(entry) = entries.iter().find(|entry| !names::is_tree_segment(&entry.name)) {
            return Err(BackupError::hostile(format!("the name {:?} in tree {id}", entry.name)));
        }
        let mut seen = HashSet::new();
        let once = entries.iter().all(|entry| seen.insert(&entry.name));
        if !once || tree::encode(&entries) != bytes {
            return Err(BackupError::hostile(format!("tree {id}, which stvc would not write so")));
        }
        Ok(entries)
    }

    fn must_be(&mut self, id: ObjectId, kind: Kind) -> Result<()> {
        match self.lengths.get(&id) {
            Some((found, _)) if *found == kind => {
                self.seen.insert(id);
                Ok(())
            }
            Some(_) => Err(BackupError::hostile(format!("object {id}, which is no {kind}"))),
            None => Err(BackupError::hostile(format!("no object {id}, which others refer to"))),
        }
    }

    /// Rebuild a snapshot's files and hold them against its manifest; timeline and content id of that.
    fn rebuild(
        &self,
        id: ObjectId,
        verifier: &mut Verifier,
    ) -> Result<(String, crate::archive::ContentId)> {
        let hostile = |error: crate::archive::Error| BackupError::hostile(error.to_string());
        let tree = Tree::open(&self.reader, id).map_err(hostile)?;
        let Manifest { timeline, files, content, .. } = &tree.manifest;
        if manifest::content_id(files) != *content {
            return Err(BackupError::hostile(format!("tree {id}, whose content id is wrong")));
        }
        let length = |id: &ObjectId| self.lengths.get(id).map_or(0, |(_, length)| *length);
        for file in files {
            file.library_path(id, timeline).map_err(hostile)?;
            // Before anything is put together: many small parts may make a very large whole.
            let lines = tree.header().into_iter().chain(tree.messages().iter().copied());
            let chat = lines.map(|line| length(&line) + 1).fold(0, u64::saturating_add);
            let fits = file.role != Role::Chat || chat == file.bytes + 1;
            if file.bytes > LONGEST_FILE || !fits {
                let why = format!("{} in tree {id}, which cannot be so long", file.path);
                return Err(BackupError::hostile(why));
            }
        }
        if files.first().is_none_or(|file| file.role != Role::Chat) {
            return Err(BackupError::hostile(format!("tree {id}, which has no chat")));
        }
        verifier.verify(id).map_err(hostile)?;
        Ok((timeline.clone(), *content))
    }
}
