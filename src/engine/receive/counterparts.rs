//! Pairs each timeline of the remote with the corresponding local timeline, even after a rename.
//!
//! A name does not identify a timeline, because a rename moves the branch. Two timelines correspond
//! if they share a snapshot that belongs to both. Two devices may also have created their first
//! snapshots of one library independently, before the first sync. Timelines without a shared
//! snapshot therefore correspond if they have the same name (and, for chats, the same first
//! message), or if one chat begins with all messages of the other.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::plan::{Policy, TimelinePlan};
use super::sides::{ChangedFirst, Sides, changed_first};
use crate::archive::message_identity::Identity;
use crate::archive::{self, Snapshot, SnapshotId, Tree};
use crate::engine::Result;
use crate::engine::device::Device;
use crate::history::History;
use crate::st::TimelineName;
use crate::store::{ObjectId, Reader, unless_lost};

/// The timelines of the remote with their local counterparts.
pub(super) struct Pairs<'s> {
    pub timelines: Vec<TimelinePlan<'s>>,
    /// Local timelines whose name a different timeline of the remote uses.
    pub displaced: Vec<&'s Snapshot>,
    /// Number of branches of the remote that belong to a timeline in `timelines`, and that must be
    /// joined afterwards.
    pub postponed: usize,
}

/// Pairs the timelines of the remote, whose latest snapshots are `heads`, with local timelines.
/// Local timelines in `erased`, which were erased on another device, are paired only by a shared
/// snapshot.
///
/// Under `JoinByTime`, a remote timeline gets another name instead if the local one began first.
///
/// If a timeline has two names, the name that changed since the last sync is used. If both names
/// changed, the name on the remote is used.
///
/// After concurrent renames, the remote may list one timeline under two names. Only one of them is
/// paired. The others are omitted; `Pairs::postponed` counts those with news, which must be joined
/// afterwards.
pub(super) fn pair<'s>(
    sides: &'s Sides<'s>,
    policy: Policy,
    device: &Device,
    erased: BTreeSet<TimelineName>,
    heads: Vec<Snapshot>,
    mut free_name: impl FnMut(&TimelineName) -> Result<TimelineName>,
) -> Result<Pairs<'s>> {
    let mut pairing = Pairing::new(sides, policy, erased, heads)?;
    pairing.with_undone_copies(device)?;
    let postponed = pairing.by_snapshot();
    pairing.by_name()?;
    pairing.by_messages()?;
    let Pairing { mut pairs, paired, .. } = pairing;
    // Assign the names on the remote first.
    let lower = |name: &TimelineName| name.as_str().to_lowercase();
    let mut taken = BTreeMap::new();
    if policy == Policy::JoinByTime {
        // Different timelines of one name: that of the earlier first snapshot keeps the name.
        for pair in pairs.iter_mut().filter(|pair| pair.local.is_none()) {
            let remote = &pair.entry.head;
            let namesake = sides.ours.head(&remote.timeline);
            let is_first =
                |local: &Snapshot| first(sides.ours, local) < first(sides.theirs, remote);
            if namesake.is_some_and(|local| !paired.contains(&local.timeline) && is_first(local)) {
                pair.entry.timeline = free_name(&remote.timeline)?;
            }
        }
    }
    for entry in pairs.iter().map(|pair| &pair.entry) {
        if entry.timeline == entry.head.timeline {
            taken.insert(lower(&entry.timeline), entry.head.id);
        }
    }
    for pair in &mut pairs {
        let entry = &mut pair.entry;
        if *taken.entry(lower(&entry.timeline)).or_insert(entry.head.id) != entry.head.id {
            entry.timeline = free_name(&entry.timeline)?;
        }
    }
    let unpaired = sides.ours.heads().filter(|(name, _)| !paired.contains(*name));
    let displaced = unpaired.filter(|(name, _)| taken.contains_key(&lower(name)));
    let displaced = displaced.map(|(_, head)| head).collect();
    let named = |pair: TimelinePlan<'s>| {
        let name = pair.entry.timeline.clone();
        pair.called(name)
    };
    let timelines = pairs.into_iter().map(named).collect();
    Ok(Pairs { timelines, displaced, postponed })
}

