//! The cache of the folder trees in which the latest snapshots store messages, `stvc/folders/`. It
//! has one file per timeline, which is read only if the timeline changed.

use std::fs;
use std::path::PathBuf;

use crate::archive::{Blake3, Folders};
use crate::st::TimelineName;
use crate::store::Store;
use crate::{durable, regular};

/// If one command stores more timelines than this, nothing is cached, because most of these
/// timelines will not change soon.
const MAX_CACHED_TIMELINES: usize = 16;

pub(crate) fn load(store: &Store, timeline: &TimelineName) -> Folders {
    let bytes = regular::read(&file(store, timeline));
    bytes.map_or_else(|_| Folders::default(), |bytes| Folders::decode(&bytes))
}

/// Saves the folders for the next snapshots of these timelines. Ignores errors, because the cache
/// is optional.
pub(crate) fn save(store: &Store, known: &[(TimelineName, Folders)]) {
    if known.is_empty() || known.len() > MAX_CACHED_TIMELINES {
        return;
    }
    let _ = fs::create_dir_all(folder(store));
    for (timeline, folders) in known {
        durable::replace_cache(&file(store, timeline), &folders.encode());
    }
}

pub(crate) fn forget(store: &Store) {
    let _ = fs::remove_dir_all(folder(store));
}

fn folder(store: &Store) -> PathBuf {
    store.private_dir().join("folders")
}

fn file(store: &Store, timeline: &TimelineName) -> PathBuf {
    folder(store).join(&Blake3::of(timeline.as_str().as_bytes()).to_string()[..32])
}
