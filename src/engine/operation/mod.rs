//! One command's effect as one unit: new objects, the log, the refs, the files of the library.
//!
//! Plan: what is to be stored and written is put together here, and nothing of it can be seen. Commit: the pack, the log, the refs, in this
//! order. Apply: the files. From the log on it can be interrupted anywhere: whoever takes the lock next finishes it ([`recover`]), by the
//! same code that writes the files here ([`apply`]). If a file cannot be written, all of it is taken back.

mod alarms;
mod apply;
pub(crate) mod attachment_limit;
mod end_state;
pub mod files;
pub mod log;
pub(crate) mod marks;
pub(crate) mod missing_attachments;
mod recover;
mod steps;
mod take_attachments;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::{Error, Result, Workspace, known_folders};
use crate::archive::{
    self, Folders, Kind, NewSnapshot, Snapshot, SnapshotId, State, Unwritten, Written,
    WrittenFiles, branch,
};
use crate::auto_recap::CheckpointState;
use crate::history::name_lookup;
use crate::history::origin::{Origin, without_blank_end};
use crate::history::rewrite_history::Rewritten;
use crate::parallel::both_if;
use crate::st::{self, LibraryPath, TimelineName};
use crate::store::{
    Effect, Kind as ObjectKind, NewCommit, ObjectId, PackWriter, RefChange, RefName, Sequence,
    Store, Time, Transacted, TreeEntry, commit,
};
pub(crate) use apply::{FileStep, bytes_of, is_lost};
pub(crate) use end_state::Ending;
pub(crate) use files::actions_of;
pub(crate) use recover::Held;
pub use recover::finish_interrupted;
use steps::Steps;

/// What a new snapshot follows.
#[derive(Default)]
pub(crate) struct Follows {
    parent: Option<SnapshotId>,
    /// Another one, which was joined with it.
    joined: Option<SnapshotId>,
    tree: Option<ObjectId>,
    fork_at: Option<u64>,
    renamed_from: Option<TimelineName>,
    /// Where its state comes from, if not from the timeline's own files.
    source: Option<String>,
    /// The position of the snapshot it follows in the order of creation.
    after: Option<Sequence>,
}

impl Follows {
    /// The snapshot before it in its own timeline.
    pub(crate) fn previous(head: Snapshot) -> Self {
        let (parent, tree) = (Some(head.id), Some(head.tree));
        Self { parent, tree, after: Some(head.sequence), ..Self::default() }
    }

    /// The same with what another device made of it.
    pub(crate) fn joined(head: Snapshot, with: Option<SnapshotId>) -> Self {
        Self { joined: with, ..Self::previous(head) }
    }

    /// The snapshot that a timeline of its own begins with, all of which is in `state`. As everywhere, lines are counted, also blank ones between messages.
    pub(crate) fn copy(from: &Snapshot, state: &State<'_>) -> Self {
        Self::fork(from, without_blank_end(&state.chat.messages).len() as u64)
    }

    /// The snapshot that a timeline of its own begins with.
    pub(crate) fn fork(from: &Snapshot, shared: u64) -> Self {
        Self {
            parent: Some(from.id),
            tree: Some(from.tree),
            fork_at: Some(shared),
            after: Some(from.sequence),
            ..Self::default()
        }
    }

    /// The same, with a stored snapshot that is nearer to it than the one it follows.
    fn alike(self, other: Option<&Snapshot>) -> Self {
        Self { tree: other.map(|other| other.tree).or(self.tree), ..self }
    }

    /// The same, where its state comes from elsewhere.
    pub(crate) fn taken_from(self, source: String) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Where a new chat comes from.
    pub(crate) fn origin(origin: Origin) -> Self {
        match origin {
            Origin::None => Self::default(),
            Origin::Fork { id, tree, shared } => Self {
                parent: Some(id),
                tree: Some(tree),
                fork_at: Some(shared as u64),
                ..Self::default()
            },
        }
    }

    /// The newest snapshot of a timeline that has another name now.
    pub(crate) fn renamed(from: Snapshot) -> Self {
        let renamed_from = Some(from.timeline.clone());
        Self { renamed_from, ..Self::previous(from) }
    }

    /// The snapshot it follows, if that already is this state.
    pub(crate) fn same_as(&self, state: &State<'_>, store: &Store) -> Result<Option<Snapshot>> {
        let Some(parent) = self.parent else { return Ok(None) };
        let parent = name_lookup::find(store, parent)?;
        Ok(parent.filter(|parent| parent.content == state.manifest.content))
    }
}

