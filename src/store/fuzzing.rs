//! Fuzz targets of the store. Each target panics if its invariant does not hold. `src/fuzzing`
//! lists all targets.
//!
//! The *second reader* is a simple implementation of git's documented formats (the functions
//! `plain_*`), with which the store's results are compared.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzz target fails loudly")]

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use gix::zlib::{Decompress, FlushDecompress, Status};
use tempfile::TempDir;

use super::pack_entries::PackEntries;
use super::pack_file::{OpenResult, PackFile};
use super::pack_index::checksum;
use super::pack_index::{self, IndexEntry};
use super::recent_objects::RecentObjects;
use super::{Kind, ObjectId, Store, commit, delta, object, operation_log, tree};
use crate::progress::NoProgress;

/// Maximum length in bytes of an object that the second reader decodes. Longer objects are skipped,
/// because they test nothing new.
const MAX_OBJECT_BYTES: usize = 4 << 20;
/// Maximum number of entries that are read from one pack.
const MOST_ENTRIES: usize = 200;

/// Checks that applying a delta gives the same result as the second reader and does not allocate
/// much more memory than needed. Checks that an encoded delta yields its target.
///
/// The input is the length of the base in two bytes, the base, and bytes that are used first as a
/// delta and then as a target.
pub(crate) fn delta(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (base, second) = rest.split_at(length);
    let mut made = Vec::new();
    let applied = delta::apply(base, second, MAX_OBJECT_BYTES as u64, &mut made);
    assert_eq!(applied.map(|()| made.clone()), plain_apply(base, second));
    assert!(made.capacity() <= 2 * (made.len() + base.len() + second.len()) + 64);
    if applied.is_some() {
        assert_eq!(delta::length_of(second), Some(made.len() as u64));
    }
    let index = delta::Index::new(base);
    index.has_much_of(base, second);
    let encoded = delta::encode(base, &index, second, usize::MAX).expect("there is no limit");
    assert_eq!(plain_apply(base, &encoded).as_deref(), Some(second));
    let stretch = second.len().min(base.len())..base.len();
    let copied = delta::copy_of(base.len(), stretch.clone());
    assert_eq!(plain_apply(base, &copied).as_deref(), Some(&base[stretch]));
}

/// Applies a delta exactly as git's documentation describes it.
fn plain_apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = delta.iter().copied();
    let mut size = || {
        let (mut size, mut shift) = (0_u128, 0);
        loop {
            let byte = bytes.next()?;
            size |= u128::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 70)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(size);
            }
        }
    };
    let (from, to) = (size()?, size()?);
    if from != base.len() as u128 || to > MAX_OBJECT_BYTES as u128 {
        return None;
    }
    let mut made: Vec<u8> = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == 0 {
            return None;
        }
        if byte < 0x80 {
            for _ in 0..byte {
                made.push(bytes.next()?);
            }
        } else {
            let mut number = |bits: std::ops::Range<u32>| {
                let mut number = 0;
                for (place, bit) in bits.enumerate() {
                    if byte >> bit & 1 == 1 {
                        number |= usize::from(bytes.next()?) << (8 * place);
                    }
                }
                Some(number)
            };
            let offset = number(0..4)?;
            let length = number(4..7)?;
            let length = if length == 0 { 0x1_0000 } else { length };
            made.extend_from_slice(base.get(offset..offset + length)?);
        }
        if made.len() as u128 > to {
            return None;
        }
    }
    (made.len() as u128 == to).then_some(made)
}

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    static STORE: OnceCell<(TempDir, PathBuf, Vec<u8>)> = const { OnceCell::new() };
}

