//! All snapshots of a store, and the refs that point to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::owner_index::OwnerIndex;
use crate::archive::{Result, Snapshot, SnapshotId, branch};
use crate::parallel::{cores, each};
use crate::st::TimelineName;
use crate::store::{Loss, ObjectId, Reader, RefName, Store, unless_lost};

/// The snapshots reachable from branches and tags.
#[derive(Default)]
pub struct History {
    snapshots: HashMap<SnapshotId, Snapshot>,
    heads: BTreeMap<TimelineName, SnapshotId>,
    tags: BTreeMap<String, SnapshotId>,
    /// Refs that cannot be read, and refs and commits that point to an unreadable commit.
    pub broken: Vec<Unreadable>,
    pub(super) owners: OnceLock<OwnerIndex>,
}

/// Returns the latest snapshot of every timeline. Reads one commit per branch, and skips unreadable
/// branches.
pub fn heads(store: &Store) -> Result<Vec<Snapshot>> {
    let reader = store.reader();
    let mut branches = Vec::new();
    for (name, id) in store.refs("refs/heads/")?.refs {
        branches.extend(unless_lost(read(&reader, id))?.map(|head| (name, head)));
    }
    let heads = head_of_each(branches.iter().map(|(name, head)| (name, head)));
    Ok(heads.into_values().cloned().collect())
}

/// Returns the refs that keep snapshots for `undo`.
fn kept(store: &Store) -> Result<Vec<(RefName, ObjectId)>> {
    let reader = store.reader();
    let mut kept = Vec::new();
    for (name, id) in store.refs("refs/stvc/kept/")?.refs {
        // Other kept refs point to single files.
        if unless_lost(read(&reader, id))?.is_some() {
            kept.push((name, id));
        }
    }
    Ok(kept)
}

fn read(reader: &Reader, id: ObjectId) -> Result<Snapshot> {
    Snapshot::read(&reader.commit(id)?)
}

/// Returns the latest snapshot of every timeline among these branches. The name of the timeline
/// comes from the commit and not from the branch, because long branch names are truncated and git
/// can rename branches. Of several branches of one timeline, the branch with the timeline's own
/// name counts, else the newest.
fn head_of_each<'s>(
    branches: impl Iterator<Item = (&'s RefName, &'s Snapshot)>,
) -> BTreeMap<TimelineName, &'s Snapshot> {
    let mut heads: BTreeMap<TimelineName, (_, &Snapshot)> = BTreeMap::new();
    for (name, head) in branches {
        let rank = (*name == branch(&head.timeline), head.sequence, head.id);
        match heads.get(&head.timeline) {
            Some((other, _)) if *other >= rank => {}
            _ => drop(heads.insert(head.timeline.clone(), (rank, head))),
        }
    }
    heads.into_iter().map(|(timeline, (_, head))| (timeline, head)).collect()
}

/// Returns the names of tags. Two git tags may decode to one name, as `a/b` and `a%2Fb` do. In this
/// case, the tag that stvc did not create is listed with its full ref name.
fn names_of(tags: &[(RefName, ObjectId)]) -> BTreeMap<String, SnapshotId> {
    let mut named = BTreeMap::new();
    let is_ours =
        |name: &RefName| name.tag_name().and_then(|tag| RefName::tag(&tag)).as_ref() == Some(name);
    let (ours, others): (Vec<_>, Vec<_>) = tags.iter().partition(|(name, _)| is_ours(name));
    for (name, id) in ours.into_iter().chain(others) {
        let full = name.as_str().to_owned();
        let tag = name.tag_name().filter(|tag| !tag.is_empty() && !named.contains_key(tag));
        named.insert(tag.unwrap_or(full), SnapshotId(*id));
    }
    named
}

/// A ref or commit that could not be read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    pub subject: String,
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.why)
    }
}

impl History {
    /// Loads all snapshots, including those that are reachable only from `refs/stvc/kept/`: undone
    /// snapshots, and snapshots whose tag was deleted.
    pub fn load_with_kept(store: &Store) -> Result<Self> {
        let mut history = Self::load(store)?;
        history.read_from(store, &kept(store)?)?;
        Ok(history)
    }

