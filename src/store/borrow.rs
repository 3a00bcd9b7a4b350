//! Creates stores that borrow objects: they read the objects of another store through git's
//! `alternates` file, without copying or changing them.

use std::fs;
use std::path::Path;

use super::{Error, ObjectId, Result, Store};
use crate::{durable, real_path, regular};

/// Private files that are copied to a borrowing store. The operation log is not copied: otherwise
/// locking the borrowing store would finish operations that were interrupted in the original.
const REMEMBERED: [&str; 8] = [
    "cache",
    "lineage.json",
    "former-ids",
    "config.toml",
    "damaged",
    "device",
    "erased",
    "own-attachments",
];

impl Store {
    pub fn borrowing_copy(&self, path: &Path) -> Result<Self> {
        let copy = Self::create(path)?;
        borrow(path, self)?;
        let refs = self.refs("refs/")?.refs;
        set_refs(path, refs.into_iter().map(|(name, id)| (name.to_string(), id)))?;
        for name in REMEMBERED {
            // A file that cannot be read counts as missing.
            if let Ok(bytes) = regular::read(&self.private_dir().join(name)) {
                let _ = durable::overwrite(&copy.private_dir().join(name), &bytes);
            }
        }
        Self::open(path)
    }
}

impl Store {
    /// Creates a store that also reads the objects of `other`, if given.
    pub fn create_beside(path: &Path, other: Option<&Self>) -> Result<Self> {
        let store = Self::create(path)?;
        match other {
            Some(other) => borrow(path, other).and_then(|()| Self::open(path)),
            None => Ok(store),
        }
    }

    /// Replaces all refs of a store that no other process uses.
    pub fn replace_refs(path: &Path, refs: impl Iterator<Item = (String, ObjectId)>) -> Result<()> {
        set_refs(path, refs)
    }
}

pub(super) fn borrow(dir: &Path, store: &Store) -> Result<()> {
    let objects = store.path().join("objects");
    let objects = real_path::of_existing(&objects).map_err(Error::io(&objects))?;
    let info = dir.join("objects").join("info");
    fs::create_dir_all(&info).map_err(Error::io(&info))?;
    let path = info.join("alternates");
    fs::write(&path, alternate(&objects)).map_err(Error::io(&path))
}

pub(super) fn set_refs(dir: &Path, refs: impl Iterator<Item = (String, ObjectId)>) -> Result<()> {
    let path = dir.join("packed-refs");
    let mut refs: Vec<_> = refs.collect();
    refs.sort();
    let mut text = String::from("# pack-refs with: peeled fully-peeled sorted \n");
    for (name, id) in refs {
        text.push_str(&format!("{id} {name}\n"));
    }
    fs::write(&path, text).map_err(Error::io(path))
}

fn alternate(objects: &Path) -> Vec<u8> {
    let mut line = match cfg!(windows) {
        // Git expects slashes. But a path with the prefix `\\?\`, which long paths have, is valid
        // only with backslashes.
        true if !objects.to_string_lossy().starts_with(r"\\?\") => {
            objects.to_string_lossy().replace('\\', "/").into_bytes()
        }
        _ => objects.as_os_str().as_encoded_bytes().to_vec(),
    };
    line.push(b'\n');
    line
}
