//! How each object is packed: most of them as deltas.
//!
//! Good bases are known: the caller hands the objects in slots, each the versions of one thing, and
//! slots in an order in which neighbours are alike. So a few tries are enough where git, which has
//! only file names to go by, needs hundreds.
//!
//! Short messages have little in common that a delta could copy, and each compressed alone begins
//! from nothing: half again as large as the chat compressed in one piece. So neighbours are joined
//! to a *volume*, an object of its own that nothing refers to, and each of them is a delta that
//! copies its stretch out of it. Git reads that as any other pack; should it ever repack, it drops
//! the volumes and finds deltas of its own.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::SyncSender;

use super::compressor::{Compressor, Effort};
use super::delta::{self, Index};
use super::object::hash;
use super::pack_entries::PackedEntries;
use super::{Error, Kind, ObjectId, Readers, Result};

#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub id: ObjectId,
    pub kind: Kind,
    pub slot: u32,
}

/// The longest chain of deltas.
const DEPTH: usize = 32;
/// How many earlier slots are tried as bases, by their newest version.
const SLOTS: usize = 8;
/// How many earlier versions of the same thing are tried.
const VERSIONS: usize = 2;
/// Bases in memory take no more than this, for each core.
const WINDOW_BYTES: usize = 32 << 20;
/// Larger objects are neither deltas nor bases.
const LARGE: usize = 16 << 20;

/// Longer objects are not joined: deltas find what is alike in them.
const MEMBER: usize = 16 << 10;
/// The size of a volume. Whoever reads a message reads its volume.
const VOLUME: usize = 256 << 10;
/// About what a member of a volume costs beside its bytes.
const MEMBER_BYTES: usize = 22;

#[derive(Clone, Copy)]
pub(super) enum BaseOf {
    /// By its place in the list.
    Object(usize),
    /// By the part that made it, and its number there.
    Volume(usize, usize),
}

pub(super) enum Ready {
    Object { number: usize, base: Option<BaseOf>, size: usize, compressed: Vec<u8> },
    Volume { part: usize, number: usize, id: ObjectId, size: usize, compressed: Vec<u8> },
}

pub(super) enum Halt {
    Failed(Error),
    /// Something failed elsewhere.
    Unwanted,
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type Packing<T> = std::result::Result<T, Halt>;

struct Base {
    number: usize,
    slot: u32,
    kind: Kind,
    data: Vec<u8>,
    index: Index,
    depth: usize,
}

pub(super) struct Packer<'a> {
    part: usize,
    out: &'a SyncSender<Result<Ready>>,
    packed: &'a PackedEntries,
    window: VecDeque<Base>,
    effort: Effort,
    compressor: Compressor,
    volume: Volume,
}

struct Volume {
    number: usize,
    data: Vec<u8>,
    waiting: Vec<Waiting>,
    members: usize,
    ratio: f32,
}

