//! Rewrites the history: inserts snapshots into timelines in the order of time, or removes
//! snapshots.
//!
//! A commit's parents are part of its id, so every later snapshot gets a new parent and a new id;
//! its tree, time and message do not change. Refs keep the former commits, so that ids that a user
//! wrote down stay valid.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::origin::{Identities, Lineage, NewParent, NewTimeline, Origin};
use super::{History, Result};
use crate::archive::{Snapshot, SnapshotId, Tree, branch, moved, with_parent_until};
use crate::st::TimelineName;
use crate::store::{
    Kind as ObjectKind, NewCommit, ObjectId, PackWriter, Reader, RefName, Sequence, Store, commit,
    unless_lost,
};

/// A snapshot to be inserted into a timeline. Its tree is already in the pack.
pub(crate) struct Insertion {
    pub commit: NewCommit,
    pub newcomer: NewTimeline,
}

pub(crate) struct Rewritten {
    /// The new commit of each snapshot, by its former id.
    ids: HashMap<SnapshotId, ObjectId>,
    gone: HashSet<SnapshotId>,
    branches: Vec<(RefName, SnapshotId)>,
}

impl Rewritten {
    pub(crate) fn became(&self, id: ObjectId) -> Option<SnapshotId> {
        self.ids.get(&SnapshotId(id)).filter(|new| **new != id).copied().map(SnapshotId)
    }

    /// Returns the former and new ids of the snapshots that are not removed.
    pub(crate) fn rewritten_ids(&self) -> Vec<(ObjectId, ObjectId)> {
        let stays = self.ids.iter().filter(|(old, _)| !self.gone.contains(old));
        stays.map(|(old, new)| (old.0, *new)).filter(|(old, new)| old != new).collect()
    }

    /// Returns the refs with their new targets, and new refs that keep the former commits.
    pub(crate) fn refs(&self, store: &Store) -> Result<Vec<(RefName, SnapshotId)>> {
        let mut moves = self.branches.clone();
        for prefix in ["refs/heads/", "refs/tags/"] {
            for (name, old) in store.refs(prefix)?.refs {
                if let Some(new) = self.became(old) {
                    moves.push((name, new));
                    moves.push((RefName::kept(old), SnapshotId(old)));
                }
            }
        }
        Ok(moves)
    }
}

/// Inserts snapshots into timelines. Each list is sorted, oldest first.
pub(crate) fn insert(
    pack: &mut PackWriter,
    store: &Store,
    lineage: &mut Lineage,
    insertions: BTreeMap<TimelineName, Vec<Insertion>>,
) -> Result<Rewritten> {
    let mut before: HashMap<SnapshotId, Vec<Insertion>> = HashMap::new();
    let mut first_fork: HashMap<SnapshotId, u64> = HashMap::new();
    let mut new_timelines = Vec::new();
    for (timeline, list) in insertions {
        let Some((own, origin)) = lineage.own(&timeline) else {
            new_timelines.push((timeline, list));
            continue;
        };
        let last = own.len() - 1;
        let mut at = 0;
        for insertion in list {
            // Snapshots are never inserted after the latest snapshot, which has the current state
            // of the files.
            while at < last && own[at].time.seconds <= insertion.commit.time.seconds {
                at += 1;
            }
            let run = before.entry(own[at].id).or_default();
            if let (0, true, Some(origin)) = (at, run.is_empty(), &origin) {
                let shared = lineage.shared(&insertion.newcomer.chain, origin)?;
                first_fork.insert(own[at].id, shared as u64);
            }
            run.push(insertion);
        }
    }
    let ids = rewrite(pack, store, lineage, before, &first_fork)?;
    let mut branches = Vec::new();
    for (timeline, list) in new_timelines {
        let head = add_timeline(pack, lineage, list, &ids)?;
        branches.extend(head.map(|head| (branch(&timeline), head)));
    }
    Ok(Rewritten { ids, gone: HashSet::new(), branches })
}

