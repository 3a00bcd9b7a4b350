//! The files of the library as they will be when all is done: what is decided for one timeline is what the next one finds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::archive::{Manifest, SnapshotId};
use crate::engine::files::{self, FilePlan};
use crate::st::LibraryPath;
use crate::verbs::Result;

/// The library as it will be.
pub(super) struct FutureLibrary {
    root: PathBuf,
    files: BTreeMap<LibraryPath, File>,
}

struct File {
    now: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl FutureLibrary {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, files: BTreeMap::new() }
    }

    /// What will be there.
    pub(super) fn get(&mut self, path: &LibraryPath) -> Result<Option<&[u8]>> {
        Ok(self.file(path)?.new.as_deref())
    }

    /// Let this be there.
    pub(super) fn put(&mut self, path: &LibraryPath, bytes: Option<Vec<u8>>) -> Result<()> {
        self.file(path)?.new = bytes;
        Ok(())
    }

    fn file(&mut self, path: &LibraryPath) -> Result<&mut File> {
        if !self.files.contains_key(path) {
            let now = files::read(&self.root, path)?;
            self.files.insert(path.clone(), File { now: now.clone(), new: now });
        }
        // It was put there just now, if it was not before.
        Ok(self.files.entry(path.clone()).or_insert(File { now: None, new: None }))
    }

    /// What changes: chats last, because a chat that is there names a book that is there. `held` are snapshots that have what is written.
    pub(super) fn plan(&self, held: &[(SnapshotId, Manifest)]) -> Vec<FilePlan<'_>> {
        let changed = self.files.iter().filter(|(_, file)| file.now != file.new);
        let mut plan: Vec<_> = changed
            .map(|(path, file)| {
                let has = |new: &Vec<u8>| {
                    let found = held.iter().find(|(_, manifest)| files::holds(manifest, path, new));
                    found.map(|(id, _)| *id)
                };
                let new = file.new.as_deref().map(Cow::Borrowed);
                FilePlan {
                    stored_in: file.new.as_ref().and_then(has),
                    // What a group lists takes nothing away.
                    harmless: path.as_str().starts_with("groups/"),
                    ..FilePlan::new(path.clone(), file.now.clone(), new)
                }
            })
            .collect();
        let is_chat = |path: &LibraryPath| path.as_str().ends_with(".jsonl");
        plan.sort_by_key(|file| (is_chat(&file.path), file.path.clone()));
        plan
    }
}