/// Returns the time and the id of the first snapshot of a timeline.
fn first(history: &History, head: &Snapshot) -> (i64, SnapshotId) {
    let own = history.own(head).0;
    let first = own.last().copied().unwrap_or(head);
    (first.time.seconds, first.id)
}

struct Pairing<'s> {
    sides: &'s Sides<'s>,
    policy: Policy,
    erased: BTreeSet<TimelineName>,
    /// Maps the former ids of locally rewritten snapshots to their present ids.
    former: HashMap<ObjectId, ObjectId>,
    pairs: Vec<TimelinePlan<'s>>,
    paired: BTreeSet<TimelineName>,
    /// The latest snapshots of timelines that the remote lists under several names.
    second_names: HashSet<SnapshotId>,
    /// For each local snapshot, the latest snapshots of the timelines that it belongs to.
    owners: HashMap<SnapshotId, Vec<&'s Snapshot>>,
}

impl<'s> Pairing<'s> {
    fn new(
        sides: &'s Sides<'s>,
        policy: Policy,
        erased: BTreeSet<TimelineName>,
        heads: Vec<Snapshot>,
    ) -> Result<Self> {
        let mut owners: HashMap<SnapshotId, Vec<_>> = HashMap::new();
        for (_, head) in sides.ours.heads() {
            for own in sides.ours.own(head).0 {
                owners.entry(own.id).or_default().push(head);
            }
        }
        let mut by_first: HashMap<_, Vec<_>> = HashMap::new();
        for head in &heads {
            let first = sides.theirs.own(head).0.last().map_or(head.id, |first| first.id);
            by_first.entry(first).or_default().push(head.id);
        }
        let second_names =
            by_first.into_values().filter(|heads| heads.len() > 1).flatten().collect();
        let pairs = heads.into_iter().map(|head| TimelinePlan::new(head, None)).collect();
        let former = sides.store.former_ids()?;
        let paired = BTreeSet::new();
        Ok(Self { sides, policy, erased, former, pairs, paired, second_names, owners })
    }

    fn owners(&self, id: SnapshotId) -> &[&'s Snapshot] {
        let present = self.former.get(&id.0).map_or(id, |now| SnapshotId(*now));
        self.owners.get(&present).map_or(&[], Vec::as_slice)
    }

    fn is_free(&self, local: &Snapshot) -> bool {
        !self.paired.contains(&local.timeline)
    }

    fn unpaired(&self) -> Vec<usize> {
        (0..self.pairs.len()).filter(|n| self.pairs[*n].local.is_none()).collect()
    }

    fn join(&mut self, n: usize, local: &'s Snapshot) {
        self.paired.insert(local.timeline.clone());
        self.pairs[n].local = Some(local);
    }

    /// Pairs a remote timeline that an earlier sync on this device set aside with the local
    /// timeline that it is a copy of, if this sync was undone on this device. The local timeline
    /// then gets the name of the copy again.
    fn with_undone_copies(&mut self, device: &Device) -> Result<()> {
        let theirs = self.sides.theirs;
        for n in self.unpaired() {
            let remote = &self.pairs[n].entry.head;
            let (own, origin) = theirs.own(remote);
            let by = Device::of_set_aside_timeline(theirs, remote);
            let is_known = own.iter().any(|own| !self.owners(own.id).is_empty());
            let is_own = !is_known && by.is_some_and(|by| by.id == device.id);
            let Some(origin) = origin.filter(|_| is_own) else { continue };
            let mut past = theirs.own(origin).0.into_iter().map(|own| self.owners(own.id));
            let owners = past.find(|owners| !owners.is_empty()).unwrap_or_default();
            let mut found = None;
            for local in owners.iter().filter(|local| self.is_free(local)) {
                if self.sides.continues(local, remote)? {
                    found = Some(*local);
                    break;
                }
            }
            if let Some(local) = found {
                let is_stored_there = self.is_stored(local, remote);
                self.pairs[n].is_stored_there = is_stored_there;
                self.join(n, local);
            }
        }
        Ok(())
    }

