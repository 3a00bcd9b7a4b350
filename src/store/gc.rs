//! Bringing all packs and loose objects down to one pack, and dropping what nothing refers to any more.
//!
//! A crash leaves the old packs, or the new one beside some of the old: the new pack is complete, synced and named before the first old one goes. An object to
//! which nothing refers may have been written just now by a git that is still at work, so it stays until it is older than a grace time. Those that stay go into
//! a pack of their own, which has the age of the youngest.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gix::odb::pack::index;

use super::delta_pack::DeltaPack;
use super::fold::{forget_multi_pack_index, remove, remove_pack};
use super::pack::TEMP_PREFIX;
use super::repack::{Packed, Placed};
use super::{Error, Kind, Lock, ObjectId, Result, Store};
use crate::durable::{self, Existing};
use crate::progress::Monitor;

/// What was collected.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// What the new pack holds; nothing if there was nothing to do.
    pub packed: Packed,
    /// How many packs there were.
    pub packs_before: usize,
    /// How many loose objects there were.
    pub loose_before: usize,
    /// What all of them took.
    pub bytes_before: u64,
    /// What is taken now.
    pub bytes_after: u64,
    /// Objects that nothing referred to, and that are gone.
    pub dropped: usize,
    /// Objects that nothing refers to, and that are too young to go.
    pub spared: usize,
    /// Whether anything was done.
    pub changed: bool,
}

/// A pack that is there.
struct OldPack {
    index: PathBuf,
    bytes: u64,
    modified: SystemTime,
    objects: Vec<ObjectId>,
    /// Somebody asked for it to stay.
    kept: bool,
}

/// A loose object.
pub(super) struct Loose {
    pub(super) id: ObjectId,
    pub(super) path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl Store {
    /// Pack `objects`, which must be all that anything refers to, and drop what is not among them and older than `keep_after`. Once all is packed, and before anything is
    /// dropped, `before_drop` is called. With `dry_run` only counts.
    pub fn collect(
        &self,
        _lock: &Lock,
        objects: &[Placed],
        keep_after: SystemTime,
        dry_run: bool,
        before_drop: &mut dyn FnMut() -> Result<()>,
        monitor: &mut dyn Monitor,
    ) -> Result<Collected> {
        let dir = self.git_dir.join("objects").join("pack");
        let packs = old_packs(&dir)?;
        let loose = loose_objects(&self.git_dir.join("objects"))?;
        let wanted: HashSet<ObjectId> = objects.iter().map(|object| object.id).collect();
        let mut collected = Collected {
            packs_before: packs.len(),
            loose_before: loose.len(),
            bytes_before: packs.iter().map(|pack| pack.bytes).sum::<u64>()
                + loose.iter().map(|object| object.bytes).sum::<u64>(),
            ..Collected::default()
        };
        let volumes = self.known_volumes();
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
        gone.extend(
            loose
                .iter()
                .filter(|object| unwanted(&object.id) && !young(object.modified))
                .map(|object| object.id),
        );
        let young_loose = loose
            .iter()
            .filter(|object| unwanted(&object.id) && young(object.modified))
            .map(|object| object.id);
        let young_loose: HashSet<ObjectId> = young_loose.collect();
        gone.retain(|id| !spare.contains(id) && !young_loose.contains(id));
        collected.dropped = gone.len();
        collected.spared = spare.union(&young_loose).count();
        let ours = || packs.iter().filter(|pack| !pack.kept && !is_only(pack, &spare));
        let is_tidy = loose.iter().all(|object| young_loose.contains(&object.id))
            && gone.is_empty()
            && ours().count() <= 1
            && ours().all(|pack| self.is_packed_well(&pack.index));
        if is_tidy || dry_run {
            collected.bytes_after = collected.bytes_before;
            if !dry_run {
                before_drop()?;
                self.remove_left_behind(&dir, keep_after)?;
            }
            return Ok(collected);
        }

        let (new, packed) = self.write_packed(objects, monitor)?;
        collected.packed = packed;
        let spared = self.write_spared(&packs, &spare, youngest, monitor)?;
        if let Some(new) = &new {
            self.mark_packed_well(new, &collected.packed.volumes)?;
        }
        before_drop()?;
        forget_multi_pack_index(&dir)?;
        self.forget_commit_graph()?;
        for pack in packs.iter().filter(|pack| !pack.kept) {
            let stays = Some(&pack.index) == new.as_ref()
                || Some(&pack.index) == spared.as_ref()
                || is_only(pack, &spare);
            if !stays {
                remove_pack(&pack.index)?;
            }
        }
        for object in &loose {
            if !spare.contains(&object.id) && (!unwanted(&object.id) || gone.contains(&object.id)) {
                remove(&object.path)?;
            }
        }
        self.remove_left_behind(&dir, keep_after)?;
        durable::sync_dir(&dir).map_err(Error::io(&dir))?;
        collected.bytes_after = old_packs(&dir)?.iter().map(|pack| pack.bytes).sum();
        collected.changed = true;
        Ok(collected)
    }

    /// The file that names the pack that was made here last, which need not be made again, and its volumes.
    pub(super) fn packed_mark(&self) -> PathBuf {
        self.private_dir().join("packed")
    }

    /// The pack that was made here last, opened.
    pub(super) fn delta_pack(&self) -> Option<Arc<DeltaPack>> {
        let open = || {
            let mark = fs::read_to_string(self.packed_mark()).ok()?;
            let name = mark.lines().next()?;
            let plain = name.starts_with("pack-") && !name.contains(['/', '\\']);
            let dir = self.git_dir.join("objects").join("pack");
            plain.then(|| DeltaPack::at(&dir.join(name))).flatten().map(Arc::new)
        };
        self.deltas.get_or_init(open).clone()
    }

    fn mark_packed_well(&self, index: &Path, volumes: &[ObjectId]) -> Result<()> {
        let mark = self.packed_mark();
        let mut text = format!("{}\n", index.file_name().unwrap_or_default().to_string_lossy());
        for id in volumes {
            text.push_str(&format!("{id}\n"));
        }
        durable::write(&mark, text.as_bytes(), Existing::Replace).map_err(Error::io(&mark))
    }

    fn is_packed_well(&self, index: &Path) -> bool {
        let name = index.file_name().unwrap_or_default().to_string_lossy();
        let mark = fs::read_to_string(self.packed_mark()).unwrap_or_default();
        mark.lines().next() == Some(&name)
    }

    fn known_volumes(&self) -> HashSet<ObjectId> {
        let mark = fs::read_to_string(self.packed_mark()).unwrap_or_default();
        mark.lines().skip(1).filter_map(|line| ObjectId::from_hex(line.as_bytes()).ok()).collect()
    }

    /// Young objects that nothing refers to, from packs that go: into a pack of their own, as old as the youngest of them.
    fn write_spared(
        &self,
        packs: &[OldPack],
        spare: &HashSet<ObjectId>,
        youngest: SystemTime,
        monitor: &mut dyn Monitor,
    ) -> Result<Option<PathBuf>> {
        let stay: HashSet<_> = packs
            .iter()
            .filter(|pack| is_only(pack, spare))
            .flat_map(|pack| &pack.objects)
            .collect();
        let reader = self.reader();
        let mut objects = Vec::new();
        for id in spare.iter().filter(|id| !stay.contains(id)) {
            // One that cannot be read is of no use to anybody.
            if let Some(kind) = reader.kind(*id).filter(|kind| reader.is_sound(*id, *kind)) {
                objects.push(Placed { id: *id, kind, slot: 0 });
            }
        }
        objects.sort_by_key(|object| (object.kind != Kind::Commit, object.id));
        for (slot, object) in objects.iter_mut().enumerate() {
            object.slot = slot as u32;
        }
        if objects.is_empty() {
            return Ok(None);
        }
        let (index, _) = self.write_packed(&objects, monitor)?;
        if let Some(index) = &index {
            let pack = index.with_extension("pack");
            let set = File::options().write(true).open(&pack);
            set.and_then(|file| file.set_modified(youngest)).map_err(Error::io(&pack))?;
        }
        Ok(index)
    }
}

/// Whether a pack holds nothing but objects that stay only because they are young: it is left as it is.
fn is_only(pack: &OldPack, spare: &HashSet<ObjectId>) -> bool {
    !pack.objects.is_empty() && pack.objects.iter().all(|id| spare.contains(id))
}

fn old_packs(dir: &Path) -> Result<Vec<OldPack>> {
    let mut packs = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))?.flatten() {
        let index = entry.path();
        if index.extension().is_none_or(|extension| extension != "idx") {
            continue;
        }
        let pack = index.with_extension("pack");
        let Ok(found) = fs::metadata(&pack) else { continue };
        let damaged = |why: String| Error::DamagedPack { path: index.clone(), why };
        let list = index::File::at(&index, gix::hash::Kind::Sha1)
            .map_err(|error| damaged(error.to_string()))?;
        packs.push(OldPack {
            objects: list.iter().map(|entry| entry.oid).collect(),
            bytes: found.len() + fs::metadata(&index).map_or(0, |found| found.len()),
            modified: found.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            kept: ["keep", "promisor"].iter().any(|mark| index.with_extension(mark).exists()),
            index,
        });
    }
    Ok(packs)
}

