//! Garbage collection: repacks all packs and loose objects into one pack, and drops unreachable
//! objects.
//!
//! If the disk has no space for the new pack, packs with only unreachable objects are removed
//! first. If the space is still not enough, nothing else is changed, and the error gives the
//! required space.
//!
//! The new pack is complete, synced and named before the first old pack is removed. So a crash
//! leaves either all old packs, or the new pack and some of the old ones. A large store is packed
//! in steps, see `gc_steps`, so that an interruption loses only one step.
//!
//! A git process may have written an unreachable object just now, and may be about to create a ref
//! to it. So young unreachable objects are *spared*: they are kept until a later run, in a separate
//! pack that has the modification time of the youngest of them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::disk_space::free_bytes;
use super::files::{self, files_ending, unless_absent};
use super::gc_steps::{PackedInSteps, Steps};
use super::id_set::IdSet;
use super::loose::{Loose, loose_objects, refuse_linked};
use super::measured_objects::PackSlot;
use super::pack_file::PackFile;
use super::pack_folder::{forget_multi_pack_index, is_kept, remove_pack};
use super::packed_mark::PackedMark;
use super::repack::PackStats;
use super::{Error, Kind, Lock, ObjectId, Result, Store};
use crate::durable;
use crate::progress::Monitor;

#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Statistics of the new pack; all zero if there was nothing to do.
    pub packed: PackStats,
    pub packs_before: usize,
    pub loose_before: usize,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub dropped: usize,
    pub spared: usize,
    pub changed: bool,
    /// Number of files that could not be removed because another program has them open (on
    /// Windows). The next command removes them.
    pub held: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repack {
    Thorough,
    Quick,
}

pub struct Collection<'c> {
    pub objects: &'c [PackSlot],
    /// Reachable objects that cannot be read. Packs and loose files that contain one of them are
    /// not removed.
    pub damaged: &'c HashSet<ObjectId>,
    pub keep_after: SystemTime,
    pub repack: Repack,
    /// Total length, in bytes, of the objects that one step of [`Repack::Thorough`] packs.
    pub step: u64,
}

struct OldPack {
    index: PathBuf,
    bytes: u64,
    modified: SystemTime,
    /// Ids of all objects.
    objects: IdSet,
    stays: bool,
    is_rewritten: bool,
    /// Whether the pack contains only spared objects. Such a pack is left unchanged.
    is_spared: bool,
    /// Whether the pack contains only objects that are dropped.
    is_gone: bool,
}

struct Plan {
    packs: Vec<OldPack>,
    loose: Vec<Loose>,
    wanted: IdSet,
    mark: PackedMark,
    spare: IdSet,
    youngest: SystemTime,
    gone: IdSet,
    is_done: bool,
    counts: Collected,
}

struct WrittenPacks {
    packed: PackStats,
    /// The spared objects in the new packs.
    spared: Vec<PackSlot>,
    mark: Option<PackedMark>,
    steps: Steps,
}

impl Plan {
    fn rewritten(&self) -> impl Iterator<Item = &OldPack> {
        self.packs.iter().filter(|pack| pack.is_rewritten)
    }

    /// Returns the reachable objects that must be in the new packs.
    fn repacked(&self, repack: Repack) -> Box<dyn Iterator<Item = ObjectId> + '_> {
        match repack {
            Repack::Thorough => Box::new(self.wanted.iter().copied()),
            Repack::Quick => {
                let stay = self.rewritten().flat_map(|pack| pack.objects.iter());
                Box::new(stay.filter(|id| self.wanted.contains(id)).copied())
            }
        }
    }
}

fn is_unwanted(id: &ObjectId, wanted: &IdSet, mark: &PackedMark) -> bool {
    !wanted.contains(id) && !mark.volumes.contains(id)
}

impl Store {
    pub fn count_collected(&self, collection: &Collection<'_>) -> Result<Collected> {
        Ok(self.plan_collection(collection)?.counts)
    }

