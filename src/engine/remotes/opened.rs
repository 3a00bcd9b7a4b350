//! Temporary stores with objects of a remote. They borrow the objects of the local store, so only
//! new objects are downloaded.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::archive::backup::objects_of;
use crate::engine::Result;
use crate::engine::copies::about;
use crate::engine::copies::chosen_refs::Refs;
use crate::history::History;
use crate::store::{
    Erasures, Kind, Loss, ObjectId, PackWriter, RefName, Store, temporary_folder, unless_lost,
};

/// A temporary store whose refs are those of one state of the remote.
#[derive(Clone)]
pub(crate) struct OpenedRemote {
    path: PathBuf,
    /// The address of the remote.
    pub address: String,
    refs: Refs,
    // Declared last, so that the store's files are closed before the folder is deleted.
    folder: Arc<TempDir>,
}

impl OpenedRemote {
    /// Opens the store. The folder must live as long as the store.
    pub(crate) fn store(&self) -> Result<(Store, Arc<TempDir>)> {
        Ok((Store::open(&self.path)?, Arc::clone(&self.folder)))
    }

    /// Returns whether all objects of all refs exist, except for the history that `local` has.
    pub(super) fn lacks_nothing(&self, local: Option<&Store>) -> Result<bool> {
        let known = local.map(History::load).transpose()?.unwrap_or_default();
        let store = Store::open(&self.path)?;
        let reader = store.reader();
        let (mut seen, mut trees) = (HashSet::new(), Vec::new());
        let mut open: Vec<ObjectId> = self.refs.values().copied().collect();
        while let Some(id) = open.pop() {
            if known.get(crate::archive::SnapshotId(id)).is_some() || !seen.insert(id) {
                continue;
            }
            match unless_lost(reader.commit(id))? {
                None => return Ok(false),
                Some(commit) => {
                    open.extend(&commit.parents);
                    trees.push(commit.tree);
                }
            }
        }
        let objects = match objects_of(&store, trees, HashSet::new()).map_err(about(&self.path)) {
            Ok(objects) => objects,
            Err(error) if error.is_loss() => return Ok(false),
            Err(error) => return Err(error),
        };
        for (id, kind) in objects {
            if kind == Kind::Blob && !reader.has(id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A temporary store to which packs of a remote are added.
pub(super) struct TemporaryStore {
    path: PathBuf,
    tried: BTreeSet<String>,
    read: BTreeSet<String>,
    folder: Arc<TempDir>,
}

impl TemporaryStore {
    pub(super) fn create(local: Option<&Store>, beside: &Path) -> Result<Self> {
        let folder = temporary_folder(beside)?;
        let path = folder.path().join("store");
        Store::create_beside(&path, local)?;
        let (tried, read) = Default::default();
        Ok(Self { path, tried, read, folder: Arc::new(folder) })
    }

    pub(super) fn has_tried(&self, pack: &str) -> bool {
        self.tried.contains(pack)
    }

    /// Returns the names of the packs that were read completely.
    pub(super) fn read_packs(&self) -> impl Iterator<Item = &String> {
        self.read.iter()
    }

    /// Adds the objects of a pack. After a failure, none of them is added.
    /// Returns their ids.
    pub(super) fn add(
        &mut self,
        pack: &str,
        read: impl FnOnce(&mut PackWriter) -> Result<Vec<ObjectId>>,
    ) -> Result<Vec<ObjectId>> {
        self.tried.insert(pack.to_owned());
        let mut out = Store::open(&self.path)?.pack_writer();
        let ids = read(&mut out)?;
        out.finish()?;
        self.read.insert(pack.to_owned());
        Ok(ids)
    }

    pub(super) fn store(&self) -> Result<Store> {
        Ok(Store::open(&self.path)?)
    }

    /// Sets the refs of the store, and returns it.
    pub(super) fn open(
        &self,
        refs: &Refs,
        erasures: &Erasures,
        address: &str,
    ) -> Result<OpenedRemote> {
        let mut all: Vec<_> = refs.iter().map(|(name, id)| (name.to_string(), *id)).collect();
        if !erasures.is_empty() {
            let record = Store::open(&self.path)?.commit_erasures(erasures)?;
            all.push((RefName::erased().to_string(), record));
        }
        Store::replace_refs(&self.path, all.into_iter())?;
        Ok(OpenedRemote {
            path: self.path.clone(),
            address: address.to_owned(),
            refs: refs.clone(),
            folder: Arc::clone(&self.folder),
        })
    }
}
