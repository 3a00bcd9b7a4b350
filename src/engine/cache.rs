//! What is known of unchanged files: which stamps a timeline's files had when they were last seen to equal its newest snapshot.
//!
//! Only a shortcut. It lies in `stvc/cache.json`, can be deleted at any time, and a stamp is believed only if the file had been
//! left alone for two seconds when it was taken: a clock may be too coarse to tell two quick saves apart.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::archive::{Blake3, Folders, SnapshotId};
use crate::st::{Captured, Groups, LibraryPath, Stamp, TimelineName};
use crate::store::Store;
use crate::{durable, regular};

/// More than two seconds: some file systems count in steps of two.
const QUIET_NS: i64 = 2_500_000_000;
const VERSION: u32 = 1;

/// The cache, loaded; a missing or unreadable one is empty.
pub(crate) struct Cache {
    path: PathBuf,
    document: Document,
    changed: bool,
    /// It is there and could not be read just now: what it knows must not be lost.
    unread: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Document {
    version: u32,
    /// The library that they are of, where that was said.
    #[serde(default)]
    library: Option<String>,
    timelines: BTreeMap<String, CachedTimeline>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct CachedTimeline {
    head: String,
    /// When the stamps were taken.
    seen_ns: i64,
    /// Of the timeline's own file, which was called the chat when there were no others.
    #[serde(rename = "chat")]
    main: Stamp,
    /// The lorebook's path and stamp; no stamp if the file was missing.
    lorebook: Option<(String, Option<Stamp>)>,
    group: Option<(String, Stamp)>,
    /// The lorebook was another than the snapshot has; the rest was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    other_book: bool,
}

/// What is known of a timeline's files without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// All of them are what the snapshot has.
    Unchanged,
    /// All of them but the lorebook, of which nothing is known.
    AllButBook,
}

impl Cache {
    pub(crate) fn load(store: &Store) -> Self {
        let path = store.private_dir().join("cache.json");
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // Once more: who was deleted is found out by what it knows.
        let read = regular::read(&path).or_else(|error| match is_absent(&error) {
            true => Err(error),
            false => regular::read(&path),
        });
        let unread = read.as_ref().is_err_and(|error| !is_absent(error));
        let document = read.ok().and_then(|text| serde_json::from_slice::<Document>(&text).ok());
        let document = document.filter(|document| document.version == VERSION).unwrap_or_default();
        Self { path, document, changed: false, unread }
    }