    /// Pairs timelines that share a snapshot: first those with news, and of these first those of
    /// the same name. Returns the number of postponed branches.
    fn by_snapshot(&mut self) -> usize {
        for has_news in [true, false] {
            for same_name in [true, false] {
                for n in self.unpaired() {
                    if self.has_news(&self.pairs[n].entry.head) == has_news {
                        self.pair_by_snapshot(n, same_name);
                    }
                }
            }
        }
        let mut new = BTreeSet::new();
        let is_second = |n: &usize| {
            let own = self.sides.theirs.own(&self.pairs[*n].entry.head).0;
            let is_here = own.iter().any(|own| !self.owners(own.id).is_empty());
            is_here || own.last().is_some_and(|first| !new.insert(first.id))
        };
        let second: BTreeSet<_> = self.unpaired().into_iter().filter(is_second).collect();
        let postponed =
            second.iter().filter(|n| self.has_news(&self.pairs[**n].entry.head)).count();
        let mut n = 0..;
        self.pairs.retain(|_| n.next().is_some_and(|n| !second.contains(&n)));
        postponed
    }

    /// Returns whether a timeline of the remote has a snapshot that no local timeline continues.
    fn has_news(&self, remote: &Snapshot) -> bool {
        let Sides { ours, theirs, .. } = self.sides;
        let is_continued = |own: &&Snapshot| {
            self.owners(own.id).iter().any(|local| ours.reaches(local.id, remote.id))
        };
        !theirs.own(remote).0.iter().any(is_continued)
    }

    fn pair_by_snapshot(&mut self, n: usize, same_name: bool) {
        let theirs = self.sides.theirs;
        let remote = &self.pairs[n].entry.head;
        let shared = theirs.own(remote).0.into_iter().find_map(|own| {
            let mut free = self.owners(own.id).iter().filter(|local| self.is_free(local));
            let local = free.find(|local| !same_name || local.timeline == remote.timeline)?;
            Some((own, *local))
        });
        let Some((shared, local)) = shared else { return };
        let is_stored_there = self.is_stored(local, remote);
        let is_renamed = remote.timeline != shared.timeline || is_stored_there;
        // Both sides renamed it.
        let keeps_local_name = self.policy == Policy::JoinByTime
            && !is_stored_there
            && local.timeline != shared.timeline
            && changed_first(self.sides, local, remote) == ChangedFirst::Local;
        let pair = &mut self.pairs[n];
        pair.is_stored_there = is_stored_there;
        if !is_renamed || keeps_local_name {
            pair.entry.timeline = local.timeline.clone();
        }
        self.join(n, local);
    }

    /// Returns whether the remote has the state of the snapshot `local`, so that the local timeline
    /// can follow `remote`. After an undo, the remote may have this state in another snapshot with
    /// the same content. An ancestor of `remote` with the same content does not count, because the
    /// user may have restored the content on purpose.
    fn is_stored(&self, local: &Snapshot, remote: &Snapshot) -> bool {
        let Sides { ours, theirs, .. } = *self.sides;
        if theirs.get(local.id).is_some() {
            // The remote may list the timeline under two names. Then `remote` lacks the state.
            return theirs.reaches(remote.id, local.id) || !self.second_names.contains(&local.id);
        }
        let mut same = theirs
            .iter()
            .filter(|other| other.content == local.content && other.timeline == local.timeline);
        ours.get(remote.id).is_none() && same.any(|other| !theirs.reaches(remote.id, other.id))
    }

    fn by_name(&mut self) -> Result<()> {
        for n in self.unpaired() {
            let remote = &self.pairs[n].entry.head;
            let namesake = self.sides.ours.head(&remote.timeline);
            let Some(namesake) = namesake.filter(|local| self.is_free(local)) else { continue };
            if !self.erased.contains(&namesake.timeline)
                && self.sides.begin_alike(namesake, remote)?
            {
                self.join(n, namesake);
            }
        }
        Ok(())
    }

