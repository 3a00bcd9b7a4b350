//! The history of a backup without what must not be taken in, so that one odd snapshot costs nobody anything else.
//!
//! A commit names its parents, so one that follows an odd snapshot is written anew: the same tree, date, words and trailers, and as its parent the nearest that may
//! be taken in. A branch whose newest snapshot is odd ends with the newest before it; a tag on an odd one is left out. What was joined so once keeps its
//! new ids: a later backup of the same store goes on from there.

use std::collections::{BTreeMap, HashMap};

use crate::archive::backup::{Found, What};
use crate::archive::{Snapshot, SnapshotId, branch, moved};
use crate::engine::Result;
use crate::engine::copies::chosen_refs::{HEADS, Refs};
use crate::history::History;
use crate::history::rewrite_history::shared_messages;
use crate::store::{Kind, ObjectId, RefName, Store, commit, hash};

/// What may be taken in, as a history of its own.
#[derive(Default)]
pub(crate) struct Joined {
    /// The history, with what is here already.
    pub history: History,
    /// The newest snapshots of its branches.
    pub heads: Vec<Snapshot>,
    /// The commits that were written anew.
    pub anew: Vec<Anew>,
    /// The snapshots that are new here, as the backup has them.
    pub taken: Vec<Snapshot>,
    /// Branches that end earlier than in the backup, and with what.
    pub shortened: Vec<(RefName, SnapshotId)>,
    /// Branches and tags that lead to nothing that may be taken in.
    pub left_out: Vec<RefName>,
}

/// A commit that was written anew.
pub struct Anew {
    /// What it was called.
    pub former: ObjectId,
    /// What it is called now.
    pub id: ObjectId,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What is here already: the store and its history.
pub(crate) type Ours<'s> = Option<(&'s Store, &'s History)>;

/// Join up what may be taken in of the commits that `refs` lead to in `store`.
pub(crate) fn join(store: &Store, found: &[Found], refs: &Refs, ours: Ours<'_>) -> Result<Joined> {
    let mut joiner = Joiner {
        store,
        found: found.iter().map(|found| (found.id, found)).collect(),
        ours: ours.map(|(_, history)| history),
        former: match ours {
            Some((store, _)) => store.former_ids()?,
            None => HashMap::new(),
        },
        stands: HashMap::new(),
        snapshots: HashMap::new(),
        joined: Joined::default(),
    };
    for id in refs.values() {
        joiner.settle(*id)?;
    }
    let mut tags = BTreeMap::new();
    for (name, id) in refs {
        let is_branch = name.as_str().starts_with(HEADS);
        let target = if is_branch { joiner.newest(name, *id) } else { joiner.stands_itself(*id) };
        match (target, name.tag_name()) {
            (None, _) => joiner.joined.left_out.push(name.clone()),
            (Some(target), Some(tag)) => drop(tags.insert(tag, target)),
            (Some(target), None) => {
                if joiner.stands_itself(*id).is_none() {
                    joiner.joined.shortened.push((name.clone(), target));
                }
                let head = joiner.snapshot(target).cloned();
                joiner.joined.heads.extend(head);
            }
        }
    }
    Ok(joiner.finish(tags))
}

/// What stands for a commit in the history that is taken in.
#[derive(Clone, Copy)]
struct Stand {
    id: SnapshotId,
    /// It is another snapshot, before this one.
    earlier: bool,
    /// It is of another timeline: a fork began between.
    across_fork: bool,
}

struct Joiner<'a> {
    store: &'a Store,
    found: HashMap<ObjectId, &'a Found>,
    ours: Option<&'a History>,
    former: HashMap<ObjectId, ObjectId>,
    stands: HashMap<ObjectId, Option<Stand>>,
    /// The snapshots of the new history by their new ids.
    snapshots: HashMap<SnapshotId, Snapshot>,
    joined: Joined,
}

