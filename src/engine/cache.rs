//! The cache of unchanged files, `stvc/cache`: the stamps that a timeline's files had when they were
//! last found equal to its latest snapshot.
//!
//! It can be deleted at any time. A stamp is trusted only if the file had been left alone for two
//! seconds before, because a clock may be too coarse to tell two quick saves apart.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::known_folders;
use crate::archive::{Blake3, SnapshotId};
use crate::st::{Captured, Groups, LibraryPath, Scan, Stamp, TimelineName};
use crate::store::Store;
use crate::{durable, regular};

const FILE: &str = "cache";
/// Longer than two seconds, because some file systems count in steps of two.
const QUIET_NS: i64 = 2_500_000_000;

pub(crate) struct Cache {
    path: PathBuf,
    document: Document,
    changed: bool,
    /// The file exists but could not be read just now. It must not be overwritten then.
    unread: bool,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Document {
    library: Option<String>,
    /// `None` for a file that exists and must be read.
    timelines: BTreeMap<String, Option<CachedTimeline>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CachedTimeline {
    head: String,
    seen_ns: i64,
    main: Stamp,
    /// The lorebook's path and stamp; no stamp if the file was missing.
    lorebook: Option<(String, Option<Stamp>)>,
    group: Option<(String, Stamp)>,
    /// Only the lorebook differed from the snapshot.
    other_book: bool,
}

impl CachedTimeline {
    /// Returns whether the lorebook has a timeline of its own. Its changes need no look at the chat
    /// then.
    fn is_apart(&self) -> bool {
        let path = self.lorebook.as_ref().and_then(|(path, _)| LibraryPath::parse(path).ok());
        path.is_some_and(|path| TimelineName::of_file(&path).is_some())
    }
}

/// The result of comparing a timeline's files with the cache, without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Nothing,
    /// All of them are what the snapshot has.
    Unchanged,
    /// All of them but the lorebook, of which nothing is known.
    AllButBook,
}

impl Cache {
    pub(crate) fn load(store: &Store) -> Self {
        let path = store.private_dir().join(FILE);
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // Two attempts, because deleted timelines are found by what the cache knows.
        let read = regular::read(&path)
            .or_else(|error| if is_absent(&error) { Err(error) } else { regular::read(&path) });
        let unread = read.as_ref().is_err_and(|error| !is_absent(error));
        let document = read.ok().and_then(|bytes| Document::decode(&bytes)).unwrap_or_default();
        Self { path, document, changed: false, unread }
    }

