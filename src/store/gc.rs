//! Bringing all packs and loose objects down to one pack, and dropping what nothing refers to any more.
//!
//! Where the disk has no room for the new pack, packs go first of which nothing is needed; if that is not enough, nothing else is changed and the error says how much is.
//!
//! A crash leaves the old packs, or the new one beside some of the old: the new pack is complete, synced and named before the first old one goes. An object to
//! which nothing refers may have been written just now by a git that is still at work, so it stays until it is older than a grace time. Those that stay go into
//! a pack of their own, which has the age of the youngest.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::find_files::{files_ending, is_there, unless_absent};
use super::loose::{Loose, loose_objects, refuse_linked};
use super::pack_file::PackFile;
use super::pack_folder::{BESIDE_PACK, TEMP_PREFIX, forget_multi_pack_index, is_kept, remove_pack};
use super::packed_mark::PackedMark;
use super::packer::Placed;
use super::repack::Packed;
use super::reserve::free_bytes;
use super::verify::Health;
use super::{Error, Kind, Lock, ObjectId, RefName, Result, Store};
use crate::durable;
use crate::progress::Monitor;

#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// What the new pack holds; nothing if there was nothing to do.
    pub packed: Packed,
    pub packs_before: usize,
    pub loose_before: usize,
    /// What all of them took.
    pub bytes_before: u64,
    /// What is taken now.
    pub bytes_after: u64,
    /// Objects that nothing referred to, and that are gone.
    pub dropped: usize,
    /// Objects that nothing refers to, and that are too young to go.
    pub spared: usize,
    pub changed: bool,
    /// Files that another program has open, and that therefore are still there (on Windows): the next command removes them.
    pub held: usize,
}

/// How the objects that stay are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repack {
    /// As small as they can be: all of them into one pack.
    Thorough,
    /// As soon as possible: only packs that hold something that goes are written again.
    Quick,
}

struct OldPack {
    index: PathBuf,
    bytes: u64,
    modified: SystemTime,
    objects: Vec<ObjectId>,
    /// Somebody asked for it to stay.
    kept: bool,
}

