//! Reading a pack: whole objects and deltas.
//!
//! Git's library keeps the objects that deltas led to, but not what they were made of; in a pack of `gc` many messages are made of one volume, which would be inflated anew
//! for every one of them. Here what deltas are made of is kept.
//!
//! A pack may come from anywhere, so what it says of itself is believed only as far as its bytes allow: no object is longer than its kind may be, nor than zlib could make it of the
//! bytes that are there; memory is taken as bytes come, not as they are promised; deltas of deltas end somewhere.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gix::odb::pack::data::entry::Header;
use gix::odb::pack::{data, index};
use gix::zlib::{Decompress, FlushDecompress, Inflate, Status};

use super::{Error, Kind, ObjectId, Result, delta, longest};

/// How much of what deltas are made of a reader keeps.
const KEPT_BYTES: usize = 16 << 20;
/// More deltas in a row than any git makes: it stops at 4095.
const DEEPEST: usize = 4096;
/// From here on everything on the way is kept: whoever reads such a row from its end would else begin anew for each. And the pack is asked for its longest row before: one with a longer row
/// than any git makes was made to use up time and memory, and nothing so deep is read from it.
const DEEP: usize = 64;
/// What is not longer is kept in any row: histories are read from their end, and their commits and trees are small.
const SMALL: usize = 32 << 10;
/// How much may be made on the way to one object, all its bases together.
const MOST_MADE: u64 = 32 << 30;
/// Up to this length memory is taken at once.
const AT_ONCE: usize = 1 << 20;
/// No stream of zlib's is longer than this many times what it is made of.
pub(super) const ZLIB_RATIO: u64 = 1032;

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
    /// What is wrong with it.
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

/// Why an object of a pack cannot be made.
type Fault = &'static str;

type Made<T> = std::result::Result<T, Fault>;

/// The objects of a pack in the order in which they stand there, each with where it ends.
pub(super) fn as_they_stand(index: &index::File, end_of_last: u64) -> Vec<(index::Entry, u64)> {
    let mut entries: Vec<_> = index.iter().collect();
    entries.sort_by_key(|entry| entry.pack_offset);
    let ends = entries.iter().skip(1).map(|entry| entry.pack_offset).chain([end_of_last]);
    let ends: Vec<_> = ends.collect();
    entries.into_iter().zip(ends).collect()
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

/// What inflates.
struct Zlib {
    /// Whole objects that are not long. Most are short, and libdeflate takes a third of the time that zlib does for those.
    once: libdeflater::Decompressor,
    /// Their beginnings.
    begin: Option<Inflate>,
    /// Long ones, piece by piece.
    stream: Option<Decompress>,
}

impl Default for Zlib {
    fn default() -> Self {
        Self { once: libdeflater::Decompressor::new(), begin: None, stream: None }
    }
}

const TOO_DEEP: Fault = "has an object that is made of more than 4096 deltas, as git writes none";
const TORN: Fault = "its bytes cannot be unpacked";
const TOO_LONG: Fault = "it says that it is longer than any such object";

/// What an entry holds, into `out`.
fn inflate(
    data: &data::File,
    entry: &data::Entry,
    longest: u64,
    zlib: &mut Zlib,
    out: &mut Vec<u8>,
) -> Made<()> {
    let size = entry.decompressed_size;
    let there = (data.pack_end() as u64).saturating_sub(entry.data_offset);
    if size > longest {
        return Err(TOO_LONG);
    }
    if size > there.saturating_mul(ZLIB_RATIO) {
        return Err("it says that it is longer than its pack can make it");
    }
    let size = usize::try_from(size).map_err(|_| TORN)?;
    let input = data.entry_slice(entry.data_offset..data.pack_end() as u64).ok_or(TORN)?;
    out.clear();
    if size <= AT_ONCE {
        out.resize(size, 0);
        // One that would be longer does not fit, and is refused; one that ends early is not what its entry says.
        let made = zlib.once.zlib_decompress(input, out).map_err(|_| TORN)?;
        return if made == size { Ok(()) } else { Err(TORN) };
    }
    inflate_pieces(input, size, zlib.stream.get_or_insert_default(), out)
}

/// Just `size` bytes, in memory that grows as they come.
fn inflate_pieces(
    mut input: &[u8],
    size: usize,
    stream: &mut Decompress,
    out: &mut Vec<u8>,
) -> Made<()> {
    stream.reset();
    let mut filled = 0;
    loop {
        // One more than there may be: only then is it seen that the stream ends where it should.
        let room = (filled * 2).clamp(AT_ONCE, size + 1);
        if out.len() < room {
            out.try_reserve_exact(room - out.len()).map_err(|_| "it needs too much memory")?;
            out.resize(room, 0);
        }
        let (taken, written) = (stream.total_in(), stream.total_out());
        let status = stream.decompress(input, &mut out[filled..], FlushDecompress::None);
        let status = status.map_err(|_| TORN)?;
        let (taken, written) = (stream.total_in() - taken, stream.total_out() - written);
        input = &input[taken as usize..];
        filled += written as usize;
        match status {
            Status::StreamEnd if filled == size => {
                out.truncate(size);
                return Ok(());
            }
            Status::StreamEnd => return Err(TORN),
            Status::Ok | Status::BufError if filled > size || (taken == 0 && written == 0) => {
                return Err(TORN);
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

/// The first bytes of what an entry holds.
fn begin_of<'b>(
    data: &data::File,
    entry: &data::Entry,
    zlib: &mut Zlib,
    begin: &'b mut [u8],
) -> Made<&'b [u8]> {
    let input = data.entry_slice(entry.data_offset..data.pack_end() as u64).ok_or(TORN)?;
    let zlib = zlib.begin.get_or_insert_default();
    zlib.reset();
    let (_, _, length) = zlib.prefix(input, begin).map_err(|_| TORN)?;
    Ok(&begin[..length])
}

/// What a reader keeps of what deltas are made of.
#[derive(Default)]
pub(super) struct RecentObjects {
    /// By pack and offset.
    objects: HashMap<(u64, u64), RecentObject>,
    /// In the order in which they came: the oldest goes first, unless it was asked for since.
    order: VecDeque<(u64, u64)>,
    bytes: usize,
    zlib: Zlib,
    /// The delta at work.
    delta: Vec<u8>,
}

#[derive(Clone)]
struct RecentObject {
    kind: Kind,
    /// How many deltas it is made of.
    depth: usize,
    data: Arc<Vec<u8>>,
    /// It was asked for since it came, or since it was spared.
    is_used: bool,
}

impl RecentObjects {
    fn get(&mut self, place: (u64, u64)) -> Option<RecentObject> {
        let found = self.objects.get_mut(&place)?;
        found.is_used = true;
        Some(found.clone())
    }

    fn put(&mut self, place: (u64, u64), kind: Kind, depth: usize, data: &Arc<Vec<u8>>) {
        if data.len() > KEPT_BYTES / 2 || self.objects.contains_key(&place) {
            return;
        }
        self.bytes += data.len() + 64;
        let data = Arc::clone(data);
        self.objects.insert(place, RecentObject { kind, depth, data, is_used: false });
        self.order.push_back(place);
        while self.bytes > KEPT_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            match self.objects.get_mut(&oldest) {
                Some(used) if used.is_used => {
                    used.is_used = false;
                    self.order.push_back(oldest);
                }
                _ => {
                    let gone = self.objects.remove(&oldest);
                    self.bytes -= gone.map_or(0, |gone| gone.data.len() + 64);
                }
            }
        }
    }
}
