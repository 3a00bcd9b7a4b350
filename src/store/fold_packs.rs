//! Folds packs: joins small packs into one automatically. Every snapshot adds a small pack, and a
//! reader searches all packs. So small packs are folded once there are many of them, or once they
//! are large in comparison with the largest pack.
//!
//! Entries of packs that were folded before are copied unchanged. Objects of new packs become
//! deltas of earlier objects, as in `gc`, but with less effort, because the next save waits for the
//! result. So folding compresses each object once, and then copies it a few times during the life
//! of a store.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::compressor::Effort;
use super::files::{self, files_ending, unless_absent};
use super::loose::{loose_objects, refuse_linked};
use super::measured_objects::PackSlot;
use super::object::verify;
use super::pack_entries::{PackedEntries, copy_entries, valid_entries};
use super::pack_file::PackFile;
use super::pack_folder::{forget_multi_pack_index, is_kept, remove_pack};
use super::packed_mark::PackedMark;
use super::recent_objects::RecentObjects;
use super::{Error, Kind, Lock, ObjectId, Result, Store, unless_lost};
use crate::parallel::in_parts;
use crate::progress::NoProgress;

/// Number of small packs above which some of them are folded.
const MAX_SMALL_PACKS: usize = 20;
/// Number of small packs that slow down reading.
const TOO_MANY_PACKS: usize = 100;
/// All small packs are folded when their total size exceeds the size of the store's largest pack
/// divided by this number. The largest pack itself does not count.
const PART: u64 = 5;
/// Total size of small packs, in bytes, up to which they are folded only because of their number.
const LITTLE: u64 = 256 << 10;
/// Number of loose objects above which they are packed.
const MANY_LOOSE: usize = 500;
/// Size in bytes from which a pack is not folded. Only `gc` repacks it.
const LARGE: u64 = 32 << 20;
/// Maximum total size, in bytes, of new packs whose objects are compressed again in one fold.
/// Entries of other new packs are copied unchanged, and compressed later by `gc`.
const STEP: u64 = 2 << 20;

/// Function that returns the order in which to pack objects, given the new commits and the ids of
/// all new objects. Versions of one thing are neighbours, older versions first. The layer above
/// provides this function, because the store does not know what its objects mean.
pub type Order<'o> = &'o dyn Fn(&Store, Vec<ObjectId>, &HashSet<ObjectId>) -> Vec<PackSlot>;

impl Store {
    /// Returns whether there are so many small packs that they slow down reading.
    pub fn has_too_many_packs(&self) -> Result<bool> {
        Ok(files_ending(&self.pack_dir(), "idx")?.len() > TOO_MANY_PACKS)
    }

    /// Folds packs and packs refs, if there are many. Called after each write, or when nobody has
    /// written for a while, so that each call has little to do.
    pub fn tidy(&self, lock: &Lock, order: Order<'_>) -> Result<()> {
        self.fold_packs(lock, order)?;
        self.pack_refs(lock)
    }

    /// Folds the packs that [`choose`] selects into one, if at least two of them are valid. A
    /// damaged pack is left unchanged.
    pub(super) fn fold_packs(&self, _lock: &Lock, order: Order<'_>) -> Result<()> {
        self.fold_loose()?;
        let dir = self.pack_dir();
        let mark = PackedMark::read(&self.packed_mark())?;
        let mut writer = self.pack_writer();
        let mut copied = PackedEntries::new();
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let (mut packs, largest) = small_packs(&dir)?;
        // An interrupted `gc` continues with these packs.
        let steps = self.listed_steps()?;
        packs.retain(|pack| !steps.contains(&pack.index));
        for pack in choose(packs, largest, &mark) {
            let file = PackFile::new(pack.index.clone());
            let Some(entries) = valid_entries(&file)? else { continue };
            if pack.is_new {
                new.extend(entries.iter().map(|entry| entry.id));
            } else {
                new.extend(copy_entries(&mut writer, &file, &entries, |_| true, &mut copied)?);
            }
            gone.push(pack.index);
        }
        if gone.len() < 2 {
            return Ok(());
        }
        let mut ids = HashSet::new();
        new.retain(|id| !copied.contains_key(id) && ids.insert(*id));
        let objects = self.in_order(&new, &ids, &copied, order)?;
        let packed =
            self.pack_onto(&mut writer, &objects, &copied, Effort::Steady, &mut NoProgress)?;
        let Some(index) = writer.finish()? else { return Ok(()) };
        // The new pack is read back before the old packs are removed.
        if let Err(error) = read_back(&index, &new) {
            let _ = remove_pack(&index);
            return Err(error);
        }
        gone.retain(|old| *old != index);
        mark.without(&gone).with_joined(&index, &packed.volumes).write(&self.packed_mark())?;
        forget_multi_pack_index(&dir)?;
        self.remove_packs(&gone)?;
        files::sync_dir(&dir)
    }

