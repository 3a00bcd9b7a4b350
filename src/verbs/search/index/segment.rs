//! A file of the search index. See "The search index" in docs/format.md.

use super::dictionary::Dictionary;
use super::packed::Packed;
use crate::archive::Blake3;
use crate::store::{ObjectFileStamps, ObjectId};

const MAGIC: &[u8; 8] = b"stvcsi1\n";
/// Maximum length of a joined chunk of trees, in numbers.
pub const CHUNK: usize = 1 << 16;
/// Size at which a block of texts is complete, in bytes of objects.
pub const BLOCK: u64 = 128 << 10;

/// Some texts of the store with their words, and the trees in which they were found.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Checksum of the file before this file; zeros for the first.
    pub after: [u8; 32],
    /// Hash of the record of erasures when the segment was written.
    pub erasures: [u8; 32],
    /// Number of the first object.
    pub first: u32,
    /// Number of the first name.
    pub first_name: u32,
    /// Size of the texts in bytes, and of those in the last block.
    pub bytes: u64,
    pub last_block_bytes: u64,
    /// The files in which the objects of this segment and of all before were found.
    pub files: ObjectFileStamps,
    /// Objects by number.
    pub ids: Vec<ObjectId>,
    /// For each block, the number of the first object after it.
    pub blocks: Vec<u32>,
    /// Texts that must always be read: some are unreadable, the others occur as texts of different
    /// kinds.
    pub unfiltered: Vec<u32>,
    /// File names of lorebook entries and of texts in cards, decoded.
    pub names: Vec<String>,
    /// Records of trees, see `trees`.
    pub trees: Vec<Packed>,
    pub words: Dictionary,
}

impl Segment {
    /// Returns the file, and its checksum, which is its first part after the magic number.
    pub fn encode(&self) -> (Vec<u8>, [u8; 32]) {
        let mut out = Vec::new();
        out.extend_from_slice(&self.after);
        out.extend_from_slice(&self.erasures);
        for number in [self.first, self.first_name] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.bytes, self.last_block_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_count(&mut out, self.files.len());
        for (name, (length, modified)) in &self.files {
            put_bytes(&mut out, name);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&modified.to_le_bytes());
        }
        put_count(&mut out, self.ids.len());
        self.ids.iter().for_each(|id| out.extend_from_slice(id.as_slice()));
        for numbers in [&self.blocks, &self.unfiltered] {
            put_packed(&mut out, &Packed::of_numbers(numbers));
        }
        put_count(&mut out, self.names.len());
        self.names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
        put_count(&mut out, self.trees.len());
        self.trees.iter().for_each(|trees| put_packed(&mut out, trees));
        for section in [&self.words.words, &self.words.lengths, &self.words.blocks] {
            put_packed(&mut out, section);
        }
        let checksum = *Blake3::of(&out).as_bytes();
        ([MAGIC, &checksum[..], &out].concat(), checksum)
    }

    /// Returns the segment in a file and the checksum of the file; `None` if the file is damaged.
    pub fn decode(file: &[u8]) -> Option<(Self, [u8; 32])> {
        let (checksum, rest) = file.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
        if Blake3::of(rest).as_bytes() != checksum {
            return None;
        }
        let mut input = Input(rest);
        let (after, erasures) = (input.take()?, input.take()?);
        let (first, first_name) = (input.number()?, input.number()?);
        let (bytes, last_block_bytes) = (input.long()?, input.long()?);
        let mut files = ObjectFileStamps::new();
        for _ in 0..input.number()? {
            files.insert(input.bytes()?.to_owned(), (input.long()?, input.long()?));
        }
        let count = input.number()? as usize;
        let ids = input.slice(count.checked_mul(20)?)?.as_chunks::<20>().0.iter();
        let ids = ids.map(|id| ObjectId::from(*id)).collect();
        let (blocks, unfiltered) = (input.packed()?.numbers()?, input.packed()?.numbers()?);
        let mut names = Vec::new();
        for _ in 0..input.number()? {
            names.push(String::from_utf8(input.bytes()?.to_owned()).ok()?);
        }
        let mut trees = Vec::new();
        for _ in 0..input.number()? {
            trees.push(input.packed()?);
        }
        let [words, lengths, lists] = [input.packed()?, input.packed()?, input.packed()?];
        let words = Dictionary { words, lengths, blocks: lists };
        let segment = Self {
            after,
            erasures,
            first,
            first_name,
            bytes,
            last_block_bytes,
            files,
            ids,
            blocks,
            unfiltered,
            names,
            trees,
            words,
        };
        (input.0.is_empty() && segment.is_valid()).then_some((segment, *checksum))
    }

    fn is_valid(&self) -> bool {
        let end = self.end();
        let ends = || self.blocks.iter().copied();
        end.is_some_and(|end| ends().all(|block| block > self.first && block <= end))
            && ends().zip(ends().skip(1)).all(|(block, next)| block < next)
    }

    /// Returns the number of the first object after the segment.
    pub fn end(&self) -> Option<u32> {
        self.first.checked_add(u32::try_from(self.ids.len()).ok()?)
    }

    /// Returns one segment with the content of this segment and of the next, `other`.
    pub fn join(mut self, mut other: Self) -> Option<Self> {
        let blocks = u32::try_from(self.blocks.len()).ok()?;
        // Small blocks are joined, because every search after a save adds one.
        let is_open =
            !self.blocks.is_empty() && !other.blocks.is_empty() && self.last_block_bytes < BLOCK;
        self.words = self.words.join(&other.words, blocks - u32::from(is_open))?;
        if is_open {
            self.blocks.pop();
            if other.blocks.len() == 1 {
                other.last_block_bytes += self.last_block_bytes;
            }
        }
        if !other.blocks.is_empty() {
            self.last_block_bytes = other.last_block_bytes;
        }
        if let (Some(last), Some(first)) = (self.trees.last_mut(), other.trees.first())
            && (last.length + first.length) / 4 <= CHUNK
        {
            *last = Packed::of(&[last.bytes()?, first.bytes()?].concat());
            other.trees.remove(0);
        }
        self.bytes += other.bytes;
        (self.files, self.erasures) = (other.files, other.erasures);
        self.ids.append(&mut other.ids);
        self.blocks.append(&mut other.blocks);
        self.unfiltered.append(&mut other.unfiltered);
        self.names.append(&mut other.names);
        self.trees.append(&mut other.trees);
        Some(self)
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // A segment has at most `u32::MAX` objects, because their numbers have 32 bits.
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_packed(out: &mut Vec<u8>, packed: &Packed) {
    put_count(out, packed.length);
    put_bytes(out, &packed.bytes);
}

struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn slice(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        self.slice(LENGTH)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.number()? as usize;
        self.slice(length)
    }

    fn packed(&mut self) -> Option<Packed> {
        let length = self.number()? as usize;
        Some(Packed { length, bytes: self.bytes()?.to_owned() })
    }
}
