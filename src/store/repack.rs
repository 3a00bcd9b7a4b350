//! All objects into one pack, most of them as deltas.
//!
//! What makes a good base is known: the caller hands the objects in slots, each the versions of one thing, and slots in an order in which neighbours are alike. So
//! a few tries are enough where git, which has only file names to go by, needs hundreds.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};

use gix::odb::pack::data::entry::Header;

use super::delta::{self, Index};
use super::pack::{Compressor, HEADER_LEN, whole};
use super::{Kind, ObjectId, Readers, Result, Store};
use crate::parallel::{cores, in_parts};
use crate::progress::Monitor;

/// One object in its place among the others.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Which.
    pub id: ObjectId,
    /// Of which kind.
    pub kind: Kind,
    /// Which slot it is a version of. The objects of one slot stand together.
    pub slot: u32,
}

/// What was packed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packed {
    /// How many objects.
    pub objects: usize,
    /// How many of them are deltas.
    pub deltas: usize,
    /// The size of the pack.
    pub bytes: u64,
}

/// How many deltas may have to be applied to read one object.
const DEPTH: usize = 32;
/// How many former slots are tried as bases, by their newest version.
const SLOTS: usize = 8;
/// How many former versions of the same thing are tried.
const VERSIONS: usize = 2;
/// Bases in memory take no more than this, for each core.
const WINDOW_BYTES: usize = 32 << 20;
/// Larger objects are no deltas and no bases.
const LARGE: usize = 16 << 20;
/// Packed once and read for years.
const LEVEL: i32 = 9;

/// An object that is ready to be written.
struct Entry {
    /// Its place in the list.
    number: usize,
    /// The place of its base, if it is a delta.
    base: Option<usize>,
    /// The length of the object, or of its delta.
    size: usize,
    compressed: Vec<u8>,
}

impl Store {
    /// Write `objects` into one new pack: its index, and what it holds. Nothing else is changed.
    pub(super) fn write_packed(
        &self,
        objects: &[Placed],
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, Packed)> {
        monitor.begin("packing", Some(objects.len() as u64));
        let mut writer = self.pack_writer();
        let mut offsets = vec![0_u64; objects.len()];
        let mut packed = Packed { objects: objects.len(), ..Packed::default() };
        let readers = self.reader().shared();
        // The channel holds few, so that a slow disk does not fill the memory.
        let (sender, receiver) = sync_channel::<Result<Entry>>(64);
        std::thread::scope(|scope| -> Result<()> {
            for part in parts(objects, &readers) {
                let sender = sender.clone();
                let readers = &readers;
                scope.spawn(move || pack_part(objects, part, readers, &sender));
            }
            drop(sender);
            for entry in receiver {
                let entry = entry?;
                let object = objects[entry.number];
                let offset = writer.bytes().max(HEADER_LEN);
                offsets[entry.number] = offset;
                let header = match entry.base {
                    Some(base) => Header::OfsDelta { base_distance: offset - offsets[base] },
                    None => whole(object.kind),
                };
                packed.deltas += usize::from(entry.base.is_some());
                writer.append_entry(object.id, header, entry.size, &entry.compressed)?;
                monitor.advance(1);
            }
            Ok(())
        })?;
        packed.bytes = writer.bytes();
        Ok((writer.finish()?, packed))
    }
}

/// Stretches of about the same size for all cores. They end where a slot does; the first object after a cut has no base, so there are no more than
/// needed.
fn parts(objects: &[Placed], readers: &Readers) -> Vec<Range<usize>> {
    let lengths = |part: &[Placed]| {
        let reader = readers.reader();
        part.iter().map(|object| reader.length(object.id) + SMALL).collect::<Vec<_>>()
    };
    let lengths = in_parts(objects, 256, lengths).concat();
    let share = lengths.iter().sum::<u64>() / cores() as u64 + 1;
    let mut parts = Vec::new();
    let (mut begin, mut held) = (0, 0);
    for (n, length) in lengths.iter().enumerate() {
        if held >= share && objects[n].slot != objects[n - 1].slot {
            parts.push(begin..n);
            (begin, held) = (n, 0);
        }
        held += length;
    }
    parts.push(begin..objects.len());
    parts
}

/// What an object costs beside its bytes.
const SMALL: u64 = 200;