    /// Returns whether this history contains all snapshots that [`Self::load_with_kept`] loads.
    pub fn has_kept(&self, store: &Store) -> Result<bool> {
        Ok(kept(store)?.iter().all(|(_, id)| self.get(SnapshotId(*id)).is_some()))
    }

    pub fn of(
        snapshots: impl IntoIterator<Item = Snapshot>,
        heads: &[SnapshotId],
        tags: BTreeMap<String, SnapshotId>,
    ) -> Self {
        let snapshots = snapshots.into_iter().map(|snapshot| (snapshot.id, snapshot));
        let snapshots: HashMap<_, _> = snapshots.collect();
        let heads = heads.iter().filter_map(|id| snapshots.get(id));
        let heads = heads.map(|head| (head.timeline.clone(), head.id)).collect();
        Self { snapshots, heads, tags, ..Self::default() }
    }

    /// Loads all snapshots that are reachable from branches and tags.
    pub fn load(store: &Store) -> Result<Self> {
        let heads = store.refs("refs/heads/")?;
        let tags = store.refs("refs/tags/")?;
        let mut history = Self::from(store, &heads.refs, tags.refs)?;
        let broken = heads.broken.into_iter().chain(tags.broken);
        let broken = broken.map(|why| Unreadable { subject: "ref".into(), why });
        history.broken.splice(0..0, broken);
        Ok(history)
    }

    pub fn from(
        store: &Store,
        heads: &[(RefName, ObjectId)],
        mut tags: Vec<(RefName, ObjectId)>,
    ) -> Result<Self> {
        let mut history = Self::default();
        let tips: Vec<_> = heads.iter().chain(&tags).cloned().collect();
        history.read_from(store, &tips)?;
        let read = heads.iter();
        let read = read.filter_map(|(name, id)| Some((name, history.get(SnapshotId(*id))?)));
        let heads = head_of_each(read).into_iter().map(|(name, head)| (name, head.id)).collect();
        history.heads = heads;
        tags.retain(|(_, id)| history.snapshots.contains_key(&SnapshotId(*id)));
        history.tags = names_of(&tags);
        Ok(history)
    }

    /// Also loads the snapshots `tips` and their ancestors, which may be on no branch.
    pub fn add(&mut self, store: &Store, tips: impl IntoIterator<Item = SnapshotId>) -> Result<()> {
        let tips: Vec<_> = tips.into_iter().map(|tip| (RefName::kept(tip.0), tip.0)).collect();
        self.read_from(store, &tips)
    }

    fn read_from(&mut self, store: &Store, tips: &[(RefName, ObjectId)]) -> Result<()> {
        self.owners = OnceLock::new();
        let known = self.snapshots.keys().map(|id| id.0).collect();
        let seen = Mutex::new(known);
        let tips = tips.iter().map(|(name, id)| (*id, FollowedFrom::By(name.clone())));
        let mut walk = HistoryWalk { reader: store.reader(), seen: &seen, open: tips.collect() };
        let mut found = walk.run(WORTH_A_THREAD)?;
        // The remaining commits are on different branches. Each thread reads some branches and
        // skips commits that another thread has already read.
        let mut open = vec![Vec::new(); cores()];
        for (n, tip) in std::mem::take(&mut walk.open).into_iter().enumerate() {
            open[n % cores()].push(tip);
        }
        open.retain(|open| !open.is_empty());
        // A reader cannot be used by two threads.
        let readers = walk.reader.shared();
        let run =
            |open| HistoryWalk { reader: readers.reader(), seen: &seen, open }.run(usize::MAX);
        for more in each(open, run) {
            found.extend(more?);
        }
        for found in found {
            match found {
                Ok(snapshot) => {
                    self.snapshots.insert(snapshot.id, snapshot);
                }
                Err(broken) => self.broken.push(broken),
            }
        }
        Ok(())
    }

    pub fn get(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.snapshots.get(&id)
    }

