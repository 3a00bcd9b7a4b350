//! The trees of all snapshots, as far as a search lists them. A listing without reading trees from
//! the store takes a few nanoseconds per entry.
//!
//! Trees and texts are numbered together. The record of a tree has its number, its role, the number
//! of its parts, and for each part the number of the object and its place. Records are compressed
//! in chunks, because the trees of neighbouring snapshots are nearly equal.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::packed::{Flags, Packed};
use crate::archive::{
    NewText, TextKind, TextKinds, TextPlace, TreePart, TreeRole, sort_texts, tree_parts,
};
use crate::store::{self, Kind, Loss, ObjectId, Reader, no_tree};

const ROLES: [TreeRole; 10] = [
    TreeRole::Root,
    TreeRole::Chat,
    TreeRole::MessageFolders,
    TreeRole::Messages,
    TreeRole::Books,
    TreeRole::Book,
    TreeRole::Entries,
    TreeRole::Card,
    TreeRole::CardText,
    TreeRole::Fields,
];
const KINDS: [TextKind; 5] =
    [TextKind::Message, TextKind::Entry, TextKind::Book, TextKind::Field, TextKind::Card];

/// Bit of a record's role: the tree could not be read, or not to its end.
const BROKEN: u32 = 1 << 8;
/// A place has the kind of the text in its upper bits, and in the others the number of the message
/// or of the name. The place of a tree has the kind `TREE` and its role.
const VALUE_BITS: u32 = 28;
const UNLISTED: u32 = (1 << VALUE_BITS) - 1;
const TREE: u32 = 15;

/// Number of decompressed chunks that a listing keeps.
const OPEN_CHUNKS: usize = 16;

/// The use of an object so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    #[default]
    None,
    Tree(TreeRole),
    Text(TextKind),
}

#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub object: u32,
    pub place: u32,
}

impl Part {
    pub fn tree(object: u32, role: TreeRole) -> Self {
        Self { object, place: TREE << VALUE_BITS | code(&ROLES, role) }
    }

    /// `value` is the number of the message or of the name; `None` if the text is not listed. Fails
    /// if the number is too large.
    pub fn text(object: u32, kind: TextKind, value: Option<usize>) -> Option<Self> {
        let value = match value {
            Some(value) => u32::try_from(value).ok().filter(|value| *value < UNLISTED)?,
            None => UNLISTED,
        };
        Some(Self { object, place: code(&KINDS, kind) << VALUE_BITS | value })
    }

    fn role(self) -> Option<TreeRole> {
        let is_tree = self.place >> VALUE_BITS == TREE;
        is_tree.then(|| ROLES.get((self.place & UNLISTED) as usize).copied()).flatten()
    }

    fn kind(self) -> Option<TextKind> {
        KINDS.get((self.place >> VALUE_BITS) as usize).copied()
    }
}

fn code<T: PartialEq>(all: &[T], one: T) -> u32 {
    all.iter().position(|other| *other == one).unwrap_or_default() as u32
}

/// Appends the record of a tree.
pub fn put_record(out: &mut Vec<u32>, tree: u32, role: TreeRole, parts: &[Part], is_broken: bool) {
    let broken = if is_broken { BROKEN } else { 0 };
    out.extend([tree, code(&ROLES, role) | broken, parts.len() as u32]);
    out.extend(parts.iter().flat_map(|part| [part.object, part.place]));
}

#[derive(Clone, Copy)]
struct RecordPlace {
    chunk: u32,
    at: u32,
}

const NO_RECORD: RecordPlace = RecordPlace { chunk: u32::MAX, at: 0 };

/// All trees and texts of an index.
#[derive(Default)]
pub struct Trees {
    pub ids: Vec<ObjectId>,
    pub names: Vec<String>,
    /// The use of each object.
    pub uses: Vec<Use>,
    /// The trees of snapshots.
    pub roots: HashMap<ObjectId, u32>,
    /// Trees that could not be read when they were added.
    pub broken: Vec<u32>,
    records: Vec<RecordPlace>,
    chunks: Vec<Packed>,
}

impl Trees {
    pub fn add_object(&mut self, id: ObjectId) -> Option<u32> {
        let number = u32::try_from(self.ids.len()).ok()?;
        self.ids.push(id);
        self.uses.push(Use::None);
        Some(number)
    }

    /// Adds the records in these chunks. Returns `None` if a record is invalid.
    pub fn add_records(&mut self, chunks: &[Packed]) -> Option<()> {
        self.records.resize(self.ids.len(), NO_RECORD);
        for packed in chunks {
            let numbers = packed.numbers()?;
            let chunk = u32::try_from(self.chunks.len()).ok()?;
            let mut at = 0;
            while at < numbers.len() {
                at = self.add_record(&numbers, chunk, at)?;
            }
            self.chunks.push(packed.clone());
        }
        Some(())
    }

    fn add_record(&mut self, numbers: &[u32], chunk: u32, at: usize) -> Option<usize> {
        let Record { tree, role, is_broken, parts } = Record::read(numbers, at)?;
        let record = self.records.get_mut(tree)?;
        if record.chunk != NO_RECORD.chunk {
            return None;
        }
        *record = RecordPlace { chunk, at: u32::try_from(at).ok()? };
        self.uses[tree] = Use::Tree(role);
        if role == TreeRole::Root {
            self.roots.insert(self.ids[tree], tree as u32);
        }
        if is_broken {
            self.broken.push(tree as u32);
        }
        for part in numbers.get(parts.clone())?.as_chunks::<2>().0 {
            let part = Part { object: part[0], place: part[1] };
            let used = self.uses.get_mut(part.object as usize)?;
            if part.role().is_none() {
                let kind = part.kind()?;
                let value = part.place & UNLISTED;
                let is_named = matches!(kind, TextKind::Entry | TextKind::Field);
                if is_named && value != UNLISTED && value as usize >= self.names.len() {
                    return None;
                }
                if *used == Use::None {
                    *used = Use::Text(kind);
                }
            }
        }
        Some(parts.end)
    }

