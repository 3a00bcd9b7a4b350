//! Copies objects from one store to another.
//!
//! For a mirror, a pack is copied completely if at least half of its objects are wanted, so that
//! deltas need not be computed again. All other wanted objects go into one new pack. Everything is
//! read back and hashed before a ref may point to it.
//!
//! For an import, objects are added to the pack that the command writes.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::files::{exists, files_ending, unless_absent};
use super::pack_entries::PackEntries;
use super::pack_file::{OpenResult, PackFile};
use super::pack_folder::{TEMP_PREFIX, give_name, remove_pack};
use super::packed_mark::PackedMark;
use super::{Error, Kind, Lock, ObjectId, PackSlot, PackWriter, Reader, Result, Store};
use crate::durable::{self, Temp};
use crate::progress::Monitor;
use crate::regular;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub objects: u64,
    pub bytes: u64,
}

impl Store {
    /// Copies the objects `wanted` from `other`, durably, and reads them back. On failure, removes
    /// the packs that it added.
    pub fn copy_from(
        &self,
        _lock: &Lock,
        other: &Store,
        wanted: &[PackSlot],
        monitor: &mut dyn Monitor,
    ) -> Result<Copied> {
        let packs = files_ending(&other.pack_dir(), "idx")?;
        // Packs that this store already has are not removed on failure: they may contain other
        // objects.
        let here: HashSet<_> = files_ending(&self.pack_dir(), "idx")?.into_iter().collect();
        let mut attempt = |packs: &[PathBuf]| {
            let mut made = Vec::new();
            let copied = self.copy_and_verify(other, wanted, packs, &mut made, monitor);
            if copied.is_err() {
                for index in made.iter().filter(|index| !here.contains(*index)) {
                    let _ = remove_pack(index);
                }
            }
            copied
        };
        match attempt(&packs) {
            // An object that is damaged in one pack may be valid in another. Without a list of
            // packs, each object is searched for separately.
            Err(Error::DamagedPack { .. }) => attempt(&[]),
            done => done,
        }
    }

    fn copy_and_verify(
        &self,
        other: &Store,
        wanted: &[PackSlot],
        packs: &[PathBuf],
        made: &mut Vec<PathBuf>,
        monitor: &mut dyn Monitor,
    ) -> Result<Copied> {
        let mut open: HashSet<ObjectId> = wanted.iter().map(|object| object.id).collect();
        monitor.begin("copying", Some(open.len() as u64));
        for index in packs {
            let Some(ids) = ids_if_most(index, &open)? else { continue };
            // `None` if the pack was removed from `other` in the meantime. Its objects are then
            // copied one by one below.
            let Some(copy) = self.copy_pack(index)? else { continue };
            made.push(copy);
            monitor.advance(ids.iter().filter(|id| open.remove(*id)).count() as u64);
        }
        let reader = other.reader();
        let mut pack = self.pack_writer();
        let mut buffer = Vec::new();
        for object in wanted.iter().filter(|object| open.contains(&object.id)) {
            let bytes = reader.read(object.id, object.kind, &mut buffer)?;
            // Added even if this store already has the object: the local copy may be damaged.
            pack.add_again(object.id, object.kind, bytes)?;
            monitor.advance(1);
        }
        made.extend(pack.finish()?);
        let health = self.read_back(made, wanted.iter().map(|object| object.id), monitor)?;
        self.take_over_mark(other, made);
        let files = made.iter().flat_map(|index| [index.clone(), index.with_extension("pack")]);
        let lengths = files.filter_map(|path| fs::metadata(path).ok()).map(|found| found.len());
        Ok(Copied { objects: health.objects, bytes: lengths.sum() })
    }