    /// Whether the files in `root` are still those of the snapshot `head`.
    pub(crate) fn known(
        &self,
        root: &Path,
        name: &TimelineName,
        groups: &Groups,
        head: SnapshotId,
    ) -> Known {
        let Some(known) = self.document.timelines.get(name.as_str()) else {
            return Known::Nothing;
        };
        let look = |path: &str| fs::metadata(root.join(path)).map(|found| Stamp::of(&found));
        let quiet = |stamp: &Stamp| stamp.mtime_ns < known.seen_ns - QUIET_NS;
        let same = |path: &str, stamp: &Stamp| {
            quiet(stamp) && look(path).is_ok_and(|found| found == *stamp)
        };
        // What cannot be looked at may well be there.
        let is_gone =
            |path: &str| look(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let group = name
            .is_group()
            .then(|| groups.group_of(name.chat()))
            .flatten()
            .map(|path| path.as_str());
        let all_but_book = known.head == head.to_string()
            && same(name.file().as_str(), &known.main)
            && match (&known.group, group) {
                (None, None) => true,
                (Some((path, stamp)), Some(now)) => path == now && same(path, stamp),
                _ => false,
            };
        let book = !known.other_book
            && match &known.lorebook {
                None => true,
                Some((path, Some(stamp))) => same(path, stamp),
                Some((path, None)) => is_gone(path),
            };
        match (all_but_book, book) {
            (true, true) => Known::Unchanged,
            (true, false) if is_apart(known) => Known::AllButBook,
            _ => Known::Nothing,
        }
    }

    /// The timelines whose files were in this library when they were last looked at. Of another library nothing is known.
    pub(crate) fn seen(&self, root: &Path) -> Vec<TimelineName> {
        let is_it = self.document.library.as_deref() == Some(&*self.called(root));
        let names = self.document.timelines.keys().filter(|_| is_it);
        names.filter_map(|name| TimelineName::parse(name).ok()).collect()
    }

    /// What a library is called: nothing, if the store lies in it, so that both can be moved.
    fn called(&self, root: &Path) -> String {
        let holder = self.path.ancestors().nth(3);
        if holder == Some(root) { String::new() } else { root.to_string_lossy().into_owned() }
    }

    /// What is remembered is of this library. What was of another is forgotten.
    pub(crate) fn is_of(&mut self, root: &Path, here: &[TimelineName]) {
        let root = self.called(root);
        if self.document.library.as_ref() != Some(&root) {
            let here: std::collections::HashSet<_> =
                here.iter().map(|name| name.as_str()).collect();
            self.document.timelines.retain(|name, _| here.contains(name.as_str()));
            (self.document.library, self.changed) = (Some(root), true);
        }
    }

    /// A timeline's files are gone.
    pub(crate) fn forget(&mut self, name: &TimelineName) {
        self.changed |= self.document.timelines.remove(name.as_str()).is_some();
    }

    /// Remember that these files are the snapshot `head`; all but the lorebook, if that is another.
    pub(crate) fn remember(&mut self, captured: &Captured, head: SnapshotId, other_book: bool) {
        let Captured { files, stamps, seen_ns } = captured;
        let path = |path: &LibraryPath| path.as_str().to_owned();
        let book = files.lorebook.as_ref().and_then(|book| book.path.as_ref());
        let known = CachedTimeline {
            head: head.to_string(),
            seen_ns: *seen_ns,
            main: stamps.main,
            lorebook: book.map(|book| (path(book), stamps.lorebook)),
            group: files
                .group
                .as_ref()
                .zip(stamps.group)
                .map(|(group, stamp)| (path(&group.path), stamp)),
            other_book,
        };
        self.document.timelines.insert(captured.files.timeline.as_str().to_owned(), known);
        self.changed = true;
    }

    /// Write it back if something was learnt. That it fails matters to nobody.
    pub(crate) fn save(mut self, store: &Store) {
        if !self.changed || self.unread || store.refuse_links().is_err() {
            return;
        }
        self.document.version = VERSION;
        if let Ok(text) = serde_json::to_vec(&self.document) {
            durable::replace_cache(&self.path, &text);
        }
    }
}

/// Whether a chat's lorebook has a history of its own: then the chat need not be looked at because of it.
fn is_apart(known: &CachedTimeline) -> bool {
    let path = known.lorebook.as_ref().and_then(|(path, _)| LibraryPath::parse(path).ok());
    path.is_some_and(|path| TimelineName::of_file(&path).is_some())
}

/// What is known of the folders of a timeline's newest snapshot. A file each, read only when its timeline changed.
pub(crate) fn load_folders(store: &Store, timeline: &TimelineName) -> Folders {
    regular::read(&folders_path(store, timeline))
        .map_or_else(|_| Folders::default(), |bytes| Folders::decode(&bytes))
}

/// Know them next time. That it fails matters to nobody.
pub(crate) fn save_folders(store: &Store, timeline: &TimelineName, folders: &Folders) {
    let path = folders_path(store, timeline);
    let _ = fs::create_dir_all(durable::parent(&path));
    durable::replace_cache(&path, &folders.encode());
}

/// Nothing shall be known any more.
pub(crate) fn forget_all(store: &Store) {
    let _ = fs::remove_file(store.private_dir().join("cache.json"));
    let _ = fs::remove_dir_all(store.private_dir().join("folders"));
}

fn folders_path(store: &Store, timeline: &TimelineName) -> PathBuf {
    let name = Blake3::of(timeline.as_str().as_bytes()).to_string();
    store.private_dir().join("folders").join(&name[..32])
}