    /// Packs `collection.objects` and drops all other objects, except spared ones. Calls
    /// `before_drop` before files are removed; on a full disk it is called a second time.
    pub fn collect(
        &self,
        _lock: &Lock,
        collection: &Collection<'_>,
        before_drop: &mut dyn FnMut() -> Result<()>,
        monitor: &mut dyn Monitor,
    ) -> Result<Collected> {
        let dir = self.pack_dir();
        let plan = self.plan_collection(collection)?;
        let mut collected = plan.counts.clone();
        if plan.is_done {
            before_drop()?;
            collected.held = self.remove_left_behind(&dir, collection.keep_after)?;
            return Ok(collected);
        }
        let (packs, indices, steps) = (&plan.packs, Vec::new(), Vec::new());
        let mut made = NewPacks { packs, indices, steps };
        let step = Some(collection.step);
        let written = match self.write_kept(collection, &plan, step, &mut made, monitor) {
            Err(error) if error.io_error().is_some_and(durable::is_full) => {
                // Without steps, only one copy of the objects is written.
                made.take_away();
                made.take_steps_away();
                before_drop()?;
                self.remove_unwanted(&plan)?;
                let written = self.write_kept(collection, &plan, None, &mut made, monitor);
                written.map_err(|error| self.no_room(error, collected.bytes_before))
            }
            written => written,
        }?;
        collected.packed = written.packed;
        // Reads every object back before the first old pack is removed.
        self.objects.close_packs();
        let spared = written.spared.iter().map(|object| object.id);
        self.read_back(&made.indices, plan.repacked(collection.repack).chain(spared), monitor)?;
        let new = std::mem::take(&mut made.indices);
        if let Some(mark) = &written.mark {
            mark.write(&self.packed_mark())?;
        }
        if written.steps == Steps::Several {
            // If the removal of the old packs is interrupted, nothing is packed again.
            self.list_steps(new.get(..1).unwrap_or_default())?;
        }
        before_drop()?;
        forget_multi_pack_index(&dir)?;
        self.forget_commit_graph()?;
        let goes = |pack: &&OldPack| !pack.stays && !pack.is_spared;
        let old = plan.rewritten().filter(goes).map(|pack| &pack.index).chain(&made.steps);
        self.remove_packs(old.filter(|index| !new.contains(index)))?;
        for object in &plan.loose {
            let is_packed = collection.repack == Repack::Thorough
                && !is_unwanted(&object.id, &plan.wanted, &plan.mark);
            if !plan.spare.contains(&object.id) && (is_packed || plan.gone.contains(&object.id)) {
                files::remove(&object.path)?;
            }
        }
        collected.held = self.remove_left_behind(&dir, collection.keep_after)?;
        files::sync_dir(&dir)?;
        if written.steps == Steps::Several {
            self.forget_steps()?;
        }
        collected.bytes_after = old_packs(&dir)?.iter().map(|pack| pack.bytes).sum();
        collected.changed = true;
        Ok(collected)
    }

