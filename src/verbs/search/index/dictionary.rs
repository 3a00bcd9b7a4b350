//! The words of a segment, sorted, with the blocks of texts in which each occurs.

use std::cmp::Ordering;
use std::collections::HashMap;

use memchr::{memchr_iter, memmem};

use super::packed::{Flags, Packed, put_number, take_number};
use super::words::{END, Part, Plan};

/// The words and their blocks. The blocks of a word are an ascending list, of which each number is
/// stored as its difference to the number before, plus one for the first number.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// The words, with [`END`] before the first and after each.
    pub words: Packed,
    /// The length of each list of blocks in bytes.
    pub lengths: Packed,
    pub blocks: Packed,
}

/// Collects words.
#[derive(Default)]
pub struct Collector {
    words: HashMap<Box<str>, BlockList>,
    bytes: usize,
}

#[derive(Default)]
struct BlockList {
    /// The last block plus one; 0 if there is none.
    end: u32,
    bytes: Vec<u8>,
}

impl BlockList {
    fn add(&mut self, block: u32) {
        if block >= self.end {
            put_number(&mut self.bytes, block + 1 - self.end);
            self.end = block + 1;
        }
    }
}

impl Collector {
    /// Adds a word of `block`. The blocks must be added in ascending order.
    pub fn add(&mut self, word: &str, block: u32) {
        let list = match self.words.get_mut(word) {
            Some(list) => list,
            None => self.words.entry(word.into()).or_default(),
        };
        let before = list.bytes.len();
        list.add(block);
        self.bytes += list.bytes.len() - before;
    }

    /// Returns the approximate memory in bytes.
    pub fn memory(&self) -> usize {
        const OF_A_WORD: usize = 150;
        self.words.len() * OF_A_WORD + self.bytes
    }

    pub fn finish(self) -> Dictionary {
        let mut words: Vec<_> = self.words.into_iter().collect();
        words.sort_unstable_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
        let mut writer = Writer::new();
        words.iter().for_each(|(word, list)| writer.add(word.as_bytes(), &list.bytes));
        writer.finish()
    }
}

struct Writer {
    words: Vec<u8>,
    lengths: Vec<u8>,
    blocks: Vec<u8>,
}

impl Writer {
    fn new() -> Self {
        Self { words: vec![END], lengths: Vec::new(), blocks: Vec::new() }
    }

    fn add(&mut self, word: &[u8], blocks: &[u8]) {
        self.words.extend_from_slice(word);
        self.words.push(END);
        put_number(&mut self.lengths, blocks.len() as u32);
        self.blocks.extend_from_slice(blocks);
    }

    fn finish(&self) -> Dictionary {
        let [words, lengths, blocks] =
            [&self.words, &self.lengths, &self.blocks].map(|bytes| Packed::of(bytes));
        Dictionary { words, lengths, blocks }
    }
}

/// A decompressed dictionary.
struct Opened {
    words: Vec<u8>,
    /// The start of each list in `blocks`, and the end of the last list.
    starts: Vec<usize>,
    blocks: Vec<u8>,
}

impl Opened {
    fn words(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let words = self.words.get(1..).unwrap_or_default().split(|byte| *byte == END);
        words
            .zip(self.starts.windows(2))
            .filter_map(|(word, ends)| Some((word, self.blocks.get(ends[0]..ends[1])?)))
    }
}

impl Dictionary {
    fn starts(&self) -> Option<Vec<usize>> {
        let lengths = self.lengths.bytes()?;
        let (mut lengths, mut start) = (&lengths[..], 0);
        let mut starts = vec![start];
        while !lengths.is_empty() {
            start += take_number(&mut lengths)? as usize;
            starts.push(start);
        }
        Some(starts)
    }

    fn open(&self) -> Option<Opened> {
        let (words, blocks) = (self.words.bytes()?, self.blocks.bytes()?);
        Some(Opened { words, starts: self.starts()?, blocks })
    }

