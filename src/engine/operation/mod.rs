//! One command's effect as one unit: new objects, the log, the refs, the files of the library.
//!
//! Plan: everything is put together here, invisibly. Commit: the pack, the log, the refs, in this
//! order. Apply: the files. From the log on it can be interrupted anywhere: whoever takes the lock
//! next finishes it ([`recover`]), by the same code that writes the files here ([`apply`]). If a file
//! cannot be written, all of it is undone.

mod alarms;
mod apply;
pub(crate) mod attachment_limit;
mod end_state;
pub mod files;
mod follows;
mod journal;
pub mod log;
pub(crate) mod marks;
pub(crate) mod missing_attachments;
mod new_snapshots;
mod recover;
mod take_attachments;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::cache::Cache;
use super::{Error, Result, Workspace, known_folders};
use crate::archive::{Attachment, Folders, Snapshot, SnapshotId};
use crate::st::{self, Fingerprint, LibraryPath, Running, TimelineName};
use crate::store::{
    Effect, NewCommit, ObjectId, PackWriter, RefChange, RefName, Sequence, Store, Time, Transacted,
    TreeEntry,
};
use apply::Finisher;
use journal::Journal;

pub(crate) use apply::{FileStep, bytes_of, is_lost};
pub(crate) use end_state::FinalSnapshot;
pub(crate) use files::actions_of;
pub(crate) use follows::Follows;
pub(crate) use new_snapshots::{AboutState, StoredState};
pub(crate) use recover::Held;
pub use recover::finish_interrupted;

pub(crate) struct Operation<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    pub(crate) pack: PackWriter,
    /// The message of its next snapshots.
    pub(crate) message: Option<String>,
    refs: Journal<RefChange>,
    files: FileChanges<'a>,
    snapshots: NewSnapshots,
    attachments: Attaching,
    /// The operations that it undoes: the last part of a command, then the parts before it.
    undoes: Vec<u64>,
}

#[derive(Default)]
struct FileChanges<'a> {
    /// The library, once a file is planned.
    root: Option<PathBuf>,
    steps: Journal<FileStep<'a>>,
    /// Whether SillyTavern runs, once looked for.
    running: Option<Running>,
    /// Bytes that no snapshot has, and the reason for keeping them.
    kept: Vec<TreeEntry>,
    why: String,
}

#[derive(Default)]
struct NewSnapshots {
    made: Vec<Made>,
    /// The first and last position in the order of creation.
    sequence: Option<(Sequence, Sequence)>,
    /// Former and new ids of rewritten commits.
    renamed: Vec<(ObjectId, ObjectId)>,
}

struct Made {
    snapshot: Snapshot,
    commit: NewCommit,
    folders: Folders,
}

#[derive(Default)]
struct Attaching {
    /// The library, once looked for.
    root: Option<Option<PathBuf>>,
    /// The bytes that may still be added, once counted.
    room: Option<u64>,
    read: HashMap<LibraryPath, Option<Attachment>>,
    /// Attachments of uncommon kinds that the library has, or that the user wants there.
    own: HashSet<ObjectId>,
    /// Those that the store knows as the library's own, once read.
    known_own: Option<HashSet<ObjectId>>,
    /// Attachments whose names belong to stvc.
    refused: BTreeSet<LibraryPath>,
    /// Attachments beyond the limit, and their lengths.
    left_out: BTreeMap<LibraryPath, u64>,
    unreadable: BTreeMap<LibraryPath, String>,
}

/// A position in a plan; by default its beginning.
#[derive(Default)]
pub(crate) struct Point {
    refs: usize,
    made: usize,
    steps: usize,
    kept: usize,
}

pub(crate) struct Done {
    pub objects: usize,
    pub bytes: u64,
    /// `None` if nothing was to be done.
    pub number: Option<u64>,
}

impl<'a> Operation<'a> {
    pub(crate) fn new(workspace: &'a Workspace, store: &'a Store, message: Option<&str>) -> Self {
        Self {
            workspace,
            store,
            pack: store.pack_writer(),
            message: message.map(str::to_owned),
            refs: Journal::default(),
            files: FileChanges::default(),
            snapshots: NewSnapshots::default(),
            attachments: Attaching::default(),
            undoes: Vec::new(),
        }
    }

    pub(crate) fn undoes(&mut self, number: u64, others: &[u64]) {
        self.undoes = [&[number], others].concat();
    }

    pub(crate) fn time(&self) -> Time {
        self.workspace.time()
    }

    pub(crate) fn day(&self) -> String {
        self.workspace.day()
    }

    fn target(&self, name: &RefName) -> Result<Option<ObjectId>> {
        match self.refs.of(name) {
            Some(change) => Ok(change.after),
            None => Ok(self.store.ref_target(name)?),
        }
    }

