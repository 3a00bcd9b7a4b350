//! Packs all objects of a store in steps, so that an interruption loses only one step.
//!
//! Each step writes a complete pack with some of the objects. The old packs stay until the last
//! step is done, so every object is in a pack at any time, and git can read the store. The file
//! `stvc/gc-steps` lists the packs of the steps. If the command is interrupted, the next one keeps
//! these packs and packs only the remaining objects. Folding leaves them unchanged meanwhile. After
//! the last step, the packs of all steps are joined: their entries are copied unchanged.
//!
//! Only the order of the steps makes this safe: the pack of a step is complete and synced before it
//! is listed, and the list is removed only after all other packs.

use std::borrow::Cow;
use std::path::PathBuf;

use super::compressor::Effort;
use super::id_set::IdSet;
use super::measured_objects::{MeasuredObjects, PackSlot};
use super::pack_entries::{PackEntries, PackedEntries};
use super::pack_file::{OpenResult, PackFile};
use super::pack_folder::is_kept;
use super::packed_mark::PackedMark;
use super::repack::PackStats;
use super::{Error, ObjectId, Result, Store, files};
use crate::progress::Monitor;

/// Total length, in bytes, of the objects that one step packs. A step takes about half a minute.
pub(crate) const STEP: u64 = 128 << 20;

/// File that lists the indices of the packs that complete steps have written, one per line.
const STEPS: &str = "gc-steps";

/// The result of packing all objects.
pub(super) struct PackedInSteps {
    /// Index of the pack with all objects; `None` if there are no objects.
    pub index: Option<PathBuf>,
    pub packed: PackStats,
    pub steps: Steps,
}

/// Whether the objects were packed in one step, so that nothing was listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    One,
    Several,
}

