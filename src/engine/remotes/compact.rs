//! Replaces own packs by fewer ones, and rewrites own packs that contain erased objects or that
//! other devices cannot read.
//!
//! Other devices may still be about to read a replaced pack. So it is announced as retired, and
//! deleted when all devices know that announcement or when 30 days have passed. A pack with erased
//! objects is deleted at once: a device that is about to read it finds the new announcement when it
//! tries again.

use std::collections::{BTreeSet, HashSet};

use super::announcement::{Announcement, Pack, Retired};
use super::pack_objects;
use super::send::{New, slots};
use super::session::{Session, is_about_object};
use crate::archive::SnapshotId;
use crate::archive::backup::objects_of;
use crate::engine::copies::about;
use crate::engine::{self, Error};
use crate::history::History;
use crate::progress::Monitor;
use crate::store::{Loss, ObjectId, Store};

/// Maximum lengths, in bytes, of packs that are merged with each other.
const TIERS: [u64; 2] = [256 << 10, 8 << 20];
/// The number of packs in a tier from which they are merged. Few in the simulation, so that its
/// short runs merge packs.
const MANY: usize = if cfg!(test) { 3 } else { 32 };

/// A pack that is replaced, and the ids of its objects; `None` if they are unknown.
type AffectedPack = (Pack, Option<Vec<ObjectId>>);

impl Session {
    /// Merges small packs if there are many.
    pub(super) fn merge_small_packs(
        &mut self,
        store: &Store,
        next: &mut Announcement,
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        let mut least = 0;
        for most in TIERS {
            let is_in_tier = |pack: &&Pack| (least..most).contains(&pack.bytes());
            let tier: Vec<_> = next.packs.values().filter(is_in_tier).cloned().collect();
            least = most;
            if tier.len() < MANY {
                continue;
            }
            let (mut ids, mut replaced) = (BTreeSet::new(), Vec::new());
            for pack in tier {
                // A pack whose objects are unknown, or not all in this store, stays.
                if let Some(objects) = self.folder.objects_of(pack.name())?
                    && slots(store, objects.iter().copied())?.is_some()
                {
                    ids.extend(objects);
                    replaced.push(pack);
                }
            }
            if replaced.len() >= MANY
                && let Some(objects) = slots(store, ids)?
            {
                let names: Vec<_> = replaced.iter().map(|pack| pack.name().to_owned()).collect();
                self.write_packs(store, &objects, &names, new, monitor)?;
                self.replace(next, replaced, self.now);
            }
        }
        Ok(())
    }

    /// Rewrites the own packs that contain objects which no ref reaches any more.
    pub(super) fn purge(
        &mut self,
        store: &Store,
        next: &mut Announcement,
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        for old in &mut next.retired {
            old.time = 0;
        }
        let live = self.reachable(store, new, monitor)?;
        let mut affected = Vec::new();
        for pack in next.packs.values().cloned().collect::<Vec<_>>() {
            let ids = match self.folder.objects_of(pack.name())? {
                Some(ids) => Some(ids),
                None => self.read_own(store, &pack)?,
            };
            if ids.as_ref().is_none_or(|ids| ids.iter().any(|id| !live.contains(id))) {
                affected.push((pack, ids));
            }
        }
        self.rewrite(store, next, new, (affected, &live), 0, monitor)
    }

    /// Returns the own packs that other devices cannot read.
    pub(super) fn to_repair(&self, own: &Announcement) -> Vec<Pack> {
        let others = self.joined.values().filter(|it| it.device.id != self.device.id);
        let damaged: BTreeSet<_> = others.flat_map(|it| &it.damaged).collect();
        own.packs.values().filter(|pack| damaged.contains(&pack.parts[0].name)).cloned().collect()
    }

    /// Writes the objects of the own packs again that other devices cannot read.
    pub(super) fn repair(
        &mut self,
        store: &Store,
        next: &mut Announcement,
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        let mut affected = Vec::new();
        for pack in self.to_repair(next) {
            let ids = self.folder.objects_of(pack.name())?;
            affected.push((pack, ids));
        }
        if affected.is_empty() {
            return Ok(());
        }
        let live = self.reachable(store, new, monitor)?;
        self.rewrite(store, next, new, (affected, &live), self.now, monitor)
    }