    /// Returns all snapshots, latest first. A parent always comes after its children.
    pub fn newest_first(&self) -> Vec<&Snapshot> {
        let mut children: HashMap<SnapshotId, usize> = HashMap::new();
        for parent in self.snapshots.values().flat_map(|snapshot| &snapshot.parents) {
            *children.entry(*parent).or_default() += 1;
        }
        // Among the snapshots whose children are all in the list, the newest comes next. The names
        // of timelines make the order of equal sequences deterministic.
        let rank = |snapshot: &'_ Snapshot| {
            (snapshot.sequence, Reverse(snapshot.timeline.clone()), snapshot.id)
        };
        let childless =
            self.snapshots.values().filter(|snapshot| !children.contains_key(&snapshot.id));
        let mut ready: std::collections::BinaryHeap<_> = childless.map(rank).collect();
        let mut order = Vec::with_capacity(self.snapshots.len());
        // Snapshots of a timeline that one operation created stay together.
        let mut next = None;
        while let Some((.., id)) = next.take().or_else(|| ready.pop()) {
            let Some(snapshot) = self.snapshots.get(&id) else { continue };
            order.push(snapshot);
            for parent in &snapshot.parents {
                let Some(waiting) = children.get_mut(parent) else { continue };
                *waiting -= 1;
                if let (0, Some(parent)) = (*waiting, self.snapshots.get(parent)) {
                    let is_newest =
                        ready.peek().is_none_or(|(sequence, ..)| parent.sequence >= *sequence);
                    if next.is_none() && is_newest {
                        next = Some(rank(parent));
                    } else {
                        ready.push(rank(parent));
                    }
                }
            }
        }
        order
    }

    pub fn head(&self, timeline: &TimelineName) -> Option<&Snapshot> {
        self.heads.get(timeline).and_then(|id| self.get(*id))
    }

    pub fn heads(&self) -> impl Iterator<Item = (&TimelineName, &Snapshot)> {
        self.heads.iter().filter_map(|(name, id)| Some((name, self.get(*id)?)))
    }

    pub fn tags(&self) -> impl Iterator<Item = (&str, SnapshotId)> {
        self.tags.iter().map(|(name, id)| (name.as_str(), *id))
    }

    pub fn tags_of(&self, id: SnapshotId) -> Vec<String> {
        self.tags().filter(|(_, tagged)| *tagged == id).map(|(name, _)| name.to_owned()).collect()
    }

    /// Returns the tags of every snapshot that has tags.
    pub fn tags_by_snapshot(&self) -> HashMap<SnapshotId, Vec<String>> {
        let mut tags: HashMap<_, Vec<String>> = HashMap::new();
        for (name, id) in self.tags() {
            tags.entry(id).or_default().push(name.to_owned());
        }
        tags
    }

    /// Returns a snapshot and its ancestors along first parents.
    pub fn ancestry<'h>(&'h self, from: &'h Snapshot) -> impl Iterator<Item = &'h Snapshot> {
        std::iter::successors(Some(from), |snapshot| self.get(*snapshot.parents.first()?))
    }

    /// Returns the snapshots `tips` and all their ancestors, each once.
    pub fn walk_from(
        &self,
        tips: impl IntoIterator<Item = SnapshotId>,
    ) -> impl Iterator<Item = &Snapshot> {
        let mut seen = HashSet::new();
        let mut open: Vec<_> = tips.into_iter().collect();
        std::iter::from_fn(move || {
            loop {
                let id = open.pop()?;
                if let Some(snapshot) = self.get(id)
                    && seen.insert(id)
                {
                    open.extend(&snapshot.parents);
                    return Some(snapshot);
                }
            }
        })
    }

    /// Returns the ids of the snapshots `tips` and of all their ancestors.
    pub fn past(&self, tips: impl IntoIterator<Item = SnapshotId>) -> HashSet<SnapshotId> {
        self.walk_from(tips).map(|snapshot| snapshot.id).collect()
    }

    /// Returns whether `id` is `tip` or an ancestor of `tip`.
    pub fn reaches(&self, tip: SnapshotId, id: SnapshotId) -> bool {
        self.walk_from([tip]).any(|snapshot| snapshot.id == id)
    }

    /// Returns the latest snapshot that is in `others` and is `tip` or an ancestor of `tip`. If
    /// there are several unrelated such snapshots, each side may have merged them differently, so
    /// their latest common ancestor is returned.
    pub fn merge_base(&self, tip: SnapshotId, others: &HashSet<SnapshotId>) -> Option<&Snapshot> {
        let both: HashSet<_> =
            self.past([tip]).into_iter().filter(|id| others.contains(id)).collect();
        let snapshots = || both.iter().filter_map(|id| self.get(*id));
        // A snapshot with a descendant in `both` is not one of the last.
        let followed: HashSet<_> = snapshots().flat_map(|snapshot| &snapshot.parents).collect();
        let mut last: Vec<_> = snapshots().filter(|it| !followed.contains(&it.id)).collect();
        last.sort_by_key(|snapshot| (snapshot.sequence, snapshot.id));
        let latest = last.pop()?;
        let common = last
            .into_iter()
            .try_fold(latest, |base, other| self.merge_base(base.id, &self.past([other.id])));
        Some(common.unwrap_or(latest))
    }

    /// Returns the snapshots of a timeline, latest first, and the snapshot of the parent from which
    /// the timeline was forked.
    pub fn own<'h>(&'h self, head: &'h Snapshot) -> (Vec<&'h Snapshot>, Option<&'h Snapshot>) {
        let mut own = Vec::new();
        for snapshot in self.ancestry(head) {
            own.push(snapshot);
            if snapshot.fork_at.is_some() {
                return (own, snapshot.parents.first().and_then(|parent| self.get(*parent)));
            }
        }
        (own, None)
    }

    /// Returns `heads` without branches that a rename left behind. A backup keeps the branch with
    /// the former name, although the timeline continues under its new name.
    pub fn without_renamed(&self, heads: &[Snapshot]) -> Vec<Snapshot> {
        let mut by_first: HashMap<SnapshotId, Vec<&Snapshot>> = HashMap::new();
        for head in heads {
            let first = self.own(head).0.last().map_or(head.id, |first| first.id);
            by_first.entry(first).or_default().push(head);
        }
        let mut left_behind = HashSet::new();
        for one_timeline in by_first.values().filter(|heads| heads.len() > 1) {
            for head in one_timeline {
                let past = self.past([head.id]);
                let earlier = one_timeline.iter().filter(|other| other.id != head.id);
                left_behind.extend(earlier.map(|other| other.id).filter(|id| past.contains(id)));
            }
        }
        heads.iter().filter(|head| !left_behind.contains(&head.id)).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.snapshots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Snapshot> {
        self.snapshots.values()
    }
}