impl Joiner<'_> {
    /// Find out what stands for a commit and for all before it, the oldest first.
    fn settle(&mut self, tip: ObjectId) -> Result<()> {
        let mut open = vec![tip];
        while let Some(id) = open.last().copied() {
            if self.stands.contains_key(&id) {
                open.pop();
                continue;
            }
            let parents = match self.is_here(id) {
                Some(_) => &[][..],
                None => self.found.get(&id).map_or(&[][..], |found| &found.parents),
            };
            let unsettled: Vec<_> =
                parents.iter().filter(|parent| !self.stands.contains_key(*parent)).collect();
            if unsettled.is_empty() {
                let stand = self.stand(id)?;
                self.stands.insert(id, stand);
                open.pop();
            } else {
                open.extend(unsettled);
            }
        }
        Ok(())
    }

    /// The snapshot here that a commit is, or became.
    fn is_here(&self, id: ObjectId) -> Option<&Snapshot> {
        let ours = self.ours?;
        let became = || self.former.get(&id).and_then(|new| ours.get(SnapshotId(*new)));
        ours.get(SnapshotId(id)).or_else(became)
    }

    /// What stands for a commit, once that is known of those before it.
    fn stand(&mut self, id: ObjectId) -> Result<Option<Stand>> {
        if let Some(here) = self.is_here(id) {
            return Ok(Some(Stand { id: here.id, earlier: false, across_fork: false }));
        }
        let Some(found) = self.found.get(&id).copied() else { return Ok(None) };
        let first = found.parents.first().and_then(|parent| self.stands.get(parent).copied());
        let first = first.flatten();
        match &found.what {
            What::Snapshot(snapshot, _) if found.is_fit() => {
                let id = self.take(snapshot, &found.parents, first)?;
                Ok(Some(Stand { id, earlier: false, across_fork: false }))
            }
            odd => {
                let is_fork = matches!(odd, What::Snapshot(odd, _) if odd.fork_at.is_some());
                let across = |stand: Stand| is_fork || stand.across_fork;
                Ok(first.map(|stand| Stand { earlier: true, across_fork: across(stand), ..stand }))
            }
        }
    }

    /// Take a snapshot, written anew if it follows others now; its id.
    fn take(
        &mut self,
        snapshot: &Snapshot,
        former: &[ObjectId],
        first: Option<Stand>,
    ) -> Result<SnapshotId> {
        let others = former.iter().skip(1).filter_map(|parent| self.stands.get(parent)?.as_ref());
        let mut parents = Vec::new();
        for parent in first.iter().chain(others) {
            if !parents.contains(&parent.id.0) {
                parents.push(parent.id.0);
            }
        }
        self.joined.taken.push(snapshot.clone());
        if parents == former {
            self.snapshots.insert(snapshot.id, snapshot.clone());
            return Ok(snapshot.id);
        }
        let shared = |stand: Stand| match self.snapshot(stand.id) {
            Some(parent) => shared_messages(self.store, parent, snapshot),
            None => Ok(0),
        };
        let fork_at = match first {
            None => None,
            Some(first) if !first.earlier => snapshot.fork_at,
            Some(first) if first.across_fork || snapshot.fork_at.is_some() => Some(shared(first)?),
            Some(_) => None,
        };
        let commit = self.store.reader().commit(snapshot.id.0)?;
        let bytes = commit::encode(&moved(commit, parents, fork_at));
        let id = hash(Kind::Commit, &bytes)?;
        let new = Snapshot::read(&commit::decode(id, &bytes)?)?;
        self.snapshots.insert(new.id, new);
        self.joined.anew.push(Anew { former: snapshot.id.0, id, bytes });
        Ok(SnapshotId(id))
    }

    /// A snapshot of the new history.
    fn snapshot(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.snapshots.get(&id).or_else(|| self.ours?.get(id))
    }

    /// What a commit became, if it was not left out.
    fn stands_itself(&self, id: ObjectId) -> Option<SnapshotId> {
        let stand = self.stands.get(&id).copied().flatten()?;
        (!stand.earlier).then_some(stand.id)
    }

    /// With what a branch ends: the newest of its own timeline that may be taken in.
    fn newest(&self, name: &RefName, tip: ObjectId) -> Option<SnapshotId> {
        let stand = self.stands.get(&tip).copied().flatten()?;
        let snapshot = self.snapshot(stand.id)?;
        // What cannot be read does not say whether a fork began there.
        let is_snapshot = matches!(self.found.get(&tip)?.what, What::Snapshot(..) | What::Known);
        let is_own = is_snapshot && !stand.across_fork || branch(&snapshot.timeline) == *name;
        (!stand.earlier || is_own).then_some(stand.id)
    }

    fn finish(self, tags: BTreeMap<String, SnapshotId>) -> Joined {
        let Self { ours, mut snapshots, mut joined, .. } = self;
        for known in ours.into_iter().flat_map(History::iter) {
            snapshots.entry(known.id).or_insert_with(|| known.clone());
        }
        let heads: Vec<_> = joined.heads.iter().map(|head| head.id).collect();
        let mut tips = heads.clone();
        tips.extend(tags.values());
        joined.history = History::of(snapshots.into_values(), &heads, tags);
        let reached = joined.history.past(tips);
        // A branch that was left out may have led to sound ones of another timeline, whose own branch is not in the backup.
        let is_needed = |id: ObjectId| reached.contains(&SnapshotId(id));
        let became: HashMap<_, _> = joined.anew.iter().map(|anew| (anew.former, anew.id)).collect();
        joined.taken.retain(|taken| is_needed(*became.get(&taken.id.0).unwrap_or(&taken.id.0)));
        joined.anew.retain(|anew| is_needed(anew.id));
        joined
    }
}