/// A state whose files are in the pack.
pub(crate) struct StoredState {
    files: WrittenFiles,
    about: AboutState,
}

/// What its snapshot tells of a state, read from its files.
pub(crate) struct AboutState {
    new: NewSnapshot<'static>,
    /// The files that its chat names.
    attachments: BTreeSet<LibraryPath>,
}

impl AboutState {
    pub(crate) fn read(state: &State<'_>, kind: Kind, time: Time) -> Self {
        let attachments = st::attachments(&state.chat, state.files.metadata(&state.chat));
        Self { new: NewSnapshot::of(state, kind, time), attachments }
    }
}

impl StoredState {
    /// What it says of the state of ST-Auto-Recap.
    pub(crate) fn checkpoint(&self) -> Option<&CheckpointState> {
        self.about.new.manifest.checkpoint.as_ref()
    }
}

/// One command's effect, in the making.
pub(crate) struct Operation<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    pub(crate) pack: PackWriter,
    moves: BTreeMap<RefName, RefChange>,
    /// What `moves` had before each change of it, for [`back_to`](Self::back_to).
    former_moves: Vec<(RefName, Option<RefChange>)>,
    pub(crate) message: Option<String>,
    /// The snapshots that branches will lead to.
    made: Vec<(Snapshot, NewCommit)>,
    folders: Vec<(TimelineName, Folders)>,
    renamed: Vec<(ObjectId, ObjectId)>,
    /// The library, if files of it are written, and these.
    root: Option<PathBuf>,
    steps: Steps<'a>,
    /// Whether SillyTavern runs there, once it was looked for.
    running: Option<st::Running>,
    /// Bytes that no snapshot has, and why they are kept.
    kept: Vec<TreeEntry>,
    why: String,
    undoes: Option<u64>,
    undoes_also: Vec<u64>,
    attachments: take_attachments::Attaching,
    /// The positions of its snapshots in the order of creation, first and last, once there is one.
    sequence: Option<(Sequence, Sequence)>,
}

impl<'a> Operation<'a> {
    pub(crate) fn new(workspace: &'a Workspace, store: &'a Store, message: Option<&str>) -> Self {
        Self {
            workspace,
            store,
            pack: store.pack_writer(),
            moves: BTreeMap::new(),
            former_moves: Vec::new(),
            message: message.map(str::to_owned),
            made: Vec::new(),
            folders: Vec::new(),
            renamed: Vec::new(),
            root: None,
            steps: Steps::default(),
            running: None,
            kept: Vec::new(),
            why: String::new(),
            undoes: None,
            undoes_also: Vec::new(),
            attachments: take_attachments::Attaching::default(),
            sequence: None,
        }
    }

    /// It takes back the operation of that number, and other parts of the same command.
    pub(crate) fn undoes(&mut self, number: u64, others: Vec<u64>) {
        (self.undoes, self.undoes_also) = (Some(number), others);
    }

    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// What snapshots from now on are called.
    pub(crate) fn say(&mut self, message: &str) {
        self.message = Some(message.to_owned());
    }

    /// When its snapshots are taken.
    pub(crate) fn time(&self) -> Time {
        self.workspace.time()
    }

    /// Returns the local date, for names that are derived from others.
    pub(crate) fn day(&self) -> String {
        self.workspace.day()
    }

    /// Store a timeline's state and move its branch there. A renamed timeline leaves its old branch.
    pub(crate) fn take(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: Follows,
    ) -> Result<Snapshot> {
        Ok(self.take_beside(state, kind, follows, |_| ())?.0)
    }

    /// The same, while somebody looks at the messages that can be new, at the same time; the snapshot and what was seen.
    pub(crate) fn take_beside<R: Send>(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: Follows,
        look: impl FnOnce(&[Range<usize>]) -> R + Send,
    ) -> Result<(Snapshot, R)> {
        let (stored, seen) = self.store_state(state, kind, &follows, look)?;
        Ok((self.lead_to(stored, follows)?, seen))
    }

