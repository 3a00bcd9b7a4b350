//! Reading a pack: whole objects and deltas.
//!
//! Git's library keeps the objects that deltas led to, but not their bases; in a pack of `gc` many
//! messages have one volume as base, which would be inflated again for every one of them. Here the
//! bases are kept.
//!
//! A pack may come from anywhere, so what it says of itself is believed only as far as its bytes
//! allow: no object is longer than its kind may be, nor than zlib could make it of the bytes that
//! are there; memory is taken as bytes come, not as they are promised; chains of deltas end.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};

use super::inflate::{Fault, Made, TOO_LONG, begin_of, inflate};
use super::limits::longest;
use super::recent_objects::{RecentObject, RecentObjects};
use super::{Error, Kind, ObjectId, Result, delta};

/// A longer chain of deltas than any git makes: it stops at 4095.
const DEEPEST: usize = 4096;
/// From this depth on all objects of a chain are kept, for readers that begin at its end. And the
/// pack is checked for longer chains than git makes: such a pack was made to use up time and
/// memory, and nothing so deep is read of it.
const DEEP: usize = 64;
/// Shorter objects of any chain are kept: histories are read from the end, and are of small
/// objects.
const SMALL: usize = 32 << 10;
/// How much may be made on the way to one object, all its bases together.
const MOST_MADE: u64 = 32 << 30;
const TOO_DEEP: Fault = "has an object that is made of more than 4096 deltas, as git writes none";

/// A pack with its index, each opened when it is needed; shared by all readers.
pub(super) struct PackFile {
    path: PathBuf,
    number: u64,
    index: OnceLock<Opened<index::File>>,
    data: OnceLock<Opened<data::File>>,
    is_too_deep: OnceLock<bool>,
}

/// An opened file, or a lasting failure. A passing failure is an error instead.
pub(super) enum Opened<T> {
    Whole(T),
    Damaged(String),
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

    /// Returns the file, which must be there and whole; `path` is the index's.
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
        matches!(self.index.get(), Some(Opened::Gone))
            || matches!(self.data.get(), Some(Opened::Gone))
    }

    pub(super) fn index(&self) -> Result<&Opened<index::File>> {
        open(&self.index, &self.path, |path| index::File::at(path, gix::hash::Kind::Sha1))
    }

    pub(super) fn data(&self) -> Result<&Opened<data::File>> {
        let path = self.path.with_extension("pack");
        open(&self.data, &path, |path| data::File::at(path, gix::hash::Kind::Sha1))
    }

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
        // Neighbours may have the objects on the way as bases, or this one itself.
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
            let Some(next) = self.base_offset(&entry)? else {
                let kind = entry.header.as_kind().ok_or("it is of no known kind")?;
                return Ok(Chain { deltas, base: Base::Entry(kind, entry), base_at: at });
            };
            deltas.push((at, entry));
            at = next;
        }
    }

    /// Returns where the base of a delta stands; `None` for a whole object.
    fn base_offset(&self, entry: &data::Entry) -> Made<Option<u64>> {
        match (entry.header, self.index.get()) {
            (Header::OfsDelta { base_distance }, _) => entry
                .checked_base_pack_offset(base_distance)
                .map(Some)
                .ok_or("what it is made of would stand before its pack"),
            (Header::RefDelta { base_id }, Some(Opened::Whole(index))) => index
                .lookup(base_id)
                .map(|place| Some(index.pack_offset_at_index(place)))
                .ok_or("what it is made of is not in its pack"),
            (Header::RefDelta { .. }, _) => Err("what it is made of is not in its pack"),
            _ => Ok(None),
        }
    }

    /// Whether a chain is longer than [`DEEPEST`], or a ring. Reads only headers, each once.
    fn is_too_deep(&self, data: &data::File) -> bool {
        *self.is_too_deep.get_or_init(|| {
            let Some(Opened::Whole(index)) = self.index.get() else { return true };
            let base_of = |at: u64| self.base_offset(&data.entry(at).ok()?).ok().flatten();
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
                    // The lengths of base and result, ten bytes each at most.
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

struct Chain {
    deltas: Vec<(u64, data::Entry)>,
    base: Base,
    base_at: u64,
}

enum Base {
    Recent(RecentObject),
    Entry(Kind, data::Entry),
}

/// Opens a file once. What the system could not do just now is an error, and is tried again.
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
    // Another thread may have been quicker.
    Ok(cell.get_or_init(|| opened))
}

pub(super) fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