/// Number of commits that are read before threads are started. Fewer commits are read faster than a
/// thread starts.
const WORTH_A_THREAD: usize = 200;

#[derive(Clone)]
enum FollowedFrom {
    By(RefName),
    ByCommit(ObjectId),
}

struct HistoryWalk<'s> {
    reader: Reader,
    seen: &'s Mutex<HashSet<ObjectId>>,
    open: Vec<(ObjectId, FollowedFrom)>,
}

impl HistoryWalk<'_> {
    /// Reads commits until none is left or `limit` commits are read. Lost commits are returned as
    /// unreadable; other failures are errors.
    fn run(&mut self, limit: usize) -> Result<Vec<std::result::Result<Snapshot, Unreadable>>> {
        let mut found = Vec::new();
        while found.len() < limit {
            let Some((id, from)) = self.open.pop() else { break };
            // The set is consistent even if a thread panicked while it had the lock.
            if !self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
                continue;
            }
            match read(&self.reader, id) {
                Ok(snapshot) => {
                    let parents = snapshot.parents.iter();
                    self.open.extend(parents.map(|parent| (parent.0, FollowedFrom::ByCommit(id))));
                    found.push(Ok(snapshot));
                }
                Err(error) if !error.is_loss() => return Err(error),
                Err(error) => {
                    let subject = match from {
                        FollowedFrom::By(name) => name.to_string(),
                        FollowedFrom::ByCommit(id) => id.to_string(),
                    };
                    found.push(Err(Unreadable { subject, why: error.to_string() }));
                }
            }
        }
        Ok(found)
    }
}