    /// Compares the stamps of the files in `root` with those of the snapshot `head`.
    pub(crate) fn known(
        &self,
        root: &Path,
        name: &TimelineName,
        groups: &Groups,
        head: SnapshotId,
    ) -> Known {
        let Some(Some(known)) = self.document.timelines.get(name.as_str()) else {
            return Known::Nothing;
        };
        let look = |path: &str| fs::metadata(root.join(path)).map(|found| Stamp::of(&found));
        let same = |path: &str, stamp: &Stamp| {
            stamp.mtime_ns < known.seen_ns - QUIET_NS && look(path).is_ok_and(|it| it == *stamp)
        };
        // What cannot be looked at may well be there.
        let is_gone =
            |path: &str| look(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let group = name.is_group().then(|| groups.group_of(name.chat())).flatten();
        let all_but_book = known.head == head.to_string()
            && same(name.file().as_str(), &known.main)
            && match (&known.group, group) {
                (None, None) => true,
                (Some((path, stamp)), Some(now)) => path == now.as_str() && same(path, stamp),
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
            (true, false) if known.is_apart() => Known::AllButBook,
            _ => Known::Nothing,
        }
    }

    /// Returns the timelines whose files were in this library at the last look and are gone now.
    /// Knows nothing of another library.
    pub(crate) fn seen_besides(&self, root: &Path, here: &Scan) -> Vec<TimelineName> {
        let is_it = self.document.library.as_deref() == Some(&*self.called(root));
        let names = self.document.timelines.keys().filter(|name| is_it && !here.has(name));
        names.filter_map(|name| TimelineName::parse(name).ok()).collect()
    }

    /// Returns the name of a library: empty if it contains the store, so that both can be moved.
    fn called(&self, root: &Path) -> String {
        let holder = self.path.ancestors().nth(3);
        if holder == Some(root) { String::new() } else { root.to_string_lossy().into_owned() }
    }

    /// Binds the cache to this library and forgets what it knew of another.
    pub(crate) fn is_of(&mut self, root: &Path, here: &Scan) {
        let root = self.called(root);
        if self.document.library.as_ref() != Some(&root) {
            self.document.timelines.retain(|name, _| here.has(name));
            (self.document.library, self.changed) = (Some(root), true);
        }
    }

    /// Records that the files of these timelines were written to this library, so that a later run
    /// can tell that they were deleted.
    pub(crate) fn note_written(
        mut self,
        store: &Store,
        root: &Path,
        names: impl Iterator<Item = TimelineName>,
    ) {
        let root = self.called(root);
        let document = &mut self.document;
        if document.timelines.is_empty() {
            document.library = Some(root);
        } else if document.library.as_ref() != Some(&root) {
            return;
        }
        let before = document.timelines.len();
        for name in names {
            document.timelines.entry(name.as_str().to_owned()).or_default();
        }
        self.changed |= self.document.timelines.len() > before;
        self.save(store);
    }

    pub(crate) fn forget(&mut self, name: &TimelineName) {
        self.changed |= self.document.timelines.remove(name.as_str()).is_some();
    }

    pub(crate) fn remember(&mut self, captured: &Captured, head: SnapshotId) {
        self.insert(captured, head, false);
    }

    pub(crate) fn remember_all_but_book(&mut self, captured: &Captured, head: SnapshotId) {
        self.insert(captured, head, true);
    }

    fn insert(&mut self, captured: &Captured, head: SnapshotId, other_book: bool) {
        let Captured { files, stamps, seen_ns } = captured;
        let path = |path: &LibraryPath| path.as_str().to_owned();
        let book = files.lorebook.as_ref().and_then(|book| book.path.as_ref());
        let group = files.group.as_ref().zip(stamps.group);
        let known = CachedTimeline {
            head: head.to_string(),
            seen_ns: *seen_ns,
            main: stamps.main,
            lorebook: book.map(|book| (path(book), stamps.lorebook)),
            group: group.map(|(group, stamp)| (path(&group.path), stamp)),
            other_book,
        };
        // A chat whose lorebook could not be read must be read again.
        let known = Some(known).filter(|_| files.unread_book().is_none());
        self.document.timelines.insert(files.timeline.as_str().to_owned(), known);
        self.changed = true;
    }

    /// Writes the cache if it changed. A failure is harmless.
    pub(crate) fn save(self, store: &Store) {
        if self.changed && !self.unread && store.refuse_links().is_ok() {
            durable::replace_cache(&self.path, &self.document.encode());
        }
    }
}

/// The JSON, after its BLAKE3 in hexadecimal.
impl Document {
    fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).unwrap_or_default();
        [Blake3::of(&json).to_string().as_bytes(), &json].concat()
    }

    /// Returns `None` for a damaged document, or one of another version.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (hash, json) = bytes.split_at_checked(64)?;
        let is_valid = Blake3::of(json).to_string().as_bytes() == hash;
        is_valid.then(|| serde_json::from_slice(json).ok()).flatten()
    }
}

pub(crate) fn forget_all(store: &Store) {
    durable::remove_own(&store.private_dir().join(FILE));
    known_folders::forget(store);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let stamp = |number| Stamp { len: number, mtime_ns: -7, inode: u64::MAX - number };
        let known = |lorebook, group, other_book| {
            let (head, seen_ns, main) = ("07".repeat(20), i64::MIN, stamp(1));
            Some(CachedTimeline { head, seen_ns, main, lorebook, group, other_book })
        };
        let book = "worlds/\u{1f98a}\n.json".to_owned();
        let timelines = [
            ("chats/M/a\tb".to_owned(), known(None, None, false)),
            ("chats/M/b".to_owned(), None),
            ("chats/M/雪".to_owned(), known(Some((book.clone(), None)), None, true)),
            ("group chats/1".to_owned(), known(Some((book, Some(stamp(2)))), None, false)),
            (
                "group chats/2".to_owned(),
                known(None, Some(("groups/9.json".into(), stamp(3))), false),
            ),
        ];
        Document { library: Some("/a b".into()), timelines: timelines.into() }
    }

    #[test]
    fn reads_what_it_writes() {
        for document in [document(), Document::default()] {
            assert_eq!(Document::decode(&document.encode()), Some(document));
        }
    }

    #[test]
    fn ignores_a_damaged_document() {
        let bytes = document().encode();
        for at in 0..bytes.len() {
            assert_eq!(Document::decode(&bytes[..at]), None, "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Document::decode(&damaged), None, "damaged at {at}");
        }
    }
}