    fn plan_collection(&self, collection: &Collection<'_>) -> Result<Plan> {
        let Collection { objects, damaged, keep_after, repack, .. } = *collection;
        let mut packs = old_packs(&self.pack_dir())?;
        for pack in &mut packs {
            pack.stays |= pack.objects.iter().any(|id| damaged.contains(id));
        }
        let mut loose = loose_objects(&self.objects_dir())?;
        refuse_linked(&loose)?;
        loose.retain(|object| !damaged.contains(&object.id));
        let bytes = packs.iter().map(|pack| pack.bytes).sum::<u64>()
            + loose.iter().map(|object| object.bytes).sum::<u64>();
        let wanted: IdSet = objects.iter().map(|object| object.id).collect();
        let mark = PackedMark::read(&self.packed_mark())?;
        let unwanted = |id: &&ObjectId| is_unwanted(id, &wanted, &mark);
        let (mut spare, mut gone) = (Vec::new(), Vec::new());
        let mut youngest = SystemTime::UNIX_EPOCH;
        for pack in packs.iter().filter(|pack| !pack.stays) {
            let mut unwanted = pack.objects.iter().filter(unwanted).copied().peekable();
            if pack.modified <= keep_after {
                gone.extend(unwanted);
            } else if unwanted.peek().is_some() {
                youngest = youngest.max(pack.modified);
                spare.extend(unwanted);
            }
        }
        let spare = IdSet::new(spare);
        let unwanted_loose = loose.iter().filter(|object| unwanted(&&object.id));
        let (young, old): (Vec<&Loose>, Vec<&Loose>) =
            unwanted_loose.partition(|object| object.modified > keep_after);
        let young: HashSet<_> = young.iter().map(|object| object.id).collect();
        gone.extend(old.iter().map(|object| object.id));
        gone.retain(|id| !spare.contains(id) && !young.contains(id));
        let gone = IdSet::new(gone);
        for pack in &mut packs {
            let all_in = |set: &IdSet| {
                !pack.objects.is_empty() && pack.objects.iter().all(|id| set.contains(id))
            };
            (pack.is_spared, pack.is_gone) = (all_in(&spare), !pack.stays && all_in(&gone));
            let loses_one = || pack.objects.iter().any(|id| gone.contains(id));
            pack.is_rewritten = repack == Repack::Thorough || !pack.stays && loses_one();
        }
        let mut ours = packs.iter().filter(|pack| !pack.stays && !pack.is_spared);
        let best = mark.best.clone().unwrap_or_default();
        let is_best = |pack: &OldPack| pack.index.file_name() == Some(best.as_ref());
        let is_tidy = loose.iter().all(|object| young.contains(&object.id))
            && ours.next().is_none_or(is_best)
            && ours.next().is_none();
        let is_done = gone.is_empty() && (is_tidy || repack == Repack::Quick);
        let counts = Collected {
            packs_before: packs.len(),
            loose_before: loose.len(),
            bytes_before: bytes,
            bytes_after: bytes,
            dropped: gone.len(),
            spared: spare.len() + young.iter().filter(|id| !spare.contains(id)).count(),
            ..Collected::default()
        };
        if repack == Repack::Thorough {
            // No longer needed, because all packs are rewritten. Those with spared objects are
            // needed to find out which of these are in packs that stay.
            for pack in packs.iter_mut().filter(|pack| !pack.is_spared) {
                pack.objects = IdSet::default();
            }
        }
        Ok(Plan { packs, loose, wanted, mark, spare, youngest, gone, is_done, counts })
    }

    fn write_kept(
        &self,
        collection: &Collection<'_>,
        plan: &Plan,
        step: Option<u64>,
        made: &mut NewPacks<'_>,
        monitor: &mut dyn Monitor,
    ) -> Result<WrittenPacks> {
        let objects = collection.objects;
        let mut written = match collection.repack {
            Repack::Thorough => {
                let PackedInSteps { index, packed, steps } =
                    self.pack_in_steps(objects, &plan.wanted, step, &mut made.steps, monitor)?;
                let mark = index.as_ref().map(|new| PackedMark::after_gc(new, &packed.volumes));
                made.indices.extend(index);
                WrittenPacks { packed, spared: Vec::new(), mark, steps }
            }
            Repack::Quick => {
                let old: Vec<_> = plan.rewritten().map(|pack| pack.index.clone()).collect();
                // A first attempt on a full disk may already have removed some of these packs.
                let there: Vec<_> = old.iter().filter(|index| index.exists()).collect();
                let stripped = self.strip_packs(&there, objects, &plan.mark.volumes, monitor)?;
                let mut mark = plan.mark.clone().without(&old);
                mark.volumes.retain(|id| !stripped.lost_volumes.contains(id));
                if let Some(new) = &stripped.index {
                    mark = mark.with_joined(new, &stripped.packed.volumes);
                }
                made.indices.extend(stripped.index);
                let (packed, mark) = (stripped.packed, Some(mark));
                WrittenPacks { packed, spared: Vec::new(), mark, steps: Steps::One }
            }
        };
        let (index, spared) = self.write_spared(plan, monitor)?;
        made.indices.extend(index);
        written.spared = spared;
        Ok(written)
    }

