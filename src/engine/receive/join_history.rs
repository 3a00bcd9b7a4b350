//! Removes invalid snapshots from the history of a backup, so that the valid snapshots can be
//! imported.
//!
//! A commit contains the ids of its parents. A commit with an invalid parent is therefore
//! rewritten: the tree, date, message and trailers stay, and the nearest valid ancestor becomes its
//! parent. A branch whose latest snapshot is invalid ends with the latest valid snapshot before it.
//! A tag on an invalid snapshot is omitted. The store records the new ids of rewritten commits, so
//! that the import of a later backup of the same store continues them.

use std::collections::{BTreeMap, HashMap};

use crate::archive::backup::{CommitKind, JudgedCommit};
use crate::archive::{Snapshot, SnapshotId, branch, moved};
use crate::engine::Result;
use crate::engine::copies::chosen_refs::{HEADS, Refs, spoken};
use crate::history::History;
use crate::history::rewrite_history::shared_messages;
use crate::rules::{Code, Finding, Level};
use crate::store::{Kind, ObjectId, RefName, Store, commit, hash};

#[derive(Default)]
pub(super) struct JoinedHistory {
    /// The valid snapshots of the backup, and the local snapshots.
    pub history: History,
    pub heads: Vec<Snapshot>,
    pub rewritten: Vec<RewrittenCommit>,
    /// The imported snapshots as they are in the backup, before any rewrite.
    pub taken: Vec<Snapshot>,
    /// Findings about branches that were shortened and refs that were omitted.
    pub findings: Vec<Finding>,
}

pub(crate) struct RewrittenCommit {
    pub former: ObjectId,
    pub id: ObjectId,
    pub bytes: Vec<u8>,
}

pub(super) type LocalHistory<'s> = Option<(&'s Store, &'s History)>;

pub(super) fn join(
    store: &Store,
    found: &[JudgedCommit],
    refs: &Refs,
    ours: LocalHistory<'_>,
) -> Result<JoinedHistory> {
    let mut joiner = Joiner {
        store,
        found: found.iter().map(|found| (found.id, found)).collect(),
        ours: ours.map(|(_, history)| history),
        former: ours.map(|(store, _)| store.former_ids()).transpose()?.unwrap_or_default(),
        replacements: HashMap::new(),
        snapshots: HashMap::new(),
        joined: JoinedHistory::default(),
    };
    for id in refs.values() {
        joiner.settle(*id)?;
    }
    let (mut tags, mut left_out) = (BTreeMap::new(), Vec::new());
    for (name, id) in refs {
        let is_branch = name.as_str().starts_with(HEADS);
        let itself = joiner.itself(*id);
        let target = if is_branch { joiner.newest(name, *id) } else { itself };
        match (target, name.tag_name()) {
            (None, _) => left_out.push(is_left_out(name)),
            (Some(target), Some(tag)) => drop(tags.insert(tag, target)),
            (Some(target), None) => {
                if itself.is_none() {
                    joiner.joined.findings.push(is_shortened(name, target));
                }
                let head = joiner.snapshot(target).cloned();
                joiner.joined.heads.extend(head);
            }
        }
    }
    joiner.joined.findings.append(&mut left_out);
    Ok(joiner.finish(tags))
}

#[derive(Clone, Copy)]
struct Replacement {
    id: SnapshotId,
    distance: AncestorDistance,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AncestorDistance {
    Itself,
    /// An ancestor in the same timeline.
    Earlier,
    /// An ancestor in another timeline, before a fork point.
    AcrossFork,
}

struct Joiner<'a> {
    store: &'a Store,
    found: HashMap<ObjectId, &'a JudgedCommit>,
    ours: Option<&'a History>,
    former: HashMap<ObjectId, ObjectId>,
    replacements: HashMap<ObjectId, Option<Replacement>>,
    snapshots: HashMap<SnapshotId, Snapshot>,
    joined: JoinedHistory,
}