    /// Let a timeline's branch lead to a state that is stored; otherwise like [`take`](Self::take).
    pub(crate) fn lead_to(&mut self, stored: StoredState, follows: Follows) -> Result<Snapshot> {
        let old = follows.renamed_from.clone();
        let parents = [follows.parent, follows.joined];
        let (snapshot, written, commit) = self.complete(stored, follows)?;
        let timeline = &snapshot.timeline;
        if !written.folders.is_empty() {
            self.folders.push((timeline.clone(), written.folders));
        }
        // A branch that is led elsewhere must not take its history with it.
        if let Some(former) = self.target(&branch(timeline))?
            && !parents.contains(&Some(SnapshotId(former)))
            && old.is_none()
        {
            self.move_ref(RefName::kept(former), SnapshotId(former))?;
        }
        self.move_ref(branch(timeline), snapshot.id)?;
        if let Some(old) = old.map(|old| branch(&old)) {
            // Another timeline may have taken the name.
            let target = self.target(&old)?.map(SnapshotId);
            if parents.contains(&target) {
                self.drop_ref(old)?;
            }
        }
        self.made.push((snapshot.clone(), commit));
        Ok(snapshot)
    }

    /// Store a state; no branch moves.
    pub(crate) fn commit(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: Follows,
    ) -> Result<Snapshot> {
        let (stored, ()) = self.store_state(state, kind, &follows, |_| ())?;
        let (snapshot, ..) = self.complete(stored, follows)?;
        Ok(snapshot)
    }

    /// Store the files of a state that is like the one it follows.
    fn store_state<R: Send>(
        &mut self,
        state: &State<'_>,
        kind: Kind,
        follows: &Follows,
        look: impl FnOnce(&[Range<usize>]) -> R + Send,
    ) -> Result<(StoredState, R)> {
        let (reader, time) = (self.store.reader(), self.time());
        let known = follows.renamed_from.as_ref().unwrap_or(state.timeline());
        let known = known_folders::load(self.store, known);
        let unwritten = Unwritten::of(state, &self.pack, &reader, follows.tree, &known);
        let new = unwritten.new_messages();
        let (files, (about, seen)) = both_if(
            state.is_long(),
            || unwritten.write(&mut self.pack, &reader),
            || (AboutState::read(state, kind, time), look(&new)),
        );
        Ok((StoredState { files: files?, about }, seen))
    }