    /// Returns whether a tree that could not be read can be read now.
    pub fn is_any_repaired(&self, reader: &Reader) -> store::Result<bool> {
        let mut buffer = Vec::new();
        for tree in &self.broken {
            match read_broken(reader, self.ids[*tree as usize], &mut buffer) {
                None => return Ok(true),
                Some(error) if !error.is_loss() => return Err(error),
                Some(_) => {}
            }
        }
        Ok(false)
    }
}

/// Returns the error for a tree that cannot be read completely.
fn read_broken(reader: &Reader, id: ObjectId, buffer: &mut Vec<u8>) -> Option<store::Error> {
    match reader.read(id, Kind::Tree, buffer) {
        Ok(bytes) => {
            (!tree_parts(TreeRole::Root, bytes, &mut |_: TreePart<'_>| {})).then(|| no_tree(id))
        }
        Err(error) => Some(error),
    }
}

struct Record {
    tree: usize,
    role: TreeRole,
    is_broken: bool,
    parts: Range<usize>,
}

impl Record {
    fn read(numbers: &[u32], at: usize) -> Option<Self> {
        let [tree, role, count] = *numbers.get(at..)?.first_chunk()?;
        let parts = at + 3..(at + 3).checked_add((count as usize).checked_mul(2)?)?;
        let is_broken = role & BROKEN != 0;
        let role = *ROLES.get((role & !BROKEN) as usize)?;
        (parts.end <= numbers.len()).then_some(Self { tree: tree as usize, role, is_broken, parts })
    }
}

/// Lists texts as [`NewTexts`](crate::archive::NewTexts) does, without reading trees.
pub struct Listed<'t> {
    trees: &'t Trees,
    /// Texts that must be read.
    candidates: &'t Flags,
    reader: Reader,
    wanted: TextKinds,
    seen: Flags,
    /// Errors of trees that cannot be read.
    pub broken: Vec<store::Error>,
    open: Vec<(u32, Arc<[u32]>)>,
}

impl<'t> Listed<'t> {
    pub fn new(trees: &'t Trees, candidates: &'t Flags, reader: Reader, wanted: TextKinds) -> Self {
        let (broken, open) = Default::default();
        let seen = Flags::below(trees.ids.len());
        Self { trees, candidates, reader, wanted, seen, broken, open }
    }

    /// Returns the texts in a snapshot's tree that no earlier call returned and that must be read,
    /// and the number of all texts that no earlier call returned.
    pub fn of(&mut self, root: ObjectId) -> (Vec<NewText>, usize) {
        let (mut new, mut count) = (Vec::new(), 0);
        if let Some(root) = self.trees.roots.get(&root) {
            self.visit(*root, ROLES.len(), &mut new, &mut count);
        }
        sort_texts(&mut new);
        (new, count)
    }

    /// A planted index may have a long path of trees, so its length is limited by `depth`.
    fn visit(&mut self, tree: u32, depth: usize, new: &mut Vec<NewText>, count: &mut usize) {
        if depth == 0 || !self.seen.insert(tree as usize) {
            return;
        }
        let Some((record, numbers)) = self.record(tree) else { return };
        for part in numbers[record.parts.clone()].as_chunks::<2>().0 {
            let part = Part { object: part[0], place: part[1] };
            match part.role() {
                Some(role) if self.wanted.are_in(role) => {
                    self.visit(part.object, depth - 1, new, count);
                }
                Some(_) => {}
                None => {
                    let object = part.object as usize;
                    if self.seen.insert(object) && part.place & UNLISTED != UNLISTED {
                        *count += 1;
                        if self.candidates.has(object) {
                            let id = self.trees.ids[object];
                            new.extend(self.place(part).map(|place| NewText { id, place }));
                        }
                    }
                }
            }
        }
        if record.is_broken {
            let id = self.trees.ids[tree as usize];
            self.broken.extend(read_broken(&self.reader, id, &mut Vec::new()));
        }
    }

    fn record(&mut self, tree: u32) -> Option<(Record, Arc<[u32]>)> {
        let RecordPlace { chunk, at } = *self.trees.records.get(tree as usize)?;
        let numbers = match self.open.iter().position(|(open, _)| *open == chunk) {
            Some(found) => {
                self.open[..=found].rotate_right(1);
                Arc::clone(&self.open[0].1)
            }
            None => {
                let numbers: Arc<[u32]> = self.trees.chunks.get(chunk as usize)?.numbers()?.into();
                self.open.truncate(OPEN_CHUNKS - 1);
                self.open.insert(0, (chunk, Arc::clone(&numbers)));
                numbers
            }
        };
        Some((Record::read(&numbers, at as usize)?, numbers))
    }

    fn place(&self, part: Part) -> Option<TextPlace> {
        let value = (part.place & UNLISTED) as usize;
        let name = || self.trees.names.get(value).cloned();
        Some(match part.kind()? {
            TextKind::Message => TextPlace::Message(value),
            TextKind::Entry => TextPlace::Entry(name()?),
            TextKind::Book => TextPlace::Book,
            TextKind::Field => TextPlace::Field(name()?),
            TextKind::Card => TextPlace::Card,
        })
    }
}
