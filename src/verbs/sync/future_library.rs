//! The files of the library as they will be when all is done: what is decided for one timeline is what the next one finds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::archive::{Blake3, Manifest, SnapshotId};
use crate::engine::files::{self, FilePlan};
use crate::engine::operation::bytes_of;
use crate::st::LibraryPath;
use crate::store::{Kept, Reader};
use crate::verbs::Result;

/// The library as it will be.
pub(super) struct FutureLibrary {
    root: PathBuf,
    /// Reads what comes.
    reader: Reader,
    files: BTreeMap<LibraryPath, File>,
}

struct File {
    now: Option<Vec<u8>>,
    new: New,
}

/// What will be there.
#[derive(PartialEq)]
enum New {
    Nothing,
    Bytes(Vec<u8>),
    Stored(StoredFile),
}

/// A file as a snapshot has it. A new device gets all of a library, which need not be in memory for that.
#[derive(Clone, PartialEq)]
pub(super) struct StoredFile {
    pub snapshot: SnapshotId,
    pub bytes: u64,
    pub blake3: Blake3,
}

impl New {
    fn of(bytes: Option<Vec<u8>>) -> Self {
        bytes.map_or(New::Nothing, New::Bytes)
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            New::Bytes(bytes) => Some(bytes),
            New::Nothing | New::Stored(_) => None,
        }
    }
}

impl FutureLibrary {
    pub(super) fn new(root: PathBuf, reader: Reader) -> Self {
        Self { root, reader, files: BTreeMap::new() }
    }

    /// What will be there.
    pub(super) fn get(&mut self, path: &LibraryPath) -> Result<Option<&[u8]>> {
        if let New::Stored(stored) = &self.file(path)?.new {
            let kept = Kept::Commit(stored.snapshot.0);
            let bytes = bytes_of(&self.reader, &kept, path)?;
            self.put(path, Some(bytes))?;
        }
        Ok(self.file(path)?.new.bytes())
    }

    /// Returns what is there before anything is written.
    pub(super) fn now(&mut self, path: &LibraryPath) -> Result<Option<&[u8]>> {
        Ok(self.file(path)?.now.as_deref())
    }

    /// Let this be there.
    pub(super) fn put(&mut self, path: &LibraryPath, bytes: Option<Vec<u8>>) -> Result<()> {
        self.file(path)?.new = New::of(bytes);
        Ok(())
    }

    /// Let be there what a snapshot has; whether that can be: where nothing is now.
    pub(super) fn put_stored(&mut self, path: &LibraryPath, stored: &StoredFile) -> Result<bool> {
        let file = self.file(path)?;
        let is_free = file.now.is_none();
        if is_free {
            file.new = New::Stored(stored.clone());
        }
        Ok(is_free)
    }

    fn file(&mut self, path: &LibraryPath) -> Result<&mut File> {
        if !self.files.contains_key(path) {
            let now = files::read(&self.root, path)?;
            self.files.insert(path.clone(), File { new: New::of(now.clone()), now });
        }
        // It was put there just now, if it was not before.
        Ok(self.files.entry(path.clone()).or_insert(File { now: None, new: New::Nothing }))
    }

    /// What changes: chats last, because a chat that is there names a book that is there. `held` are snapshots that have what is written.
    pub(super) fn plan(&self, held: &[(SnapshotId, Manifest)]) -> Vec<FilePlan<'_>> {
        let is_other = |file: &File| match &file.new {
            New::Stored(_) => true,
            new => file.now.as_deref() != new.bytes(),
        };
        let changed = self.files.iter().filter(|(_, file)| is_other(file));
        let mut plan: Vec<_> = changed
            .map(|(path, file)| {
                if let New::Stored(stored) = &file.new {
                    return FilePlan::stored(path, stored.snapshot, stored.bytes, stored.blake3);
                }
                let has = |new: &[u8]| {
                    let found = held.iter().find(|(_, manifest)| files::holds(manifest, path, new));
                    found.map(|(id, _)| *id)
                };
                let new = file.new.bytes();
                let plan = FilePlan {
                    // What a group lists takes nothing away.
                    harmless: path.as_str().starts_with("groups/"),
                    ..FilePlan::new(path.clone(), file.now.clone(), new.map(Cow::Borrowed))
                };
                plan.stored_in(new.and_then(has))
            })
            .collect();
        let is_chat = |path: &LibraryPath| path.as_str().ends_with(".jsonl");
        plan.sort_by_key(|file| (is_chat(&file.path), file.path.clone()));
        plan
    }
}
