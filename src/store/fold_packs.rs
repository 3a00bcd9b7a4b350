//! Keeping packs few and small without anybody asking. Every snapshot adds a small pack, and reading looks through all of them; so once there are many, or they hold much beside the largest one, they
//! are joined.
//!
//! What was joined before is copied as it stands, a pack at a time: a delta leads back by a distance, and so stays right. What is new is told by what was there before it, as `gc` does, but only as
//! well as a save can wait for. So every object is packed once in this way, and copied a few times in a store's life.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use gix::odb::pack::data;

use super::files::{self, files_ending, unless_absent};
use super::loose::{loose_objects, refuse_linked};
use super::object::verify;
use super::pack::PackWriter;
use super::pack_file::{EntryBase, Opened, PackFile, StandingEntry, as_they_stand, base_of};
use super::pack_folder::{forget_multi_pack_index, is_kept, remove_pack};
use super::packed_mark::PackedMark;
use super::packer::{Effort, Placed, Standing};
use super::recent_objects::RecentObjects;
use super::{Error, Kind, Lock, ObjectId, Result, Store, unless_lost};
use crate::parallel::in_parts;
use crate::progress::Silent;

/// Fold when there are more packs than this.
const MANY: usize = 20;
/// Fold all when the others together are more than this part of the largest.
const PART: u64 = 5;
/// Less than this together is left until there are many.
const LITTLE: u64 = 256 << 10;
/// So many loose objects are left as they are.
const MANY_LOOSE: usize = 500;
/// Packs this large are left alone, for `gc`.
const LARGE: u64 = 32 << 20;
/// No more than this is packed anew in one step. A pack that is larger is copied, and left for `gc`.
const STEP: u64 = 2 << 20;

/// The order in which new objects are packed best, given the new commits and all that is new: versions of one thing together, after what was there before them. Only who knows what they mean can tell.
pub type Order<'o> = &'o dyn Fn(&Store, Vec<ObjectId>, &HashSet<ObjectId>) -> Vec<Placed>;

impl Store {
    /// Fold packs into one if there are many. A damaged pack is left alone, whole.
    pub(super) fn fold_packs(&self, _lock: &Lock, order: Order<'_>) -> Result<()> {
        self.fold_loose()?;
        let dir = self.pack_dir();
        let mark = PackedMark::read(self)?;
        let mut writer = self.pack_writer();
        let mut standing = Standing::new();
        let mut gone = Vec::new();
        let mut new = Vec::new();
        let mut ids = HashSet::new();
        let (packs, largest) = small_packs(&dir)?;
        for pack in choose(packs, largest, &mark) {
            let file = PackFile::new(pack.index.clone());
            let Some((data, entries)) = sound_entries(&file)? else { continue };
            let is_there = entries.iter().any(|entry| standing.contains_key(&entry.id));
            // What is there twice cannot be copied twice.
            if pack.is_new || is_there {
                let lacking = entries.iter().map(|entry| entry.id);
                new.extend(lacking.filter(|id| !standing.contains_key(id) && ids.insert(*id)));
            } else {
                copy(&mut writer, data, &entries, &mut standing)?;
            }
            gone.push(pack.index);
        }
        if gone.len() < 2 {
            return Ok(());
        }
        let objects = self.in_order(&new, &ids, &standing, order)?;
        let packed =
            self.pack_onto(&mut writer, &objects, &standing, Effort::Steady, &mut Silent)?;
        let Some(index) = writer.finish()? else { return Ok(()) };
        // What the old packs have is gone soon.
        if let Err(error) = can_be_read(&index, &new) {
            let _ = remove_pack(&index);
            return Err(error);
        }
        gone.retain(|old| *old != index);
        mark.without(&gone).with_joined(&index, &packed.volumes).write(self)?;
        forget_multi_pack_index(&dir)?;
        self.remove_packs(&gone)?;
        files::sync_dir(&dir)
    }

    /// What is packed anew, in the best order, among what it may be told by.
    fn in_order(
        &self,
        new: &[ObjectId],
        ids: &HashSet<ObjectId>,
        standing: &Standing,
        order: Order<'_>,
    ) -> Result<Vec<Placed>> {
        let reader = self.reader();
        let mut kinds = Vec::with_capacity(new.len());
        for id in new {
            kinds.push(reader.kind(*id)?.ok_or(Error::Missing { id: *id })?);
        }
        let all = || new.iter().zip(&kinds);
        let commits = all().filter(|(_, kind)| **kind == Kind::Commit).map(|(id, _)| *id);
        let mut objects = order(self, commits.collect(), ids);
        objects.retain(|object| ids.contains(&object.id) || standing.contains_key(&object.id));
        let placed: HashSet<_> = objects.iter().map(|object| object.id).collect();
        let next = objects.iter().map(|object| object.slot + 1).max().unwrap_or(0);
        // What no commit leads to: bytes that are kept for `undo`.
        let others = all().filter(|(id, _)| !placed.contains(*id));
        objects.extend(others.zip(next..).map(|((id, kind), slot)| Placed {
            id: *id,
            kind: *kind,
            slot,
        }));
        Ok(objects)
    }

