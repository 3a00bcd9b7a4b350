//! What a restore writes: a snapshot's files, or what was made of them.

use super::options::QueueChange;
use crate::archive::{self, Blake3, Contents, Role, Snapshot, SnapshotId, branch};
use crate::history::at_message::Made;
use crate::history::name_lookup;
use crate::st::auto_recap::{clear_queue, trim_queue};
use crate::st::{LibraryPath, TimelineFiles, TimelineName};
use crate::store::Store;
use crate::verbs::Result;

/// The files to write.
pub(super) struct Material {
    pub id: SnapshotId,
    /// The files; the manifest stays the snapshot's.
    pub contents: Contents,
    /// The snapshot of the lorebook's own history that it was taken from instead.
    book_of: Option<SnapshotId>,
}

impl Material {
    pub(super) fn of(snapshot: &Snapshot, mut contents: Contents) -> Self {
        contents.files.timeline = snapshot.timeline.clone();
        Self { id: snapshot.id, contents, book_of: None }
    }

    pub(super) fn files(&self) -> &TimelineFiles {
        &self.contents.files
    }

    /// Take what was put together in place of what the snapshot has.
    pub(super) fn become_made(&mut self, made: Made) {
        self.contents.files = made.files;
    }

    /// Change the lorebook's queue; how many operations were dropped.
    pub(super) fn change_queue(&mut self, change: QueueChange) -> usize {
        let messages = self.files().split().message_count();
        let Some(book) = self.files().book_bytes() else { return 0 };
        let (book, dropped) = match change {
            QueueChange::Keep => return 0,
            QueueChange::Clear => clear_queue(book),
            QueueChange::Trim => trim_queue(book, messages),
        };
        self.contents.files.set_book(book);
        self.book_of = None;
        dropped
    }

    /// Take the lorebook as its own history ends. What a chat has now is its own newest state and that of its lorebook, which goes on without it.
    pub(super) fn take_newest_book(&mut self, store: &Store) -> Result<()> {
        let files = &self.contents.files;
        let path = files.book().map(|book| book.path).filter(|path| **path != files.main.path);
        let Some(name) = path.and_then(TimelineName::of_file) else { return Ok(()) };
        let Some(id) = store.ref_target(&branch(&name))?.map(SnapshotId) else { return Ok(()) };
        let Some(newest) = name_lookup::find(store, id)?.filter(|found| found.is_of(&name)) else {
            return Ok(());
        };
        self.take_book(store, &newest);
        Ok(())
    }

    /// Take the lorebook from a snapshot of its own history. One that is damaged is no reason not to bring back the other.
    pub(super) fn take_book(&mut self, store: &Store, from: &Snapshot) {
        let Ok(book) = archive::rebuild(&store.reader(), from) else { return };
        if self.files().book_bytes() != Some(&book.contents.files.main.bytes) {
            self.contents.files.set_book(book.contents.files.main.bytes);
            self.book_of = Some(from.id);
        }
    }

    /// The snapshot, if it has this very file.
    pub(super) fn stored_in(
        &self,
        role: Role,
        path: &LibraryPath,
        blake3: Blake3,
    ) -> Option<SnapshotId> {
        if role == Role::Lorebook && self.book_of.is_some() {
            return self.book_of;
        }
        let record = self.contents.manifest.file(role)?;
        let same = record.path == path.as_str() && record.blake3 == blake3;
        same.then_some(self.id)
    }
}
