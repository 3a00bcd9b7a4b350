//! Reading a pack: whole objects and deltas.
//!
//! Git's library keeps the objects that deltas led to, but not what they were made of; in a pack of `gc` many messages are made of one volume, which would be inflated anew
//! for every one of them. Here what deltas are made of is kept.
//!
//! A pack may come from anywhere, so what it says of itself is believed only as far as its bytes allow: no object is longer than its kind may be, nor than zlib could make it of the
//! bytes that are there; memory is taken as bytes come, not as they are promised; deltas of deltas end somewhere.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};

use super::inflate::{Fault, Made, TOO_LONG, begin_of, inflate};
use super::recent_objects::{RecentObject, RecentObjects};
use super::{Error, Kind, ObjectId, Result, delta, longest};

/// More deltas in a row than any git makes: it stops at 4095.
const DEEPEST: usize = 4096;
/// From here on everything on the way is kept: whoever reads such a row from its end would else begin anew for each. And the pack is asked for its longest row before: one with a longer row
/// than any git makes was made to use up time and memory, and nothing so deep is read from it.
const DEEP: usize = 64;
/// What is not longer is kept in any row: histories are read from their end, and their commits and trees are small.
const SMALL: usize = 32 << 10;
/// How much may be made on the way to one object, all its bases together.
const MOST_MADE: u64 = 32 << 30;
const TOO_DEEP: Fault = "has an object that is made of more than 4096 deltas, as git writes none";

/// A pack with its index, each opened when it is needed; shared by all readers.
pub(super) struct PackFile {
    /// The index.
    path: PathBuf,
    /// Tells it from other packs in what readers keep.
    number: u64,
    index: OnceLock<Opened<index::File>>,
    data: OnceLock<Opened<data::File>>,
    /// Whether some object is made of more deltas than any git makes.
    is_too_deep: OnceLock<bool>,
}

/// What opening a file came to. That it could not be opened at all is an error, and may be otherwise the next time.
pub(super) enum Opened<T> {
    Whole(T),
    Damaged(String),
    /// It is not there, or not any more.
    Gone,
}

impl<T> Opened<T> {
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Whole(_) => None,
            Self::Damaged(why) => Some(why),
            Self::Gone => Some("it is not there"),
        }
    }

    /// The file, which must be there and whole; `path` is the index's.
    pub(super) fn whole(&self, path: &Path) -> Result<&T> {
        match self {
            Self::Whole(file) => Ok(file),
            other => {
                let why = other.problem().unwrap_or_default().to_owned();
                Err(Error::DamagedPack { path: path.to_owned(), why })
            }
        }
    }
}

