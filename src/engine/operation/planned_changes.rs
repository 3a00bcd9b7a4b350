//! What an operation has planned so far: files, snapshots and attachments.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::apply::FileStep;
use super::journal::Journal;
use crate::archive::{Attachment, Folders, Snapshot, SnapshotId};
use crate::engine::Result;
use crate::history::name_lookup;
use crate::st::{LibraryPath, Running};
use crate::store::{NewCommit, ObjectId, RefChange, Sequence, Store, TreeEntry};

/// The files of the library that an operation changes.
#[derive(Default)]
pub(super) struct FileChanges<'a> {
    /// The library, once a file is planned.
    pub root: Option<PathBuf>,
    pub steps: Journal<FileStep<'a>>,
    /// Whether SillyTavern runs there, once it was looked for.
    pub running: Option<Running>,
    /// Bytes that no snapshot has, and why they are kept.
    pub kept: Vec<TreeEntry>,
    pub why: String,
}

/// The snapshots that an operation has created so far.
#[derive(Default)]
pub(super) struct NewSnapshots {
    /// Those that branches will lead to.
    pub made: Vec<Made>,
    /// Their positions in the order of creation, first and last, once there is one.
    pub sequence: Option<(Sequence, Sequence)>,
    /// The former and new ids of commits that were written anew.
    pub renamed: Vec<(ObjectId, ObjectId)>,
}

/// A snapshot that a branch will lead to.
pub(super) struct Made {
    pub snapshot: Snapshot,
    pub commit: NewCommit,
    pub folders: Folders,
}

impl NewSnapshots {
    /// Returns the last position in the order of creation of what an operation's refs lead to. Snapshots from a device whose clock is ahead count, so that whatever is created here
    /// from now on comes after them.
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

/// The attachments that an operation has looked at.
#[derive(Default)]
pub(super) struct Attaching {
    pub root: Option<Option<PathBuf>>,
    /// How much may still be added, once it was counted.
    pub room: Option<u64>,
    /// Read in this command.
    pub read: HashMap<LibraryPath, Option<Attachment>>,
    /// Those of uncommon kinds that the library has, or that the user wants there.
    pub own: HashSet<ObjectId>,
    /// Those that the store knows to be the library's own, once somebody asked.
    pub known_own: Option<HashSet<ObjectId>>,
    /// Those whose names belong to stvc.
    pub refused: BTreeSet<LibraryPath>,
    /// What is too much, and how long it is.
    pub left_out: BTreeMap<LibraryPath, u64>,
    pub unreadable: BTreeMap<LibraryPath, String>,
}