    /// Writes the `live` objects of own packs again, and retires these packs. If the objects of a
    /// pack are unknown, all live objects are written that no other own pack is known to contain.
    fn rewrite(
        &mut self,
        store: &Store,
        next: &mut Announcement,
        new: &New,
        (affected, live): (Vec<AffectedPack>, &HashSet<ObjectId>),
        retired_at: i64,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        if affected.is_empty() {
            return Ok(());
        }
        let mut wanted: BTreeSet<ObjectId> = BTreeSet::new();
        for ids in affected.iter().filter_map(|(_, ids)| ids.as_ref()) {
            wanted.extend(ids.iter().filter(|id| live.contains(*id)));
        }
        if affected.iter().any(|(_, ids)| ids.is_none()) {
            let mut elsewhere = HashSet::new();
            for name in next.packs.keys() {
                if !affected.iter().any(|(pack, _)| pack.name() == name) {
                    elsewhere.extend(self.folder.objects_of(name)?.unwrap_or_default());
                }
            }
            wanted.extend(live.iter().filter(|id| !elsewhere.contains(*id)));
        }
        // Objects that this store does not have are read from the packs that are replaced.
        if slots(store, wanted.iter().copied())?.is_none() {
            for (pack, _) in &affected {
                self.read_own(store, pack)?;
            }
        }
        let source = match self.temporary() {
            Some(temporary) => temporary.store()?,
            None => store.refreshed(),
        };
        let readable = wanted.into_iter().map(|id| slots(&source, [id]));
        let objects = readable.collect::<engine::Result<Vec<_>>>()?;
        let objects: Vec<_> = objects.into_iter().flatten().flatten().collect();
        self.write_packs(&source, &objects, &[], new, monitor)?;
        let packs = affected.into_iter().map(|(pack, _)| pack).collect();
        self.replace(next, packs, retired_at);
        Ok(())
    }

    /// Replaces packs in the next announcement with those that were written for it.
    fn replace(&mut self, next: &mut Announcement, replaced: Vec<Pack>, time: i64) {
        let names: HashSet<_> = replaced.iter().map(|pack| pack.name().to_owned()).collect();
        for pending in &self.state.pending {
            let name = pending.pack.name().to_owned();
            if !names.contains(&name) {
                next.packs.insert(name, pending.pack.clone());
            }
        }
        for pack in replaced {
            next.packs.remove(pack.name());
            next.retired.push(Retired { pack, since: next.number, time });
        }
    }

    /// Returns all objects that the refs reach, as far as they can be read.
    fn reachable(
        &mut self,
        store: &Store,
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<HashSet<ObjectId>> {
        let source = match self.temporary() {
            Some(temporary) => temporary.store()?,
            None => store.refreshed(),
        };
        let found = reachable_in(&source, new)?;
        if found.is_complete {
            return Ok(found.objects);
        }
        // The remote keeps snapshots that this device has undone, or the local store is damaged.
        self.download_all(store, monitor)?;
        Ok(reachable_in(&self.temporary_or_new(store)?.store()?, new)?.objects)
    }

    /// Reads an own pack into the temporary store, and returns the ids of its objects; `None` if
    /// the pack is damaged or missing.
    fn read_own(&mut self, local: &Store, pack: &Pack) -> engine::Result<Option<Vec<ObjectId>>> {
        let Self { storage, key, device, .. } = self;
        let (storage, key, device) = (std::sync::Arc::clone(storage), key.clone(), device.clone());
        let read = |out: &mut crate::store::PackWriter| {
            pack_objects::read(&*storage, &key, &device.id, pack, out)
        };
        let temporary = self.temporary_or_new(local)?;
        match temporary.add(pack.name(), read) {
            Ok(ids) => Ok(Some(ids)),
            Err(Error::PlainRemote(error)) if is_about_object(&error) => {
                self.report_damage(&error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

struct Reachable {
    objects: HashSet<ObjectId>,
    /// Whether all commits and trees could be read.
    is_complete: bool,
}

fn reachable_in(source: &Store, new: &New) -> engine::Result<Reachable> {
    let mut history = History::default();
    history.add(source, new.refs.values().copied().map(SnapshotId))?;
    let mut is_complete = history.broken.is_empty();
    let mut objects: HashSet<_> = history.iter().map(|snapshot| snapshot.id.0).collect();
    for snapshot in history.iter() {
        match objects_of(source, [snapshot.tree], HashSet::new()).map_err(about(source.path())) {
            Ok(found) => objects.extend(found.into_iter().map(|(id, _)| id)),
            Err(error) if error.is_loss() => is_complete = false,
            Err(error) => return Err(error),
        }
    }
    Ok(Reachable { objects, is_complete })
}
