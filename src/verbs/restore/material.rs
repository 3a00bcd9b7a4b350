//! What a restore writes: a snapshot's files, or what was made of them.

use super::options::QueueChange;
use crate::archive::{Blake3, Contents, Role, Snapshot, SnapshotId};
use crate::history::at_message::Made;
use crate::st::auto_recap::{clear_queue, trim_queue};
use crate::st::{LibraryPath, TimelineFiles};

/// The files to write.
pub(super) struct Material {
    pub id: SnapshotId,
    /// The files; the manifest stays the snapshot's.
    pub contents: Contents,
}

impl Material {
    pub(super) fn of(snapshot: &Snapshot, mut contents: Contents) -> Self {
        contents.files.timeline = snapshot.timeline.clone();
        Self { id: snapshot.id, contents }
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
        if let Some(bound) = &mut self.contents.files.lorebook {
            bound.bytes = Some(book.into());
        }
        dropped
    }

    /// The snapshot, if it has this very file.
    pub(super) fn stored_in(
        &self,
        role: Role,
        path: &LibraryPath,
        blake3: Blake3,
    ) -> Option<SnapshotId> {
        let record = self.contents.manifest.file(role)?;
        let same = record.path == path.as_str() && record.blake3 == blake3;
        same.then_some(self.id)
    }
}