    fn in_order(
        &self,
        new: &[ObjectId],
        ids: &HashSet<ObjectId>,
        copied: &PackedEntries,
        order: Order<'_>,
    ) -> Result<Vec<PackSlot>> {
        let reader = self.reader();
        let mut kinds = Vec::with_capacity(new.len());
        for id in new {
            kinds.push((*id, reader.kind(*id)?.ok_or(Error::Missing { id: *id })?));
        }
        let commits = kinds.iter().filter(|(_, kind)| *kind == Kind::Commit).map(|(id, _)| *id);
        let mut objects = order(self, commits.collect(), ids);
        objects.retain(|object| ids.contains(&object.id) || copied.contains_key(&object.id));
        let placed: HashSet<_> = objects.iter().map(|object| object.id).collect();
        let next = objects.iter().map(|object| object.slot + 1).max().unwrap_or(0);
        // Objects that no new commit contains, such as old bytes of files that `undo` restores.
        let others = kinds.into_iter().filter(|(id, _)| !placed.contains(id));
        objects.extend(others.zip(next..).map(|((id, kind), slot)| PackSlot { id, kind, slot }));
        Ok(objects)
    }

    fn fold_loose(&self) -> Result<()> {
        let loose = loose_objects(&self.objects_dir())?;
        if loose.len() <= MANY_LOOSE {
            return Ok(());
        }
        refuse_linked(&loose)?;
        let reader = self.reader();
        let mut writer = self.pack_writer();
        let mut packed = Vec::new();
        for object in &loose {
            let Some(kind) = reader.kind(object.id)? else { continue };
            let mut data = Vec::new();
            // A damaged object stays loose.
            if let Some(data) = unless_lost(reader.read(object.id, kind, &mut data))? {
                writer.add_again(object.id, kind, data)?;
                packed.push(&object.path);
            }
        }
        writer.finish()?;
        packed.into_iter().try_for_each(|path| files::remove(path))
    }
}

struct SmallPack {
    index: PathBuf,
    bytes: u64,
    is_new: bool,
}

fn small_packs(dir: &Path) -> Result<(Vec<SmallPack>, u64)> {
    let (mut packs, mut largest) = (Vec::new(), 0);
    for index in files_ending(dir, "idx")? {
        let pack = index.with_extension("pack");
        let Some(found) = unless_absent(fs::metadata(&pack), &pack)? else { continue };
        let bytes = found.len();
        largest = largest.max(bytes);
        if bytes < LARGE && !is_kept(&index)? {
            packs.push(SmallPack { index, bytes, is_new: false });
        }
    }
    Ok((packs, largest))
}

/// Selects the packs to fold. Returns first the packs whose entries are copied, then the new packs
/// whose objects are compressed again; the largest first in each group.
fn choose(mut packs: Vec<SmallPack>, largest: u64, mark: &PackedMark) -> Vec<SmallPack> {
    packs.sort_by(|a, b| (a.bytes, &a.index).cmp(&(b.bytes, &b.index)));
    // The largest pack of the store is not counted, whether it is a small pack or not.
    let is_beside = |pack: &&SmallPack| pack.bytes < largest;
    let beside: u64 = packs.iter().filter(is_beside).map(|pack| pack.bytes).sum();
    if beside <= LITTLE.max(largest / PART) {
        if packs.len() <= MAX_SMALL_PACKS {
            return Vec::new();
        }
        // Selects the smallest packs: enough of them that few packs remain, and each next pack that
        // is not larger than all selected ones together. As in git's geometric repacking, a large
        // pack is not copied for the sake of a few small ones.
        let (mut together, mut count) = (0, 0);
        for (position, pack) in packs.iter().enumerate() {
            together += pack.bytes;
            let next = packs.get(position + 1).map_or(u64::MAX, |next| next.bytes);
            count = position + 1;
            if packs.len() - count <= MAX_SMALL_PACKS / 2 && next > together {
                break;
            }
        }
        packs.truncate(count);
    }
    let mut room = STEP;
    for pack in &mut packs {
        pack.is_new = pack.bytes <= room && !mark.is_packed(&pack.index);
        room -= if pack.is_new { pack.bytes } else { 0 };
    }
    packs.sort_by_key(|pack| (pack.is_new, Reverse(pack.bytes)));
    packs
}

fn read_back(index: &Path, ids: &[ObjectId]) -> Result<()> {
    let file = PackFile::new(index.to_owned());
    let read = |ids: &[ObjectId]| -> Result<()> {
        let (mut kept, mut data) = (RecentObjects::default(), Vec::new());
        for id in ids {
            let offset = file.offset_of(*id)?.ok_or(Error::Missing { id: *id })?;
            let kind = file.read(*id, offset, &mut kept, &mut data)?;
            verify(*id, kind, &data)?;
        }
        Ok(())
    };
    in_parts(ids, 64, read).into_iter().collect()
}
