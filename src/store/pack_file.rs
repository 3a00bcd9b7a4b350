//! Reads objects from a pack, including those that are stored as deltas.
//!
//! Git's library caches decoded objects but not their delta bases. In a pack of `gc`, many messages
//! have the same volume as their base (see `volume`), and the volume would be inflated again for
//! each message. So this module caches bases.
//!
//! A pack may come from anywhere, so its recorded lengths are not trusted. No object may exceed the
//! limit of its kind, or the length that zlib could produce from the bytes in the pack. Memory is
//! allocated as bytes arrive. The depth of delta chains is limited.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};

use super::inflate::{Fault, InflateResult, TOO_LONG, begin_of, inflate};
use super::limits::{LONG_BLOB, longest};
use super::recent_objects::{RecentObject, RecentObjects};
use super::{Error, Kind, ObjectId, Result, delta};

/// Maximum length of a delta chain. Git writes at most 4095.
const MAX_DELTA_DEPTH: usize = 4096;
/// Length of a delta chain above which all its objects are cached, because readers often begin at
/// the end of a chain. From this length on, the pack is also checked for chains longer than
/// [`MAX_DELTA_DEPTH`]. A pack with such a chain was made to exhaust time and memory, and its deep
/// objects are not read.
const DEEP: usize = 64;
/// Maximum length, in bytes, of objects that are cached whatever the length of their chain.
/// Histories are read from the end and consist of small objects.
const SMALL: usize = 32 << 10;
/// Maximum total length, in bytes, of all objects that are decoded to read one object.
const MOST_MADE: u64 = 32 << 30;
const TOO_DEEP: Fault = "has a chain of more than 4096 deltas, which git never writes";

/// A pack with its index, each opened on first use; shared by all readers.
pub(super) struct PackFile {
    path: PathBuf,
    number: u64,
    index: OnceLock<OpenResult<index::File>>,
    data: OnceLock<OpenResult<data::File>>,
    is_too_deep: OnceLock<bool>,
}

/// An opened file, or a permanent failure to open it. A temporary failure is returned as an error
/// instead.
pub(super) enum OpenResult<T> {
    Whole(T),
    Damaged(String),
    Gone,
}