impl Store {
    /// Pack `objects`, which must be all that anything refers to, and drop what is not among them and older than `keep_after`. Files that hold one of `damaged`, which
    /// something refers to and which cannot be read, stay. Once all is packed, and before anything is dropped, `before_drop` is called. With `dry_run` only counts.
    #[expect(clippy::too_many_arguments)]
    pub fn collect(
        &self,
        _lock: &Lock,
        objects: &[Placed],
        damaged: &HashSet<ObjectId>,
        keep_after: SystemTime,
        repack: Repack,
        dry_run: bool,
        before_drop: &mut dyn FnMut() -> Result<()>,
        monitor: &mut dyn Monitor,
    ) -> Result<Collected> {
        let dir = self.git_dir.join("objects").join("pack");
        let mut packs = old_packs(&dir)?;
        for pack in &mut packs {
            pack.kept |= pack.objects.iter().any(|id| damaged.contains(id));
        }
        let mut loose = loose_objects(&self.git_dir.join("objects"))?;
        refuse_linked(&loose)?;
        loose.retain(|object| !damaged.contains(&object.id));
        let wanted: HashSet<ObjectId> = objects.iter().map(|object| object.id).collect();
        let mut collected = Collected {
            packs_before: packs.len(),
            loose_before: loose.len(),
            bytes_before: packs.iter().map(|pack| pack.bytes).sum::<u64>()
                + loose.iter().map(|object| object.bytes).sum::<u64>(),
            ..Collected::default()
        };
        let mark = PackedMark::read(self)?;
        let volumes = &mark.volumes;
        let best = mark.best.clone().unwrap_or_default();
        let young = |time: SystemTime| time > keep_after;
        // Volumes are made anew each time, and are nobody's.
        let unwanted = |id: &ObjectId| !wanted.contains(id) && !volumes.contains(id);
        let mut spare: HashSet<ObjectId> = HashSet::new();
        let mut gone: HashSet<ObjectId> = HashSet::new();
        let mut youngest = SystemTime::UNIX_EPOCH;
        for pack in packs.iter().filter(|pack| !pack.kept) {
            let unwanted = pack.objects.iter().filter(|id| unwanted(id));
            if young(pack.modified) {
                let mut any = false;
                spare.extend(unwanted.inspect(|_| any = true));
                if any {
                    youngest = youngest.max(pack.modified);
                }
            } else {
                gone.extend(unwanted);
            }
        }
        let unwanted_loose = loose.iter().filter(|object| unwanted(&object.id));
        let (young_loose, old_loose): (Vec<&Loose>, Vec<&Loose>) =
            unwanted_loose.partition(|object| young(object.modified));
        let young_loose: HashSet<_> = young_loose.iter().map(|object| object.id).collect();
        gone.extend(old_loose.iter().map(|object| object.id));
        gone.retain(|id| !spare.contains(id) && !young_loose.contains(id));
        collected.dropped = gone.len();
        collected.spared = spare.union(&young_loose).count();
        let ours = || packs.iter().filter(|pack| !pack.kept && !is_only(pack, &spare));
        let is_quick = repack == Repack::Quick;
        let is_tidy = loose.iter().all(|object| young_loose.contains(&object.id))
            && gone.is_empty()
            && ours().count() <= 1
            && ours().all(|pack| pack.index.file_name() == Some(best.as_ref()));
        if is_tidy || dry_run || is_quick && gone.is_empty() {
            collected.bytes_after = collected.bytes_before;
            if !dry_run {
                before_drop()?;
                collected.held = self.remove_left_behind(&dir, keep_after)?;
            }
            return Ok(collected);
        }

        let mut made = Made { packs: &packs, indices: Vec::new() };
        // The packs that are written again.
        let rewritten: HashSet<&PathBuf> = packs
            .iter()
            .filter(|pack| {
                !is_quick || !pack.kept && pack.objects.iter().any(|id| gone.contains(id))
            })
            .map(|pack| &pack.index)
            .collect();
        let mut write = |made: &mut Made<'_>| -> Result<_> {
            let (new, packed, new_objects, after) = if is_quick {
                // On a full disk, those of which nothing stays may be gone already.
                let indices: Vec<_> =
                    rewritten.iter().copied().filter(|index| index.exists()).collect();
                let stripped = self.strip_packs(&indices, objects, volumes, monitor)?;
                let gone: Vec<_> = rewritten.iter().copied().cloned().collect();
                let mark = mark.clone().after_stripping(&gone, &stripped.lost_volumes);
                let after = match &stripped.index {
                    Some(new) => mark.after_joining(&[], new, &stripped.packed.volumes),
                    None => mark,
                };
                // All that stays of the packs that go.
                let old = packs.iter().filter(|pack| rewritten.contains(&pack.index));
                let stays = old.flat_map(|pack| &pack.objects).filter(|id| wanted.contains(*id));
                let stays: Vec<_> = stays.copied().collect();
                (stripped.index, stripped.packed, stays, Some(after))
            } else {
                let (new, packed) = self.write_packed(objects, monitor)?;
                let after = new.as_ref().map(|new| PackedMark::after_gc(new, &packed.volumes));
                (new, packed, objects.iter().map(|object| object.id).collect(), after)
            };
            made.indices.extend(new.clone());
            let spared = self.write_spared(&packs, &spare, youngest, monitor)?;
            made.indices.extend(spared.0.clone());
            Ok((new, packed, new_objects, after, spared))
        };
        let written = match write(&mut made) {
            Err(error) if error.io_error().is_some_and(durable::is_full) => {
                made.take_away();
                before_drop()?;
                self.remove_unwanted(&packs, &loose, &gone)?;
                write(&mut made).map_err(|error| self.no_room(error, collected.bytes_before))
            }
            written => written,
        };
        let (new, packed, new_objects, after, (spared, spared_objects)) = written?;
        collected.packed = packed;
        // What the old packs have is gone soon: every object is read back before the first of them goes.
        self.objects.let_go();
        let wanted = spared_objects.iter().map(|object| object.id).chain(new_objects);
        self.read_back(&made.indices, wanted, monitor)?;
        made.indices.clear();
        if let Some(after) = &after {
            after.write(self)?;
        }
        before_drop()?;
        forget_multi_pack_index(&dir)?;
        self.forget_commit_graph()?;
        let goes = |pack: &&OldPack| {
            let is_new = [&new, &spared].into_iter().flatten().any(|index| *index == pack.index);
            !pack.kept && !is_new && !is_only(pack, &spare) && rewritten.contains(&pack.index)
        };
        self.remove_packs(packs.iter().filter(goes).map(|pack| &pack.index))?;
        for object in &loose {
            let is_packed = !is_quick && !unwanted(&object.id);
            if !spare.contains(&object.id) && (is_packed || gone.contains(&object.id)) {
                unless_absent(durable::remove(&object.path), &object.path)?;
            }
        }
        collected.held = self.remove_left_behind(&dir, keep_after)?;
        durable::sync_dir(&dir).map_err(Error::io(&dir))?;
        collected.bytes_after = old_packs(&dir)?.iter().map(|pack| pack.bytes).sum();
        collected.changed = true;
        Ok(collected)
    }

    /// Makes room where there is none for the new pack: removes packs and loose objects of which nothing is needed. The caller has dropped what referred to them.
    fn remove_unwanted(
        &self,
        packs: &[OldPack],
        loose: &[Loose],
        gone: &HashSet<ObjectId>,
    ) -> Result<()> {
        let dir = self.git_dir.join("objects").join("pack");
        let unwanted = |pack: &&OldPack| {
            !pack.kept
                && !pack.objects.is_empty()
                && pack.objects.iter().all(|id| gone.contains(id))
        };
        let unwanted: Vec<_> = packs.iter().filter(unwanted).map(|pack| &pack.index).collect();
        forget_multi_pack_index(&dir)?;
        self.forget_commit_graph()?;
        self.remove_packs(unwanted.iter().copied())?;
        for object in loose.iter().filter(|object| gone.contains(&object.id)) {
            unless_absent(durable::remove(&object.path), &object.path)?;
        }
        durable::sync_dir(&dir).map_err(Error::io(&dir))
    }

    /// Says how much room packing needs, if that is why it failed. The old packs are an upper bound of the new one.
    fn no_room(&self, error: Error, needed: u64) -> Error {
        match free_bytes(&self.git_dir) {
            Some(free) if error.io_error().is_some_and(durable::is_full) => {
                Error::NoRoom { path: self.git_dir.clone(), needed, free }
            }
            _ => error,
        }
    }

    /// Young objects that nothing refers to, from packs that go: into a pack of their own, as old as the youngest of them.
    fn write_spared(
        &self,
        packs: &[OldPack],
        spare: &HashSet<ObjectId>,
        youngest: SystemTime,
        monitor: &mut dyn Monitor,
    ) -> Result<(Option<PathBuf>, Vec<Placed>)> {
        let stay: HashSet<_> = packs
            .iter()
            .filter(|pack| is_only(pack, spare))
            .flat_map(|pack| &pack.objects)
            .collect();
        let reader = self.reader();
        let mut objects = Vec::new();
        for id in spare.iter().filter(|id| !stay.contains(id)) {
            // One that cannot be read is of no use to anybody.
            if let Some(kind) = reader.kind(*id)?
                && reader.is_sound(*id, kind)?
            {
                objects.push(Placed { id: *id, kind, slot: 0 });
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
            set.and_then(|file| file.set_modified(youngest)).map_err(Error::io(&pack))?;
        }
        Ok((index, objects))
    }
}