enum Waiting {
    Member { number: usize, stretch: Range<usize> },
    Other(Ready),
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        part: usize,
        out: &'a SyncSender<Result<Ready>>,
        packed: &'a PackedEntries,
        effort: Effort,
    ) -> Self {
        let volume =
            Volume { number: 0, data: Vec::new(), waiting: Vec::new(), members: 0, ratio: 0.25 };
        let compressor = Compressor::new(effort);
        Self { part, out, packed, window: VecDeque::new(), effort, compressor, volume }
    }

    pub(super) fn pack_part(
        &mut self,
        objects: &[Placed],
        part: Range<usize>,
        readers: &Readers,
    ) -> Packing<()> {
        let reader = readers.reader();
        for number in part {
            let object = objects[number];
            let mut data = Vec::new();
            reader.read(object.id, object.kind, &mut data)?;
            self.pack(number, object, data)?;
            if self.volume.data.len() >= VOLUME {
                self.close_volume()?;
            }
        }
        self.close_volume()
    }

    fn pack(&mut self, number: usize, object: Placed, data: Vec<u8>) -> Packing<()> {
        self.make_room(object.slot, data.len());
        if let Some(packed) = self.packed.get(&object.id) {
            self.keep_as_base(number, object, data, packed.depth);
            return Ok(());
        }
        let delta = match self.best_delta(object, &data) {
            Some((delta, base)) => Some((self.compressor.compress(&delta)?, delta.len(), base)),
            None => None,
        };
        let in_volume = (data.len() as f32 * self.volume.ratio) as usize + MEMBER_BYTES;
        // Git accepts no delta of less than four bytes.
        let short = object.kind == Kind::Blob && data.len() <= MEMBER && !data.is_empty();
        let depth = match delta {
            Some((compressed, size, base)) if !short || compressed.len() < in_volume => {
                let depth = self.window[base].depth + 1;
                let base = self.window[base].number;
                self.write_delta(number, &data, base, size, compressed, depth)?
            }
            _ if short => {
                let begin = self.volume.data.len();
                self.volume.data.extend_from_slice(&data);
                let stretch = begin..self.volume.data.len();
                // A line feed between: neighbours must not make a word together.
                self.volume.data.push(b'\n');
                self.volume.members += 1;
                self.volume.waiting.push(Waiting::Member { number, stretch });
                1
            }
            _ => {
                let compressed = self.compressor.compress(&data)?;
                self.write(Ready::Object { number, base: None, size: data.len(), compressed })?;
                0
            }
        };
        self.keep_as_base(number, object, data, depth);
        Ok(())
    }

    fn keep_as_base(&mut self, number: usize, object: Placed, data: Vec<u8>, depth: usize) {
        if data.len() <= LARGE && data.len() >= LEAST {
            let index = Index::new(&data);
            let Placed { slot, kind, .. } = object;
            self.window.push_back(Base { number, slot, kind, data, index, depth });
        }
    }

    /// Writes a delta, or the object itself where that is shorter; returns the depth.
    fn write_delta(
        &mut self,
        number: usize,
        data: &[u8],
        base: usize,
        size: usize,
        compressed: Vec<u8>,
        depth: usize,
    ) -> Packing<usize> {
        // A delta of an eighth is always shorter.
        if compressed.len() * 8 > data.len() {
            let plain = self.compressor.compress(data)?;
            if plain.len() <= compressed.len() + OFFSET_BYTES {
                let size = data.len();
                self.write(Ready::Object { number, base: None, size, compressed: plain })?;
                return Ok(0);
            }
        }
        let base = Some(BaseOf::Object(base));
        self.write(Ready::Object { number, base, size, compressed })?;
        Ok(depth)
    }

    /// Sends in order: while a volume is open, everything waits for it.
    fn write(&mut self, ready: Ready) -> Packing<()> {
        if self.volume.members > 0 {
            self.volume.waiting.push(Waiting::Other(ready));
            return Ok(());
        }
        self.send(ready)
    }

    fn send(&self, ready: Ready) -> Packing<()> {
        self.out.send(Ok(ready)).map_err(|_| Halt::Unwanted)
    }

    fn close_volume(&mut self) -> Packing<()> {
        let data = std::mem::take(&mut self.volume.data);
        let waiting = std::mem::take(&mut self.volume.waiting);
        let members = std::mem::take(&mut self.volume.members);
        let number = self.volume.number;
        let mut ready = Vec::with_capacity(waiting.len() + 1);
        if members > 1 {
            self.volume.number += 1;
            let compressed = self.compressor.compress(&data)?;
            self.volume.ratio = compressed.len() as f32 / data.len() as f32;
            let (part, id, size) = (self.part, hash(Kind::Blob, &data)?, data.len());
            ready.push(Ready::Volume { part, number, id, size, compressed });
        }
        for waiting in waiting {
            ready.push(match waiting {
                Waiting::Other(other) => other,
                Waiting::Member { number: object, stretch } if members > 1 => {
                    let delta = delta::copy_of(data.len(), stretch);
                    let compressed = self.compressor.compress(&delta)?;
                    let base = Some(BaseOf::Volume(self.part, number));
                    Ready::Object { number: object, base, size: delta.len(), compressed }
                }
                // One member alone does not need a volume.
                Waiting::Member { number: object, stretch } => {
                    let (compressed, size) =
                        (self.compressor.compress(&data[stretch.clone()])?, stretch.len());
                    Ready::Object { number: object, base: None, size, compressed }
                }
            });
        }
        ready.into_iter().try_for_each(|ready| self.send(ready))
    }

    /// Returns the shortest delta and its base. A base with a long chain must be that much better.
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
                let share = if self.effort == Effort::Thorough { 512 } else { 16 };
                let good_enough = delta.len() < 32 + data.len() / share;
                best = Some((delta, place));
                if good_enough {
                    break;
                }
            }
        }
        best
    }

    /// Drops bases that are too far away, or too many for the memory.
    fn make_room(&mut self, slot: u32, next: usize) {
        let current = self.window.iter().filter(|base| base.slot == slot).count();
        if current > VERSIONS {
            let oldest = self.window.len() - current;
            self.window.remove(oldest);
        } else if current == 0
            && let Some(last) = self.window.back().map(|base| base.slot)
        {
            // Of the slot that is done, only the newest version stays.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::super::Store;
    use super::*;

    #[test]
    fn nobody_packs_on_when_nobody_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let mut pack = store.pack_writer();
        // Too long for a volume: each is written when it is packed.
        let blob = |n: usize| vec![n as u8; MEMBER + 1 + n];
        let ids: Vec<_> = (0..50).map(|n| pack.add(Kind::Blob, &blob(n)).unwrap()).collect();
        pack.finish().unwrap();
        let placed = ids.iter().enumerate();
        let objects: Vec<_> =
            placed.map(|(n, id)| Placed { id: *id, kind: Kind::Blob, slot: n as u32 }).collect();
        let (sender, receiver) = sync_channel(1);
        let packed = PackedEntries::new();
        let mut packer = Packer::new(0, &sender, &packed, Effort::Thorough);
        drop(receiver);
        let ended = packer.pack_part(&objects, 0..objects.len(), &store.reader().shared());
        assert!(matches!(ended, Err(Halt::Unwanted)));
        assert!(packer.window.is_empty(), "no second one was even read");
    }
}
