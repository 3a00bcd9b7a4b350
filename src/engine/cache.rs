//! The cache of unchanged files, `stvc/cache`. For each timeline, the cache records the stamps
//! (length, modification time, inode) that the files had when they were last found equal to the
//! latest snapshot. A file whose stamp is unchanged need not be read.
//!
//! The cache can be deleted at any time. A stamp is trusted only if the file had not changed for
//! more than two seconds before the stamp was recorded, because a coarse clock may give two quick
//! saves the same time.

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
/// The time in nanoseconds for which a file must not have changed before its stamp is trusted.
/// Longer than two seconds, because some file systems count time in steps of two seconds.
const QUIET_NS: i64 = 2_500_000_000;

pub(crate) struct Cache {
    path: PathBuf,
    document: Document,
    changed: bool,
    /// Whether the cache file exists but could not be read. Such a file must not be overwritten.
    unread: bool,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Document {
    library: Option<String>,
    /// The cached timelines by name. `None` means that the timeline's file exists, but its stamp is
    /// unknown, so that the file must be read.
    timelines: BTreeMap<String, Option<CachedTimeline>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CachedTimeline {
    head: String,
    seen_ns: i64,
    main: Stamp,
    /// The path and stamp of the lorebook. The stamp is `None` if the lorebook file was missing.
    lorebook: Option<(String, Option<Stamp>)>,
    group: Option<(String, Stamp)>,
    /// Whether the lorebook differed from the lorebook in the snapshot `head`.
    other_book: bool,
}

impl CachedTimeline {
    /// Returns whether the lorebook has its own timeline. If so, a change of the lorebook is
    /// detected through that timeline, and the chat need not be read.
    fn has_own_timeline(&self) -> bool {
        let path = self.lorebook.as_ref().and_then(|(path, _)| LibraryPath::parse(path).ok());
        path.is_some_and(|path| TimelineName::of_file(&path).is_some())
    }
}

/// The result of comparing the stamps of a timeline's files with the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheMatch {
    Nothing,
    /// All files equal the snapshot.
    Unchanged,
    /// All files except the lorebook equal the snapshot. The lorebook may have changed.
    AllButBook,
}

impl Cache {
    pub(crate) fn load(store: &Store) -> Self {
        let path = store.private_dir().join(FILE);
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // Read twice after an error, because deleted timelines are not detected without the cache.
        let read = regular::read(&path)
            .or_else(|error| if is_absent(&error) { Err(error) } else { regular::read(&path) });
        let unread = read.as_ref().is_err_and(|error| !is_absent(error));
        let document = read.ok().and_then(|bytes| Document::decode(&bytes)).unwrap_or_default();
        Self { path, document, changed: false, unread }
    }

    /// Compares the stamps of a timeline's files in `root` with the stamps that were cached for the
    /// snapshot `head`.
    pub(crate) fn known(
        &self,
        root: &Path,
        name: &TimelineName,
        groups: &Groups,
        head: SnapshotId,
    ) -> CacheMatch {
        let Some(Some(known)) = self.document.timelines.get(name.as_str()) else {
            return CacheMatch::Nothing;
        };
        let look = |path: &str| fs::metadata(root.join(path)).map(|found| Stamp::of(&found));
        let same = |path: &str, stamp: &Stamp| {
            stamp.mtime_ns < known.seen_ns - QUIET_NS && look(path).is_ok_and(|it| it == *stamp)
        };
        // After any error except `NotFound`, the file may exist.
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
            (true, true) => CacheMatch::Unchanged,
            (true, false) if known.has_own_timeline() => CacheMatch::AllButBook,
            _ => CacheMatch::Nothing,
        }
    }

    /// Returns the timelines whose files were in this library at the last scan and are missing now.
    /// Returns an empty list if the cache belongs to another library.
    pub(crate) fn missing_since_last_scan(&self, root: &Path, here: &Scan) -> Vec<TimelineName> {
        let is_it = self.document.library.as_deref() == Some(&*self.called(root));
        let names = self.document.timelines.keys().filter(|name| is_it && !here.has(name));
        names.filter_map(|name| TimelineName::parse(name).ok()).collect()
    }

    /// Returns the name under which the cache records a library: the path of the library, or an
    /// empty name if the library contains the store. The cache therefore stays valid if such a
    /// library is moved.
    fn called(&self, root: &Path) -> String {
        let holder = self.path.ancestors().nth(3);
        if holder == Some(root) { String::new() } else { root.to_string_lossy().into_owned() }
    }

    /// Binds the cache to the library at `root`. If the cache belonged to another library, drops
    /// the timelines that this library does not have.
    pub(crate) fn is_of(&mut self, root: &Path, here: &Scan) {
        let root = self.called(root);
        if self.document.library.as_ref() != Some(&root) {
            self.document.timelines.retain(|name, _| here.has(name));
            (self.document.library, self.changed) = (Some(root), true);
        }
    }

    /// Records that the files of these timelines were written to the library at `root`, so that a
    /// later scan can detect the deletion of the files.
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

    /// Records that the captured files equal the snapshot `head`, as far as `equal` tells.
    pub(crate) fn remember(&mut self, captured: &Captured, head: SnapshotId, equal: CacheMatch) {
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
            other_book: equal == CacheMatch::AllButBook,
        };
        // If the lorebook could not be read, the chat must be read again at the next scan.
        let known = Some(known).filter(|_| files.unread_book().is_none());
        self.document.timelines.insert(files.timeline.as_str().to_owned(), known);
        self.changed = true;
    }

    /// Writes the cache if it changed. Ignores errors, because the cache is optional.
    pub(crate) fn save(self, store: &Store) {
        if self.changed && !self.unread && store.refuse_links().is_ok() {
            durable::replace_cache(&self.path, &self.document.encode());
        }
    }
}

/// The encoded form is the BLAKE3 hash of the JSON in hexadecimal, followed by the JSON.
impl Document {
    fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).unwrap_or_default();
        [Blake3::of(&json).to_string().as_bytes(), &json].concat()
    }

    /// Returns `None` if the document is damaged or has the format of another version of stvc.
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
    fn encoded_cache_decodes_to_the_same_document() {
        for document in [document(), Document::default()] {
            assert_eq!(Document::decode(&document.encode()), Some(document));
        }
    }

    #[test]
    fn damaged_or_truncated_cache_is_ignored() {
        let bytes = document().encode();
        for at in 0..bytes.len() {
            assert_eq!(Document::decode(&bytes[..at]), None, "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Document::decode(&damaged), None, "damaged at {at}");
        }
    }
}