    /// Frees space: removes packs with only unreachable objects, and unreachable loose objects.
    /// Must be called after `before_drop`, which removes the last references to these objects.
    fn remove_unwanted(&self, plan: &Plan) -> Result<()> {
        let dir = self.pack_dir();
        forget_multi_pack_index(&dir)?;
        self.forget_commit_graph()?;
        self.remove_packs(plan.packs.iter().filter(|pack| pack.is_gone).map(|pack| &pack.index))?;
        for object in plan.loose.iter().filter(|object| plan.gone.contains(&object.id)) {
            files::remove(&object.path)?;
        }
        files::sync_dir(&dir)
    }

    /// Turns the error of a full disk into [`Error::NoRoom`]. `needed` is an upper limit for the
    /// space that packing needs: the size of the old packs.
    fn no_room(&self, error: Error, needed: u64) -> Error {
        match free_bytes(&self.git_dir) {
            Some(free) if error.io_error().is_some_and(durable::is_full) => {
                Error::NoRoom { path: self.git_dir.clone(), needed, free }
            }
            _ => error,
        }
    }

    /// Writes the spared objects into a separate pack that has the modification time of the
    /// youngest of them. Packs that contain only spared objects are left unchanged.
    fn write_spared(
        &self,
        plan: &Plan,
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, Vec<PackSlot>)> {
        let spare = &plan.spare;
        let left_alone = plan.packs.iter().filter(|pack| pack.is_spared);
        let stay: HashSet<_> = left_alone.flat_map(|pack| pack.objects.iter()).collect();
        let reader = self.reader();
        let mut objects = Vec::new();
        for id in spare.iter().filter(|id| !stay.contains(id)) {
            if let Some(kind) = reader.kind(*id)?
                && reader.is_valid(*id, kind)?
            {
                objects.push(PackSlot { id: *id, kind, slot: 0 });
            }
        }
        objects.sort_by_key(|object| (object.kind != Kind::Commit, object.id));
        for (slot, object) in objects.iter_mut().enumerate() {
            object.slot = slot as u32;
        }
        if objects.is_empty() {
            return Ok((None, objects));
        }
        let (index, _) = self.write_packed(&objects, monitor)?;
        if let Some(index) = &index {
            let pack = index.with_extension("pack");
            let set = File::options().write(true).open(&pack);
            set.and_then(|file| file.set_modified(plan.youngest)).map_err(Error::io(&pack))?;
        }
        Ok((index, objects))
    }
}

/// Indices of new packs. When dropped, removes the packs that are still listed, so that a failure
/// leaves nothing behind. Packs that already existed are not removed.
struct NewPacks<'p> {
    packs: &'p [OldPack],
    indices: Vec<PathBuf>,
    /// Packs of complete steps. They stay after a failure, unless the disk is full.
    steps: Vec<PathBuf>,
}

impl NewPacks<'_> {
    fn take_away(&mut self) {
        let indices = std::mem::take(&mut self.indices);
        indices.iter().for_each(|index| self.remove(index));
    }

    /// Removes the packs of steps, because the disk is full.
    fn take_steps_away(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        steps.iter().for_each(|index| self.remove(index));
    }

    fn remove(&self, index: &Path) {
        let is_new = self.packs.iter().all(|pack| pack.index != index);
        if is_new && !self.steps.iter().any(|step| step == index) {
            let _ = remove_pack(index);
        }
    }
}

impl Drop for NewPacks<'_> {
    fn drop(&mut self) {
        self.take_away();
    }
}

fn old_packs(dir: &Path) -> Result<Vec<OldPack>> {
    let mut packs = Vec::new();
    for index in files_ending(dir, "idx")? {
        let pack = index.with_extension("pack");
        let Some(found) = unless_absent(fs::metadata(&pack), &pack)? else { continue };
        let file = PackFile::new(index.clone());
        let list = file.index()?.whole(&index)?;
        packs.push(OldPack {
            objects: list.iter().map(|entry| entry.oid).collect(),
            bytes: found.len() + fs::metadata(&index).map_or(0, |found| found.len()),
            modified: found.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            stays: is_kept(&index)?,
            is_rewritten: false,
            is_spared: false,
            is_gone: false,
            index,
        });
    }
    Ok(packs)
}