/// Packs that were made just now; what fails takes them away again, unless they were there before.
struct Made<'p> {
    packs: &'p [OldPack],
    indices: Vec<PathBuf>,
}

impl Made<'_> {
    fn take_away(&mut self) {
        for index in self.indices.drain(..) {
            if self.packs.iter().all(|pack| pack.index != index) {
                let _ = remove_pack(&index);
            }
        }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// Whether a pack holds nothing but objects that stay only because they are young: it is left as it is.
fn is_only(pack: &OldPack, spare: &HashSet<ObjectId>) -> bool {
    !pack.objects.is_empty() && pack.objects.iter().all(|id| spare.contains(id))
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
            kept: is_kept(&index)?,
            index,
        });
    }
    Ok(packs)
}

impl Store {
    /// Git may keep a list of commits, which would name those that are gone; it makes it anew when it wants it.
    fn forget_commit_graph(&self) -> Result<()> {
        let info = self.git_dir.join("objects").join("info");
        let graph = info.join("commit-graph");
        unless_absent(durable::remove(&graph), &graph)?;
        let chain = info.join("commit-graphs");
        match fs::remove_dir_all(&chain) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { path: chain, source: error })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a removal of packs was cut short, and their bytes are still there.
    pub fn has_half_removed_packs(&self) -> Result<bool> {
        for pack in files_ending(&self.git_dir.join("objects").join("pack"), "pack")? {
            if !is_there(&pack.with_extension("idx"))? && !is_kept(&pack)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What commands that were killed left: temporary files, packs without an index, and what stood beside a pack that is gone. The caller has the lock, so temporary files of ours are
    /// nobody's; a pack may be a git's that is about to name its index. That one cannot be removed matters to nobody: the next `gc` tries again.
    fn remove_left_behind(&self, packs: &Path, keep_after: SystemTime) -> Result<usize> {
        const ABOUT_TO: Duration = Duration::from_secs(60);
        let is_old = |path: &Path| {
            let modified = fs::symlink_metadata(path).and_then(|found| found.modified());
            modified.is_ok_and(|time| {
                time <= keep_after || time.elapsed().is_ok_and(|age| age > ABOUT_TO)
            })
        };
        let mut held = 0;
        for dir in [packs, &self.private_dir()] {
            for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
                let path = entry.map_err(Error::io(dir))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(TEMP_PREFIX)
                    || (name.starts_with(durable::TEMP_PREFIX) && name.ends_with(".tmp"))
                {
                    held += usize::from(matches!(durable::remove_unless_held(&path), Ok(false)));
                }
            }
        }
        // Locks on refs that nobody but stvc writes; the caller has the store's.
        let kept = self.git_dir.join(RefName::KEPT);
        for entry in fs::read_dir(&kept).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "lock") {
                durable::remove_own(&entry.path());
            }
        }
        // Of commands that were killed: halves of caches, of stores, of backups that were being read.
        let parent = durable::parent(&self.git_dir);
        for dir in [&*self.private_dir().join("folders"), &self.git_dir, parent] {
            durable::clear_left_behind(dir);
        }
        for pack in files_ending(packs, "pack")? {
            if !is_there(&pack.with_extension("idx"))? && !is_kept(&pack)? && is_old(&pack) {
                let _ = remove_pack(&pack);
            }
        }
        // A power cut may have kept them and lost the pack.
        for extension in ["idx"].into_iter().chain(BESIDE_PACK) {
            for path in files_ending(packs, extension)? {
                if !is_there(&path.with_extension("pack"))? {
                    let _ = remove_pack(&path);
                }
            }
        }
        Ok(held)
    }

    /// Read every object of new packs, and see that all that were to be in them are.
    pub(super) fn read_back(
        &self,
        indices: &[PathBuf],
        mut wanted: impl Iterator<Item = ObjectId>,
        monitor: &mut dyn Monitor,
    ) -> Result<Health> {
        let health = self.verify_packs(indices, monitor)?;
        if let Some((path, why)) = health.first_damage(indices) {
            let why = format!("what was read back is not what was written: {why}");
            return Err(Error::DamagedPack { path, why });
        }
        match wanted.find(|id| !health.is_sound(*id)) {
            Some(id) => Err(Error::Missing { id }),
            None => Ok(health),
        }
    }
}
