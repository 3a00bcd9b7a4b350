//! A state to restore, and the files to write: a snapshot's, or those of a state made from them.

use super::options::{Options, QueueChange, Source, Until};
use crate::archive::{Blake3, Contents, Role, Snapshot, SnapshotId};
use crate::auto_recap::{clear_queue, trim_queue};
use crate::engine::Workspace;
use crate::engine::operation::{Held, Operation};
use crate::history::History;
use crate::history::state_then::StateThen;
use crate::st::{LibraryPath, TimelineFiles};
use crate::store::Store;

/// A state to restore.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub history: &'a History,
    pub options: &'a Options,
    pub source: &'a Source,
    pub material: &'a Material,
    pub at: Option<usize>,
}

pub(super) enum Mode<'m, 'a> {
    Plan,
    Now(&'m Held),
    /// A part of an operation that the caller finishes; only files under their own names.
    Part(&'m mut Operation<'a>),
}

pub(super) struct Material {
    pub id: SnapshotId,
    /// The manifest is that of the snapshot.
    pub contents: Contents,
    /// The snapshot with the lorebook, if it is another.
    book_of: Option<Box<Snapshot>>,
    /// The timeline's own file is as the manifest says.
    is_as_stored: bool,
}

impl Material {
    pub(super) fn of(state: StateThen, until: Until) -> Self {
        let is_renamed = state.contents.files.timeline != state.snapshot.timeline;
        let is_as_stored = state.origin.is_none() && until.cut().is_none() && !is_renamed;
        let StateThen { snapshot, contents, book_of, .. } = state;
        Self { id: snapshot.id, contents, book_of, is_as_stored }
    }

    /// The hash of a long chat was compared when it was rebuilt.
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

    /// Changes the lorebook's queue; returns the number of dropped operations.
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

    /// Returns the snapshot, if it has exactly this file.
    pub(super) fn stored_in(
        &self,
        role: Role,
        path: &LibraryPath,
        blake3: Blake3,
    ) -> Option<SnapshotId> {
        if let (Role::Lorebook, Some(book)) = (role, &self.book_of) {
            // A book that was renamed since has another path there.
            return (book.timeline.file() == *path).then_some(book.id);
        }
        let record = self.contents.manifest.file(role)?;
        let same = record.path == path.as_str() && record.blake3 == blake3;
        same.then_some(self.id)
    }
}