    /// Take loose objects, which a git may have written, into a pack if there are many.
    fn fold_loose(&self) -> Result<()> {
        let loose = loose_objects(&self.objects_dir())?;
        if loose.len() <= MANY_LOOSE {
            return Ok(());
        }
        refuse_linked(&loose)?;
        let reader = self.reader();
        let mut writer = self.pack_writer();
        let mut taken = Vec::new();
        for object in &loose {
            let Some(kind) = reader.kind(object.id)? else { continue };
            let mut data = Vec::new();
            // One that is damaged is left where it is.
            if let Some(data) = unless_lost(reader.read(object.id, kind, &mut data))? {
                writer.add_again(object.id, kind, data)?;
                taken.push(&object.path);
            }
        }
        writer.finish()?;
        taken.into_iter().try_for_each(|path| files::remove(path))
    }
}

struct SmallPack {
    index: PathBuf,
    bytes: u64,
    /// It is packed anew, and not copied.
    is_new: bool,
}

/// Those that may be folded, and the size of the largest of all.
fn small_packs(dir: &Path) -> Result<(Vec<SmallPack>, u64)> {
    let (mut packs, mut largest) = (Vec::new(), 0);
    for index in files_ending(dir, "idx")? {
        let pack = index.with_extension("pack");
        let Some(found) = unless_absent(fs::metadata(&pack), &pack)? else { continue };
        let bytes = found.len();
        largest = largest.max(bytes);
        // Someone asked for a `.keep` pack to stay.
        if bytes < LARGE && !is_kept(&index)? {
            packs.push(SmallPack { index, bytes, is_new: false });
        }
    }
    Ok((packs, largest))
}

/// Those that are folded, in the order in which they are: what is copied first, the largest before all.
fn choose(mut packs: Vec<SmallPack>, largest: u64, mark: &PackedMark) -> Vec<SmallPack> {
    packs.sort_by(|a, b| (a.bytes, &a.index).cmp(&(b.bytes, &b.index)));
    // The largest itself may be too large to be folded.
    let is_beside = |pack: &&SmallPack| pack.bytes < largest;
    let beside: u64 = packs.iter().filter(is_beside).map(|pack| pack.bytes).sum();
    if beside <= LITTLE.max(largest / PART) {
        if packs.len() <= MANY {
            return Vec::new();
        }
        // Like git's geometric repacking: take packs as long as the next is not larger than all smaller ones together,
        // so that large packs are not copied for the sake of a few small ones.
        let mut together = 0;
        let mut count = 0;
        for (position, pack) in packs.iter().enumerate() {
            together += pack.bytes;
            let next = packs.get(position + 1).map_or(u64::MAX, |next| next.bytes);
            count = position + 1;
            if packs.len() - count <= MANY / 2 && next > together {
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
    packs.sort_by_key(|pack| (pack.is_new, std::cmp::Reverse(pack.bytes)));
    packs
}

/// A pack's objects as they stand there, each checked against the checksum that the index keeps of it; `None` if it is damaged.
pub(super) fn sound_entries(file: &PackFile) -> Result<Option<(&data::File, Vec<StandingEntry>)>> {
    let (Opened::Whole(index), Opened::Whole(pack)) = (file.index()?, file.data()?) else {
        return Ok(None);
    };
    let entries = as_they_stand(index, pack.pack_end() as u64);
    let is_sound = entries.iter().all(|entry| entry.sound_bytes(pack).is_some());
    Ok(is_sound.then_some((pack, entries)))
}

/// Copy all of a pack as it stands, and note what stands where now.
fn copy(
    writer: &mut PackWriter,
    pack: &data::File,
    entries: &[StandingEntry],
    standing: &mut Standing,
) -> Result<()> {
    let mut depths: HashMap<u64, usize> = HashMap::with_capacity(entries.len());
    for entry in entries {
        let at = entry.span.start;
        let depth = match base_of(pack, at) {
            EntryBase::At(base) => {
                depths.get(&base).map_or(usize::MAX, |depth| depth.saturating_add(1))
            }
            EntryBase::Unknown => usize::MAX,
            EntryBase::None => 0,
        };
        depths.insert(at, depth);
        standing.insert(entry.id, (writer.next_offset(), depth));
        writer.append_raw(entry.id, pack.entry_slice(entry.span.clone()).unwrap_or_default())?;
    }
    Ok(())
}

/// Read these objects of a new pack, and hash each.
fn can_be_read(index: &Path, ids: &[ObjectId]) -> Result<()> {
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