/// Checks that every object which the second reader decodes is read with the same kind and bytes,
/// and that no input makes the store's reader panic.
///
/// The input is a pack. This function creates its index, in which the id of each object begins with
/// the offset of the object.
pub(crate) fn pack(data: &[u8]) {
    let Some((content, _)) = data.split_last_chunk::<20>() else { return };
    let offsets = plain_offsets(content);
    let entry =
        |offset: &usize| IndexEntry { id: id_at(*offset), crc32: 0, offset: *offset as u64 };
    let mut entries: Vec<_> = offsets.iter().map(entry).collect();
    let index = pack_index::encode(&mut entries, ObjectId::from([0; 20]));
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().expect("a folder can be made"));
        let path = folder.path().join("pack-fuzz.idx");
        fs::write(&path, index).expect("a file can be written");
        fs::write(path.with_extension("pack"), data).expect("a file can be written");
        let pack = PackFile::new(path);
        let (mut kept, mut out) = (RecentObjects::default(), Vec::new());
        for &offset in offsets.iter().rev() {
            let (id, at) = (id_at(offset), offset as u64);
            assert!(pack.offset_of(id).is_ok_and(|found| found == Some(at)));
            let expected = match plain_read(content, &offsets, offset, 0) {
                Err(TooLong) => continue,
                Ok(expected) => expected,
            };
            let header = pack.header(id, at, &mut RecentObjects::default());
            let read = pack.read(id, at, &mut kept, &mut out);
            let again = pack.read(id, at, &mut RecentObjects::default(), &mut Vec::new());
            assert_eq!(read.as_ref().ok(), again.as_ref().ok());
            if let Ok(kind) = read {
                let header = header.expect("what can be read has a header");
                assert_eq!(header, (kind, out.len() as u64));
            }
            if let Some((number, bytes)) = expected {
                let kind = read.expect("a second reader reads it");
                assert_eq!((number_of(kind), &out), (number, &bytes));
            }
        }
        if let Ok(OpenResult::Whole(index)) = pack.index() {
            PackEntries::new(index, content.len() as u64).iter().for_each(drop);
        }
    });
}

fn id_at(offset: usize) -> ObjectId {
    let mut id = [0; 20];
    id[..4].copy_from_slice(&(offset as u32).to_be_bytes());
    ObjectId::from(id)
}

fn number_of(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// Entry of a pack, as the second reader parses it.
struct PlainEntry {
    kind: u8,
    size: u64,
    base: Option<usize>,
    /// Offset in the pack at which the zlib stream of the entry begins.
    stream: usize,
}

fn plain_entry(pack: &[u8], at: usize) -> Option<PlainEntry> {
    let mut next = at;
    let mut byte = || {
        let byte = *pack.get(next)?;
        next += 1;
        Some(byte)
    };
    let first = byte()?;
    let (kind, mut size) = (first >> 4 & 7, u128::from(first & 15));
    let (mut more, mut shift) = (first & 0x80 != 0, 4);
    while more {
        let byte = byte()?;
        size |= u128::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 70)?;
        (more, shift) = (byte & 0x80 != 0, shift + 7);
    }
    let base = match kind {
        1..=4 => None,
        6 => {
            let mut part = byte()?;
            let mut distance = u128::from(part & 0x7f);
            while part & 0x80 != 0 {
                part = byte()?;
                distance = (distance + 1) << 7 | u128::from(part & 0x7f);
                if distance > u128::from(u64::MAX) {
                    return None;
                }
            }
            Some(usize::try_from(distance).ok().and_then(|distance| at.checked_sub(distance))?)
        }
        7 => {
            let id: [u8; 20] = pack.get(next..next + 20)?.try_into().ok()?;
            next += 20;
            let offset = u32::from_be_bytes([id[0], id[1], id[2], id[3]]) as usize;
            // Any other id gives an offset beyond the end of the pack.
            Some(if id_at(offset) == ObjectId::from(id) { offset } else { usize::MAX })
        }
        _ => return None,
    };
    Some(PlainEntry { kind, size: size.try_into().ok()?, base, stream: next })
}