impl Store {
    /// Packs `objects` into one pack. `wanted` contains their ids. `step` is the total length of
    /// the objects of one step; `None` for a single step. Adds the packs of complete steps to
    /// `made`.
    pub(super) fn pack_in_steps(
        &self,
        objects: &[PackSlot],
        wanted: &IdSet,
        step: Option<u64>,
        made: &mut Vec<PathBuf>,
        monitor: &mut dyn Monitor,
    ) -> Result<PackedInSteps> {
        let mark = PackedMark::read(&self.packed_mark())?;
        let (mut indices, done) = match step {
            Some(_) => self.complete_steps(wanted, &mark)?,
            None => Default::default(),
        };
        let rest: Cow<'_, [PackSlot]> = if done.is_empty() {
            objects.into()
        } else {
            objects.iter().filter(|object| !done.contains(&object.id)).copied().collect()
        };
        drop(done);
        monitor.begin("packing", Some(objects.len() as u64));
        monitor.advance((objects.len() - rest.len()) as u64);
        let lengths = self.lengths(&rest)?;
        let rest = MeasuredObjects { objects: &rest, lengths: &lengths };
        let none = PackedEntries::new();
        let ranges = rest.ranges(step.unwrap_or(u64::MAX));
        let steps =
            if indices.is_empty() && ranges.len() == 1 { Steps::One } else { Steps::Several };
        for range in ranges {
            let mut writer = self.pack_writer();
            let rest = rest.within(range);
            let packed = self.pack_measured(&mut writer, rest, &none, Effort::Thorough, monitor)?;
            if steps == Steps::One {
                return Ok(PackedInSteps { index: writer.finish()?, packed, steps });
            }
            if let Some(index) = writer.finish()? {
                made.push(index.clone());
                indices.push(index);
                self.list_steps(&indices)?;
            }
        }
        let (index, packed) = match &indices[..] {
            [] => (None, PackStats::default()),
            // Each step has added its volumes to the mark.
            [_, ..] => {
                self.join_steps(&indices, &PackedMark::read(&self.packed_mark())?, monitor)?
            }
        };
        Ok(PackedInSteps { index, packed: PackStats { objects: objects.len(), ..packed }, steps })
    }

    /// Returns the packs of complete steps whose objects are all still wanted, and the ids of these
    /// objects.
    fn complete_steps(&self, wanted: &IdSet, mark: &PackedMark) -> Result<(Vec<PathBuf>, IdSet)> {
        let (mut indices, mut done) = (Vec::new(), IdSet::default());
        for index in self.listed_steps()? {
            if is_kept(&index)? {
                continue;
            }
            let file = PackFile::new(index.clone());
            let (OpenResult::Whole(list), OpenResult::Whole(pack)) = (file.index()?, file.data()?)
            else {
                continue;
            };
            let ids: Vec<ObjectId> = list.iter().map(|entry| entry.oid).collect();
            // The pack must not contain another object, or one that an earlier pack contains.
            let is_new = |id: &ObjectId| {
                (wanted.contains(id) || mark.volumes.contains(id)) && !done.contains(id)
            };
            let entries = PackEntries::new(list, pack.pack_end() as u64);
            if ids.iter().all(is_new)
                && entries.are_valid(pack.path(), |_| {}).map_err(Error::io(pack.path()))?
            {
                done = done.iter().copied().chain(ids).collect();
                indices.push(index);
            }
        }
        Ok((indices, done))
    }

    /// Joins packs that have no object in common. Their entries are copied one after the other, so
    /// the distances between deltas and their bases do not change.
    fn join_steps(
        &self,
        indices: &[PathBuf],
        mark: &PackedMark,
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, PackStats)> {
        if let [index] = indices {
            let file = PackFile::new(index.clone());
            let list = file.index()?.whole(index)?;
            let volumes = mark.volumes.iter().filter(|id| list.lookup(**id).is_some());
            let packed = PackStats { volumes: volumes.copied().collect(), ..PackStats::default() };
            return Ok((Some(index.clone()), packed));
        }
        monitor.begin("joining packs", Some(indices.len() as u64));
        let mut packed = PackStats::default();
        let mut writer = self.pack_writer();
        for index in indices {
            let file = PackFile::new(index.clone());
            let (list, pack) = (file.index()?.whole(index)?, file.data()?.whole(index)?);
            let entries = PackEntries::new(list, pack.pack_end() as u64);
            let damaged = |why: String| Error::DamagedPack { path: index.clone(), why };
            file.in_windows(entries.stretches(usize::MAX), |positions, pack, _| {
                for entry in positions.map(|n| entries.at(n)) {
                    let (Some(raw), Some(crc32)) = (entry.valid_bytes(pack), entry.crc32) else {
                        return Err(damaged(format!("its object {} is damaged", entry.id)));
                    };
                    let header = pack.entry(entry.span.start).map(|entry| entry.header);
                    packed.deltas += usize::from(header.is_ok_and(|header| header.is_delta()));
                    packed.volumes.extend(mark.volumes.get(&entry.id));
                    writer.append_copy(entry.id, crc32, raw)?;
                }
                Ok(())
            })?;
            monitor.advance(1);
        }
        packed.bytes = writer.bytes();
        Ok((writer.finish()?, packed))
    }

    /// Returns the indices of the packs that complete steps have written. Some may no longer exist.
    pub(super) fn listed_steps(&self) -> Result<Vec<PathBuf>> {
        let text = files::read(&self.private(STEPS))?.unwrap_or_default();
        let dir = self.pack_dir();
        let text = String::from_utf8_lossy(&text);
        // The list may be damaged, so only names of files are accepted.
        let index = |name: &str| {
            Some(dir.join(name)).filter(|path| path.file_name() == Some(name.as_ref()))
        };
        Ok(text.lines().filter_map(index).collect())
    }

    /// Lists the packs of complete steps.
    pub(super) fn list_steps(&self, indices: &[PathBuf]) -> Result<()> {
        let names = indices.iter().filter_map(|index| index.file_name()?.to_str());
        let text: String = names.map(|name| format!("{name}\n")).collect();
        files::replace(&self.private(STEPS), text.as_bytes())
    }

    /// Removes the list of complete steps.
    pub(super) fn forget_steps(&self) -> Result<()> {
        files::remove(&self.private(STEPS))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::time::{Duration, SystemTime};

    use super::super::{Collected, Collection, Kind, Lock, Repack};
    use super::*;
    use crate::progress::NoProgress;

    /// Copies a store whenever a command has added or removed a pack, or listed a step: a command
    /// that is killed leaves such a copy.
    struct CopyAtEachStep<'t> {
        store: &'t Path,
        copies: &'t Path,
        count: usize,
        last: Vec<PathBuf>,
    }

    impl CopyAtEachStep<'_> {
        fn copy(&mut self) {
            let folders = ["objects/pack", "stvc"].map(|folder| self.store.join(folder));
            let mut now: Vec<PathBuf> = Vec::new();
            for folder in folders {
                now.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
            }
            if now != self.last {
                copy_folder(self.store, &self.copies.join(self.count.to_string()));
                self.count += 1;
                self.last = now;
            }
        }
    }

    impl Monitor for CopyAtEachStep<'_> {
        fn begin(&mut self, _what: &str, _steps: Option<u64>) {
            self.copy();
        }

        fn advance(&mut self, _steps: u64) {
            self.copy();
        }
    }

    fn copy_folder(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
            let target = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy_folder(&entry.path(), &target),
                false => drop(fs::copy(entry.path(), target).unwrap()),
            }
        }
    }

    /// Blobs in pairs of similar ones. Short ones are packed into volumes.
    fn blobs() -> Vec<Vec<u8>> {
        let blob = |n: usize| {
            let line = |m: usize| format!("line {} of text {}\n", m * (n / 2 + 1), n / 2);
            let lines: String = (0..1 + n % 7 * 100).map(line).collect();
            format!("{lines}{n}").into_bytes()
        };
        (0..40).map(blob).collect()
    }

    fn lock(store: &Store) -> Lock {
        store.lock(&[], "2026-01-01T00:00:00Z", Duration::ZERO, &|_| None).unwrap()
    }

    fn collect(store: &Store, objects: &[PackSlot], monitor: &mut dyn Monitor) -> Collected {
        let lock = lock(store);
        let keep_after = SystemTime::now() + Duration::from_secs(3600);
        let collection = Collection {
            objects,
            damaged: &HashSet::new(),
            keep_after,
            repack: Repack::Thorough,
            step: 10_000,
        };
        store.collect(&lock, &collection, &mut || Ok(()), monitor).unwrap()
    }

    #[test]
    fn gc_that_is_killed_loses_no_object_and_continues() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::create(&path).unwrap();
        let mut objects = Vec::new();
        for (n, blob) in blobs().iter().enumerate() {
            let mut pack = store.pack_writer();
            let id = pack.add(Kind::Blob, blob).unwrap();
            pack.finish().unwrap();
            objects.push(PackSlot { id, kind: Kind::Blob, slot: n as u32 / 2 });
        }
        let copies = folder.path().join("copies");
        let mut monitor =
            CopyAtEachStep { store: &path, copies: &copies, count: 0, last: Vec::new() };
        let collected = collect(&store, &objects, &mut monitor);
        assert_eq!(collected.packed.objects, objects.len());
        assert!(collected.packed.deltas > 0);
        let wanted: IdSet = objects.iter().map(|object| object.id).collect();
        let mut most_done = 0;
        for copy in 0..monitor.count {
            let path = copies.join(copy.to_string());
            let said = Command::new("git").arg("-C").arg(&path).args(["fsck", "--strict"]).status();
            assert!(said.is_err() || said.is_ok_and(|status| status.success()));
            let store = Store::open(&path).unwrap();
            let listed = store.listed_steps().unwrap().into_iter().filter(|index| index.exists());
            let listed: Vec<_> = listed.collect();
            store.fold_packs(&lock(&store), &|_, _, _| Vec::new()).unwrap();
            assert!(listed.iter().all(|index| index.exists()), "copy {copy}");
            let is_whole = |store: &Store| {
                let reader = store.reader();
                objects.iter().all(|object| reader.is_valid(object.id, object.kind).unwrap())
            };
            assert!(is_whole(&store));
            let mark = PackedMark::read(&store.packed_mark()).unwrap();
            let (_, done) = store.complete_steps(&wanted, &mark).unwrap();
            most_done = most_done.max(done.len());
            let collected = collect(&store, &objects, &mut NoProgress);
            assert_eq!((collected.dropped, collected.spared), (0, 0), "copy {copy}");
            assert!(is_whole(&store));
            assert_eq!(files::files_ending(&store.pack_dir(), "pack").unwrap().len(), 1);
            assert!(!path.join("stvc").join(STEPS).exists());
            assert!(!collect(&store, &objects, &mut NoProgress).changed, "copy {copy}");
        }
        assert!(most_done >= objects.len(), "{most_done} objects were kept");
    }

    #[test]
    fn step_with_an_unreachable_or_damaged_object_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let mut pack = store.pack_writer();
        let ids = [b"one", b"two"].map(|blob| pack.add(Kind::Blob, blob).unwrap());
        let index = pack.finish().unwrap().unwrap();
        store.list_steps(&[store.pack_dir().join("pack-absent.idx"), index.clone()]).unwrap();
        let mark = PackedMark::default();
        let complete = |wanted: &[ObjectId]| {
            store.complete_steps(&IdSet::new(wanted.to_vec()), &mark).unwrap().0.len()
        };
        assert_eq!(complete(&ids), 1);
        assert_eq!(complete(&ids[..1]), 0);
        let pack = index.with_extension("pack");
        let mut bytes = fs::read(&pack).unwrap();
        bytes[14] ^= 1;
        fs::remove_file(&pack).unwrap();
        fs::write(&pack, bytes).unwrap();
        assert_eq!(complete(&ids), 0);
    }
}