    /// Returns a dictionary of both segments. The first block of `other` becomes the block `first`.
    pub fn join(&self, other: &Self, first: u32) -> Option<Self> {
        let (ours, others) = (self.open()?, other.open()?);
        let (mut ours, mut others) = (ours.words().peekable(), others.words().peekable());
        let mut writer = Writer::new();
        loop {
            let order = match (ours.peek(), others.peek()) {
                (None, None) => return Some(writer.finish()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((word, _)), Some((other, _))) => word.cmp(other),
            };
            let own = ours.next_if(|_| order != Ordering::Greater);
            let added = others.next_if(|_| order != Ordering::Less);
            let (word, _) = own.or(added)?;
            let mut list = BlockList::default();
            for block in own.into_iter().flat_map(|(_, blocks)| numbers(blocks)) {
                list.add(block);
            }
            for block in added.into_iter().flat_map(|(_, blocks)| numbers(blocks)) {
                list.add(first.checked_add(block)?);
            }
            writer.add(word, &list.bytes);
        }
    }

    /// Returns the blocks that have all words of the plan, of `count` blocks.
    pub fn find(&self, plan: &Plan, count: usize) -> Option<Flags> {
        let mut all = Flags::below(count);
        all.insert_all(0..count);
        if plan.0.is_empty() {
            return Some(all);
        }
        let words = self.words.bytes()?;
        // Most dictionaries do not have a rare word, and their lists are not decompressed.
        let found: Vec<_> = plan.0.iter().map(|part| FoundPart::of(part, &words)).collect();
        if found.iter().any(FoundPart::is_nowhere) {
            return Some(Flags::below(count));
        }
        let (starts, blocks) = (self.starts()?, self.blocks.bytes()?);
        let blocks_of = |words: &[usize]| {
            let mut found = Flags::below(count);
            for word in words {
                let list = blocks.get(*starts.get(*word)?..*starts.get(word + 1)?)?;
                for block in numbers(list) {
                    found.insert(block as usize);
                }
            }
            Some(found)
        };
        for part in found {
            let mut either = blocks_of(&part.words)?;
            if !part.grams.is_empty() && part.grams.iter().all(|gram| !gram.is_empty()) {
                let mut with_grams = blocks_of(&part.grams[0])?;
                for gram in &part.grams[1..] {
                    with_grams.intersect(&blocks_of(gram)?);
                }
                either.unite(&with_grams);
            }
            all.intersect(&either);
            if all.is_empty() {
                break;
            }
        }
        Some(all)
    }
}

/// The words of a dictionary that a part of a plan matches, by their position.
struct FoundPart {
    words: Vec<usize>,
    grams: Vec<Vec<usize>>,
}

impl FoundPart {
    fn of(part: &Part, words: &[u8]) -> Self {
        let found = part.word.iter().flat_map(|word| positions(word, words)).collect();
        let mut grams = Vec::new();
        for gram in &part.grams {
            grams.push(positions(gram, words));
            if grams.last().is_some_and(Vec::is_empty) {
                break;
            }
        }
        Self { words: found, grams }
    }

    fn is_nowhere(&self) -> bool {
        self.words.is_empty() && (self.grams.is_empty() || self.grams.iter().any(Vec::is_empty))
    }
}

/// Returns the positions of the words in which `wanted` occurs.
fn positions(wanted: &[u8], words: &[u8]) -> Vec<usize> {
    let mut positions = Vec::new();
    let (mut ends, mut counted) = (0, 0);
    for at in memmem::find_iter(words, wanted) {
        let at = at + usize::from(wanted.first() == Some(&END));
        ends += memchr_iter(END, &words[counted..at]).count();
        counted = at;
        let position = ends.saturating_sub(1);
        if positions.last() != Some(&position) {
            positions.push(position);
        }
    }
    positions
}

fn numbers(mut list: &[u8]) -> impl Iterator<Item = u32> {
    let mut end = 0u32;
    std::iter::from_fn(move || {
        end = end.checked_add(take_number(&mut list)?)?;
        end.checked_sub(1)
    })
}