    /// Pairs chats with common messages whose names exist on one side only. Both devices may have
    /// begun with the same files, and a chat may have been renamed before the first sync.
    fn by_messages(&mut self) -> Result<()> {
        let Sides { ours, theirs, here, there, .. } = self.sides;
        let is_root = |history: &History, head: &Snapshot| {
            head.timeline.is_chat() && head.main_chat.is_none() && history.own(head).1.is_none()
        };
        let on_remote: BTreeSet<_> =
            self.pairs.iter().map(|pair| &pair.entry.head.timeline).collect();
        let mut alone: HashMap<ObjectId, Vec<&'s Snapshot>> = HashMap::new();
        for (name, head) in ours.heads() {
            if self.is_free(head)
                && !on_remote.contains(name)
                && !self.erased.contains(name)
                && is_root(ours, head)
                && let Some(first) = first_message(here, head)?
            {
                alone.entry(first).or_default().push(head);
            }
        }
        if alone.is_empty() {
            return Ok(());
        }
        for n in self.unpaired() {
            let remote = &self.pairs[n].entry.head;
            if !is_root(theirs, remote) || ours.head(&remote.timeline).is_some() {
                continue;
            }
            let mut found = None;
            let alike = first_message(there, remote)?.and_then(|first| alone.get(&first));
            for local in alike.into_iter().flatten().filter(|local| self.is_free(local)) {
                if self.sides.are_one_chat(local, remote)? {
                    found = Some(*local);
                    break;
                }
            }
            if let Some(local) = found {
                self.join(n, local);
            }
        }
        Ok(())
    }
}

impl Sides<'_> {
    /// Returns whether a local and a remote timeline of the same name correspond. Chats must have
    /// the same first message.
    fn begin_alike(&self, local: &Snapshot, remote: &Snapshot) -> Result<bool> {
        let first_words = |reader: &Reader, snapshot: &Snapshot| -> Result<Option<Identity>> {
            let Some(message) = first_message(reader, snapshot)? else { return Ok(None) };
            Ok(unless_lost(reader.blob(message))?.map(|message| Identity::of(&message)))
        };
        Ok(!local.timeline.is_chat()
            || first_words(&self.here, local)? == first_words(&self.there, remote)?)
    }

    /// Returns whether one chat begins with all messages of the other. A greeting alone is not
    /// sufficient, because different chats have the same greeting.
    fn are_one_chat(&self, local: &Snapshot, remote: &Snapshot) -> Result<bool> {
        let Some((here, there)) = self.messages(local, remote)? else { return Ok(false) };
        let is_greeting = here.len().min(there.len()) < 2;
        Ok(!is_greeting && (here.starts_with(&there) || there.starts_with(&here)))
    }

    /// Returns whether a local chat begins with all messages of the remote chat. For other files,
    /// returns whether local and remote content are equal.
    fn continues(&self, local: &Snapshot, remote: &Snapshot) -> Result<bool> {
        if !local.timeline.is_chat() {
            return Ok(local.content == remote.content);
        }
        let messages = self.messages(local, remote)?;
        Ok(messages.is_some_and(|(here, there)| here.starts_with(&there)))
    }

    fn messages(
        &self,
        local: &Snapshot,
        remote: &Snapshot,
    ) -> Result<Option<(Vec<ObjectId>, Vec<ObjectId>)>> {
        let here = unless_lost(Tree::open(&self.here, local.tree))?;
        let there = unless_lost(Tree::open(&self.there, remote.tree))?;
        let both = here.zip(there);
        Ok(both.map(|(here, there)| (here.messages().to_vec(), there.messages().to_vec())))
    }
}

fn first_message(reader: &Reader, snapshot: &Snapshot) -> Result<Option<ObjectId>> {
    Ok(unless_lost(archive::first_message(reader, snapshot.tree))?.flatten())
}
