//! Reading a pack that is mostly deltas.
//!
//! Git's library keeps the objects that deltas led to, but not what they were made of; in a pack of `gc` many messages are made of one volume, which would be inflated anew
//! for every one of them. Here what deltas are made of is kept.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};
use gix::zlib::Inflate;

use super::{Kind, ObjectId, delta};

/// How much of what deltas are made of a reader keeps.
const KEPT_BYTES: usize = 16 << 20;
/// More deltas in a row than any git makes.
const DEEPEST: usize = 4096;

/// A pack with its index; shared by all readers.
pub(super) struct DeltaPack {
    index: index::File,
    data: data::File,
}

impl DeltaPack {
    /// Open the pack of the index at `path`.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let index = index::File::at(path, gix::hash::Kind::Sha1).ok()?;
        let data = data::File::at(path.with_extension("pack"), gix::hash::Kind::Sha1).ok()?;
        Some(Self { index, data })
    }

    /// Read an object into `out`; `None` if it is not here, or cannot be read: then somebody else may say why.
    pub(super) fn read(&self, id: ObjectId, kept: &mut Kept, out: &mut Vec<u8>) -> Option<Kind> {
        let place = self.index.lookup(id)?;
        self.read_at(self.index.pack_offset_at_index(place), kept, out)
    }

    /// The same for the object that stands at `offset`.
    pub(super) fn read_at(&self, offset: u64, kept: &mut Kept, out: &mut Vec<u8>) -> Option<Kind> {
        // From the object down to what all its deltas are made of.
        let mut deltas: Vec<Vec<u8>> = Vec::new();
        let mut at = offset;
        let (kind, mut base) = loop {
            if let Some((kind, base)) = kept.get(at).filter(|_| at != offset) {
                break (kind, base);
            }
            let entry = self.data.entry(at).ok()?;
            match entry.header {
                Header::OfsDelta { base_distance } if deltas.len() < DEEPEST => {
                    let mut delta = Vec::new();
                    self.inflate(&entry, kept, &mut delta)?;
                    deltas.push(delta);
                    at = entry.checked_base_pack_offset(base_distance)?;
                }
                header => {
                    let kind = header.as_kind()?;
                    self.inflate(&entry, kept, out)?;
                    if deltas.is_empty() {
                        return Some(kind);
                    }
                    break (kind, kept.put(at, kind, std::mem::take(out)));
                }
            }
        };
        // The objects on the way are what neighbours are made of, too; this one itself may be what the next is.
        let mut whole = Vec::new();
        let last = deltas.len() - 1;
        for (n, delta) in deltas.iter().rev().enumerate() {
            whole.clear();
            delta::apply(&base, delta, &mut whole)?;
            if n < last {
                base = Arc::new(std::mem::take(&mut whole));
            }
        }
        *out = whole;
        if last > 0 {
            kept.put(offset, kind, out.clone());
        }
        Some(kind)
    }

    fn inflate(&self, entry: &data::Entry, kept: &mut Kept, out: &mut Vec<u8>) -> Option<()> {
        let size = usize::try_from(entry.decompressed_size).ok()?;
        // No object is larger than its pack could make it: zlib packs a thousand to one at most.
        if size > self.data.pack_end().saturating_mul(1100).saturating_add(1 << 20) {
            return None;
        }
        out.clear();
        out.resize(size, 0);
        self.data.decompress_entry(entry, &mut kept.inflate, out).ok()?;
        Some(())
    }
}

/// What a reader keeps of what deltas are made of.
#[derive(Default)]
pub(super) struct Kept {
    by_offset: HashMap<u64, (Kind, Arc<Vec<u8>>)>,
    /// In the order in which they came: the oldest goes first.
    order: VecDeque<u64>,
    bytes: usize,
    inflate: Inflate,
}

impl Kept {
    fn get(&self, offset: u64) -> Option<(Kind, Arc<Vec<u8>>)> {
        self.by_offset.get(&offset).cloned()
    }

    fn put(&mut self, offset: u64, kind: Kind, data: Vec<u8>) -> Arc<Vec<u8>> {
        let data = Arc::new(data);
        if data.len() > KEPT_BYTES / 2 || self.by_offset.contains_key(&offset) {
            return data;
        }
        self.bytes += data.len() + 64;
        self.by_offset.insert(offset, (kind, Arc::clone(&data)));
        self.order.push_back(offset);
        while self.bytes > KEPT_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some((_, gone)) = self.by_offset.remove(&oldest) {
                self.bytes -= gone.len() + 64;
            }
        }
        data
    }
}
