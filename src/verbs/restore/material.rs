//! What a restore writes: a snapshot's files, or what was made of them.

use super::options::QueueChange;
use crate::archive::{Blake3, Contents, MaterialFile, Role, Snapshot, SnapshotId};
use crate::engine::Result;
use crate::history::at_message::Made;
use crate::st::auto_recap::{clear_queue, trim_queue};
use crate::st::{LibraryPath, TimelineName};

/// The files to write.
pub(super) struct Material {
    pub id: SnapshotId,
    pub timeline: TimelineName,
    /// The files; the manifest stays the snapshot's.
    pub contents: Contents,
    /// The lorebook's name.
    pub book_name: Option<String>,
}

impl Material {
    pub(super) fn of(snapshot: &Snapshot, contents: Contents) -> Result<Self> {
        let book_name =
            contents.manifest.file(Role::Lorebook).and_then(|record| record.name.clone());
        Ok(Self { id: snapshot.id, timeline: snapshot.timeline.clone(), contents, book_name })
    }

    /// Take what was put together in place of what the snapshot has.
    pub(super) fn become_made(&mut self, made: Made) {
        self.set(Role::Chat, made.chat);
        if let Some(group) = made.group {
            self.set(Role::Group, group);
        }
        self.contents.files.retain(|file| file.role != Role::Lorebook);
        self.book_name = None;
        if let Some(book) = made.book {
            let blake3 = Blake3::of(&book.bytes);
            let file =
                MaterialFile { role: Role::Lorebook, path: book.path, bytes: book.bytes, blake3 };
            let at = self.contents.files.len().min(1);
            self.contents.files.insert(at, file);
            self.book_name = Some(book.name);
        }
    }

    /// Change the lorebook's queue; how many operations were dropped.
    pub(super) fn change_queue(&mut self, change: QueueChange) -> usize {
        let messages = self.contents.chat().message_count();
        let Some(book) = self.contents.bytes(Role::Lorebook) else { return 0 };
        let (book, dropped) = match change {
            QueueChange::Keep => return 0,
            QueueChange::Clear => clear_queue(book),
            QueueChange::Trim => trim_queue(book, messages),
        };
        self.set(Role::Lorebook, book);
        dropped
    }

    /// The snapshot, if it has this very file.
    pub(super) fn stored_in(&self, file: &MaterialFile) -> Option<SnapshotId> {
        let record = self.contents.manifest.file(file.role)?;
        let same = record.path == file.path.as_str() && record.blake3 == file.blake3;
        same.then_some(self.id)
    }

    /// Where the file of that role belongs.
    pub(super) fn path(&self, role: Role) -> Option<&LibraryPath> {
        self.contents.files.iter().find(|file| file.role == role).map(|file| &file.path)
    }

    fn set(&mut self, role: Role, bytes: Vec<u8>) {
        if let Some(file) = self.contents.files.iter_mut().find(|file| file.role == role) {
            file.blake3 = Blake3::of(&bytes);
            file.bytes = bytes;
        }
    }
}