/// Returns the offsets of entries, one after the other, up to and including the first entry that
/// cannot be read.
fn plain_offsets(pack: &[u8]) -> Vec<usize> {
    let (mut offsets, mut at) = (Vec::new(), 12);
    while at < pack.len() && offsets.len() < MOST_ENTRIES {
        offsets.push(at);
        let entry = plain_entry(pack, at);
        let inflated = entry.and_then(|entry| {
            let length = plain_inflate(&pack[entry.stream..], MAX_OBJECT_BYTES).ok()??.1;
            Some(entry.stream + length)
        });
        match inflated {
            Some(end) => at = end,
            None => break,
        }
    }
    offsets
}

struct TooLong;

/// Returns the kind and bytes of an object; `None` if it is damaged.
fn plain_read(
    pack: &[u8],
    offsets: &[usize],
    at: usize,
    depth: usize,
) -> Result<Option<(u8, Vec<u8>)>, TooLong> {
    // The second reader does not handle longer delta chains.
    if depth > 100 {
        return Err(TooLong);
    }
    if !pack.starts_with(b"PACK\0\0\0\x02") && !pack.starts_with(b"PACK\0\0\0\x03") {
        return Ok(None);
    }
    let Some(entry) = plain_entry(pack, at).filter(|_| at >= 12 && at < pack.len()) else {
        return Ok(None);
    };
    let Some((bytes, _)) = plain_inflate(&pack[entry.stream..], MAX_OBJECT_BYTES)? else {
        return Ok(None);
    };
    if bytes.len() as u64 != entry.size {
        return Ok(None);
    }
    let Some(base) = entry.base else { return Ok(Some((entry.kind, bytes))) };
    if base == at || base >= pack.len() || entry.kind == 7 && !offsets.contains(&base) {
        return Ok(None);
    }
    if delta::length_of(&bytes).is_some_and(|length| length > MAX_OBJECT_BYTES as u64) {
        return Err(TooLong);
    }
    let Some((kind, base)) = plain_read(pack, offsets, base, depth + 1)? else { return Ok(None) };
    Ok(plain_apply(&base, &bytes).map(|bytes| (kind, bytes)))
}

/// Returns the content of a zlib stream and the length of the stream itself; `None` if the stream
/// is damaged.
fn plain_inflate(input: &[u8], longest: usize) -> Result<Option<(Vec<u8>, usize)>, TooLong> {
    let mut stream = Decompress::new();
    let mut out = Vec::new();
    loop {
        let (taken, made) = (stream.total_in() as usize, stream.total_out() as usize);
        if made > longest {
            return Err(TooLong);
        }
        out.resize(made + 4096, 0);
        let status = stream.decompress(&input[taken..], &mut out[made..], FlushDecompress::None);
        let moved = (stream.total_in() as usize, stream.total_out() as usize) != (taken, made);
        match status {
            Ok(Status::StreamEnd) => {
                out.truncate(stream.total_out() as usize);
                return Ok(Some((out, stream.total_in() as usize)));
            }
            Ok(_) if moved => {}
            _ => return Ok(None),
        }
    }
}

/// Checks that `verify_objects` reports a damaged index instead of failing, that encoding a valid
/// index again gives equal bytes, and that an object which is found through the index has the
/// requested id.
///
/// The input is an index for the pack of [`sample_pack`]. It is tested unchanged, and with a
/// corrected checksum.
pub(crate) fn pack_index(data: &[u8]) {
    one_index(data);
    if let Some((content, _)) = data.split_last_chunk::<20>() {
        one_index(&[content, checksum(content).as_slice()].concat());
    }
}

