//! The cache of the folders of messages in latest snapshots, `stvc/folders/`: one file per timeline,
//! read only when the timeline changed.

use std::fs;
use std::path::PathBuf;

use crate::archive::{Blake3, Folders};
use crate::st::TimelineName;
use crate::store::Store;
use crate::{durable, regular};

/// Where more timelines are stored at once, most will not change soon, and are not worth a file.
const MANY: usize = 16;

pub(crate) fn load(store: &Store, timeline: &TimelineName) -> Folders {
    let bytes = regular::read(&file(store, timeline));
    bytes.map_or_else(|_| Folders::default(), |bytes| Folders::decode(&bytes))
}

/// Saves them for the next snapshot. A failure is harmless.
pub(crate) fn save(store: &Store, known: &[(TimelineName, Folders)]) {
    if known.is_empty() || known.len() > MANY {
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
