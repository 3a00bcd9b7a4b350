//! Sends the local snapshots to a remote: first the packs with new objects, then an announcement of
//! the new state.
//!
//! If this is interrupted, the announcement is missing, so no other device sees anything of it. The
//! packs that were written are remembered, and the next run announces them. This device writes and
//! deletes only names that no other device can write, so there is nothing to lock.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::PlainRemoteError;
use super::announcement::{Announcement, Pack, Retired, object_name};
use super::key::Result;
use super::local_state::PendingPack;
use super::local_state::Role;
use super::pack_objects::{self, PackStorage};
use super::session::Session;
use crate::archive::backup::objects_of;
use crate::archive::{SnapshotId, readable_beyond};
use crate::engine::copies::chosen_refs::{ChosenRefs, Refs};
use crate::engine::copies::judge_outgoing::JudgedOutgoing;
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::engine::copies::mirror::Report;
use crate::engine::copies::removed_here::RemovedHere;
use crate::engine::copies::update_refs::{self, Options};
use crate::engine::{self, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::store::{Copied, Erasures, Loss, ObjectId, PackSlot, RefName, Store};

/// Length of the objects in one pack, before compression. After an interruption, a complete pack is
/// not written again.
const PACK: u64 = 48 << 20;
/// Number of announcements after which a complete one is written. Low in the simulation.
const MOST_ON_BASE: u64 = if cfg!(test) { 4 } else { 64 };
/// A listed announcement of this device with a number so far beyond the last one that was read is
/// from somebody else. There may be no number after it.
const MOST_UNREAD: u64 = 1 << 20;
/// The number of superfluous announcements from which they are deleted, to save requests.
const SUPERFLUOUS: usize = if cfg!(test) { 2 } else { 8 };
/// Time in seconds after which a replaced pack is deleted, even if not all devices know.
const LONGEST_RETIREMENT: i64 = 30 * 24 * 3600;
/// Time in seconds after which a device that announced nothing is not waited for.
const ABSENCE: i64 = 90 * 24 * 3600;

/// Reports the lengths of written objects instead of their number.
struct ObjectBytes<'m> {
    monitor: &'m mut dyn Monitor,
    lengths: std::slice::Iter<'m, u64>,
}

impl Monitor for ObjectBytes<'_> {
    fn begin(&mut self, _what: &str, _steps: Option<u64>) {}

    fn advance(&mut self, objects: u64) {
        let objects = usize::try_from(objects).unwrap_or(usize::MAX);
        self.monitor.advance(self.lengths.by_ref().take(objects).sum());
    }
}

