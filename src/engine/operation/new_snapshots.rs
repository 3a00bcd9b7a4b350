//! The snapshots that an operation creates, and the moves of their branches.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::{NewSnapshots, Operation, PlannedSnapshot, SnapshotParents};
use crate::archive::{
    self, Ancestry, FilesToWrite, Kind, NewSnapshot, Snapshot, SnapshotId, State, WrittenFiles,
    WrittenTree, branch,
};
use crate::auto_recap::CheckpointState;
use crate::engine::{Result, known_folders};
use crate::history::name_lookup;
use crate::history::rewrite_history::Rewritten;
use crate::parallel::both;
use crate::st::{self, LibraryPath};
use crate::store::{
    Kind as ObjectKind, NewCommit, ObjectId, RefChange, RefName, Sequence, Store, Time, commit,
};

impl NewSnapshots {
    /// Returns the last position in the order of creation among the new snapshots and the targets
    /// of `refs`. A target may come from a device whose clock is ahead, and later snapshots must
    /// follow it in the order.
    pub(super) fn last_sequence(
        &self,
        store: &Store,
        refs: &[RefChange],
    ) -> Result<Option<Sequence>> {
        let mut last = self.sequence.map(|(_, last)| last);
        let made: HashSet<_> = self.made.iter().map(|made| made.snapshot.id.0).collect();
        let reader = store.reader();
        for id in refs.iter().filter_map(|change| change.after).filter(|id| !made.contains(id)) {
            let came = name_lookup::find_with(&reader, SnapshotId(id))?;
            last = last.max(came.map(|came| came.sequence));
        }
        Ok(last)
    }
}

/// A state whose files are in the operation's pack, without a commit yet.
pub(crate) struct StoredState {
    files: WrittenFiles,
    about: SnapshotDraft,
}

pub(crate) struct SnapshotDraft {
    new: NewSnapshot,
    attachments: BTreeSet<LibraryPath>,
}

impl SnapshotDraft {
    pub(crate) fn read(state: &State<'_>, kind: Kind, time: Time) -> Self {
        let attachments = st::attachments(&state.chat, state.files.metadata(&state.chat));
        Self { new: NewSnapshot::of(state, kind, time), attachments }
    }
}

impl StoredState {
    pub(crate) fn checkpoint(&self) -> Option<&CheckpointState> {
        self.about.new.manifest.checkpoint.as_ref()
    }
}