    pub(crate) fn moves_to(&self, name: &RefName) -> Option<ObjectId> {
        self.refs.of(name)?.after
    }

    pub(crate) fn dropped_branches(&self) -> usize {
        let goes = |change: &&RefChange| change.before.is_some() && change.after.is_none();
        self.refs.since(0).filter(goes).filter(|change| change.name.is_branch()).count()
    }

    pub(crate) fn move_ref(&mut self, name: RefName, to: SnapshotId) -> Result<()> {
        self.change_ref(name, Some(to.0))
    }

    pub(crate) fn drop_ref(&mut self, name: RefName) -> Result<()> {
        self.change_ref(name, None)
    }

    fn change_ref(&mut self, name: RefName, after: Option<ObjectId>) -> Result<()> {
        let before = self.store.ref_target(&name)?;
        self.refs.push(RefChange { name, before, after });
        Ok(())
    }

    pub(crate) fn point(&self) -> Point {
        Point {
            refs: self.refs.len(),
            made: self.snapshots.made.len(),
            steps: self.files.steps.len(),
            kept: self.files.kept.len(),
        }
    }

    /// Drops everything planned since a point. Stored objects stay in the pack, unreachable.
    pub(crate) fn back_to(&mut self, point: &Point) {
        self.refs.truncate(point.refs);
        self.snapshots.made.truncate(point.made);
        self.files.steps.truncate(point.steps);
        self.files.kept.truncate(point.kept);
    }

    /// Carries out the plan. Does nothing if a file was saved since it was planned.
    ///
    /// A file that another program saves at the last moment is left as it is, and named in the error
    /// when all else is done.
    pub(crate) fn finish(self, held: &Held) -> Result<Done> {
        if let Some(root) = &self.files.root {
            for step in self.files.steps.since(0) {
                let now = Fingerprint::of_file(root, &step.path)?;
                if now != step.before && now != step.after {
                    return Err(st::Error::SavedMeanwhile { path: step.path.under(root) }.into());
                }
            }
        }
        self.finish_leaving_saved(held)
    }

    /// Carries out the plan, except for files that were saved since: for commands with so many files
    /// that this is likely.
    pub(crate) fn finish_leaving_saved(mut self, held: &Held) -> Result<Done> {
        self.keep_the_rest()?;
        let (objects, bytes) = (self.pack.objects(), self.pack.bytes());
        let (store, lock) = (self.store, &held.lock);
        self.pack.finish()?;
        store.remember_ids(lock, &self.snapshots.renamed)?;
        store.remember_own_attachments(lock, &self.attachments.own)?;
        let (mut refs, steps) = (self.refs.into_list(), self.files.steps.into_list());
        refs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut undoes = self.undoes.into_iter();
        let root = self.files.root;
        let effect = Effect {
            sequence: self.snapshots.last_sequence(store, &refs)?,
            refs,
            files: steps.iter().map(|step| step.change.clone()).collect(),
            library: root.as_ref().and_then(|root| recover::name_of_library(store, root)),
            undoes: undoes.next(),
            undoes_also: undoes.collect(),
            finishes: None,
            continues: self.workspace.command.last_in(store),
            automatic: self.workspace.automatic,
        };
        let (number, operation) = match store.transact(lock, self.workspace.timestamp(), effect)? {
            Transacted::Nothing => (None, None),
            Transacted::Done(number) => (Some(number), None),
            Transacted::FilesToWrite(operation) => (Some(operation.number), Some(operation)),
        };
        let folders = self.snapshots.made.into_iter().filter(|made| !made.folders.is_empty());
        let folders = folders.map(|made| (made.snapshot.timeline, made.folders));
        known_folders::save(store, &folders.collect::<Vec<_>>());
        let mut left = Vec::new();
        if let (Some(operation), Some(root)) = (operation, &root) {
            left = apply::apply(store, root, &steps).map_err(|error| {
                match apply::take_back(store, root, &operation, &steps) {
                    Ok(()) => Error::TakenBack { source: Box::new(error) },
                    Err(_) => Error::Unfinished { source: Box::new(error) },
                }
            })?;
            apply::settle(self.workspace, store, lock, &operation, &left, Finisher::Command)?;
            let written =
                steps.iter().filter(|step| step.after.is_some() && !left.contains(&step.path));
            let written = written.filter_map(|step| TimelineName::of_file(&step.path));
            Cache::load(store).note_written(store, root, written);
        }
        number.into_iter().for_each(|number| self.workspace.command.logged(store, number));
        if left.is_empty() {
            return Ok(Done { objects, bytes, number });
        }
        let others = steps.len() - left.len();
        Err(Error::LeftAlone { paths: left.iter().map(ToString::to_string).collect(), others })
    }
}
