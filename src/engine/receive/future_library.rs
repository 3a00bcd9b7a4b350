//! The files that the library will have after the planned changes, so that each decision takes the
//! earlier decisions into account.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

use crate::archive::{Manifest, SnapshotId};
use crate::engine::Result;
use crate::engine::files::{self, FilePlan, NewFile};
use crate::engine::operation::bytes_of;
use crate::st::{Library, LibraryPath};
use crate::store::Reader;

pub(super) struct FutureLibrary {
    root: Option<PathBuf>,
    reader: Reader,
    files: BTreeMap<LibraryPath, FilePlan<'static>>,
}

impl FutureLibrary {
    /// Begins with the present library, if there is one. `reader` reads the remote's objects.
    pub(super) fn new(library: Option<&Library>, reader: Reader) -> Self {
        let root = library.map(|library| library.root().to_owned());
        Self { root, reader, files: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, path: &LibraryPath) -> Result<Option<&[u8]>> {
        if let NewFile::Stored { kept, .. } = self.file(path)?.new {
            let bytes = bytes_of(&self.reader, &kept, path)?;
            self.put(path, Some(bytes))?;
        }
        Ok(self.file(path)?.new_bytes())
    }

    /// Returns the present content of a file, before the planned changes.
    pub(super) fn now(&mut self, path: &LibraryPath) -> Result<Option<&[u8]>> {
        Ok(self.file(path)?.now.as_deref())
    }

    pub(super) fn put(&mut self, path: &LibraryPath, bytes: Option<Vec<u8>>) -> Result<()> {
        self.file(path)?.new =
            bytes.map_or(NewFile::Deleted, |bytes| NewFile::of(Cow::Owned(bytes)));
        Ok(())
    }

    /// Plans to write a file from the store, if the library has no such file. Returns `false` if
    /// the file exists. The content is not loaded into memory, because a new device gets an entire
    /// library.
    pub(super) fn put_stored(&mut self, plan: FilePlan<'static>) -> Result<bool> {
        let file = self.file(&plan.path)?;
        let is_free = file.now.is_none();
        if is_free {
            *file = plan;
        }
        Ok(is_free)
    }

    fn file(&mut self, path: &LibraryPath) -> Result<&mut FilePlan<'static>> {
        Ok(match self.files.entry(path.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let root = self.root.as_deref();
                let now = root.map(|root| files::read(root, path)).transpose()?.flatten();
                let new = now.clone().map(Cow::Owned);
                unknown.insert(FilePlan::new(path.clone(), now, new))
            }
        })
    }

    /// Returns the changed files. Chats are last, because the lorebook of a chat must exist before
    /// the chat. `held` lists snapshots that may contain the new content.
    pub(super) fn take_plan(&mut self, held: &[(SnapshotId, Manifest)]) -> Vec<FilePlan<'static>> {
        let changed =
            std::mem::take(&mut self.files).into_values().filter(|file| !file.is_up_to_date());
        let stored = |file: FilePlan<'static>| {
            let has = |(id, manifest): &(SnapshotId, Manifest)| {
                files::holds(manifest, &file.path, file.new_bytes()?).then_some(*id)
            };
            let stored_in = held.iter().find_map(has);
            file.stored_in(stored_in)
        };
        let mut plan: Vec<_> = changed.map(stored).collect();
        // The files are sorted by path already.
        plan.sort_by_key(|file| file.path.as_str().ends_with(".jsonl"));
        plan
    }
}