impl Session {
    /// Sends everything that the remote lacks.
    pub(crate) fn send(
        &mut self,
        workspace: &Workspace,
        options: &Options,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<Report> {
        let store = workspace.open_store()?;
        monitor.begin("looking for new snapshots", None);
        let mut chosen = options.choose(workspace, &store)?;
        let remote = match self.temporary() {
            Some(temporary) => temporary.store()?,
            None => workspace.open_store()?,
        };
        let current: Vec<Announcement> = self.current().into_iter().cloned().collect();
        let tips = || current.iter().flat_map(|it| it.refs.values()).copied();
        let mut history = History::default();
        history.add(&remote, tips().map(SnapshotId))?;
        let had = history.past(tips().map(SnapshotId));
        let mut judged = JudgedOutgoing::of(&store, &chosen, |id| had.contains(&id), monitor)?;
        judged.leave_out_incomplete(&mut chosen);
        let (mut refs, dropped) = join_refs(&current, &history, &chosen);
        let reader = remote.reader();
        let known = (&history, &reader);
        let update = update_refs::plan(&chosen, &refs, &store, known, options, &self.address)?;
        for change in update.changes() {
            match change.after {
                Some(id) => refs.insert(change.name, id),
                None => refs.remove(&change.name),
            };
        }
        // A branch whose timeline this device has under another name was renamed. Other devices
        // would receive it as a second timeline.
        let sent = chosen.snapshots();
        refs.retain(|name, id| {
            let is_renamed = name.is_branch()
                && !chosen.refs.contains_key(name)
                && !options.except.contains(name)
                && options.timelines.is_empty()
                && sent.contains(&SnapshotId(*id));
            !is_renamed
        });
        keep(&mut refs, dropped, &store, (&history, &reader), &chosen)?;
        let mut erasures = store.erasures()?;
        current.iter().for_each(|it| erasures.join(&it.erasures));
        let new = New { refs, erasures, time: workspace.timestamp() };
        let mut copied = Copied::default();
        if self.must_announce(&current, &new) {
            copied = self.write_new(&store, &chosen, &had, &judged.unreadable, &new, monitor)?;
            self.announce(&store, new, monitor)?;
        }
        let destination = self.address.clone();
        let mut backup = LastBackup::of("remote", destination, workspace.timestamp(), &chosen);
        backup.encrypted = self.key.is_encrypted();
        let mut report = Report::of(backup, &chosen, judged, &update, |id| had.contains(&id));
        (report.created, report.copied) = (current.is_empty(), Some(copied));
        report.findings.extend(last_backups::note(workspace, &store, &report.backup));
        report.findings.extend(update.removed_finding(&self.address, options.may));
        report.findings.extend(self.erased_left());
        report.findings.append(&mut self.findings);
        Ok(report)
    }

    pub(super) fn own(&self) -> Option<&Announcement> {
        self.joined.get(&self.device.id)
    }

    fn must_announce(&self, current: &[Announcement], new: &New) -> bool {
        let is_same = |it: &Announcement| it.refs == new.refs && it.erasures == new.erasures;
        let own = self.own();
        let seen = |device: &str| own.and_then(|own| own.seen.get(device)).copied().unwrap_or(0);
        // A device that replaced packs waits for the other devices to know.
        let is_waiting = self.joined.values().any(|it| {
            let device = &it.device.id;
            *device != self.device.id && it.retired.iter().any(|old| old.since > seen(device))
        });
        let is_unpurged = own.is_some_and(|own| {
            own.purged != digest(&new.erasures) && !(own.packs.is_empty() && own.retired.is_empty())
        });
        let is_news = match own {
            Some(own) => own.damaged != self.state.damaged,
            None => !self.state.damaged.is_empty(),
        };
        let listed = self.listing.get(&self.device.id).and_then(|numbers| numbers.last()).copied();
        let is_lost = own.is_some_and(|own| listed.is_none_or(|listed| listed < own.number));
        let nothing_to_say = current.is_empty() && new.refs.is_empty() && new.erasures.is_empty();
        let is_new = current.is_empty() || !current.iter().all(is_same);
        is_new && !nothing_to_say
            || is_waiting
            || is_unpurged
            || is_lost
            || is_news
            || own.is_some_and(|own| !self.to_repair(own).is_empty())
            || !self.due().is_empty()
            || !self.state.pending.is_empty()
    }

    /// Writes the objects that the remote lacks, in packs.
    fn write_new(
        &mut self,
        store: &Store,
        chosen: &ChosenRefs,
        had: &HashSet<SnapshotId>,
        unreadable: &HashSet<ObjectId>,
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<Copied> {
        let known: HashSet<_> = had.iter().map(|id| id.0).collect();
        let tips: Vec<_> = new.refs.values().filter(|id| !known.contains(*id)).copied().collect();
        let mut there = self.objects_there(store, chosen, &tips, had)?;
        there.extend(unreadable);
        for pending in &self.state.pending {
            let objects = self.folder.objects_of(pending.pack.name())?;
            there.extend(objects.into_iter().flatten());
        }
        self.delete_unfinished()?;
        let mut objects = readable_beyond(store, tips, &known)?;
        objects.retain(|object| !there.contains(&object.id));
        self.write_packs(store, &objects, &[], new, monitor)
    }

    /// Returns the objects of the snapshots that the new snapshots continue.
    fn objects_there(
        &self,
        store: &Store,
        chosen: &ChosenRefs,
        tips: &[ObjectId],
        had: &HashSet<SnapshotId>,
    ) -> engine::Result<HashSet<ObjectId>> {
        let new = chosen.history.walk_from(tips.iter().copied().map(SnapshotId));
        let new: Vec<_> = new.filter(|snapshot| !had.contains(&snapshot.id)).collect();
        let parents: BTreeSet<_> = new.iter().flat_map(|snapshot| &snapshot.parents).collect();
        let trees = parents.into_iter().filter(|id| had.contains(*id));
        let trees: Vec<_> = trees.filter_map(|id| Some(chosen.history.get(*id)?.tree)).collect();
        let mut there = HashSet::new();
        for tree in trees {
            // A damaged tree only means that more is written.
            if let Ok(objects) = objects_of(store, [tree], HashSet::new()) {
                there.extend(objects.into_iter().map(|(id, _)| id));
            }
        }
        Ok(there)
    }

    pub(super) fn write_packs(
        &mut self,
        store: &Store,
        objects: &[PackSlot],
        replaces: &[String],
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<Copied> {
        let reader = store.reader();
        let mut copied = Copied::default();
        let lengths = objects.iter().map(|object| Ok(reader.look(object.id)?.map_or(0, |it| it.1)));
        let lengths = lengths.collect::<engine::Result<Vec<u64>>>()?;
        monitor.begin_bytes("uploading", lengths.iter().sum());
        let mut monitor = ObjectBytes { monitor, lengths: lengths.iter() };
        let mut length = 0;
        let mut chunk = Vec::new();
        for (n, (object, bytes)) in objects.iter().zip(&lengths).enumerate() {
            length += bytes;
            chunk.push(*object);
            if length < PACK && n + 1 < objects.len() {
                continue;
            }
            let mut pack = self.write_pack(&reader, &chunk, new, &mut monitor)?;
            pack.replaces = replaces.to_vec();
            let ids: Vec<_> = chunk.iter().map(|object| object.id).collect();
            self.folder.save_objects_of(pack.name(), &ids)?;
            self.state.known_packs.insert(pack.name().to_owned());
            copied.objects += pack.objects;
            copied.bytes += pack.bytes();
            self.state.uploading.clear();
            self.state.pending.push(PendingPack { pack });
            self.folder.save(&self.state)?;
            (chunk, length) = (Vec::new(), 0);
        }
        Ok(copied)
    }

    fn write_pack(
        &mut self,
        reader: &crate::store::Reader,
        objects: &[PackSlot],
        new: &New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<Pack> {
        let Self { storage, key, device, state, folder, .. } = self;
        let to = PackStorage { storage: &**storage, key, device: &device.id };
        let mut begun = |part: &str| {
            state.uploading.insert(part.to_owned());
            folder.save(state)
        };
        to.write(reader, objects, &new.time, &mut begun, monitor)
    }

    /// Deletes the parts of packs whose upload was interrupted.
    fn delete_unfinished(&mut self) -> Result<()> {
        if self.state.uploading.is_empty() {
            return Ok(());
        }
        for part in std::mem::take(&mut self.state.uploading) {
            self.storage.delete(&pack_objects::object_name(&part))?;
        }
        self.folder.save(&self.state)
    }

    fn announce(
        &mut self,
        store: &Store,
        new: New,
        monitor: &mut dyn Monitor,
    ) -> engine::Result<()> {
        let own = self.own().cloned();
        let number = self.next_number();
        let mut seen = BTreeMap::new();
        for it in self.joined.values() {
            let of = [(&it.device.id, &it.number)].into_iter().chain(&it.seen);
            for (device, number) in of.filter(|(device, _)| **device != self.device.id) {
                let known: &mut u64 = seen.entry(device.clone()).or_default();
                *known = (*number).max(*known);
            }
        }
        let clock = self.joined.values().map(|it| it.clock).max().unwrap_or(0).saturating_add(1);
        let (packs, retired) =
            own.as_ref().map(|own| (own.packs.clone(), own.retired.clone())).unwrap_or_default();
        let mut next = Announcement {
            device: self.device.clone(),
            number,
            clock,
            time: self.now,
            seen,
            refs: new.refs.clone(),
            erasures: new.erasures.clone(),
            packs,
            retired,
            purged: digest(&new.erasures),
            damaged: self.state.damaged.clone(),
            base: number,
        };
        self.add_pending(&mut next);
        let before = own.as_ref().map_or(String::new(), |own| own.purged.clone());
        let must_purge = next.purged != before && !next.erasures.is_empty();
        if must_purge {
            self.purge(store, &mut next, &new, monitor)?;
        } else {
            self.repair(store, &mut next, &new, monitor)?;
            self.merge_small_packs(store, &mut next, &new, monitor)?;
        }
        let due: BTreeSet<_> =
            self.due_of(&next.retired).iter().map(|old| old.pack.name().to_owned()).collect();
        let (due, retired): (Vec<_>, Vec<_>) =
            next.retired.into_iter().partition(|old| due.contains(old.pack.name()));
        next.retired = retired;
        let base = self.own_base.as_ref().filter(|base| {
            let is_listed = listed_has(self.listing.get(&self.device.id), base.number);
            is_listed && !must_purge && number - base.number < MOST_ON_BASE
        });
        let complete = next.encode(None)?;
        let mut content = complete;
        if let Some(base) = base {
            let changes = next.encode(Some(base))?;
            if changes.len() * 4 < content.len() * 3 {
                (content, next.base) = (changes, base.number);
            }
        }
        self.storage
            .write(&next.name(), &next.seal(&self.key, &content)?)
            .map_err(PlainRemoteError::from)?;
        self.state.base = Some(next.base);
        if next.base == number {
            self.folder.save_announcement(&next, Role::Base)?;
            self.own_base = Some(next.clone());
        }
        self.folder.save_announcement(&next, Role::Joined)?;
        let device = self.device.id.clone();
        self.state.joined.insert(device.clone(), number);
        self.state.highest.insert(device.clone(), number);
        self.state.pending.clear();
        self.folder.save(&self.state)?;
        self.listing.entry(device.clone()).or_default().insert(number);
        let first = if must_purge { number } else { own.map_or(number, |own| own.base) };
        let first = first.min(next.base);
        self.joined.insert(device, next);
        // The state is complete without the following deletions. The next run repeats them.
        for old in due {
            for part in &old.pack.parts {
                let deleted = self.storage.delete(&pack_objects::object_name(&part.name));
                deleted.map_err(PlainRemoteError::from)?;
            }
            self.folder.forget_objects_of(old.pack.name());
        }
        self.delete_old_announcements(first, must_purge)?;
        Ok(())
    }

    /// Returns a number that no own announcement has. After the loss of the local state, it may be
    /// that of an announcement that is listed but cannot be read now, so listed numbers count.
    fn next_number(&self) -> u64 {
        let device = &self.device.id;
        let read = [self.own().map(|own| own.number), self.state.highest.get(device).copied()];
        let read = read.into_iter().flatten().max().unwrap_or(0);
        let listed = self.listing.get(device);
        let near = listed.and_then(|it| it.range(..=read.saturating_add(MOST_UNREAD)).next_back());
        near.copied().unwrap_or(0).max(read).saturating_add(1)
    }

    fn add_pending(&self, next: &mut Announcement) {
        for PendingPack { pack } in &self.state.pending {
            next.packs.insert(pack.name().to_owned(), pack.clone());
        }
    }

    /// Deletes the own announcements before `first`. To save requests, waits until there are some.
    fn delete_old_announcements(&mut self, first: u64, at_once: bool) -> Result<()> {
        let Some(numbers) = self.listing.get_mut(&self.device.id) else { return Ok(()) };
        let old: Vec<_> = numbers.range(..first).copied().collect();
        if old.len() < SUPERFLUOUS && !at_once {
            return Ok(());
        }
        for number in old {
            self.storage.delete(&object_name(&self.device.id, number))?;
            numbers.remove(&number);
        }
        Ok(())
    }

    fn due(&self) -> Vec<&Retired> {
        self.own().map(|own| self.due_of(&own.retired)).unwrap_or_default()
    }

    /// Returns the replaced packs that no device needs any more.
    fn due_of<'r>(&self, retired: &'r [Retired]) -> Vec<&'r Retired> {
        let others = self.joined.values().filter(|it| {
            it.device.id != self.device.id && self.now.saturating_sub(it.time) < ABSENCE
        });
        let seen = others.map(|it| it.seen.get(&self.device.id).copied().unwrap_or(0)).min();
        let is_due = |old: &&Retired| {
            let is_known = seen.is_none_or(|seen| seen >= old.since);
            old.time == 0 || is_known || self.now.saturating_sub(old.time) > LONGEST_RETIREMENT
        };
        retired.iter().filter(is_due).collect()
    }

    /// Returns findings about devices whose packs may still contain erased texts.
    fn erased_left(&self) -> Vec<Finding> {
        let Some(own) = self.own().filter(|own| !own.erasures.is_empty()) else {
            return Vec::new();
        };
        let left = self.joined.values().filter(|it| {
            it.device.id != self.device.id && !it.packs.is_empty() && it.purged != own.purged
        });
        let finding = |it: &Announcement| {
            let message = format!(
                "the packs of the device {} may still contain erased texts",
                it.device.name
            );
            Finding::new(Code::ErasedLeft, &*self.address, message)
                .remedy("run `stvc sync` on that device")
        };
        left.map(finding).collect()
    }
}

fn listed_has(numbers: Option<&BTreeSet<u64>>, number: u64) -> bool {
    numbers.is_some_and(|numbers| numbers.contains(&number))
}

/// The state that is announced.
pub(super) struct New {
    pub refs: Refs,
    pub erasures: Erasures,
    pub time: String,
}

/// Returns a hash of the record of erasures; empty if nothing was erased.
pub(super) fn digest(erasures: &Erasures) -> String {
    if erasures.is_empty() {
        return String::new();
    }
    let mut hasher = blake3::Hasher::new();
    for (mark, changes) in erasures.iter() {
        hasher.update(format!("{mark} {changes}\n").as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Joins the refs of several states. Also returns the commits of refs that another commit
/// replaces although it does not reach them.
fn join_refs(
    current: &[Announcement],
    history: &History,
    chosen: &ChosenRefs,
) -> (Refs, BTreeSet<ObjectId>) {
    let mut candidates: BTreeMap<&RefName, Vec<ObjectId>> = BTreeMap::new();
    for (name, id) in current.iter().flat_map(|it| &it.refs) {
        let known = candidates.entry(name).or_default();
        if !known.contains(id) {
            known.push(*id);
        }
    }
    let (mut refs, mut dropped) = (Refs::new(), BTreeSet::new());
    let sent = chosen.snapshots();
    for (name, ids) in candidates {
        let local = chosen.refs.get(name).copied();
        // This device has already joined all states, so its own commit decides. Otherwise a commit
        // that reaches all others is used, or else the last one.
        let is_before_local = |id: &ObjectId| {
            local.is_some_and(|local| {
                local == *id || chosen.history.reaches(SnapshotId(local), SnapshotId(*id))
            })
        };
        let reaches_all = |id: &ObjectId| {
            ids.iter().all(|other| history.reaches(SnapshotId(*id), SnapshotId(*other)))
        };
        let is_sent = |id: &ObjectId| sent.contains(&SnapshotId(*id));
        let picked = ids
            .iter()
            .find(|id| local == Some(**id))
            .or_else(|| ids.iter().find(|id| is_before_local(id)))
            .or_else(|| ids.iter().find(|id| reaches_all(id)))
            .or_else(|| ids.iter().find(|id| local.is_some() && is_sent(id)))
            .or(ids.last());
        let Some(picked) = picked.copied() else { continue };
        dropped.extend(ids.iter().filter(|id| **id != picked));
        refs.insert(name.clone(), picked);
    }
    (refs, dropped)
}

/// Adds hidden refs for commits that no ref reaches any more, unless they were erased.
fn keep(
    refs: &mut Refs,
    dropped: BTreeSet<ObjectId>,
    store: &Store,
    (history, reader): (&History, &crate::store::Reader),
    chosen: &ChosenRefs,
) -> engine::Result<()> {
    if dropped.is_empty() {
        return Ok(());
    }
    let tips: Vec<_> = refs.values().copied().map(SnapshotId).collect();
    let mut reached = history.past(tips.iter().copied());
    reached.extend(chosen.history.past(tips));
    let removed = RemovedHere::of(store)?;
    for id in dropped {
        if !reached.contains(&SnapshotId(id)) && !removed.reaches_erased(history, reader, id)? {
            refs.insert(RefName::kept(id), id);
        }
    }
    Ok(())
}

/// Returns the objects with their kinds; `None` if one cannot be read.
pub(super) fn slots(
    store: &Store,
    ids: impl IntoIterator<Item = ObjectId>,
) -> engine::Result<Option<Vec<PackSlot>>> {
    let reader = store.reader();
    let mut slots = Vec::new();
    for id in ids {
        match reader.look(id) {
            Ok(Some((kind, _))) => slots.push(PackSlot { id, kind, slot: 0 }),
            Ok(None) => return Ok(None),
            Err(error) if error.is_loss() => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(slots))
}
