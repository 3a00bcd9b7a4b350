//! Decides how each object is packed: most become deltas.
//!
//! The caller assigns each object to a slot. A slot contains the versions of one thing, and
//! neighbouring slots contain similar things. So a few attempts find a good base, where git, which
//! knows only file names, needs hundreds.
//!
//! Short objects without a good base are joined into volumes (see `volume`).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::SyncSender;

use super::compressor::{Compressor, Effort};
use super::delta::{self, Index};
use super::limits::LONG_BLOB;
use super::long_blob::LongBlob;
use super::measured_objects::{MeasuredObjects, PackSlot};
use super::pack_entries::PackedEntries;
use super::volume::{EncodedVolume, Volume};
use super::{Error, Kind, Readers, Result};

/// Maximum length of a delta chain.
const DEPTH: usize = 32;
/// Number of earlier slots whose newest version is tried as a base.
const SLOTS: usize = 8;
/// Number of earlier versions in the same slot that are tried as bases.
const VERSIONS: usize = 2;
/// Maximum total length, in bytes, of the bases in memory, for each core.
const WINDOW_BYTES: usize = 32 << 20;
/// Maximum length, in bytes, of an object that is stored as a delta or used as a base.
const LARGE: usize = LONG_BLOB as usize;

/// Approximate number of additional bytes for each object in a volume.
const MEMBER_BYTES: usize = 22;

#[derive(Clone, Copy)]
pub(super) enum BaseOf {
    /// Position of the base in the list of objects.
    Object(usize),
    /// Number of the part that wrote the volume, and number of the volume in that part.
    Volume(usize, usize),
}

pub(super) enum PackRecord {
    Object {
        number: usize,
        base: Option<BaseOf>,
        size: usize,
        compressed: Vec<u8>,
    },
    /// A blob whose compressed bytes are copied unchanged.
    LongBlob {
        number: usize,
        blob: LongBlob,
    },
    Volume {
        part: usize,
        number: usize,
        volume: EncodedVolume,
    },
}

/// Result of packing a part. The error is `None` if another part failed, so that the result is not
/// needed.
pub(super) type Packing<T> = std::result::Result<T, Option<Error>>;

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
    out: &'a SyncSender<Result<PackRecord>>,
    packed: &'a PackedEntries,
    window: VecDeque<Base>,
    effort: Effort,
    compressor: Compressor,
    volume: Volume,
    /// Number of complete volumes.
    volumes: usize,
    /// Compression ratio of the last complete volume.
    ratio: f32,
    /// Records that follow the open volume.
    waiting: Vec<QueuedRecord>,
}