    /// Copies a pack, then its index, because readers ignore a pack without an index. Returns the
    /// path of the new index; `None` if the pack no longer exists.
    fn copy_pack(&self, index: &Path) -> Result<Option<PathBuf>> {
        let dir = self.pack_dir();
        let Some(name) = index.file_name() else { return Ok(None) };
        let target = dir.join(name);
        let pack = target.with_extension("pack");
        // Both files are opened first: an open file can still be read after it is removed.
        let open = |path: &Path| unless_absent(regular::open(path), path);
        let (Some(index), Some(data)) = (open(index)?, open(&index.with_extension("pack"))?) else {
            return Ok(None);
        };
        let copy = |mut from: File, to: &Path| {
            let mut temp = Temp::within(&dir, TEMP_PREFIX)?;
            io::copy(&mut from, temp.file())?;
            give_name(temp, to)?;
            durable::sync_dir(&dir)
        };
        let was_here = pack.exists();
        let copied = copy(data, &pack).map_err(Error::io(&pack));
        let copied = copied.and_then(|()| copy(index, &target).map_err(Error::io(&target)));
        if copied.is_err() && !was_here {
            // A pack and its index are useless without each other, and the disk may be full.
            durable::remove_own(&target);
            durable::remove_own(&pack);
        }
        copied.map(|()| Some(target))
    }

    fn take_over_mark(&self, other: &Store, made: &[PathBuf]) {
        let mark = self.packed_mark();
        let there = PackedMark::read(&other.packed_mark());
        let (Ok(there), Ok(here)) = (there, PackedMark::read(&mark)) else { return };
        let copied: Vec<_> = made.iter().filter(|index| there.is_packed(index)).collect();
        if !copied.is_empty() {
            let _ = here.with_copies(&there, &copied).write(&mark);
        }
    }
}

/// Returns the ids of all objects in a pack; `None` if fewer than half of them are wanted, or if
/// the index is damaged.
fn ids_if_most(index: &Path, wanted: &HashSet<ObjectId>) -> Result<Option<Vec<ObjectId>>> {
    let file = PackFile::new(index.to_owned());
    let OpenResult::Whole(index) = file.index()? else { return Ok(None) };
    let ids: Vec<_> = index.iter().map(|entry| entry.oid).collect();
    let hits = ids.iter().filter(|id| wanted.contains(*id)).count();
    Ok((hits > 0 && hits * 2 >= ids.len()).then_some(ids))
}

impl PackWriter {
    pub fn adopt_some(&mut self, other: &Store, objects: &[(ObjectId, Kind)]) -> Result<()> {
        let (reader, mut buffer) = (other.reader(), Vec::new());
        objects.iter().try_for_each(|(id, kind)| self.adopt_one(&reader, *id, *kind, &mut buffer))
    }

    fn adopt_one(
        &mut self,
        reader: &Reader,
        id: ObjectId,
        kind: Kind,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.has(id, kind)? {
            self.add(kind, reader.read(id, kind, buffer)?)?;
        }
        Ok(())
    }

    /// Adds every packed object of `other` that this store lacks. Entries that are not deltas are
    /// copied without compressing them again.
    pub fn adopt(&mut self, other: &Store) -> Result<()> {
        let (reader, mut buffer) = (other.reader(), Vec::new());
        for path in files_ending(&other.pack_dir(), "idx")? {
            // An index without a pack remains from an interrupted removal.
            if !exists(&path.with_extension("pack"))? {
                continue;
            }
            let damaged = |why: String| Error::DamagedPack { path: path.clone(), why };
            let file = PackFile::new(path.clone());
            let (index, pack) = (file.index()?.whole(&path)?, file.data()?.whole(&path)?);
            for entry in PackEntries::new(index, pack.pack_end() as u64).iter() {
                let (id, found) = (entry.id, pack.entry(entry.span.start));
                let found = found.map_err(|error| damaged(error.to_string()))?;
                match found.header.as_kind() {
                    Some(kind) if self.has(id, kind)? => {}
                    Some(_) => {
                        let raw = entry.valid_bytes(pack);
                        let raw =
                            raw.ok_or_else(|| damaged(format!("its object {id} is damaged")))?;
                        self.append_raw(id, raw)?;
                    }
                    None => {
                        let kind = reader.kind(id)?.ok_or(Error::Missing { id })?;
                        self.adopt_one(&reader, id, kind, &mut buffer)?;
                    }
                }
            }
        }
        Ok(())
    }
}