impl<T> OpenResult<T> {
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Whole(_) => None,
            Self::Damaged(why) => Some(why),
            Self::Gone => Some("it is missing"),
        }
    }

    /// Returns the opened file. Fails if the file is missing or damaged; the error names `path`,
    /// the index of the pack.
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
    pub(super) fn new(path: PathBuf) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (index, data, is_too_deep) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { path, number, index, data, is_too_deep }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.index.get(), Some(OpenResult::Gone))
            || matches!(self.data.get(), Some(OpenResult::Gone))
    }

    pub(super) fn index(&self) -> Result<&OpenResult<index::File>> {
        open(&self.index, &self.path, |path| index::File::at(path, gix::hash::Kind::Sha1))
    }

    pub(super) fn data(&self) -> Result<&OpenResult<data::File>> {
        let path = self.path.with_extension("pack");
        open(&self.data, &path, |path| data::File::at(path, gix::hash::Kind::Sha1))
    }

    /// Calls `take` for each stretch of a pack that is read from start to end. Opens the pack again
    /// between two stretches: pages that were read stay mapped until then, and the system counts
    /// them as memory of this process.
    pub(super) fn in_windows<T>(
        &self,
        stretches: Vec<T>,
        mut take: impl FnMut(T, &data::File, &Self) -> Result<()>,
    ) -> Result<()> {
        let mut window = self.opened_again()?;
        for (n, stretch) in stretches.into_iter().enumerate() {
            // If the pack was removed in the meantime, the open file can still be read.
            let again = if n > 0 { self.opened_again()? } else { None };
            window = again.or(window);
            let file = window.as_ref().unwrap_or(self);
            take(stretch, file.data()?.whole(&self.path)?, file)?;
        }
        Ok(())
    }

    fn opened_again(&self) -> Result<Option<Self>> {
        let is_too_deep = self.is_too_deep.clone();
        let again = Self { is_too_deep, ..Self::new(self.path.clone()) };
        let is_open = again.index()?.problem().is_none() && again.data()?.problem().is_none();
        Ok(is_open.then_some(again))
    }

    pub(super) fn offset_of(&self, id: ObjectId) -> Result<Option<u64>> {
        Ok(match self.index()? {
            OpenResult::Whole(index) => {
                index.lookup(id).map(|place| index.pack_offset_at_index(place))
            }
            OpenResult::Damaged(_) | OpenResult::Gone => None,
        })
    }

    /// Returns the entry at this offset if it is a blob longer than [`LONG_BLOB`] and not a delta.
    pub(super) fn long_entry(&self, offset: u64) -> Result<Option<data::Entry>> {
        let OpenResult::Whole(data) = self.data()? else { return Ok(None) };
        let is_long = |entry: &data::Entry| {
            entry.header == Header::Blob
                && (LONG_BLOB + 1..=longest(Kind::Blob)).contains(&entry.decompressed_size)
        };
        let is_there = offset < data.pack_end() as u64;
        Ok(data.entry(offset).ok().filter(is_long).filter(|_| is_there))
    }

    fn data_for(&self, id: ObjectId) -> Result<&data::File> {
        match self.data()? {
            OpenResult::Whole(data) => Ok(data),
            OpenResult::Damaged(why) => Err(Error::Damaged { id, why: why.clone() }),
            OpenResult::Gone => Err(Error::Missing { id }),
        }
    }

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
    ) -> InflateResult<Kind> {
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
        // The intermediate objects and the object itself may be bases of objects that are read
        // next, so they are cached.
        let many = deltas.len() > DEEP;
        let last = deltas.len() - 1;
        let mut delta = std::mem::take(&mut kept.delta);
        let mut made = 0;
        for (n, (at, entry)) in deltas.iter().rev().enumerate() {
            inflate(data, entry, longest(Kind::Blob), &mut kept.zlib, &mut delta)?;
            let mut whole = Vec::new();
            delta::apply(&base, &delta, longest(kind), &mut whole)
                .ok_or("one of its deltas does not fit its base")?;
            made += whole.len() as u64;
            if made > MOST_MADE {
                return Err("its delta chain is too large");
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

    fn chain(
        &self,
        data: &data::File,
        offset: u64,
        kept: &mut RecentObjects,
    ) -> InflateResult<Chain> {
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
                return Err("its offset is beyond the end of its pack");
            }
            let entry = data.entry(at).map_err(|_| "its header cannot be read")?;
            let Some(next) = self.base_offset(&entry)? else {
                let kind = entry.header.as_kind().ok_or("its kind is unknown")?;
                return Ok(Chain { deltas, base: Base::Entry(kind, entry), base_at: at });
            };
            deltas.push((at, entry));
            at = next;
        }
    }

    /// Returns the offset of a delta's base; `None` for an object that is not a delta.
    fn base_offset(&self, entry: &data::Entry) -> InflateResult<Option<u64>> {
        match (entry.header, self.index.get()) {
            (Header::OfsDelta { base_distance }, _) => entry
                .checked_base_pack_offset(base_distance)
                .map(Some)
                .ok_or("the offset of its delta base is before the start of its pack"),
            (Header::RefDelta { base_id }, Some(OpenResult::Whole(index))) => index
                .lookup(base_id)
                .map(|place| Some(index.pack_offset_at_index(place)))
                .ok_or("its delta base is not in its pack"),
            (Header::RefDelta { .. }, _) => Err("its delta base is not in its pack"),
            _ => Ok(None),
        }
    }

    /// Whether the pack contains a delta chain that is a cycle or longer than [`MAX_DELTA_DEPTH`].
    /// Reads only the headers of entries, each once.
    fn is_too_deep(&self, data: &data::File) -> bool {
        *self.is_too_deep.get_or_init(|| {
            let Some(OpenResult::Whole(index)) = self.index.get() else { return true };
            let base_of = |at: u64| self.base_offset(&data.entry(at).ok()?).ok().flatten();
            let end = data.pack_end() as u64;
            let mut depths: HashMap<u64, usize> = HashMap::new();
            let mut row = Vec::new();
            for entry in index.iter() {
                let mut at = entry.pack_offset;
                // Follows the chain to an entry whose depth is known, or that is not a delta. The
                // loop below sets the depths of the entries in between.
                let mut depth = loop {
                    if let Some(depth) = depths.get(&at) {
                        break *depth;
                    }
                    row.push(at);
                    if row.len() > MAX_DELTA_DEPTH + 1 {
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
                if depth > MAX_DELTA_DEPTH {
                    return true;
                }
            }
            false
        })
    }

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
                    // A delta begins with the lengths of its base and its result, at most ten bytes
                    // each.
                    let mut begin = [0; 20];
                    let begin = begin_of(data, entry, &mut kept.zlib, &mut begin)?;
                    delta::length_of(begin).ok_or("its delta does not record a length")?
                }
            };
            if length > longest(kind) { Err(TOO_LONG) } else { Ok((kind, length)) }
        };
        header().map_err(|why: Fault| self.damaged(id, why))
    }
}

struct Chain {
    deltas: Vec<(u64, data::Entry)>,
    base: Base,
    base_at: u64,
}

enum Base {
    Recent(RecentObject),
    Entry(Kind, data::Entry),
}

/// Opens a file at the first call and stores the result in `cell`. A temporary failure is returned
/// as an error and not stored, so the next call tries again.
fn open<'c, T>(
    cell: &'c OnceLock<OpenResult<T>>,
    path: &Path,
    open: impl FnOnce(&Path) -> gix::Result<T>,
) -> Result<&'c OpenResult<T>> {
    if let Some(opened) = cell.get() {
        return Ok(opened);
    }
    let opened = match std::fs::metadata(path) {
        // Opening a pipe would block.
        Ok(found) if !found.is_file() => OpenResult::Damaged("it is not a file".into()),
        Ok(_) => match open(path) {
            Ok(file) => OpenResult::Whole(file),
            Err(error) => match error.downcast_any_ref::<io::Error>() {
                Some(error) if error.kind() == io::ErrorKind::NotFound => OpenResult::Gone,
                Some(error) => {
                    return Err(Error::Io { path: path.to_owned(), source: again(error) });
                }
                None => OpenResult::Damaged(error.to_string()),
            },
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => OpenResult::Gone,
        Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    // If another thread has opened the file first, its result is used.
    Ok(cell.get_or_init(|| opened))
}

pub(super) fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
