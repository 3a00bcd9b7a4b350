//! An operation: the effect of one command as a transaction of new objects, the log, the refs and
//! the files of the library.
//!
//! An operation has three phases. Plan: collect all changes in memory. Commit: write the pack, the
//! log and the refs, in this order. Apply: write the files. If an operation is interrupted after
//! the log was written, the next command that takes the lock finishes the operation ([`recover`]),
//! with the same code that normally writes the files ([`apply`]). If a file cannot be written, the
//! entire operation is reverted.

mod alarms;
mod apply;
pub(crate) mod attachment_limit;
pub mod content_preview;
mod end_state;
pub mod files;
pub(crate) mod integrity;
mod journal;
pub mod log;
pub(crate) mod missing_attachments;
mod new_snapshots;
mod recover;
mod snapshot_parents;
mod take_attachments;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::cache::Cache;
use super::{Error, Result, Workspace, known_folders};
use crate::archive::{Attachment, Folders, Snapshot, SnapshotId};
use crate::st::{self, Fingerprint, LibraryPath, Running, TimelineName};
use crate::store::{
    Effect, NewCommit, ObjectId, PackWriter, RefChange, RefName, Sequence, Store,
    TransactionResult, TreeEntry,
};
use apply::Finisher;
use journal::Journal;

pub(crate) use apply::{FileStep, bytes_of, is_lost};
pub(crate) use end_state::FinalSnapshot;
pub(crate) use files::actions_of;
pub(crate) use new_snapshots::{SnapshotDraft, StoredState};
pub(crate) use recover::{HeldLock, RunMode};
pub use recover::{finish_interrupted, has_unfinished};
pub(crate) use snapshot_parents::SnapshotParents;

pub(crate) struct Operation<'a> {
    pub(crate) workspace: &'a Workspace,
    store: &'a Store,
    pub(crate) pack: PackWriter,
    /// The message of the snapshots that are created next.
    pub(crate) message: Option<String>,
    refs: Journal<RefChange>,
    files: FileChanges<'a>,
    snapshots: NewSnapshots,
    attachments: AttachmentReader,
    /// The numbers of the operations that this operation undoes: the last operation of a command,
    /// then the earlier operations of the same command.
    undoes: Vec<u64>,
}

#[derive(Default)]
struct FileChanges<'a> {
    /// The folder of the library; `None` until a file is planned.
    root: Option<PathBuf>,
    steps: Journal<FileStep<'a>>,
    /// Whether SillyTavern is running; `None` until this is checked.
    running: Option<Running>,
    /// Blobs with content that no snapshot has. A commit under `refs/stvc/kept/` keeps them
    /// reachable.
    kept: Vec<TreeEntry>,
    /// The subject of the commit that contains `kept`.
    why: String,
}

#[derive(Default)]
struct NewSnapshots {
    made: Vec<PlannedSnapshot>,
    /// The first and last position of the new snapshots in the order of creation.
    sequence: Option<(Sequence, Sequence)>,
    /// Former and new ids of rewritten commits.
    renamed: Vec<(ObjectId, ObjectId)>,
}

struct PlannedSnapshot {
    snapshot: Snapshot,
    commit: NewCommit,
    folders: Folders,
}

#[derive(Default)]
struct AttachmentReader {
    /// The folder of the library. The outer `None` means that the library was not looked for yet,
    /// the inner `None` that there is no library.
    root: Option<Option<PathBuf>>,
    /// The number of bytes that may still be stored; `None` until this is counted.
    room: Option<u64>,
    read: HashMap<LibraryPath, Option<Attachment>>,
    /// Blobs of attachments of uncommon file types that the library has, or that the user asked to
    /// restore.
    own: HashSet<ObjectId>,
    /// Blobs of attachments that the store already records as files of this library; `None` until
    /// the record is read.
    known_own: Option<HashSet<ObjectId>>,
    /// Paths of attachments whose names are reserved for stvc.
    refused: BTreeSet<LibraryPath>,
    /// Attachments that exceed the size limit, and their lengths in bytes.
    left_out: BTreeMap<LibraryPath, u64>,
    unreadable: BTreeMap<LibraryPath, String>,
}

/// A position in the plan of an operation. The default is the beginning of the plan.
#[derive(Default)]
pub(crate) struct PlanPosition {
    refs: usize,
    made: usize,
    steps: usize,
    kept: usize,
}

pub(crate) struct OperationResult {
    pub objects: usize,
    pub bytes: u64,
    /// The number of the operation in the log; `None` if there was nothing to do.
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
            attachments: AttachmentReader::default(),
            undoes: Vec::new(),
        }
    }

    pub(crate) fn undoes(&mut self, number: u64, others: &[u64]) {
        self.undoes = [&[number], others].concat();
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

    pub(crate) fn point(&self) -> PlanPosition {
        PlanPosition {
            refs: self.refs.len(),
            made: self.snapshots.made.len(),
            steps: self.files.steps.len(),
            kept: self.files.kept.len(),
        }
    }

    /// Drops everything that was planned after the position `point`. Objects that were added to the
    /// pack stay there, unreachable.
    pub(crate) fn back_to(&mut self, point: &PlanPosition) {
        self.refs.truncate(point.refs);
        self.snapshots.made.truncate(point.made);
        self.files.steps.truncate(point.steps);
        self.files.kept.truncate(point.kept);
    }

    /// Carries out the plan. Fails without changing anything if another program saved a file after
    /// the file was planned.
    ///
    /// If another program saves a file only after this check, the file is not written. All other
    /// changes are made, and [`Error::SavedByOther`] names the file.
    pub(crate) fn finish(self, held: &HeldLock) -> Result<OperationResult> {
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

    /// Carries out the plan, except for files that another program saved after they were planned.
    /// For commands that write many files, where such a save is likely.
    pub(crate) fn finish_leaving_saved(mut self, held: &HeldLock) -> Result<OperationResult> {
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
            TransactionResult::Nothing => (None, None),
            TransactionResult::Done(number) => (Some(number), None),
            TransactionResult::FilesToWrite(operation) => (Some(operation.number), Some(operation)),
        };
        let folders = self.snapshots.made.into_iter().filter(|made| !made.folders.is_empty());
        let folders = folders.map(|made| (made.snapshot.timeline, made.folders));
        known_folders::save(store, &folders.collect::<Vec<_>>());
        let mut left = Vec::new();
        if let (Some(operation), Some(root)) = (operation, &root) {
            left = apply::apply(store, root, &steps).map_err(|error| {
                match apply::take_back(store, root, &operation, &steps) {
                    Ok(()) => Error::Reverted { source: Box::new(error) },
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
            return Ok(OperationResult { objects, bytes, number });
        }
        let others = steps.len() - left.len();
        Err(Error::SavedByOther { paths: left.iter().map(ToString::to_string).collect(), others })
    }
}