/// Rewrites the history, parents before children, and inserts the snapshots in `before` before
/// their keys. Returns the new ids.
fn rewrite(
    pack: &mut PackWriter,
    store: &Store,
    lineage: &Lineage,
    mut before: HashMap<SnapshotId, Vec<Insertion>>,
    first_fork: &HashMap<SnapshotId, u64>,
) -> Result<HashMap<SnapshotId, ObjectId>> {
    let reader = store.reader();
    let mut map: HashMap<SnapshotId, ObjectId> = HashMap::new();
    for snapshot in lineage.history().newest_first().into_iter().rev() {
        let is = |parent: &SnapshotId| map.get(parent).copied().unwrap_or(parent.0);
        let mut parents: Vec<_> = snapshot.parents.iter().map(is).collect();
        let mut fork_at = snapshot.fork_at;
        if let Some(run) = before.remove(&snapshot.id) {
            // The inserted snapshot becomes the first of the timeline, so the fork point moves to
            // it.
            let mut fork = first_fork.get(&snapshot.id).copied();
            if fork.is_some() {
                fork_at = None;
            }
            for insertion in run {
                let new = NewCommit { parents, ..insertion.commit };
                let new = with_fork(new, fork.take());
                parents = vec![pack.add(ObjectKind::Commit, &commit::encode(&new))?];
            }
        }
        let id = follow(pack, &reader, snapshot, parents, fork_at, None)?;
        map.insert(snapshot.id, id);
    }
    Ok(map)
}

/// Writes a snapshot with new parents and returns its id, which is the old id if nothing changed.
/// `until` is set if an ancestor replaced the removed parent: lorebook changes from `until` on are
/// not moments of the ancestor.
fn follow(
    pack: &mut PackWriter,
    reader: &Reader,
    snapshot: &Snapshot,
    parents: Vec<ObjectId>,
    fork_at: Option<u64>,
    until: Option<Sequence>,
) -> Result<ObjectId> {
    let same = parents.iter().eq(snapshot.parents.iter().map(|parent| &parent.0));
    if same && fork_at == snapshot.fork_at && until.is_none() {
        return Ok(snapshot.id.0);
    }
    let mut new = moved(reader.commit(snapshot.id.0)?, parents, fork_at);
    if let Some(until) = until {
        new = with_parent_until(new, until);
    }
    Ok(pack.add(ObjectKind::Commit, &commit::encode(&new))?)
}

fn add_timeline(
    pack: &mut PackWriter,
    lineage: &mut Lineage,
    list: Vec<Insertion>,
    map: &HashMap<SnapshotId, ObjectId>,
) -> Result<Option<SnapshotId>> {
    let mut parent = None;
    let mut fork = None;
    if let Some(first) = list.first()
        && let Origin::Fork { id, shared, .. } = lineage.fork(&first.newcomer)?
    {
        parent = Some(map.get(&id).copied().unwrap_or(id.0));
        fork = Some(shared as u64);
    }
    for insertion in list {
        let new = NewCommit { parents: parent.into_iter().collect(), ..insertion.commit };
        parent = Some(pack.add(ObjectKind::Commit, &commit::encode(&with_fork(new, fork.take())))?);
    }
    Ok(parent.map(SnapshotId))
}

fn with_fork(commit: NewCommit, fork: Option<u64>) -> NewCommit {
    match fork {
        None => commit,
        Some(shared) => crate::archive::with_fork(commit, shared),
    }
}

