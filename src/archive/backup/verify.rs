//! Is what a backup holds a history of snapshots, and nothing else? Its objects were hashed while they were read, so they are what their ids say; here they are held against
//! the format, because somebody else may have written it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{BackupError, LONGEST_OBJECT, Result};
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

/// What is known of the objects before they are looked at.
pub enum Given<'l> {
    /// All that there are: each was hashed, and none may be there that no snapshot has.
    All(&'l Lengths),
    /// Nothing: the store is asked for each. Snapshots that are known to be sound, and those before them, are passed over.
    Beyond(&'l HashSet<ObjectId>),
}

/// What was found sound.
pub struct Verified {
    /// The snapshots.
    pub snapshots: Vec<Snapshot>,
    /// All objects that they have, commits and trees before what is in them.
    pub objects: Vec<(ObjectId, Kind)>,
}

/// Hold the objects of `store` against the format. `refs` are its branches and tags.
pub fn verify(
    store: &Store,
    refs: &BTreeMap<RefName, ObjectId>,
    given: &Given<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Verified> {
    let (seen, objects, reader) = (HashMap::new(), Vec::new(), store.reader());
    let mut walk = Walk { reader, given, seen, objects };
    let snapshots = walk.commits(refs.values().copied().collect())?;
    let mut trees = HashSet::new();
    for snapshot in &snapshots {
        walk.tree(snapshot.tree, &mut trees)?;
    }
    if matches!(given, Given::All(lengths) if walk.seen.len() != lengths.len()) {
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
    Ok(Verified { snapshots, objects: walk.objects })
}

struct Walk<'l> {
    reader: Reader,
    given: &'l Given<'l>,
    /// Of which kind they are, and how long.
    seen: HashMap<ObjectId, (Kind, u64)>,
    objects: Vec<(ObjectId, Kind)>,
}

impl Walk<'_> {
    /// All commits, each of which must be a snapshot.
    fn commits(&mut self, mut open: Vec<ObjectId>) -> Result<Vec<Snapshot>> {
        let mut snapshots = Vec::new();
        while let Some(id) = open.pop() {
            let is_known = matches!(self.given, Given::Beyond(known) if known.contains(&id));
            if is_known || self.seen.contains_key(&id) {
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

    fn header(&self, id: ObjectId) -> Option<(Kind, u64)> {
        self.seen.get(&id).copied().or_else(|| match self.given {
            Given::All(lengths) => lengths.get(&id).copied(),
            Given::Beyond(_) => self.reader.header(id),
        })
    }

    fn must_be(&mut self, id: ObjectId, kind: Kind) -> Result<()> {
        match self.header(id) {
            Some((_, length)) if length > LONGEST_OBJECT => {
                Err(BackupError::hostile(format!("object {id}, which is longer than 512 MiB")))
            }
            Some((found, length)) if found == kind => {
                if self.seen.insert(id, (kind, length)).is_none() {
                    self.objects.push((id, kind));
                }
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
        let length = |id: &ObjectId| self.header(*id).map_or(0, |(_, length)| length);
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