impl Joiner<'_> {
    /// Determines the replacements of a commit and its ancestors, oldest first.
    fn settle(&mut self, tip: ObjectId) -> Result<()> {
        let mut open = vec![tip];
        while let Some(id) = open.last().copied() {
            let found = self.found.get(&id).filter(|_| self.local(id).is_none());
            let parents = found.map_or(&[][..], |found| &found.parents);
            let before = open.len();
            if !self.replacements.contains_key(&id) {
                let is_open = |parent: &&ObjectId| !self.replacements.contains_key(*parent);
                open.extend(parents.iter().filter(is_open));
                if open.len() == before {
                    let replacement = self.replace(id)?;
                    self.replacements.insert(id, replacement);
                }
            }
            if open.len() == before {
                open.pop();
            }
        }
        Ok(())
    }

    /// Returns the local snapshot that has the id of a commit, or the local snapshot that this
    /// commit was rewritten to.
    fn local(&self, id: ObjectId) -> Option<&Snapshot> {
        let ours = self.ours?;
        let became = || self.former.get(&id).and_then(|new| ours.get(SnapshotId(*new)));
        ours.get(SnapshotId(id)).or_else(became)
    }

    fn replacement(&self, id: ObjectId) -> Option<Replacement> {
        self.replacements.get(&id).copied().flatten()
    }

    fn replace(&mut self, id: ObjectId) -> Result<Option<Replacement>> {
        let itself = |id| Ok(Some(Replacement { id, distance: AncestorDistance::Itself }));
        if let Some(local) = self.local(id) {
            return itself(local.id);
        }
        let Some(found) = self.found.get(&id).copied() else { return Ok(None) };
        let first = found.parents.first().and_then(|parent| self.replacement(*parent));
        match &found.what {
            CommitKind::Snapshot(snapshot, _) if found.is_fit() => {
                itself(self.take(snapshot, &found.parents, first)?)
            }
            invalid => {
                let is_fork =
                    matches!(invalid, CommitKind::Snapshot(it, _) if it.fork_at.is_some());
                Ok(first.map(|Replacement { id, distance }| {
                    let is_across = is_fork || distance == AncestorDistance::AcrossFork;
                    let distance = if is_across {
                        AncestorDistance::AcrossFork
                    } else {
                        AncestorDistance::Earlier
                    };
                    Replacement { id, distance }
                }))
            }
        }
    }

    /// Imports a snapshot, and rewrites it if its parents were replaced. `former` are its parents
    /// in the backup. Returns the id of the imported snapshot.
    fn take(
        &mut self,
        snapshot: &Snapshot,
        former: &[ObjectId],
        first: Option<Replacement>,
    ) -> Result<SnapshotId> {
        let others = former.iter().skip(1).filter_map(|parent| self.replacement(*parent));
        let mut parents = Vec::new();
        for parent in first.into_iter().chain(others) {
            if !parents.contains(&parent.id.0) {
                parents.push(parent.id.0);
            }
        }
        self.joined.taken.push(snapshot.clone());
        if parents == former {
            self.snapshots.insert(snapshot.id, snapshot.clone());
            return Ok(snapshot.id);
        }
        let fork_at = match first {
            None => None,
            Some(first) if first.distance == AncestorDistance::Itself => snapshot.fork_at,
            Some(first)
                if first.distance == AncestorDistance::Earlier && snapshot.fork_at.is_none() =>
            {
                None
            }
            Some(first) => Some(match self.snapshot(first.id) {
                Some(parent) => shared_messages(self.store, parent, snapshot)?,
                None => 0,
            }),
        };
        let commit = self.store.reader().commit(snapshot.id.0)?;
        let bytes = commit::encode(&moved(commit, parents, fork_at));
        let id = hash(Kind::Commit, &bytes)?;
        let new = Snapshot::read(&commit::decode(id, &bytes)?)?;
        self.snapshots.insert(new.id, new);
        self.joined.rewritten.push(RewrittenCommit { former: snapshot.id.0, id, bytes });
        Ok(SnapshotId(id))
    }

    fn snapshot(&self, id: SnapshotId) -> Option<&Snapshot> {
        self.snapshots.get(&id).or_else(|| self.ours?.get(id))
    }

    /// Returns the id of a commit after the import; `None` if the commit is omitted.
    fn itself(&self, id: ObjectId) -> Option<SnapshotId> {
        self.replacement(id).filter(|it| it.distance == AncestorDistance::Itself).map(|it| it.id)
    }

    /// Returns the new target of a branch: the latest valid snapshot of the branch's own timeline.
    /// Returns `None` if there is no such snapshot.
    fn newest(&self, name: &RefName, tip: ObjectId) -> Option<SnapshotId> {
        let Replacement { id, distance } = self.replacement(tip)?;
        let snapshot = self.snapshot(id)?;
        // If the commit is unreadable, it is unknown whether a fork began with it.
        let is_snapshot =
            matches!(self.found.get(&tip)?.what, CommitKind::Snapshot(..) | CommitKind::Known);
        let is_own = is_snapshot && distance != AncestorDistance::AcrossFork
            || branch(&snapshot.timeline) == *name;
        (distance == AncestorDistance::Itself || is_own).then_some(id)
    }

    fn finish(self, tags: BTreeMap<String, SnapshotId>) -> JoinedHistory {
        let Self { ours, mut snapshots, mut joined, .. } = self;
        for known in ours.into_iter().flat_map(History::iter) {
            snapshots.entry(known.id).or_insert_with(|| known.clone());
        }
        let heads: Vec<_> = joined.heads.iter().map(|head| head.id).collect();
        let tips: Vec<_> = heads.iter().chain(tags.values()).copied().collect();
        joined.history = History::of(snapshots.into_values(), &heads, tags);
        let reached = joined.history.past(tips);
        // Drop snapshots that no imported ref reaches. An omitted branch may have been the only ref
        // that reached valid snapshots of another timeline.
        let is_needed = |id: ObjectId| reached.contains(&SnapshotId(id));
        let became: HashMap<_, _> =
            joined.rewritten.iter().map(|rewritten| (rewritten.former, rewritten.id)).collect();
        joined.taken.retain(|taken| is_needed(*became.get(&taken.id.0).unwrap_or(&taken.id.0)));
        joined.rewritten.retain(|rewritten| is_needed(rewritten.id));
        joined
    }
}

fn is_shortened(branch: &RefName, head: SnapshotId) -> Finding {
    let message =
        format!("its latest snapshot is invalid and was not imported; it now ends with {head}");
    Finding::new(Code::RefLeftOut, spoken(branch), message)
        .at(Level::Warning)
        .remedy("run `stvc snapshot` while its files exist")
}

fn is_left_out(name: &RefName) -> Finding {
    let message = "it was not imported, because its snapshot is invalid";
    Finding::new(Code::RefLeftOut, spoken(name), message)
        .remedy("run `stvc check` on the backup to see the problem")
}
