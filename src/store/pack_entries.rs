//! Lists the raw entries of a pack, and copies them to another pack without compressing them again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};

use super::pack::PackWriter;
use super::pack_file::{OpenResult, PackFile};
use super::{Error, ObjectId, Result};
use crate::regular::{self, read_some};

pub(super) struct PackEntry {
    pub id: ObjectId,
    pub crc32: Option<u32>,
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

/// The entries of a pack in the order of their offsets. Holds only this order and reads everything
/// else from the index, because a pack may have millions of entries.
pub(super) struct PackEntries<'i> {
    index: &'i index::File,
    /// Offset of each entry, and its position in the index.
    order: Vec<(u64, u32)>,
    end_of_last: u64,
}

/// Number of bytes of a pack after which it is opened again, see [`PackFile::in_windows`].
const STRETCH_BYTES: u64 = 8 << 20;

impl<'i> PackEntries<'i> {
    pub(super) fn new(index: &'i index::File, end_of_last: u64) -> Self {
        let offset = |place| (index.pack_offset_at_index(place), place);
        let mut order: Vec<_> = (0..index.num_objects()).map(offset).collect();
        order.sort_unstable();
        Self { index, order, end_of_last }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = PackEntry> {
        (0..self.order.len()).map(|n| self.at(n))
    }

    /// Returns the entry at this position of the order.
    pub(super) fn at(&self, n: usize) -> PackEntry {
        let (start, place) = self.order[n];
        let end = self.order.get(n + 1).map_or(self.end_of_last, |(next, _)| *next);
        let id = self.index.oid_at_index(place).to_owned();
        PackEntry { id, crc32: self.index.crc32_at_index(place), span: start..end }
    }

    fn position_of(&self, offset: u64) -> Option<usize> {
        self.order.binary_search_by_key(&offset, |(offset, _)| *offset).ok()
    }

    /// Divides the order into stretches of at most `most` entries and about [`STRETCH_BYTES`].
    pub(super) fn stretches(&self, most: usize) -> Vec<Range<usize>> {
        let mut stretches = Vec::new();
        let mut begin = 0;
        for next in 1..=self.order.len() {
            let end = self.order.get(next).map_or(u64::MAX, |(offset, _)| *offset);
            if next - begin >= most || end - self.order[begin].0 >= STRETCH_BYTES {
                stretches.push(begin..next);
                begin = next;
            }
        }
        stretches
    }

    /// Reads the file of the pack once, without mapping it. Returns whether the checksum of every
    /// entry is correct. Passes all bytes to `whole`, except the checksum at the end of the file.
    pub(super) fn are_valid(&self, pack: &Path, mut whole: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut file = ReadOnce::new(regular::open(pack)?);
        let mut are_valid = true;
        for PackEntry { crc32, span, .. } in self.iter() {
            // After a wrong offset, the next entries cannot be told apart.
            if span.start < file.at || span.end < span.start || span.end > self.end_of_last {
                are_valid = false;
                break;
            }
            file.read_to(span.start, &mut whole)?;
            let mut checksum = crc32fast::Hasher::new();
            file.read_to(span.end, |bytes| {
                whole(bytes);
                checksum.update(bytes);
            })?;
            are_valid &= crc32 == Some(checksum.finalize());
        }
        file.read_to(self.end_of_last, whole)?;
        Ok(are_valid)
    }
}

/// Reads a file from start to end. Unlike a mapping, it does not keep what was read in memory.
struct ReadOnce {
    file: File,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read from the file and not passed on yet.
    unread: Range<usize>,
    /// Offset of the next byte to pass on.
    at: u64,
}

impl ReadOnce {
    fn new(file: File) -> Self {
        Self { file, buffer: vec![0; 1 << 16], unread: 0..0, at: 0 }
    }

    /// Passes the bytes up to the offset `end` to `take`. Stops at the end of the file.
    fn read_to(&mut self, end: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        while self.at < end {
            if self.unread.is_empty() {
                self.unread = 0..read_some(&mut self.file, &mut self.buffer)?;
                if self.unread.is_empty() {
                    return Ok(());
                }
            }
            let length =
                self.unread.len().min(usize::try_from(end - self.at).unwrap_or(usize::MAX));
            take(&self.buffer[self.unread.start..][..length]);
            self.unread.start += length;
            self.at += length as u64;
        }
        Ok(())
    }
}

/// Returns the entries of a pack; `None` if a file or the checksum of an entry is damaged.
pub(super) fn valid_entries(file: &PackFile) -> Result<Option<PackEntries<'_>>> {
    let (OpenResult::Whole(index), OpenResult::Whole(pack)) = (file.index()?, file.data()?) else {
        return Ok(None);
    };
    let entries = PackEntries::new(index, pack.pack_end() as u64);
    let are_valid = entries.are_valid(pack.path(), |_| {}).map_err(Error::io(pack.path()))?;
    Ok(are_valid.then_some(entries))
}

#[derive(Clone, Copy)]
pub(super) struct PackedAt {
    pub offset: u64,
    pub depth: u32,
}

pub(super) type PackedEntries = HashMap<ObjectId, PackedAt>;

/// Copies the entries that `stays` selects and that are not in `copied` yet. Returns the objects
/// that must be packed again, because their delta base was not copied or is given by an id instead
/// of an offset.
pub(super) fn copy_entries(
    writer: &mut PackWriter,
    file: &PackFile,
    entries: &PackEntries<'_>,
    stays: impl Fn(&PackEntry) -> bool,
    copied: &mut PackedEntries,
) -> Result<HashSet<ObjectId>> {
    let mut again = HashSet::new();
    // The place in the new pack of each entry.
    let mut places: Vec<Option<PackedAt>> = vec![None; entries.order.len()];
    file.in_windows(entries.stretches(usize::MAX), |positions, pack, _| {
        for n in positions {
            let entry = entries.at(n);
            if !stays(&entry) {
                continue;
            }
            let at = entry.span.start;
            if let Some(place) = copied.get(&entry.id) {
                places[n] = Some(*place);
                continue;
            }
            let offset = writer.next_offset();
            let found = pack.entry(at).ok();
            let header = found.as_ref().and_then(|found| match found.header {
                Header::OfsDelta { base_distance } => {
                    let base = entries.position_of(at.checked_sub(base_distance)?)?;
                    let base = places[base]?;
                    let base_distance = offset - base.offset;
                    Some((Header::OfsDelta { base_distance }, base.depth + 1))
                }
                Header::RefDelta { .. } => None,
                header => Some((header, 0)),
            });
            let (Some(found), Some((header, depth))) = (found, header) else {
                again.insert(entry.id);
                continue;
            };
            let span = found.data_offset..entry.span.end;
            let compressed = pack.entry_slice(span).unwrap_or_default();
            writer.append_entry(entry.id, header, found.decompressed_size as usize, compressed)?;
            places[n] = Some(PackedAt { offset, depth });
            copied.insert(entry.id, PackedAt { offset, depth });
        }
        Ok(())
    })?;
    Ok(again)
}
