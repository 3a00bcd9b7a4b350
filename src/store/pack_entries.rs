//! Lists the raw entries of a pack, and copies them to another pack without compressing them again.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};

use super::pack::PackWriter;
use super::pack_file::{OpenResult, PackFile};
use super::{ObjectId, Result};

pub(super) struct PackEntry {
    pub id: ObjectId,
    crc32: Option<u32>,
    pub span: Range<u64>,
}

impl PackEntry {
    pub(super) fn valid_bytes<'p>(&self, pack: &'p data::File) -> Option<&'p [u8]> {
        let raw = pack.entry_slice(self.span.clone());
        raw.filter(|raw| self.crc32 == Some(crc32fast::hash(raw)))
    }

    pub(super) fn base_offset(&self, pack: &data::File) -> Option<u64> {
        match pack.entry(self.span.start).ok()?.header {
            Header::OfsDelta { base_distance } => self.span.start.checked_sub(base_distance),
            _ => None,
        }
    }
}

pub(super) fn entries_in_order(index: &index::File, end_of_last: u64) -> Vec<PackEntry> {
    let entry = |found: index::Entry| PackEntry {
        id: found.oid,
        crc32: found.crc32,
        span: found.pack_offset..end_of_last,
    };
    let mut entries: Vec<_> = index.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.span.start);
    for next in 1..entries.len() {
        entries[next - 1].span.end = entries[next].span.start;
    }
    entries
}

/// Returns the data file of a pack and all its entries; `None` if a file or the checksum of an
/// entry is damaged.
pub(super) fn valid_entries(file: &PackFile) -> Result<Option<(&data::File, Vec<PackEntry>)>> {
    let (OpenResult::Whole(index), OpenResult::Whole(pack)) = (file.index()?, file.data()?) else {
        return Ok(None);
    };
    let entries = entries_in_order(index, pack.pack_end() as u64);
    let is_sound = entries.iter().all(|entry| entry.valid_bytes(pack).is_some());
    Ok(is_sound.then_some((pack, entries)))
}

#[derive(Clone, Copy)]
pub(super) struct PackedAt {
    pub offset: u64,
    pub depth: usize,
}

pub(super) type PackedEntries = HashMap<ObjectId, PackedAt>;

/// Copies the entries that `stays` selects and that are not in `copied` yet. Returns the objects
/// that must be packed again, because their delta base was not copied or is given by an id instead
/// of an offset.
pub(super) fn copy_entries(
    writer: &mut PackWriter,
    pack: &data::File,
    entries: &[PackEntry],
    stays: impl Fn(&PackEntry) -> bool,
    copied: &mut PackedEntries,
) -> Result<HashSet<ObjectId>> {
    let mut again = HashSet::new();
    // Places in the new pack, by offsets in the old pack.
    let mut places: HashMap<u64, PackedAt> = HashMap::with_capacity(entries.len());
    for entry in entries.iter().filter(|entry| stays(entry)) {
        let at = entry.span.start;
        if let Some(place) = copied.get(&entry.id) {
            places.insert(at, *place);
            continue;
        }
        let offset = writer.next_offset();
        let found = pack.entry(at).ok();
        let header = found.as_ref().and_then(|found| match found.header {
            Header::OfsDelta { base_distance } => {
                let base = places.get(&at.checked_sub(base_distance)?)?;
                Some((Header::OfsDelta { base_distance: offset - base.offset }, base.depth + 1))
            }
            Header::RefDelta { .. } => None,
            header => Some((header, 0)),
        });
        let (Some(found), Some((header, depth))) = (found, header) else {
            again.insert(entry.id);
            continue;
        };
        let compressed = pack.entry_slice(found.data_offset..entry.span.end).unwrap_or_default();
        writer.append_entry(entry.id, header, found.decompressed_size as usize, compressed)?;
        places.insert(at, PackedAt { offset, depth });
        copied.insert(entry.id, PackedAt { offset, depth });
    }
    Ok(again)
}