fn one_index(data: &[u8]) {
    STORE.with(|made| {
        let (folder, index, pack) = made.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder can be made");
            let store = Store::create(&folder.path().join("store")).expect("a store can be made");
            let pack = sample_pack(&store);
            let bytes = fs::read(&pack).expect("a pack can be read");
            (folder, pack.with_extension("idx"), bytes)
        });
        fs::write(index, data).expect("a file can be written");
        let store = Store::open(&folder.path().join("store")).expect("a store can be opened");
        let health = store.verify_objects(&mut NoProgress).expect("a damaged index is an answer");
        let file = PackFile::new(index.clone());
        let Ok(OpenResult::Whole(opened)) = file.index() else { return };
        let reader = store.reader();
        let mut entries = Vec::new();
        for entry in opened.iter().take(MOST_ENTRIES) {
            let (offset, mut out) = (entry.pack_offset, Vec::new());
            let _ = file.read(entry.oid, offset, &mut RecentObjects::default(), &mut out);
            if let Ok(Some(kind)) = reader.kind(entry.oid)
                && reader.read(entry.oid, kind, &mut out).is_ok()
            {
                assert_eq!(object::hash(kind, &out).ok(), Some(entry.oid));
            }
            let crc32 = entry.crc32.unwrap_or_default();
            entries.push(IndexEntry { id: entry.oid, crc32, offset });
        }
        PackEntries::new(opened, pack.len() as u64 - 20).iter().for_each(drop);
        if health.files.is_empty() && health.damaged.is_empty() && data.starts_with(b"\xfftOc") {
            let checksum = ObjectId::from_bytes_or_panic(&pack[pack.len() - 20..]);
            assert_eq!(pack_index::encode(&mut entries, checksum), data, "a valid index is ours");
        }
    });
}

/// Writes a small pack of blobs and a tree, without deltas, into a store. Returns the path of the
/// pack.
pub(crate) fn sample_pack(store: &Store) -> PathBuf {
    let mut pack = store.pack_writer();
    let blob =
        pack.add(Kind::Blob, b"{\"name\":\"Mira\",\"mes\":\"The tide is low.\"}").expect("added");
    pack.add(Kind::Blob, &b"The tide is high. ".repeat(50)).expect("added");
    pack.add(Kind::Blob, b"").expect("added");
    let tree = tree::encode(&[tree::TreeEntry::blob("a.json", blob)]);
    pack.add(Kind::Tree, &tree).expect("added");
    let index = pack.finish().expect("the pack is written").expect("the pack has objects");
    index.with_extension("pack")
}

/// Checks that a tree which git accepts is encoded to equal bytes, and that a commit keeps its tree
/// and parents when it is encoded again. The input is decoded both as a tree and as a commit.
pub(crate) fn tree(data: &[u8]) {
    let id = ObjectId::from([1; 20]);
    let raw = tree::decode_raw(id, data);
    if let Ok(raw) = &raw {
        let is_plain =
            |entry: &tree::TreeEntry| matches!(entry.mode, tree::Mode::File | tree::Mode::Folder);
        if raw.is_gits && raw.entries.iter().all(is_plain) {
            assert_eq!(tree::encode(&raw.entries), data);
        }
    }
    if let Ok(raw) = &raw {
        let found: Vec<_> = tree::entries(data).flatten().collect();
        assert_eq!(found.len(), raw.entries.len());
    }
    if let Ok(read) = commit::decode(id, data) {
        let encoded = commit::encode(&read.clone().into());
        let again = commit::decode(id, &encoded).expect("an encoded commit is a commit");
        assert_eq!((again.tree, &again.parents), (read.tree, &read.parents));
        let encoded_again = commit::encode(&again.into());
        assert_eq!(
            commit::encode(&commit::decode(id, &encoded_again).expect("a commit").into()),
            encoded_again
        );
    }
}

/// Adds the correct checksum to each line of a log that has none. Panics if an operation changes
/// when it is encoded and decoded again.
pub(crate) fn sealed_log(data: &[u8]) -> Vec<u8> {
    let mut log = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let sealed = match line.strip_suffix(b"}") {
            Some(open) if !line.ends_with(b"\"}") || !contains(line, b",\"check\":\"") => {
                operation_log::seal(open.to_vec())
            }
            _ => [line, b"\n"].concat(),
        };
        if let Some(operation_log::Line::Operation(read)) =
            operation_log::decode(sealed.strip_suffix(b"\n").unwrap_or(&sealed))
        {
            let again = operation_log::encode(&read).expect("an operation can be written");
            let again = operation_log::decode(again.strip_suffix(b"\n").unwrap_or(&again));
            let Some(operation_log::Line::Operation(again)) = again else {
                panic!("what was written is an operation")
            };
            assert_eq!(again, read);
        }
        log.extend(sealed);
    }
    log
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(line, part).is_some()
}

