//! Adds snapshots to the index: lists their trees, reads their new texts, and collects the words.

use std::collections::{HashMap, HashSet};

use super::dictionary::Collector;
use super::packed::Packed;
use super::segment::{BLOCK, CHUNK, Segment};
use super::trees::{Part, Trees, Use, put_record};
use super::words::each_word;
use crate::archive::{TextKind, TextPlace, TreePart, TreeRole, tree_parts};
use crate::parallel::in_turn;
use crate::store::{self, Kind, Loss, ObjectId, Reader, Readers};
use crate::verbs::search::terms::fold;
use crate::verbs::search::texts::each_text;

/// A segment is complete when its texts have this size, or its words take this memory.
pub const SEGMENT: u64 = 64 << 20;
const MEMORY: usize = 20 << 20;
/// Number of texts that are read before their words are collected.
const READ_TOGETHER: usize = 2048;
/// Number of texts that one thread reads together, and the size after which it passes on the words.
const TEXTS: usize = 128;
const PIECE: u64 = 32 << 10;

/// Builds segments. Its trees and objects are added to those of the index.
pub struct Builder<'b> {
    reader: Reader,
    trees: &'b mut Trees,
    by_id: HashMap<ObjectId, u32>,
    /// Numbers of names by file name.
    names: HashMap<Vec<u8>, u32>,
    segment: Segment,
    records: Vec<u32>,
    unread: Vec<(u32, TextKind)>,
    words: Collector,
    /// Size of the texts in the block that is not complete.
    open_block: u64,
}

impl<'b> Builder<'b> {
    pub fn new(reader: Reader, trees: &'b mut Trees) -> Self {
        let numbered = trees.ids.iter().zip(0..);
        let by_id = numbered.map(|(id, number)| (*id, number)).collect();
        let (names, records, unread, words) = Default::default();
        let segment = start(trees);
        Self { reader, trees, by_id, names, segment, records, unread, words, open_block: 0 }
    }

    /// Adds the tree of a snapshot. Returns whether the segment is complete; `None` if such a tree
    /// cannot be indexed.
    pub fn add(&mut self, root: ObjectId) -> store::Result<Option<bool>> {
        if self.tree(TreeRole::Root, root)?.is_none() {
            return Ok(None);
        }
        if self.unread.len() >= READ_TOGETHER {
            self.read_texts()?;
        }
        Ok(Some(self.segment.bytes >= SEGMENT || self.words.memory() >= MEMORY))
    }

    fn tree(&mut self, role: TreeRole, id: ObjectId) -> store::Result<Option<u32>> {
        let Some(tree) = self.number(id) else { return Ok(None) };
        match self.trees.uses[tree as usize] {
            Use::Tree(before) if before == role => return Ok(Some(tree)),
            // Only forged snapshots have the same tree in two roles.
            Use::Tree(_) => return Ok(None),
            _ => self.trees.uses[tree as usize] = Use::Tree(role),
        }
        let mut buffer = Vec::new();
        let mut parts = Vec::new();
        let is_complete = match self.reader.read(id, Kind::Tree, &mut buffer) {
            Ok(bytes) => {
                let mut found = Vec::new();
                let is_complete = tree_parts(role, bytes, &mut |part| found.push(part));
                for part in found {
                    match self.part(part)? {
                        Some(part) => parts.push(part),
                        None => return Ok(None),
                    }
                }
                is_complete
            }
            Err(error) if error.is_loss() => false,
            Err(error) => return Err(error),
        };
        put_record(&mut self.records, tree, role, &parts, !is_complete);
        if self.records.len() >= CHUNK {
            self.end_chunk();
        }
        Ok(Some(tree))
    }

    fn part(&mut self, part: TreePart<'_>) -> store::Result<Option<Part>> {
        let (kind, id, file) = match part {
            TreePart::Tree(role, id) => {
                return Ok(self.tree(role, id)?.map(|tree| Part::tree(tree, role)));
            }
            TreePart::Text(kind, id, file) => (kind, id, file),
        };
        let Some(text) = self.number(id) else { return Ok(None) };
        let used = &mut self.trees.uses[text as usize];
        match *used {
            Use::None => {
                *used = Use::Text(kind);
                self.unread.push((text, kind));
            }
            Use::Text(before) if before == kind => {}
            // Its words of this kind are not in the index.
            _ => self.segment.unfiltered.push(text),
        }
        let value = match kind {
            TextKind::Book | TextKind::Card => Some(0),
            TextKind::Message => match kind.place(file) {
                Some(TextPlace::Message(number)) => Some(number),
                _ => None,
            },
            TextKind::Entry | TextKind::Field => match self.names.get(file) {
                Some(name) => Some(*name as usize),
                None => Some(self.add_name(kind, file)),
            },
        };
        Ok(Part::text(text, kind, value))
    }

