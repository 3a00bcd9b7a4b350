//! Putting snapshots into the past of timelines, where their time says they belong.
//!
//! A commit's parents are part of its id, so every snapshot that follows an inserted one is written anew: the same tree, time and
//! words, another parent, another id. The former commits are kept by refs, so the ids that a user wrote down still name
//! what they named.

use std::collections::{BTreeMap, HashMap};

use super::Result;
use super::lineage::{Lineage, Newcomer, Origin};
use super::operation::Operation;
use crate::archive::{SnapshotId, branch, moved};
use crate::st::TimelineName;
use crate::store::{Kind as ObjectKind, NewCommit, ObjectId, RefName, Store, commit};

/// A snapshot to be put into a timeline. Its tree is in the operation's pack.
pub(super) struct Insertion {
    /// Without parents.
    pub commit: NewCommit,
    /// What it says, and of whom.
    pub newcomer: Newcomer,
}

/// Put `insertions`, each list oldest first, into the timelines. How many stored snapshots had to be written anew.
pub(super) fn weave(
    operation: &mut Operation<'_>,
    store: &Store,
    lineage: &mut Lineage,
    insertions: BTreeMap<TimelineName, Vec<Insertion>>,
) -> Result<usize> {
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
            // Never behind the newest: that is what the files are.
            while at < last && own[at].time.seconds <= insertion.commit.time.seconds {
                at += 1;
            }
            let run = before.entry(own[at].id).or_default();
            if let (0, true, Some(origin)) = (at, run.is_empty(), &origin) {
                first_fork
                    .insert(own[at].id, lineage.shared(&insertion.newcomer.chain, origin) as u64);
            }
            run.push(insertion);
        }
    }
    let map = rewrite(operation, store, lineage, before, &first_fork)?;
    for (timeline, list) in new_timelines {
        add_timeline(operation, lineage, &timeline, list, &map)?;
    }
    move_refs(operation, store, &map)?;
    let renamed: Vec<_> =
        map.into_iter().map(|(old, new)| (old.0, new)).filter(|(old, new)| old != new).collect();
    operation.rename(&renamed);
    Ok(renamed.len())
}

/// Write the history anew, parents first; old id to new id.
fn rewrite(
    operation: &mut Operation<'_>,
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
            // The first of the timeline is another one now, and the fork is there.
            let mut fork = first_fork.get(&snapshot.id).copied();
            if fork.is_some() {
                fork_at = None;
            }
            for insertion in run {
                let new = NewCommit { parents, ..insertion.commit };
                let new = with_fork(new, fork.take());
                parents = vec![operation.pack.add(ObjectKind::Commit, &commit::encode(&new))?];
            }
        }
        let same = parents.iter().eq(snapshot.parents.iter().map(|parent| &parent.0))
            && fork_at == snapshot.fork_at;
        let id = if same {
            snapshot.id.0
        } else {
            let new = moved(reader.commit(snapshot.id.0)?, parents, fork_at);
            operation.pack.add(ObjectKind::Commit, &commit::encode(&new))?
        };
        map.insert(snapshot.id, id);
    }
    Ok(map)
}

/// A timeline that had no snapshot before.
fn add_timeline(
    operation: &mut Operation<'_>,
    lineage: &mut Lineage,
    timeline: &TimelineName,
    list: Vec<Insertion>,
    map: &HashMap<SnapshotId, ObjectId>,
) -> Result<()> {
    let mut parent = None;
    let mut fork = None;
    if let Some(first) = list.first()
        && let Origin::Fork { id, shared, .. } = lineage.fork(&first.newcomer)
    {
        parent = Some(map.get(&id).copied().unwrap_or(id.0));
        fork = Some(shared as u64);
    }
    for insertion in list {
        let new = NewCommit { parents: parent.into_iter().collect(), ..insertion.commit };
        parent = Some(
            operation
                .pack
                .add(ObjectKind::Commit, &commit::encode(&with_fork(new, fork.take())))?,
        );
    }
    match parent {
        Some(head) => operation.move_ref(branch(timeline), SnapshotId(head)),
        None => Ok(()),
    }
}

fn with_fork(commit: NewCommit, fork: Option<u64>) -> NewCommit {
    match fork {
        None => commit,
        Some(shared) => crate::archive::with_fork(commit, shared),
    }
}

/// Lead every branch and tag to what its snapshot became; the former commits are kept.
pub(super) fn move_refs(
    operation: &mut Operation<'_>,
    store: &Store,
    map: &HashMap<SnapshotId, ObjectId>,
) -> Result<()> {
    for prefix in ["refs/heads/", "refs/tags/"] {
        for (name, old) in store.refs(prefix)?.refs {
            if let Some(new) = map.get(&SnapshotId(old)).filter(|new| **new != old) {
                operation.move_ref(name, SnapshotId(*new))?;
                operation.move_ref(RefName::kept(old), SnapshotId(old))?;
            }
        }
    }
    Ok(())
}