enum QueuedRecord {
    Member { number: usize, range: Range<usize> },
    Other(PackRecord),
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        part: usize,
        out: &'a SyncSender<Result<PackRecord>>,
        packed: &'a PackedEntries,
        effort: Effort,
    ) -> Self {
        Self {
            part,
            out,
            packed,
            window: VecDeque::new(),
            effort,
            compressor: Compressor::new(effort),
            volume: Volume::default(),
            volumes: 0,
            ratio: 0.25,
            waiting: Vec::new(),
        }
    }

    pub(super) fn pack_part(
        &mut self,
        MeasuredObjects { objects, lengths }: MeasuredObjects<'_>,
        part: Range<usize>,
        readers: &Readers,
    ) -> Packing<()> {
        let reader = readers.reader_in_order();
        for number in part {
            let object = objects[number];
            if object.kind == Kind::Blob
                && u64::from(lengths[number]) > LONG_BLOB
                && !self.packed.contains_key(&object.id)
                && let Some(blob) = reader.long_blob(object.id)?.filter(LongBlob::is_incompressible)
            {
                self.write(PackRecord::LongBlob { number, blob })?;
                continue;
            }
            let mut data = Vec::new();
            reader.read(object.id, object.kind, &mut data)?;
            self.pack(number, object, data)?;
            if self.volume.is_complete() {
                self.close_volume()?;
            }
        }
        self.close_volume()
    }

    fn pack(&mut self, number: usize, object: PackSlot, data: Vec<u8>) -> Packing<()> {
        self.make_room(object.slot, data.len());
        if let Some(packed) = self.packed.get(&object.id) {
            self.keep_as_base(number, object, data, packed.depth as usize);
            return Ok(());
        }
        let delta = match self.best_delta(object, &data) {
            Some((delta, base)) => Some((self.compressor.compress(&delta)?, delta.len(), base)),
            None => None,
        };
        let in_volume = (data.len() as f32 * self.ratio) as usize + MEMBER_BYTES;
        let short = object.kind == Kind::Blob && Volume::takes(&data);
        let depth = match delta {
            Some((compressed, size, base)) if !short || compressed.len() < in_volume => {
                let depth = self.window[base].depth + 1;
                let base = self.window[base].number;
                self.write_delta(number, &data, base, size, compressed, depth)?
            }
            _ if short => {
                let range = self.volume.add(&data);
                self.waiting.push(QueuedRecord::Member { number, range });
                1
            }
            _ => {
                let compressed = self.compressor.compress(&data)?;
                self.write(PackRecord::Object {
                    number,
                    base: None,
                    size: data.len(),
                    compressed,
                })?;
                0
            }
        };
        self.keep_as_base(number, object, data, depth);
        Ok(())
    }

    fn keep_as_base(&mut self, number: usize, object: PackSlot, data: Vec<u8>, depth: usize) {
        if data.len() <= LARGE && data.len() >= LEAST {
            let index = Index::new(&data);
            let PackSlot { slot, kind, .. } = object;
            self.window.push_back(Base { number, slot, kind, data, index, depth });
        }
    }

    /// Writes the delta, or the complete object if that is not longer. Returns the length of the
    /// object's delta chain.
    fn write_delta(
        &mut self,
        number: usize,
        data: &[u8],
        base: usize,
        size: usize,
        compressed: Vec<u8>,
        depth: usize,
    ) -> Packing<usize> {
        // A delta that is at most an eighth as long as the object is always shorter than the
        // compressed object.
        if compressed.len() * 8 > data.len() {
            let plain = self.compressor.compress(data)?;
            if plain.len() <= compressed.len() + OFFSET_BYTES {
                let size = data.len();
                self.write(PackRecord::Object { number, base: None, size, compressed: plain })?;
                return Ok(0);
            }
        }
        let base = Some(BaseOf::Object(base));
        self.write(PackRecord::Object { number, base, size, compressed })?;
        Ok(depth)
    }

    /// Sends a record, or queues it while a volume is open. Queued records are sent after the
    /// volume, in their original order.
    fn write(&mut self, ready: PackRecord) -> Packing<()> {
        if !self.volume.is_empty() {
            self.waiting.push(QueuedRecord::Other(ready));
            return Ok(());
        }
        self.send(ready)
    }

    fn send(&self, ready: PackRecord) -> Packing<()> {
        self.out.send(Ok(ready)).map_err(|_| None)
    }

    fn close_volume(&mut self) -> Packing<()> {
        let volume = std::mem::take(&mut self.volume);
        let waiting = std::mem::take(&mut self.waiting);
        let number = self.volumes;
        let mut ready = Vec::with_capacity(waiting.len() + 1);
        if volume.joins_objects() {
            self.volumes += 1;
            let volume = volume.encode(&mut self.compressor)?;
            self.ratio = volume.compressed.len() as f32 / volume.size as f32;
            ready.push(PackRecord::Volume { part: self.part, number, volume });
        }
        for waiting in waiting {
            ready.push(match waiting {
                QueuedRecord::Other(other) => other,
                QueuedRecord::Member { number: object, range } if volume.joins_objects() => {
                    let delta = volume.delta(range);
                    let compressed = self.compressor.compress(&delta)?;
                    let base = Some(BaseOf::Volume(self.part, number));
                    PackRecord::Object { number: object, base, size: delta.len(), compressed }
                }
                QueuedRecord::Member { number: object, range } => {
                    let data = volume.member(range);
                    let (size, compressed) = (data.len(), self.compressor.compress(data)?);
                    PackRecord::Object { number: object, base: None, size, compressed }
                }
            });
        }
        ready.into_iter().try_for_each(|ready| self.send(ready))
    }

    /// Returns the best delta and the position of its base in the window. The longer the delta
    /// chain of a base, the shorter the delta must be.
    fn best_delta(&self, object: PackSlot, data: &[u8]) -> Option<(Vec<u8>, usize)> {
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

    /// Removes bases from the window that are too far away or exceed the memory limit.
    fn make_room(&mut self, slot: u32, next: usize) {
        let current = self.window.iter().filter(|base| base.slot == slot).count();
        if current > VERSIONS {
            let oldest = self.window.len() - current;
            self.window.remove(oldest);
        } else if current == 0
            && let Some(last) = self.window.back().map(|base| base.slot)
        {
            // Of the previous slot, only the newest version stays.
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

/// Minimum length, in bytes, of an object that is stored as a delta or used as a base.
const LEAST: usize = 48;
/// Approximate length, in bytes, of a delta's reference to its base.
const OFFSET_BYTES: usize = 3;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::super::Store;
    use super::*;

    #[test]
    fn packer_stops_when_the_receiver_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let mut pack = store.pack_writer();
        // Each blob is too long for a volume, so it is sent as soon as it is packed.
        let blob = |n: usize| vec![n as u8; (16 << 10) + 1 + n];
        let ids: Vec<_> = (0..50).map(|n| pack.add(Kind::Blob, &blob(n)).unwrap()).collect();
        pack.finish().unwrap();
        let placed = ids.iter().enumerate();
        let objects: Vec<_> =
            placed.map(|(n, id)| PackSlot { id: *id, kind: Kind::Blob, slot: n as u32 }).collect();
        let (sender, receiver) = sync_channel(1);
        let packed = PackedEntries::new();
        let mut packer = Packer::new(0, &sender, &packed, Effort::Thorough);
        drop(receiver);
        let lengths = store.lengths(&objects).unwrap();
        let measured = MeasuredObjects { objects: &objects, lengths: &lengths };
        let ended = packer.pack_part(measured, 0..objects.len(), &store.reader().shared());
        assert!(matches!(ended, Err(None)));
        assert!(packer.window.is_empty(), "no second one was even read");
    }
}