pub(super) fn loose_objects(dir: &Path) -> Result<Vec<Loose>> {
    let mut objects = Vec::new();
    for folder in fs::read_dir(dir).map_err(Error::io(dir))?.flatten() {
        let name = folder.file_name();
        let Some(first) = name.to_str().filter(|name| name.len() == 2) else { continue };
        for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let name = file.file_name();
            let hex = format!("{first}{}", name.to_string_lossy());
            let (Ok(id), Ok(found)) = (ObjectId::from_hex(hex.as_bytes()), file.metadata()) else {
                continue;
            };
            objects.push(Loose {
                id,
                path: file.path(),
                bytes: found.len(),
                modified: found.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    }
    Ok(objects)
}

impl Store {
    /// Git may keep a list of commits, which would name those that are gone; it makes it anew when it wants it.
    fn forget_commit_graph(&self) -> Result<()> {
        let info = self.git_dir.join("objects").join("info");
        remove(&info.join("commit-graph"))?;
        let chain = info.join("commit-graphs");
        match fs::remove_dir_all(&chain) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { path: chain, source: error })
            }
            _ => Ok(()),
        }
    }

    /// What commands that were killed left: temporary files, and packs without an index.
    fn remove_left_behind(&self, packs: &Path, keep_after: SystemTime) -> Result<()> {
        for dir in [packs, &self.private_dir()] {
            for entry in fs::read_dir(dir).map_err(Error::io(dir))?.flatten() {
                let path = entry.path();
                let modified = entry.metadata().and_then(|found| found.modified());
                let old = modified.is_ok_and(|time| time <= keep_after);
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let temporary = name.starts_with(TEMP_PREFIX)
                    || (name.starts_with(".stvc-") && name.ends_with(".tmp"));
                let lone = name.ends_with(".pack") && !path.with_extension("idx").exists();
                if old && (temporary || lone) {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }
}