/// A base that may be used again.
struct Base {
    number: usize,
    slot: u32,
    kind: Kind,
    data: Vec<u8>,
    index: Index,
    /// How many deltas it is away from an object that is none.
    depth: usize,
}

fn pack_part(
    objects: &[Placed],
    part: Range<usize>,
    readers: &Readers,
    out: &SyncSender<Result<Entry>>,
) {
    let reader = readers.reader();
    let mut packer = Packer { window: VecDeque::new(), compressor: Compressor::at(LEVEL) };
    for number in part {
        let object = objects[number];
        let mut data = Vec::new();
        let entry = match reader.read(object.id, object.kind, &mut data).map(<[u8]>::len) {
            Ok(length) => {
                data.truncate(length);
                packer.pack(number, object, data)
            }
            Err(error) => Err(error),
        };
        let failed = entry.is_err();
        // The other side is gone if something failed elsewhere.
        if out.send(entry).is_err() || failed {
            return;
        }
    }
}

struct Packer {
    /// The newest versions of former slots, then the last versions of this one.
    window: VecDeque<Base>,
    compressor: Compressor,
}

impl Packer {
    fn pack(&mut self, number: usize, object: Placed, data: Vec<u8>) -> Result<Entry> {
        self.make_room(object.slot, data.len());
        let plain = self.compressor.compress(&data)?;
        let mut entry = Entry { number, base: None, size: data.len(), compressed: plain };
        let mut depth = 0;
        if let Some((delta, base)) = self.best_delta(object, &data) {
            let compressed = self.compressor.compress(&delta)?;
            if compressed.len() + OFFSET_BYTES < entry.compressed.len() {
                depth = self.window[base].depth + 1;
                let base = Some(self.window[base].number);
                entry = Entry { number, base, size: delta.len(), compressed };
            }
        }
        if data.len() <= LARGE && data.len() >= LEAST {
            let index = Index::new(&data);
            let Placed { slot, kind, .. } = object;
            self.window.push_back(Base { number, slot, kind, data, index, depth });
        }
        Ok(entry)
    }

    /// The shortest delta, and its base. A base that needs many deltas itself must be that much better.
    fn best_delta(&self, object: Placed, data: &[u8]) -> Option<(Vec<u8>, usize)> {
        if data.len() > LARGE || data.len() < LEAST {
            return None;
        }
        let mut best: Option<(Vec<u8>, usize)> = None;
        let room = |depth: usize| DEPTH.saturating_sub(depth);
        for (place, base) in self.window.iter().enumerate().rev() {
            let far = base.kind != object.kind || base.data.len() * 16 < data.len();
            if far || base.depth >= DEPTH {
                continue;
            }
            let limit = match &best {
                None => data.len() * room(base.depth) / DEPTH,
                Some((delta, other)) => {
                    delta.len() * room(base.depth) / room(self.window[*other].depth).max(1)
                }
            };
            if let Some(delta) = delta::encode(&base.data, &base.index, data, limit) {
                let good_enough = delta.len() < 32 + data.len() / 512;
                best = Some((delta, place));
                if good_enough {
                    break;
                }
            }
        }
        best
    }

    /// Forget bases that are too far away, or too many for the memory.
    fn make_room(&mut self, slot: u32, next: usize) {
        let current = self.window.iter().filter(|base| base.slot == slot).count();
        if current > VERSIONS {
            let oldest = self.window.len() - current;
            self.window.remove(oldest);
        } else if current == 0
            && let Some(last) = self.window.back().map(|base| base.slot)
        {
            // Of the slot that is done, the newest version stands for it.
            let newest = self.window.len() - 1;
            let mut place = 0;
            self.window.retain(|base| {
                place += 1;
                base.slot != last || place - 1 == newest
            });
        }
        while self.window.len() > SLOTS + VERSIONS {
            self.window.pop_front();
        }
        let mut held: usize = self.window.iter().map(|base| base.data.len()).sum();
        while held + next > WINDOW_BYTES
            && let Some(gone) = self.window.pop_front()
        {
            held -= gone.data.len();
        }
    }
}

/// Shorter objects are not worth a delta.
const LEAST: usize = 48;
/// About what the place of its base costs a delta.
const OFFSET_BYTES: usize = 3;