impl PackFile {
    /// The pack of the index at `path`, not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (index, data, is_too_deep) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { path, number, index, data, is_too_deep }
    }

    /// Where its index is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was not there when it was wanted.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.index.get(), Some(Opened::Gone))
            || matches!(self.data.get(), Some(Opened::Gone))
    }

    pub(super) fn index(&self) -> Result<&Opened<index::File>> {
        open(&self.index, &self.path, |path| index::File::at(path, gix::hash::Kind::Sha1))
    }

    /// Its objects.
    pub(super) fn data(&self) -> Result<&Opened<data::File>> {
        let path = self.path.with_extension("pack");
        open(&self.data, &path, |path| data::File::at(path, gix::hash::Kind::Sha1))
    }

    /// Where an object stands. One whose index is damaged has none that anybody could find.
    pub(super) fn offset_of(&self, id: ObjectId) -> Result<Option<u64>> {
        Ok(match self.index()? {
            Opened::Whole(index) => index.lookup(id).map(|place| index.pack_offset_at_index(place)),
            Opened::Damaged(_) | Opened::Gone => None,
        })
    }

    fn data_for(&self, id: ObjectId) -> Result<&data::File> {
        match self.data()? {
            Opened::Whole(data) => Ok(data),
            Opened::Damaged(why) => Err(Error::Damaged { id, why: why.clone() }),
            Opened::Gone => Err(Error::Missing { id }),
        }
    }

    /// Read the object `id`, which stands at `offset`, into `out`.
    pub(super) fn read(
        &self,
        id: ObjectId,
        offset: u64,
        kept: &mut RecentObjects,
        out: &mut Vec<u8>,
    ) -> Result<Kind> {
        let data = self.data_for(id)?;
        let made = self.make(data, offset, kept, out);
        made.map_err(|why| self.damaged(id, why))
    }

    fn damaged(&self, id: ObjectId, why: Fault) -> Error {
        let name = self.path.with_extension("pack");
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        let why = match why {
            TOO_DEEP => format!("{name} {TOO_DEEP}"),
            why => why.to_owned(),
        };
        Error::Damaged { id, why }
    }

    fn make(
        &self,
        data: &data::File,
        offset: u64,
        kept: &mut RecentObjects,
        out: &mut Vec<u8>,
    ) -> Made<Kind> {
        let Chain { deltas, base, base_at } = self.chain(data, offset, kept)?;
        let (kind, depth, mut base) = match base {
            Base::Recent(found) if deltas.is_empty() => {
                out.clear();
                out.extend_from_slice(&found.data);
                return Ok(found.kind);
            }
            Base::Recent(found) => (found.kind, found.depth, found.data),
            Base::Entry(kind, entry) => {
                inflate(data, &entry, longest(kind), &mut kept.zlib, out)?;
                if deltas.is_empty() {
                    return Ok(kind);
                }
                let whole = Arc::new(std::mem::take(out));
                kept.put((self.number, base_at), kind, 0, &whole);
                (kind, 0, whole)
            }
        };
        // The objects on the way are what neighbours are made of, too; this one itself may be what the next is.
        let many = deltas.len() > DEEP;
        let last = deltas.len() - 1;
        let mut delta = std::mem::take(&mut kept.delta);
        let mut made = 0;
        for (n, (at, entry)) in deltas.iter().rev().enumerate() {
            inflate(data, entry, longest(Kind::Blob), &mut kept.zlib, &mut delta)?;
            let mut whole = Vec::new();
            delta::apply(&base, &delta, longest(kind), &mut whole)
                .ok_or("a delta of it does not fit what it is made of")?;
            made += whole.len() as u64;
            if made > MOST_MADE {
                return Err("it is made of too much");
            }
            if n == last {
                *out = whole;
            } else {
                base = Arc::new(whole);
                if many || base.len() <= SMALL {
                    kept.put((self.number, *at), kind, depth + n + 1, &base);
                }
            }
        }
        kept.delta = delta;
        if last > 0 {
            kept.put((self.number, offset), kind, depth + last + 1, &Arc::new(out.clone()));
        }
        Ok(kind)
    }

    /// The deltas from an object down to what all of them are made of.
    fn chain(&self, data: &data::File, offset: u64, kept: &mut RecentObjects) -> Made<Chain> {
        let mut deltas = Vec::new();
        let mut at = offset;
        loop {
            let found = kept.get((self.number, at));
            let below = found.as_ref().map_or(0, |found| found.depth);
            if deltas.len() + below >= DEEP && self.is_too_deep(data) {
                return Err(TOO_DEEP);
            }
            if let Some(found) = found {
                return Ok(Chain { deltas, base: Base::Recent(found), base_at: at });
            }
            if at >= data.pack_end() as u64 {
                return Err("it would stand behind the end of its pack");
            }
            let entry = data.entry(at).map_err(|_| "its beginning cannot be read")?;
            let next = match entry.header {
                Header::OfsDelta { base_distance } => entry
                    .checked_base_pack_offset(base_distance)
                    .ok_or("what it is made of would stand before its pack")?,
                Header::RefDelta { base_id } => match self.index.get() {
                    Some(Opened::Whole(index)) => index
                        .lookup(base_id)
                        .map(|place| index.pack_offset_at_index(place))
                        .ok_or("what it is made of is not in its pack")?,
                    _ => return Err("what it is made of is not in its pack"),
                },
                header => {
                    let kind = header.as_kind().ok_or("it is of no known kind")?;
                    return Ok(Chain { deltas, base: Base::Entry(kind, entry), base_at: at });
                }
            };
            deltas.push((at, entry));
            at = next;
        }
    }

    /// Whether some object is made of more than [`DEEPEST`] deltas, or of itself. Reads only where each entry begins, and each once.
    fn is_too_deep(&self, data: &data::File) -> bool {
        *self.is_too_deep.get_or_init(|| {
            let Some(Opened::Whole(index)) = self.index.get() else { return true };
            let base_of = |at: u64| match data.entry(at).ok()?.header {
                Header::OfsDelta { base_distance } => at.checked_sub(base_distance),
                Header::RefDelta { base_id } => {
                    index.lookup(base_id).map(|place| index.pack_offset_at_index(place))
                }
                _ => None,
            };
            let end = data.pack_end() as u64;
            let mut depths: HashMap<u64, usize> = HashMap::new();
            let mut row = Vec::new();
            for entry in index.iter() {
                let mut at = entry.pack_offset;
                // Down to what is known, or is not a delta, and back up.
                let mut depth = loop {
                    if let Some(depth) = depths.get(&at) {
                        break *depth;
                    }
                    row.push(at);
                    if row.len() > DEEPEST + 1 {
                        return true;
                    }
                    match base_of(at).filter(|base| *base < end) {
                        Some(base) => at = base,
                        None => {
                            row.pop();
                            depths.insert(at, 0);
                            break 0;
                        }
                    }
                };
                while let Some(at) = row.pop() {
                    depth += 1;
                    depths.insert(at, depth);
                }
                if depth > DEEPEST {
                    return true;
                }
            }
            false
        })
    }

    /// Kind and length of the object `id`, which stands at `offset`, as its pack has them.
    pub(super) fn header(
        &self,
        id: ObjectId,
        offset: u64,
        kept: &mut RecentObjects,
    ) -> Result<(Kind, u64)> {
        let data = self.data_for(id)?;
        let mut header = || {
            let Chain { deltas, base, .. } = self.chain(data, offset, kept)?;
            let (kind, length) = match &base {
                Base::Recent(found) => (found.kind, found.data.len() as u64),
                Base::Entry(kind, entry) => (*kind, entry.decompressed_size),
            };
            let length = match deltas.first() {
                None => length,
                Some((_, entry)) => {
                    // The lengths of the base and of itself, ten bytes each at most.
                    let mut begin = [0; 20];
                    let begin = begin_of(data, entry, &mut kept.zlib, &mut begin)?;
                    delta::length_of(begin).ok_or("its delta has no length")?
                }
            };
            if length > longest(kind) { Err(TOO_LONG) } else { Ok((kind, length)) }
        };
        header().map_err(|why: Fault| self.damaged(id, why))
    }
}

