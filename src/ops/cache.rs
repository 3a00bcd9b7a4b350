//! What is known of unchanged files: which stamps a timeline's files had when they were last seen to equal its newest snapshot.
//!
//! Only a shortcut. It lies in `stvc/cache.json`, can be deleted at any time, and a stamp is believed only if the file had been
//! left alone for two seconds when it was taken: a clock may be too coarse to tell two quick saves apart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::archive::{Blake3, Folders, SnapshotId};
use crate::st::{Captured, CapturedFile, Groups, Stamp, TimelineName};
use crate::store::Store;

/// More than two seconds: some file systems count in steps of two.
const QUIET_NS: i64 = 2_500_000_000;
const VERSION: u32 = 1;

/// The cache, loaded; a missing or unreadable one is empty.
pub(super) struct Cache {
    path: PathBuf,
    document: Document,
    changed: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Document {
    version: u32,
    timelines: BTreeMap<String, Known>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Known {
    head: String,
    /// When the stamps were taken.
    seen_ns: i64,
    chat: Stamp,
    /// The lorebook's path and stamp; no stamp if the file was missing.
    lorebook: Option<(String, Option<Stamp>)>,
    group: Option<(String, Stamp)>,
}

impl Cache {
    pub(super) fn load(store: &Store) -> Self {
        let path = store.private_dir().join("cache.json");
        let document =
            fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Document>(&text).ok());
        let document = document.filter(|document| document.version == VERSION).unwrap_or_default();
        Self { path, document, changed: false }
    }

    /// Whether the files in `root` are still those of the snapshot `head`.
    pub(super) fn is_unchanged(
        &self,
        root: &Path,
        name: &TimelineName,
        groups: &Groups,
        head: SnapshotId,
    ) -> bool {
        let Some(known) = self.document.timelines.get(name.as_str()) else {
            return false;
        };
        let stamp_of =
            |path: &str| fs::metadata(root.join(path)).ok().map(|found| Stamp::of(&found));
        let quiet = |stamp: &Stamp| stamp.mtime_ns < known.seen_ns - QUIET_NS;
        let same =
            |path: &str, stamp: &Stamp| quiet(stamp) && stamp_of(path).as_ref() == Some(stamp);
        let group = name
            .is_group()
            .then(|| groups.group_of(name.chat()))
            .flatten()
            .map(|path| path.as_str());
        known.head == head.to_string()
            && same(name.file().as_str(), &known.chat)
            && match &known.lorebook {
                None => true,
                Some((path, Some(stamp))) => same(path, stamp),
                Some((path, None)) => stamp_of(path).is_none(),
            }
            && match (&known.group, group) {
                (None, None) => true,
                (Some((path, stamp)), Some(now)) => path == now && same(path, stamp),
                _ => false,
            }
    }

    /// Remember that these files are the snapshot `head`.
    pub(super) fn remember(&mut self, captured: &Captured, head: SnapshotId) {
        let stamped = |file: &CapturedFile| (file.path.as_str().to_owned(), file.stamp);
        let lorebook = captured.lorebook.as_ref().and_then(|book| {
            let path = book.path.as_ref()?.as_str().to_owned();
            Some((path, book.file.as_ref().map(|file| file.stamp)))
        });
        let known = Known {
            head: head.to_string(),
            seen_ns: captured.seen_ns,
            chat: captured.chat.stamp,
            lorebook,
            group: captured.group.as_ref().map(stamped),
        };
        self.document.timelines.insert(captured.name.as_str().to_owned(), known);
        self.changed = true;
    }

    /// Write it back if something was learnt. That it fails matters to nobody.
    pub(super) fn save(mut self) {
        if !self.changed {
            return;
        }
        self.document.version = VERSION;
        let temp = self.path.with_extension("tmp");
        let written =
            serde_json::to_vec(&self.document).ok().and_then(|text| fs::write(&temp, text).ok());
        if written.is_some() {
            let _ = fs::rename(&temp, &self.path);
        }
    }
}

/// What is known of the folders of a timeline's newest snapshot. A file each, read only when its timeline changed.
pub(super) fn load_folders(store: &Store, timeline: &TimelineName) -> Folders {
    fs::read(folders_path(store, timeline))
        .map_or_else(|_| Folders::default(), |bytes| Folders::decode(&bytes))
}

/// Know them next time. That it fails matters to nobody.
pub(super) fn save_folders(store: &Store, timeline: &TimelineName, folders: &Folders) {
    let path = folders_path(store, timeline);
    let _ = fs::create_dir_all(crate::durable::parent(&path));
    // Damage is seen when it is read, so a torn file does no harm.
    let _ = fs::write(path, folders.encode());
}

fn folders_path(store: &Store, timeline: &TimelineName) -> PathBuf {
    let name = Blake3::of(timeline.as_str().as_bytes()).to_string();
    store.private_dir().join("folders").join(&name[..32])
}
