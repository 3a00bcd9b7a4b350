//! Pairs each timeline of the remote with the local timeline that it is, whatever either is called.
//!
//! A rename moves a branch, so a name does not identify a timeline. Two timelines are one if they have a snapshot of their own in common. Only where neither side has such a
//! partner does a common name pair them, for chats with the same first message as well, or else the common messages of chats: two devices may have taken their first snapshots of one library before
//! they met.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::archive::message_identity::Identity;
use crate::archive::{self, Snapshot, SnapshotId, Tree};
use crate::engine::device::Device;
use crate::history::History;
use crate::st::TimelineName;
use crate::store::{ObjectId, Reader, unless_lost};

/// One timeline of the remote, with its local side.
pub(super) struct Counterpart<'h> {
    pub remote: Snapshot,
    pub local: Option<&'h Snapshot>,
    /// Whether the remote has the local state: before its own, or in a timeline that an earlier sync set aside.
    pub is_stored_there: bool,
    /// The name that the timeline has after the sync.
    pub name: TimelineName,
}

impl Counterpart<'_> {
    /// The local name, if the sync changes it.
    pub(super) fn renamed_from(&self) -> Option<&TimelineName> {
        self.local.map(|local| &local.timeline).filter(|name| **name != self.name)
    }
}

/// The pairs, and the local timelines that have to make room for one of them.
pub(super) struct Counterparts<'h> {
    pub pairs: Vec<Counterpart<'h>>,
    /// Local timelines without a counterpart whose name a timeline of the remote takes.
    pub displaced: Vec<&'h Snapshot>,
}

/// Compares a local state with one of the remote.
pub(super) struct Compare<'s> {
    /// The id of this device.
    pub device: &'s str,
    pub here: &'s Reader,
    pub there: &'s Reader,
    /// Local timelines that were removed for good elsewhere.
    pub erased: BTreeSet<TimelineName>,
}

impl Compare<'_> {
    /// Returns whether a local and a remote timeline of one name can be one.
    fn begin_alike(&self, local: &Snapshot, remote: &Snapshot) -> crate::verbs::Result<bool> {
        if self.erased.contains(&local.timeline) {
            return Ok(false);
        }
        if !local.timeline.is_chat() {
            return Ok(true);
        }
        Ok(first_words(self.here, local)? == first_words(self.there, remote)?)
    }

    /// Returns whether one of two chats has all messages of the other. A greeting alone does not tell.
    fn are_one_chat(&self, local: &Snapshot, remote: &Snapshot) -> crate::verbs::Result<bool> {
        if local.messages.min(remote.messages) < 2 {
            return Ok(false);
        }
        let (here, there) =
            (Tree::open(self.here, local.tree), Tree::open(self.there, remote.tree));
        let (Some(here), Some(there)) = (unless_lost(here)?, unless_lost(there)?) else {
            return Ok(false);
        };
        let (here, there) = (here.messages(), there.messages());
        Ok(here.starts_with(there) || there.starts_with(here))
    }

    /// Returns whether a local state has all messages of a remote one, or is the same file.
    fn continues(&self, local: &Snapshot, remote: &Snapshot) -> crate::verbs::Result<bool> {
        if !local.timeline.is_chat() {
            return Ok(local.content == remote.content);
        }
        let (here, there) =
            (Tree::open(self.here, local.tree), Tree::open(self.there, remote.tree));
        let (Some(here), Some(there)) = (unless_lost(here)?, unless_lost(there)?) else {
            return Ok(false);
        };
        Ok(here.messages().starts_with(there.messages()))
    }
}

/// Returns a chat's first message, if it has one that is not lost.
fn first_message(reader: &Reader, snapshot: &Snapshot) -> crate::verbs::Result<Option<ObjectId>> {
    Ok(unless_lost(archive::first_message(reader, snapshot.tree))?.flatten())
}

/// Returns the identity of a chat's first message, if it has one.
fn first_words(reader: &Reader, snapshot: &Snapshot) -> crate::verbs::Result<Option<Identity>> {
    let Some(message) = first_message(reader, snapshot)? else { return Ok(None) };
    Ok(unless_lost(reader.blob(message))?.map(|message| Identity::of(&message)))
}