/// Rewrites the history without the snapshots in `gone`, parents before children. The nearest kept
/// ancestor replaces a removed parent.
pub(crate) fn without(
    pack: &mut PackWriter,
    store: &Store,
    history: &History,
    gone: &HashSet<SnapshotId>,
) -> Result<Rewritten> {
    let reader = store.reader();
    let mut map: HashMap<SnapshotId, Option<ObjectId>> = HashMap::new();
    // If the first snapshot of a fork is removed, the fork begins with the next snapshot. Maps each
    // removed first snapshot to the snapshot from which the timeline was forked.
    let mut forks: HashMap<SnapshotId, SnapshotId> = HashMap::new();
    // For each removed snapshot, the sequence at which the moments of its replacement end.
    let mut untils: HashMap<SnapshotId, Sequence> = HashMap::new();
    for snapshot in history.newest_first().into_iter().rev() {
        let parent = snapshot.parents.first().copied();
        let origin = match (snapshot.fork_at, parent) {
            (Some(_), Some(parent)) => Some(parent),
            (_, parent) => parent.and_then(|parent| forks.get(&parent).copied()),
        };
        let new_parent = parent.and_then(|parent| map.get(&parent).copied().flatten());
        let until = parent.and_then(|parent| untils.get(&parent).copied());
        if gone.contains(&snapshot.id) {
            let until = until.or(snapshot.parent_until).unwrap_or(snapshot.sequence);
            untils.insert(snapshot.id, until);
            map.insert(snapshot.id, new_parent);
            forks.extend(origin.map(|origin| (snapshot.id, origin)));
            continue;
        }
        let fork_at = match (snapshot.fork_at, origin) {
            // The snapshot at the fork point is removed, too. Count the messages shared with the
            // nearest kept ancestor.
            (Some(_), Some(origin)) if gone.contains(&origin) => {
                match nearest(history, origin, gone) {
                    Some(before) => Some(shared_messages(store, before, snapshot)?),
                    None => None,
                }
            }
            (Some(shared), _) => Some(shared),
            (None, Some(origin)) => match history.get(origin) {
                Some(origin) => Some(shared_messages(store, origin, snapshot)?),
                None => Some(0),
            },
            (None, None) => None,
        };
        // The other parents of a merge are kept, because both sides may have changes.
        let joined = snapshot.parents.iter().skip(1);
        let joined: Vec<_> =
            joined.filter_map(|parent| map.get(parent).copied().flatten()).collect();
        let parents: Vec<_> = new_parent.into_iter().chain(joined).collect();
        let until = until.filter(|_| new_parent.is_some() && fork_at.is_none());
        let id = follow(pack, &reader, snapshot, parents, fork_at, until)?;
        map.insert(snapshot.id, Some(id));
    }
    let ids = map.iter().filter_map(|(old, new)| Some((*old, (*new)?))).collect();
    Ok(Rewritten { ids, gone: gone.clone(), branches: Vec::new() })
}

fn nearest<'h>(
    history: &'h History,
    id: SnapshotId,
    gone: &HashSet<SnapshotId>,
) -> Option<&'h Snapshot> {
    let mut snapshot = history.get(id)?;
    while gone.contains(&snapshot.id) {
        snapshot = history.get(*snapshot.parents.first()?)?;
    }
    Some(snapshot)
}

/// Rewrites the history with new parents for timelines. `beginnings` maps the first snapshot of
/// each timeline to the new parent. The caller must make sure that no snapshot becomes its own
/// ancestor.
pub(crate) fn begin_elsewhere(
    pack: &mut PackWriter,
    store: &Store,
    history: &History,
    beginnings: &HashMap<SnapshotId, NewParent>,
) -> Result<Rewritten> {
    let reader = store.reader();
    let mut ids: HashMap<SnapshotId, ObjectId> = HashMap::new();
    let mut open: Vec<_> = history.iter().map(|snapshot| snapshot.id).collect();
    // A snapshot is written after its new parents. The order of the former parents does not matter.
    while let Some(id) = open.last().copied() {
        let snapshot = history.get(id).filter(|_| !ids.contains_key(&id));
        let Some(snapshot) = snapshot else {
            ids.entry(id).or_insert(id.0);
            open.pop();
            continue;
        };
        let (mut parents, mut fork_at) = (snapshot.parents.clone(), snapshot.fork_at);
        if let Some(beginning) = beginnings.get(&id) {
            parents.splice(..parents.len().min(1), beginning.map(|(parent, _)| parent));
            fork_at = beginning.map(|(_, shared)| shared);
        }
        let before = open.len();
        open.extend(parents.iter().filter(|parent| !ids.contains_key(parent)));
        if open.len() == before {
            let parents = parents.iter().map(|parent| ids[parent]).collect();
            ids.insert(id, follow(pack, &reader, snapshot, parents, fork_at, None)?);
            open.pop();
        }
    }
    Ok(Rewritten { ids, gone: HashSet::new(), branches: Vec::new() })
}

/// Returns the number of first messages that two snapshots share.
pub(crate) fn shared_messages(store: &Store, a: &Snapshot, b: &Snapshot) -> Result<u64> {
    let reader = store.reader();
    let tree = |snapshot: &Snapshot| unless_lost(Tree::open(&reader, snapshot.tree));
    let (Some(a), Some(b)) = (tree(a)?, tree(b)?) else { return Ok(0) };
    let mut identities = Identities::new(store.reader());
    let mut shared = 0;
    for (a, b) in a.messages().iter().zip(b.messages()) {
        let same = a == b
            || match identities.find(*a)? {
                Some(a) => identities.find(*b)? == Some(a),
                None => false,
            };
        if !same {
            break;
        }
        shared += 1;
    }
    Ok(shared)
}