    /// Store the files of many states, each of which is like nothing that is stored. What they follow can be found out afterwards.
    pub(crate) fn store_states(
        &mut self,
        states: &[State<'_>],
        about: Vec<AboutState>,
    ) -> Result<Vec<StoredState>> {
        let files = archive::write_many(states, &mut self.pack, &self.store.reader())?;
        let stored = files.into_iter().zip(about);
        Ok(stored.map(|(files, about)| StoredState { files, about }).collect())
    }

    /// Make a snapshot of a state that is stored.
    fn complete(
        &mut self,
        stored: StoredState,
        follows: Follows,
    ) -> Result<(Snapshot, Written, NewCommit)> {
        let StoredState { files, about: AboutState { new, attachments } } = stored;
        let attached = self.attached(attachments, follows.tree, &self.store.reader())?;
        let written = files.complete(&new.manifest, &attached, &mut self.pack)?;
        let sequence = self.sequence_after(follows.after, new.time)?;
        let new = NewSnapshot {
            parent: follows.parent,
            joined: follows.joined,
            fork_at: follows.fork_at,
            renamed_from: follows.renamed_from,
            message: self.message.as_deref(),
            source: follows.source,
            sequence,
            ..new
        };
        let commit = new.commit(written.tree);
        let snapshot = self.add_commit(&commit)?;
        Ok((snapshot, written, commit))
    }

    /// Returns the position in the order of creation of a snapshot that follows another. All of one operation have the same, unless one follows another of them or one
    /// from a device whose clock is ahead.
    fn sequence_after(&mut self, parent: Option<Sequence>, time: Time) -> Result<Sequence> {
        let (first, last) = match self.sequence {
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
        self.sequence = Some((first, last.max(sequence)));
        Ok(sequence)
    }

    fn add_commit(&mut self, commit: &NewCommit) -> Result<Snapshot> {
        let bytes = commit::encode(commit);
        let id = self.pack.add(ObjectKind::Commit, &bytes)?;
        Ok(Snapshot::read(&commit::decode(id, &bytes)?)?)
    }

    /// Returns what a ref leads to with the changes of this operation.
    fn target(&self, name: &RefName) -> Result<Option<ObjectId>> {
        match self.moves.get(name) {
            Some(change) => Ok(change.after),
            None => Ok(self.store.ref_target(name)?),
        }
    }

    /// Where this command leads a ref, if it does.
    pub(crate) fn moves_to(&self, name: &RefName) -> Option<ObjectId> {
        self.moves.get(name)?.after
    }

    /// How many branches go.
    pub(crate) fn dropped_branches(&self) -> usize {
        let goes = |change: &&RefChange| change.before.is_some() && change.after.is_none();
        self.moves.values().filter(goes).filter(|change| change.name.is_branch()).count()
    }

    /// Remember that commits were written anew: old and new id.
    pub(crate) fn rename(&mut self, ids: &[(ObjectId, ObjectId)]) {
        self.renamed.extend_from_slice(ids);
    }

    /// Lead every branch and tag to what its snapshot became; the former ids still name it. What has another id now: old and new.
    pub(crate) fn follow(&mut self, rewritten: &Rewritten) -> Result<Vec<(ObjectId, ObjectId)>> {
        for (name, to) in rewritten.refs(self.store)? {
            // What this operation takes itself follows below.
            if !self.moves.contains_key(&name) {
                self.move_ref(name, to)?;
            }
        }
        let mut anew = rewritten.anew();
        self.rename(&anew);
        let mut became: HashMap<_, _> = anew.iter().copied().collect();
        for n in 0..self.made.len() {
            let mut commit = self.made[n].1.clone();
            let parents = commit.parents.iter().map(|id| became.get(id).copied().unwrap_or(*id));
            let parents: Vec<_> = parents.collect();
            if parents == commit.parents {
                continue;
            }
            commit.parents = parents;
            let (old, snapshot) = (self.made[n].0.id.0, self.add_commit(&commit)?);
            became.insert(old, snapshot.id.0);
            anew.push((old, snapshot.id.0));
            let moves = self.moves.values_mut().filter(|change| change.after == Some(old));
            moves.for_each(|change| change.after = Some(snapshot.id.0));
            self.made[n] = (snapshot, commit);
        }
        Ok(anew)
    }

    /// Let a branch or tag name a snapshot.
    pub(crate) fn move_ref(&mut self, name: RefName, to: SnapshotId) -> Result<()> {
        self.change_ref(name, Some(to.0))
    }

    /// Take a branch or tag away.
    pub(crate) fn drop_ref(&mut self, name: RefName) -> Result<()> {
        self.change_ref(name, None)
    }

    fn change_ref(&mut self, name: RefName, after: Option<ObjectId>) -> Result<()> {
        let before = self.store.ref_target(&name)?;
        let former =
            self.moves.insert(name.clone(), RefChange { name: name.clone(), before, after });
        self.former_moves.push((name, former));
        Ok(())
    }

    /// Returns the point that [`back_to`](Self::back_to) goes back to.
    pub(crate) fn point(&self) -> Point {
        Point {
            moves: self.former_moves.len(),
            made: self.made.len(),
            folders: self.folders.len(),
            steps: self.steps.len(),
            kept: self.kept.len(),
        }
    }

    /// Drops all that was planned since a point. Objects that were stored since stay in the pack, where nothing leads to them.
    pub(crate) fn back_to(&mut self, point: &Point) {
        while self.former_moves.len() > point.moves {
            let Some((name, former)) = self.former_moves.pop() else { break };
            match former {
                Some(former) => self.moves.insert(name, former),
                None => self.moves.remove(&name),
            };
        }
        self.made.truncate(point.made);
        self.folders.truncate(point.folders);
        self.steps.truncate(point.steps);
        self.kept.truncate(point.kept);
    }

    /// Make it so: the pack, the log, the refs, the files, in this order. Nothing is done if a file was saved since it was looked at.
    ///
    /// A file that somebody saved in the last moment is left as it is, and named in the error when all else is done.
    pub(crate) fn finish(self, held: &Held) -> Result<Done> {
        if let Some(root) = &self.root {
            still_as_planned(root, self.steps.iter())?;
        }
        self.finish_leaving_saved(held)
    }

    /// Does what [`finish`](Self::finish) does, and also leaves files as they are that were saved since they were looked at: for commands that
    /// plan so many files that one of them may well be.
    pub(crate) fn finish_leaving_saved(mut self, held: &Held) -> Result<Done> {
        self.keep_the_rest()?;
        let (objects, bytes) = (self.pack.objects(), self.pack.bytes());
        let (store, lock) = (self.store, &held.lock);
        self.pack.finish()?;
        store.remember_ids(lock, &self.renamed)?;
        store.remember_own_attachments(lock, self.attachments.own())?;
        let sequence = last_sequence(store, self.sequence, &self.made, &self.moves)?;
        let steps = self.steps.into_list();
        let effect = Effect {
            refs: self.moves.into_values().collect(),
            files: steps.iter().map(|step| step.change.clone()).collect(),
            library: self.root.as_ref().and_then(|root| recover::name_of_library(store, root)),
            undoes: self.undoes,
            undoes_also: self.undoes_also,
            finishes: None,
            continues: self.workspace.command.last_in(store),
            automatic: self.workspace.automatic,
            sequence,
        };
        let (number, operation) = match store.transact(lock, self.workspace.timestamp(), effect)? {
            Transacted::Nothing => (None, None),
            Transacted::Done(number) => (Some(number), None),
            Transacted::FilesToWrite(operation) => (Some(operation.number), Some(operation)),
        };
        known_folders::save(store, &self.folders);
        let done = Done { objects, bytes, number };
        let note =
            || number.into_iter().for_each(|number| self.workspace.command.logged(store, number));
        let (Some(operation), Some(root)) = (operation, self.root) else {
            note();
            return Ok(done);
        };
        let left = match apply::apply(store, &root, &steps) {
            Ok(left) => left,
            Err(error) => {
                return Err(match apply::take_back(store, &root, &operation, &steps) {
                    Ok(()) => Error::TakenBack { source: Box::new(error) },
                    Err(_) => Error::Unfinished { source: Box::new(error) },
                });
            }
        };
        apply::settle(self.workspace, store, lock, &operation, &left, false)?;
        note();
        let written =
            steps.iter().filter(|step| step.after.is_some() && !left.contains(&step.path));
        let written = written.filter_map(|step| TimelineName::of_file(&step.path));
        Cache::load(store).note_written(store, &root, written);
        if left.is_empty() {
            return Ok(done);
        }
        let others = steps.len() - left.len();
        Err(Error::LeftAlone { paths: left.iter().map(ToString::to_string).collect(), others })
    }
}

/// What an operation wrote.
pub(crate) struct Done {
    /// How many objects the store got.
    pub objects: usize,
    /// How long they are.
    pub bytes: u64,
    /// The number of the operation; `None` if there was nothing to do.
    pub number: Option<u64>,
}

/// How much of an operation was planned.
pub(crate) struct Point {
    moves: usize,
    made: usize,
    folders: usize,
    steps: usize,
    kept: usize,
}

/// Returns the last position in the order of creation of what an operation's refs lead to. Snapshots from a device whose clock is ahead count, so that whatever is created here
/// from now on comes after them.
fn last_sequence(
    store: &Store,
    own: Option<(Sequence, Sequence)>,
    made: &[(Snapshot, NewCommit)],
    moves: &BTreeMap<RefName, RefChange>,
) -> Result<Option<Sequence>> {
    let mut last = own.map(|(_, last)| last);
    let made: HashSet<_> = made.iter().map(|(snapshot, _)| snapshot.id.0).collect();
    let reader = store.reader();
    for id in moves.values().filter_map(|change| change.after).filter(|id| !made.contains(id)) {
        let came = name_lookup::find_with(&reader, SnapshotId(id))?;
        last = last.max(came.map(|came| came.sequence));
    }
    Ok(last)
}

/// Whether everything still is as it was when it was looked at: SillyTavern may have saved since, and then nothing has happened yet.
fn still_as_planned<'s>(
    root: &Path,
    steps: impl Iterator<Item = &'s apply::FileStep<'s>>,
) -> Result<()> {
    for step in steps {
        let now = st::Fingerprint::of_file(root, &step.path)?;
        if now != step.before && now != step.after {
            return Err(st::Error::SavedMeanwhile { path: step.path.under(root) }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_to_restores_every_ref_change_of_the_point() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store")).unwrap();
        let workspace = Workspace::at(folder.path(), "stvc");
        let mut operation = Operation::new(&workspace, &store, None);
        let [a, b] = ["a", "b"].map(|name| RefName::branch([name]));
        let id = |byte: u8| SnapshotId(ObjectId::from([byte; 20]));
        operation.move_ref(a.clone(), id(1)).unwrap();
        let point = operation.point();
        operation.move_ref(a.clone(), id(2)).unwrap();
        operation.move_ref(b.clone(), id(3)).unwrap();
        operation.move_ref(b.clone(), id(4)).unwrap();
        operation.back_to(&point);
        assert_eq!(operation.moves_to(&a), Some(id(1).0));
        assert_eq!(operation.moves_to(&b), None);
        operation.back_to(&point);
        assert_eq!(operation.moves_to(&a), Some(id(1).0));
    }
}
