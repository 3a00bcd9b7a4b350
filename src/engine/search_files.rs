//! The files of the search index, `stvc/search/`. The index is a cache, which `verbs/search` builds
//! and reads. It contains the words of all stored texts, so an erasure must delete it.

use std::io;
use std::path::PathBuf;

use super::Result;
use crate::durable::{self, Temp};
use crate::regular;
use crate::store::{self, Store};

/// Maximum size of a file. A larger file was not written by stvc.
const MAX_BYTES: u64 = 256 << 20;

/// Returns the number of files, which are numbered from 0.
pub(crate) fn count(store: &Store) -> usize {
    (0..).take_while(|number| file(store, *number).is_file()).count()
}

pub(crate) fn read(store: &Store, number: usize) -> Option<Vec<u8>> {
    let found = regular::open(&file(store, number)).ok()?;
    let is_valid = found.metadata().is_ok_and(|found| found.len() <= MAX_BYTES);
    is_valid.then(|| regular::read_all(found).ok()).flatten()
}

/// Writes a file. Ignores errors, because the index is optional.
pub(crate) fn write(store: &Store, number: usize, bytes: &[u8]) {
    if store.refuse_links().is_ok() {
        durable::replace_cache(&file(store, number), bytes);
    }
}

/// Removes the file `number` and all later files.
pub(crate) fn remove_from(store: &Store, number: usize) {
    for number in (number..).take_while(|number| file(store, *number).is_file()) {
        durable::remove_own(&file(store, number));
    }
}

/// Creates the folder, and returns whether files can be created in it. A repository that stvc never
/// wrote to, such as a clone of a store, stays unchanged.
pub(crate) fn are_writable(store: &Store) -> bool {
    let folder = folder(store);
    store.private_dir().is_dir()
        && store.refuse_links().is_ok()
        && durable::create_dir_all(&folder).is_ok()
        && Temp::within(&folder, durable::TEMP_PREFIX).is_ok()
}

/// Deletes the index. Fails if a file remains, because it may contain erased text.
pub(crate) fn forget(store: &Store) -> Result<()> {
    let path = folder(store);
    match std::fs::remove_dir_all(&path) {
        Err(source)
            if source.kind() != io::ErrorKind::NotFound
                && source.kind() != io::ErrorKind::NotADirectory =>
        {
            Err(store::Error::Io { path, source }.into())
        }
        _ => Ok(()),
    }
}

fn folder(store: &Store) -> PathBuf {
    store.private_dir().join("search")
}

fn file(store: &Store, number: usize) -> PathBuf {
    folder(store).join(format!("{number:04}"))
}
