//! A moment to restore, and the files to write. The files are from one snapshot, or composed of
//! several.

use super::options::{Options, QueueChange, RestoreRange, Source};
use crate::archive::{Blake3, Contents, Role, Snapshot, SnapshotId};
use crate::auto_recap::{clear_queue, trim_queue};
use crate::engine::Workspace;
use crate::engine::operation::{HeldLock, Operation};
use crate::history::History;
use crate::history::state_then::StateThen;
use crate::st::{LibraryPath, TimelineFiles};
use crate::store::Store;

/// A moment to restore.
#[derive(Clone, Copy)]
pub(super) struct RestoreJob<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub history: &'a History,
    pub options: &'a Options,
    pub source: &'a Source,
    pub material: &'a SnapshotContents,
    pub at: Option<usize>,
}

pub(super) enum Mode<'m, 'a> {
    Plan,
    Now(&'m HeldLock),
    /// Adds the files to an operation that the caller finishes. Only for a restore under the files'
    /// own names.
    Part(&'m mut Operation<'a>),
}

pub(super) struct SnapshotContents {
    pub id: SnapshotId,
    /// The files to write. The manifest is the snapshot's manifest, even if the files differ from
    /// it.
    pub contents: Contents,
    /// The snapshot that contains the lorebook, if this is not the snapshot `id`.
    book_of: Option<Box<Snapshot>>,
    /// Whether the timeline's main file equals the file in the manifest.
    is_as_stored: bool,
}

impl SnapshotContents {
    pub(super) fn of(state: StateThen, until: RestoreRange) -> Self {
        let is_renamed = state.contents.files.timeline != state.snapshot.timeline;
        let is_as_stored = state.origin.is_none() && until.cut().is_none() && !is_renamed;
        let StateThen { snapshot, contents, book_of, .. } = state;
        Self { id: snapshot.id, contents, book_of, is_as_stored }
    }

    /// Returns the hash of a file. If the file was already compared with the manifest, the hash in
    /// the manifest is returned.
    pub(super) fn hash(&self, role: Role, bytes: &[u8]) -> Blake3 {
        let manifest = &self.contents.manifest;
        let record = manifest.file(role).filter(|_| role == manifest.main_role());
        match record.filter(|_| self.is_as_stored) {
            Some(record) => record.blake3,
            None => Blake3::of(bytes),
        }
    }

    pub(super) fn files(&self) -> &TimelineFiles {
        &self.contents.files
    }

    /// Changes the queue in the lorebook. Returns the number of removed queue entries.
    pub(super) fn change_queue(&mut self, change: QueueChange) -> usize {
        let messages = self.files().split().message_count();
        let Some(book) = self.files().book_bytes() else { return 0 };
        let (book, dropped) = match change {
            QueueChange::Keep => return 0,
            QueueChange::Clear => clear_queue(book),
            QueueChange::Trim => trim_queue(book, messages),
        };
        self.contents.files.set_book(book);
        self.is_as_stored &= self.files().timeline.is_chat();
        self.book_of = None;
        dropped
    }

    /// Returns the id of the snapshot that contains exactly this file, if there is such a snapshot.
    pub(super) fn stored_in(
        &self,
        role: Role,
        path: &LibraryPath,
        blake3: Blake3,
    ) -> Option<SnapshotId> {
        if let (Role::Lorebook, Some(book)) = (role, &self.book_of) {
            // If the lorebook was renamed later, the snapshot contains it under another path.
            return (book.timeline.file() == *path).then_some(book.id);
        }
        let record = self.contents.manifest.file(role)?;
        let same = record.path == path.as_str() && record.blake3 == blake3;
        same.then_some(self.id)
    }
}