/// What the deltas of an object are, the last one first, and what the first of them is a delta of.
struct Chain {
    deltas: Vec<(u64, data::Entry)>,
    base: Base,
    base_at: u64,
}

enum Base {
    Recent(RecentObject),
    Entry(Kind, data::Entry),
}

/// An object in its pack.
pub(super) struct StandingEntry {
    pub id: ObjectId,
    crc32: Option<u32>,
    pub span: Range<u64>,
}

impl StandingEntry {
    /// Returns the entry's bytes, if they have the checksum that the index keeps of them.
    pub(super) fn sound_bytes<'p>(&self, pack: &'p data::File) -> Option<&'p [u8]> {
        let raw = pack.entry_slice(self.span.clone());
        raw.filter(|raw| self.crc32 == Some(crc32fast::hash(raw)))
    }
}

/// Returns the objects of a pack in the order in which they stand there.
pub(super) fn as_they_stand(index: &index::File, end_of_last: u64) -> Vec<StandingEntry> {
    let entry = |found: index::Entry| StandingEntry {
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

/// What an entry of a pack is a delta of.
pub(super) enum EntryBase {
    /// It is not a delta.
    None,
    At(u64),
    /// A git may have named it by its id, so that it may stand anywhere; or the entry cannot be read.
    Unknown,
}

/// Returns what the entry at this place is a delta of.
pub(super) fn base_of(data: &data::File, at: u64) -> EntryBase {
    match data.entry(at).map(|entry| entry.header) {
        Ok(Header::OfsDelta { base_distance }) => {
            at.checked_sub(base_distance).map_or(EntryBase::Unknown, EntryBase::At)
        }
        Ok(Header::RefDelta { .. }) | Err(_) => EntryBase::Unknown,
        Ok(_) => EntryBase::None,
    }
}

/// Open a file once. What is wrong with the file stays so; what the system could not do just now is an error, and is tried again.
fn open<'c, T>(
    cell: &'c OnceLock<Opened<T>>,
    path: &Path,
    open: impl FnOnce(&Path) -> gix::Result<T>,
) -> Result<&'c Opened<T>> {
    if let Some(opened) = cell.get() {
        return Ok(opened);
    }
    let opened = match std::fs::metadata(path) {
        // A pipe would keep us waiting.
        Ok(found) if !found.is_file() => Opened::Damaged("it is not a file".into()),
        Ok(_) => match open(path) {
            Ok(file) => Opened::Whole(file),
            Err(error) => match error.downcast_any_ref::<io::Error>() {
                Some(error) if error.kind() == io::ErrorKind::NotFound => Opened::Gone,
                Some(error) => {
                    return Err(Error::Io { path: path.to_owned(), source: again(error) });
                }
                None => Opened::Damaged(error.to_string()),
            },
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Opened::Gone,
        Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    // Another thread may have been quicker; then its is as good.
    Ok(cell.get_or_init(|| opened))
}

/// An error of the system's, once more.
pub(super) fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