/// Pairs the timelines of the remote, whose latest snapshots are `heads`, with local ones. `former` maps ids that were rewritten locally to the present ones; `free_name` returns
/// an unused name for a timeline.
///
/// Of two names for one timeline, the one that changed since both sides last met counts. If both changed, the remote's does.
pub(super) fn pair<'h>(
    ours: &'h History,
    theirs: &History,
    heads: Vec<Snapshot>,
    former: &HashMap<ObjectId, ObjectId>,
    compare: &Compare<'_>,
    mut free_name: impl FnMut(&TimelineName) -> crate::verbs::Result<TimelineName>,
) -> crate::verbs::Result<Counterparts<'h>> {
    let mut owners: HashMap<SnapshotId, Vec<&'h Snapshot>> = HashMap::new();
    for (_, head) in ours.heads() {
        for own in ours.own(head).0 {
            owners.entry(own.id).or_default().push(head);
        }
    }
    let present = |id: SnapshotId| former.get(&id.0).map_or(id, |now| SnapshotId(*now));
    let mut paired = BTreeSet::new();
    let mut pairs: Vec<_> = heads
        .into_iter()
        .map(|remote| Counterpart {
            name: remote.timeline.clone(),
            remote,
            local: None,
            is_stored_there: false,
        })
        .collect();
    // A timeline that a sync on this device set aside and that is gone locally: the sync was undone, and the timeline it was copied from is the one to set aside again.
    for pair in &mut pairs {
        let (own, origin) = theirs.own(&pair.remote);
        if own.iter().any(|own| owners.contains_key(&present(own.id))) {
            continue;
        }
        let by = Device::that_set_aside(theirs, &pair.remote);
        let Some(origin) = origin.filter(|_| by.is_some_and(|by| by.id == compare.device)) else {
            continue;
        };
        let mut past = theirs.own(origin).0.into_iter();
        let Some(owners) = past.find_map(|own| owners.get(&present(own.id))) else { continue };
        for local in owners {
            if !paired.contains(&local.timeline) && compare.continues(local, &pair.remote)? {
                paired.insert(local.timeline.clone());
                pair.local = Some(*local);
                pair.is_stored_there = is_stored(ours, theirs, local, &pair.remote);
                break;
            }
        }
    }
    // A partner that has the name as well is nearer than one that was renamed.
    for same_name in [true, false] {
        for pair in pairs.iter_mut().filter(|pair| pair.local.is_none()) {
            let own = theirs.own(&pair.remote).0;
            let shared = own.iter().find_map(|own| {
                let owners = owners.get(&present(own.id))?.iter();
                let mut free = owners.filter(|local| !paired.contains(&local.timeline));
                let local =
                    free.find(|local| !same_name || local.timeline == pair.remote.timeline)?;
                Some((*own, *local))
            });
            let Some((shared, local)) = shared else { continue };
            paired.insert(local.timeline.clone());
            pair.local = Some(local);
            pair.is_stored_there = is_stored(ours, theirs, local, &pair.remote);
            if pair.remote.timeline == shared.timeline && !pair.is_stored_there {
                pair.name = local.timeline.clone();
            }
        }
    }
    for pair in pairs.iter_mut().filter(|pair| pair.local.is_none()) {
        if let Some(namesake) = ours.head(&pair.remote.timeline)
            && !paired.contains(&namesake.timeline)
            && compare.begin_alike(namesake, &pair.remote)?
        {
            paired.insert(namesake.timeline.clone());
            pair.local = Some(namesake);
        }
    }
    // Both devices may have begun with the same files, one of which was renamed before they met.
    let is_root = |history: &History, head: &Snapshot| {
        head.timeline.is_chat() && head.main_chat.is_none() && history.own(head).1.is_none()
    };
    let on_remote: BTreeSet<_> = pairs.iter().map(|pair| pair.remote.timeline.clone()).collect();
    let heads = ours.heads().filter(|(name, _)| !paired.contains(*name));
    let heads_alone =
        heads.filter(|(name, head)| !on_remote.contains(*name) && is_root(ours, head));
    let mut alone: HashMap<ObjectId, Vec<&Snapshot>> = HashMap::new();
    for (_, head) in heads_alone {
        if let Some(first) = first_message(compare.here, head)? {
            alone.entry(first).or_default().push(head);
        }
    }
    for pair in pairs.iter_mut().filter(|pair| pair.local.is_none() && !alone.is_empty()) {
        if !is_root(theirs, &pair.remote) || ours.head(&pair.remote.timeline).is_some() {
            continue;
        }
        let first = first_message(compare.there, &pair.remote)?;
        for local in first.and_then(|first| alone.get(&first)).into_iter().flatten() {
            if !paired.contains(&local.timeline) && compare.are_one_chat(local, &pair.remote)? {
                paired.insert(local.timeline.clone());
                pair.local = Some(*local);
                break;
            }
        }
    }
    // The remote's names are taken first.
    let mut taken = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.name == pair.remote.timeline) {
        taken.insert(pair.name.as_str().to_lowercase(), pair.remote.id);
    }
    for pair in &mut pairs {
        let holder = *taken.entry(pair.name.as_str().to_lowercase()).or_insert(pair.remote.id);
        if holder != pair.remote.id {
            pair.name = free_name(&pair.name)?;
        }
    }
    let heads = ours.heads().filter(|(name, _)| !paired.contains(*name));
    let displaced = heads.filter(|(name, _)| taken.contains_key(&name.as_str().to_lowercase()));
    let displaced = displaced.map(|(_, head)| head).collect();
    Ok(Counterparts { pairs, displaced })
}

/// Returns whether the remote has a local state. After an undo its snapshot is another one than the sync set aside, with the same content; but a state of the remote's own past may
/// have been restored on purpose, and is not meant.
fn is_stored(ours: &History, theirs: &History, local: &Snapshot, remote: &Snapshot) -> bool {
    if theirs.get(local.id).is_some() {
        return true;
    }
    let mut same = theirs
        .iter()
        .filter(|other| other.content == local.content && other.timeline == local.timeline);
    ours.get(remote.id).is_none() && same.any(|other| !theirs.leads_to(remote.id, other.id))
}