impl Operation<'_> {
    /// Creates a snapshot of a state and moves the timeline's branch to it. Deletes the former
    /// branch of a renamed timeline.
    pub(crate) fn take(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: SnapshotParents,
    ) -> Result<Snapshot> {
        Ok(self.add_separate(state, kind, follows, |_| ())?.0)
    }

    /// Creates a snapshot like [`take`](Self::take), and calls `look` with the ranges of messages
    /// that may be new. For a long chat, `look` runs in parallel.
    pub(crate) fn add_separate<R: Send>(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: SnapshotParents,
        look: impl FnOnce(&[Range<usize>]) -> R + Send,
    ) -> Result<(Snapshot, R)> {
        let (stored, seen) = self.store_state(state, kind, &follows, look)?;
        Ok((self.add_snapshot(stored, follows)?, seen))
    }

    pub(crate) fn add_snapshot(
        &mut self,
        stored: StoredState,
        follows: SnapshotParents,
    ) -> Result<Snapshot> {
        let old = follows.ancestry.renamed_from.clone();
        let parents = [follows.ancestry.parent, follows.ancestry.joined];
        let (snapshot, written, commit) = self.complete(stored, follows)?;
        let timeline = &snapshot.timeline;
        // If the former target of the branch is not a parent of the new snapshot, a ref must keep
        // it reachable.
        if let Some(former) = self.target(&branch(timeline))?
            && !parents.contains(&Some(SnapshotId(former)))
            && old.is_none()
        {
            self.move_ref(RefName::kept(former), SnapshotId(former))?;
        }
        self.move_ref(branch(timeline), snapshot.id)?;
        if let Some(old) = old.map(|old| branch(&old)) {
            // Do not delete the branch if another timeline has the former name now.
            let target = self.target(&old)?.map(SnapshotId);
            if parents.contains(&target) {
                self.drop_ref(old)?;
            }
        }
        let made = PlannedSnapshot { snapshot: snapshot.clone(), commit, folders: written.folders };
        self.snapshots.made.push(made);
        Ok(snapshot)
    }

    pub(crate) fn commit(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: SnapshotParents,
    ) -> Result<Snapshot> {
        let (stored, ()) = self.store_state(state, kind, &follows, |_| ())?;
        let (snapshot, ..) = self.complete(stored, follows)?;
        Ok(snapshot)
    }

    fn store_state<R: Send>(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: &SnapshotParents,
        look: impl FnOnce(&[Range<usize>]) -> R + Send,
    ) -> Result<(StoredState, R)> {
        let time = self.workspace.time();
        let known = follows.ancestry.renamed_from.as_ref().unwrap_or(state.timeline());
        let known = known_folders::load(self.store, known);
        let unwritten = FilesToWrite::of(state, &self.pack, follows.tree, &known);
        let new = unwritten.new_messages();
        let write = || unwritten.write(&mut self.pack);
        let look = || (SnapshotDraft::read(state, kind, time), look(&new));
        let (files, (about, seen)) =
            if state.is_long() { both(write, look) } else { (write(), look()) };
        Ok((StoredState { files: files?, about }, seen))
    }

    /// Stores the files of many states in parallel, before the parents of their snapshots are
    /// known.
    pub(crate) fn store_states(
        &mut self,
        states: &[State<'_>],
        about: Vec<SnapshotDraft>,
    ) -> Result<Vec<StoredState>> {
        let files = archive::write_many(states, &mut self.pack)?;
        let stored = files.into_iter().zip(about);
        Ok(stored.map(|(files, about)| StoredState { files, about }).collect())
    }

    fn complete(
        &mut self,
        stored: StoredState,
        follows: SnapshotParents,
    ) -> Result<(Snapshot, WrittenTree, NewCommit)> {
        let StoredState { files, about: SnapshotDraft { new, attachments } } = stored;
        let attached = self.attached(attachments, follows.tree, &self.store.reader())?;
        let written = files.complete(&new.manifest, &attached, &mut self.pack)?;
        let sequence = Some(self.sequence_after(follows.after, new.time)?);
        let ancestry = Ancestry { sequence, ..follows.ancestry };
        let commit = new.commit(written.tree, ancestry, self.message.as_deref());
        let snapshot = self.add_commit(&commit)?;
        Ok((snapshot, written, commit))
    }

    /// Returns the position of a new snapshot in the order of creation. `parent` is the position of
    /// its parent. All snapshots of one operation have the same position, unless the parent has
    /// this position or a later one: it then belongs to the same operation, or comes from a device
    /// whose clock is ahead.
    fn sequence_after(&mut self, parent: Option<Sequence>, time: Time) -> Result<Sequence> {
        let (first, last) = match self.snapshots.sequence {
            Some(known) => known,
            None => {
                let next = self.store.next_sequence(time.seconds)?;
                (next, next)
            }
        };
        let sequence = match parent {
            Some(parent) if parent >= first => Sequence::after(Some(parent), time.seconds),
            _ => first,
        };
        self.snapshots.sequence = Some((first, last.max(sequence)));
        Ok(sequence)
    }

    fn add_commit(&mut self, commit: &NewCommit) -> Result<Snapshot> {
        let bytes = commit::encode(commit);
        let id = self.pack.add(ObjectKind::Commit, &bytes)?;
        Ok(Snapshot::read(&commit::decode(id, &bytes)?)?)
    }

    pub(crate) fn rename(&mut self, ids: &[(ObjectId, ObjectId)]) {
        self.snapshots.renamed.extend_from_slice(ids);
    }

    /// Moves every ref from a rewritten snapshot to its new version. The store records the former
    /// ids, so that users can still use them. Returns the former and new ids.
    pub(crate) fn follow(&mut self, rewritten: &Rewritten) -> Result<Vec<(ObjectId, ObjectId)>> {
        for (name, to) in rewritten.refs(self.store)? {
            // Refs to the snapshots of this operation are changed below.
            if self.refs.of(&name).is_none() {
                self.move_ref(name, to)?;
            }
        }
        let mut new_ids = rewritten.rewritten_ids();
        self.rename(&new_ids);
        let mut became: HashMap<_, _> = new_ids.iter().copied().collect();
        for n in 0..self.snapshots.made.len() {
            let mut commit = self.snapshots.made[n].commit.clone();
            let parents = commit.parents.iter().map(|id| became.get(id).copied().unwrap_or(*id));
            let parents: Vec<_> = parents.collect();
            if parents == commit.parents {
                continue;
            }
            commit.parents = parents;
            let snapshot = self.add_commit(&commit)?;
            let made = &mut self.snapshots.made[n];
            let (old, new) = (made.snapshot.id.0, snapshot.id.0);
            (made.snapshot, made.commit) = (snapshot, commit);
            became.insert(old, new);
            new_ids.push((old, new));
            let moves = self.refs.since_mut(0).filter(|change| change.after == Some(old));
            moves.for_each(|change| change.after = Some(new));
        }
        Ok(new_ids)
    }
}