    fn add_name(&mut self, kind: TextKind, file: &[u8]) -> usize {
        let name = match kind.place(file) {
            Some(TextPlace::Entry(name) | TextPlace::Field(name)) => name,
            _ => String::new(),
        };
        let number = self.trees.names.len();
        self.trees.names.push(name.clone());
        self.segment.names.push(name);
        // A number that is too large is refused when the part is created.
        self.names.insert(file.to_owned(), u32::try_from(number).unwrap_or(u32::MAX));
        number
    }

    fn number(&mut self, id: ObjectId) -> Option<u32> {
        if let Some(number) = self.by_id.get(&id) {
            return Some(*number);
        }
        let number = self.trees.add_object(id)?;
        self.by_id.insert(id, number);
        self.segment.ids.push(id);
        Some(number)
    }

    fn end_chunk(&mut self) {
        if !self.records.is_empty() {
            self.segment.trees.push(Packed::of_numbers(&self.records));
            self.records.clear();
        }
    }

    fn read_texts(&mut self) -> store::Result<()> {
        let unread = std::mem::take(&mut self.unread);
        let batches: Vec<_> = unread.chunks(TEXTS).collect();
        let readers = self.reader.shared();
        in_turn(
            &batches,
            |texts| read(&readers, &self.trees.ids, texts),
            |_, pieces| {
                let (pieces, mut unreadable) = pieces?;
                self.segment.unfiltered.append(&mut unreadable);
                pieces.into_iter().for_each(|piece| {
                    let block = self.segment.blocks.len() as u32;
                    piece.words.iter().for_each(|word| self.words.add(word, block));
                    self.segment.bytes += piece.bytes;
                    self.open_block += piece.bytes;
                    if self.open_block >= BLOCK {
                        self.segment.blocks.push(piece.end);
                        self.segment.last_block_bytes = self.open_block;
                        self.open_block = 0;
                    }
                });
                Ok(())
            },
        )
    }

    /// Returns the segment and begins the next.
    pub fn finish(&mut self) -> store::Result<Option<Segment>> {
        self.read_texts()?;
        self.end_chunk();
        let end = self.trees.ids.len() as u32;
        let last = self.segment.blocks.last().copied().unwrap_or(self.segment.first);
        // The last block has the objects after its last text, too.
        if end > last {
            if self.open_block == 0 && !self.segment.blocks.is_empty() {
                self.segment.blocks.pop();
            } else {
                self.segment.last_block_bytes = self.open_block;
            }
            self.segment.blocks.push(end);
        }
        self.open_block = 0;
        self.segment.words = std::mem::take(&mut self.words).finish();
        let is_valid = self.trees.add_records(&self.segment.trees).is_some();
        let segment = std::mem::replace(&mut self.segment, start(self.trees));
        Ok(is_valid.then_some(segment))
    }
}

fn start(trees: &Trees) -> Segment {
    let (first, first_name) = (trees.ids.len() as u32, trees.names.len() as u32);
    Segment { first, first_name, ..Segment::default() }
}

/// The words of some texts of one block.
struct Piece {
    /// Number of the first object after the texts.
    end: u32,
    bytes: u64,
    words: HashSet<Box<str>>,
}

/// Returns the words of these texts, and the texts that cannot be read.
fn read(
    readers: &Readers,
    ids: &[ObjectId],
    texts: &[(u32, TextKind)],
) -> store::Result<(Vec<Piece>, Vec<u32>)> {
    let reader = readers.reader();
    let (mut pieces, mut unreadable, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    let start = || Piece { end: 0, bytes: 0, words: HashSet::new() };
    let mut piece = start();
    for (text, kind) in texts {
        match reader.read(ids[*text as usize], Kind::Blob, &mut buffer) {
            Ok(bytes) => {
                let place = match kind {
                    TextKind::Message => TextPlace::Message(0),
                    TextKind::Entry => TextPlace::Entry(String::new()),
                    TextKind::Book => TextPlace::Book,
                    TextKind::Field => TextPlace::Field(String::new()),
                    TextKind::Card => TextPlace::Card,
                };
                each_text(&place, bytes, &mut |_, text, _| {
                    each_word(&fold(text), &mut |word| {
                        if !piece.words.contains(word) {
                            piece.words.insert(word.into());
                        }
                    });
                });
                piece.bytes += bytes.len() as u64;
            }
            Err(error) if error.is_loss() => unreadable.push(*text),
            Err(error) => return Err(error),
        }
        piece.end = text + 1;
        if piece.bytes >= PIECE {
            pieces.push(std::mem::replace(&mut piece, start()));
        }
    }
    pieces.push(piece);
    Ok((pieces, unreadable))
}
