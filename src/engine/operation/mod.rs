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
mod finish;
mod follows;
mod journal;
pub mod log;
pub(crate) mod marks;
pub(crate) mod missing_attachments;
mod new_snapshots;
mod planned_changes;
mod recover;
mod take_attachments;

use super::{Result, Workspace};
use crate::archive::SnapshotId;
use crate::store::{ObjectId, PackWriter, RefChange, RefName, Store, Time};
use journal::Journal;
use planned_changes::{Attaching, FileChanges, NewSnapshots};

pub(crate) use apply::{FileStep, bytes_of, is_lost};
pub(crate) use end_state::Ending;
pub(crate) use files::actions_of;
pub(crate) use finish::Done;
pub(crate) use follows::Follows;
pub(crate) use new_snapshots::{AboutState, StoredState};
pub(crate) use recover::Held;
pub use recover::finish_interrupted;

/// One command's effect, in the making.
pub(crate) struct Operation<'a> {
    workspace: &'a Workspace,
    store: &'a Store,
    pub(crate) pack: PackWriter,
    /// What its snapshots are called from now on.
    pub(crate) message: Option<String>,
    refs: Journal<RefChange>,
    files: FileChanges<'a>,
    snapshots: NewSnapshots,
    attachments: Attaching,
    /// The operations that it takes back: the last part of a command, then the parts before it.
    undoes: Vec<u64>,
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

    /// It takes back the operation of that number, and other parts of the same command.
    pub(crate) fn undoes(&mut self, number: u64, others: &[u64]) {
        self.undoes = [&[number], others].concat();
    }

    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// When its snapshots are taken.
    pub(crate) fn time(&self) -> Time {
        self.workspace.time()
    }

    /// Returns the local date, for names that are derived from others.
    pub(crate) fn day(&self) -> String {
        self.workspace.day()
    }

    /// Returns what a ref leads to with the changes of this operation.
    fn target(&self, name: &RefName) -> Result<Option<ObjectId>> {
        match self.refs.of(name) {
            Some(change) => Ok(change.after),
            None => Ok(self.store.ref_target(name)?),
        }
    }

    /// Where this command leads a ref, if it does.
    pub(crate) fn moves_to(&self, name: &RefName) -> Option<ObjectId> {
        self.refs.of(name)?.after
    }

    /// How many branches go.
    pub(crate) fn dropped_branches(&self) -> usize {
        let goes = |change: &&RefChange| change.before.is_some() && change.after.is_none();
        self.refs.since(0).filter(goes).filter(|change| change.name.is_branch()).count()
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
        self.refs.push(RefChange { name, before, after });
        Ok(())
    }

    /// Returns the point that [`back_to`](Self::back_to) goes back to.
    pub(crate) fn point(&self) -> Point {
        Point {
            refs: self.refs.len(),
            made: self.snapshots.made.len(),
            steps: self.files.steps.len(),
            kept: self.files.kept.len(),
        }
    }

    /// Drops all that was planned since a point. Objects that were stored since stay in the pack, where nothing leads to them.
    pub(crate) fn back_to(&mut self, point: &Point) {
        self.refs.truncate(point.refs);
        self.snapshots.made.truncate(point.made);
        self.files.steps.truncate(point.steps);
        self.files.kept.truncate(point.kept);
    }
}

/// How much of an operation was planned; by default nothing.
#[derive(Default)]
pub(crate) struct Point {
    refs: usize,
    made: usize,
    steps: usize,
    kept: usize,
}