/// Returns sample packs by name: one without deltas, one with both kinds of deltas, and one with a
/// long delta chain.
#[cfg(test)]
pub(crate) fn pack_seeds() -> std::collections::BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("store")).unwrap();
    let whole = fs::read(sample_pack(&store)).unwrap();
    let base = b"The tide is low, and the ferry waits at the pier.".repeat(2);
    let change = |n: u8| {
        let target = [&base[..40], &[n], &base[40..]].concat();
        (delta::encode(&base, &delta::Index::new(&base), &target, 1000).unwrap(), target)
    };
    let mut deltas = PackBytes::new();
    let first = deltas.add(3, &[], &base);
    let distance = deltas.0.len() - first;
    deltas.add(6, &[distance as u8], &change(b'a').0);
    deltas.add(7, id_at(first).as_slice(), &change(b'b').0);
    let mut row = PackBytes::new();
    let mut last = row.add(1, &[], b"tree of nothing");
    for _ in 0..70 {
        let distance = row.0.len() - last;
        last = row.add(6, &[distance as u8], &delta::copy_of(15, 0..15));
    }
    [("whole", whole), ("deltas", deltas.seal()), ("row", row.seal())]
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect()
}

#[cfg(test)]
struct PackBytes(Vec<u8>);

#[cfg(test)]
impl PackBytes {
    fn new() -> Self {
        Self(b"PACK\0\0\0\x02\0\0\0\x03".to_vec())
    }

    fn add(&mut self, kind: u8, base: &[u8], bytes: &[u8]) -> usize {
        let at = self.0.len();
        let mut size = bytes.len() >> 4;
        let more = |size: usize| if size > 0 { 0x80 } else { 0 };
        self.0.push(kind << 4 | (bytes.len() & 15) as u8 | more(size));
        while size > 0 {
            self.0.push((size & 0x7f) as u8 | more(size >> 7));
            size >>= 7;
        }
        self.0.extend_from_slice(base);
        let mut compressor = super::compressor::Compressor::new(super::compressor::Effort::Quick);
        self.0.extend_from_slice(&compressor.compress(bytes).unwrap());
        at
    }

    fn seal(self) -> Vec<u8> {
        [self.0.as_slice(), checksum(&self.0).as_slice()].concat()
    }
}

/// Returns indices of the sample pack by name: version 2 as stvc writes it, version 1, and version
/// 2 with 8-byte offsets.
#[cfg(test)]
pub(crate) fn index_seeds() -> std::collections::BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("store")).unwrap();
    let path = sample_pack(&store).with_extension("idx");
    let second = fs::read(&path).unwrap();
    let pack = PackFile::new(path);
    let index = pack.index().unwrap().whole(pack.path()).unwrap();
    let mut first = second[8..8 + 1024].to_vec();
    for entry in index.iter() {
        first.extend((entry.pack_offset as u32).to_be_bytes());
        first.extend(entry.oid.as_slice());
    }
    first.extend(&second[second.len() - 40..second.len() - 20]);
    first.extend(checksum(&first).as_slice());
    let entry = |entry: gix::odb::pack::index::Entry| IndexEntry {
        id: entry.oid,
        crc32: entry.crc32.unwrap_or_default(),
        offset: entry.pack_offset + (1 << 32),
    };
    let mut entries: Vec<_> = index.iter().map(entry).collect();
    let long = pack_index::encode(&mut entries, index.pack_checksum());
    [("second", second), ("first", first), ("long", long)]
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect()
}

#[cfg(test)]
pub(crate) fn raw_object(store: &Store, id: ObjectId, kind: Kind) -> Vec<u8> {
    let mut buffer = Vec::new();
    store.reader().read(id, kind, &mut buffer).unwrap().to_vec()
}
