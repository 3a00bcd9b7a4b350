//! What is known of unchanged files: which stamps a timeline's files had when they were last seen to equal its newest snapshot.
//!
//! Only a shortcut. It lies in `stvc/cache`, can be deleted at any time, and a stamp is believed only if the file had been
//! left alone for two seconds when it was taken: a clock may be too coarse to tell two quick saves apart. Every save reads and writes all of it, so it is no JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::known_folders;
use crate::archive::{Blake3, SnapshotId};
use crate::st::{Captured, Groups, LibraryPath, Scan, Stamp, TimelineName};
use crate::store::{ObjectId, Store};
use crate::{durable, regular};

/// More than two seconds: some file systems count in steps of two.
const QUIET_NS: i64 = 2_500_000_000;

/// The cache, loaded; a missing or unreadable one is empty.
pub(crate) struct Cache {
    path: PathBuf,
    document: Document,
    changed: bool,
    /// It is there and could not be read just now: what it knows must not be lost.
    unread: bool,
}

#[derive(Debug, Default, PartialEq)]
struct Document {
    /// The library that they are of, where that was said.
    library: Option<String>,
    timelines: BTreeMap<String, CachedTimeline>,
}

#[derive(Debug, PartialEq)]
struct CachedTimeline {
    head: ObjectId,
    /// When the stamps were taken.
    seen_ns: i64,
    /// Of the timeline's own file.
    main: Stamp,
    /// The lorebook's path and stamp; no stamp if the file was missing.
    lorebook: Option<(String, Option<Stamp>)>,
    group: Option<(String, Stamp)>,
    /// The lorebook was another than the snapshot has; the rest was not.
    other_book: bool,
}

impl CachedTimeline {
    /// Returns the entry of a file that is there and has to be read.
    fn unread() -> Self {
        Self {
            head: ObjectId::from([0; 20]),
            seen_ns: 0,
            main: Stamp { len: 0, mtime_ns: 0, inode: 0 },
            lorebook: None,
            group: None,
            other_book: false,
        }
    }
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
        let path = store.private_dir().join(FILE);
        let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // Once more: who was deleted is found out by what it knows.
        let read = regular::read(&path)
            .or_else(|error| if is_absent(&error) { Err(error) } else { regular::read(&path) });
        let unread = read.as_ref().is_err_and(|error| !is_absent(error));
        let document = read.ok().and_then(|bytes| Document::decode(&bytes)).unwrap_or_default();
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
        let all_but_book = known.head == head.0
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

    /// The timelines whose files were in this library when they were last looked at, and are not here now. Of another library nothing is known.
    pub(crate) fn seen_besides(&self, root: &Path, here: &Scan) -> Vec<TimelineName> {
        let is_it = self.document.library.as_deref() == Some(&*self.called(root));
        let names = self.document.timelines.keys().filter(|name| is_it && !here.has(name));
        names.filter_map(|name| TimelineName::parse(name).ok()).collect()
    }

    /// What a library is called: nothing, if the store lies in it, so that both can be moved.
    fn called(&self, root: &Path) -> String {
        let holder = self.path.ancestors().nth(3);
        if holder == Some(root) { String::new() } else { root.to_string_lossy().into_owned() }
    }

    /// What is remembered is of this library. What was of another is forgotten.
    pub(crate) fn is_of(&mut self, root: &Path, here: &Scan) {
        let root = self.called(root);
        if self.document.library.as_ref() != Some(&root) {
            self.document.timelines.retain(|name, _| here.has(name));
            (self.document.library, self.changed) = (Some(root), true);
        }
    }

    /// Records that the files of these timelines were written to this library, so that a later run can tell that they were deleted.
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
        for name in names {
            document.timelines.entry(name.as_str().to_owned()).or_insert_with(|| {
                self.changed = true;
                CachedTimeline::unread()
            });
        }
        self.save(store);
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
            // One whose lorebook could not be read is looked at again: no snapshot is what was seen.
            head: if files.unread_book().is_none() { head.0 } else { ObjectId::from([0; 20]) },
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
    pub(crate) fn save(self, store: &Store) {
        if self.changed && !self.unread && store.refuse_links().is_ok() {
            durable::replace_cache(&self.path, &self.document.encode());
        }
    }
}

const FILE: &str = "cache";
/// How the file begins, by which another version's is told from it.
const MAGIC: &[u8] = b"stvc cache 2\n";

/// As bytes: numbers of eight of them, texts with their length before them, what may be missing with a byte that says whether it is there; in the end a hash of all that.
impl Document {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.timelines.len() * 160);
        out.extend_from_slice(MAGIC);
        put_option(&mut out, self.library.as_deref(), put_text);
        for (name, known) in &self.timelines {
            put_text(&mut out, name);
            out.extend_from_slice(known.head.as_slice());
            put_number(&mut out, known.seen_ns);
            put_stamp(&mut out, &known.main);
            put_option(&mut out, known.lorebook.as_ref(), |out, (path, stamp)| {
                put_text(out, path);
                put_option(out, stamp.as_ref(), put_stamp);
            });
            put_option(&mut out, known.group.as_ref(), |out, (path, stamp)| {
                put_text(out, path);
                put_stamp(out, stamp);
            });
            out.push(u8::from(known.other_book));
        }
        let check = Blake3::of(&out);
        out.extend_from_slice(check.as_bytes());
        out
    }

    /// `None` if it is damaged or another version's.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, check) = bytes.split_last_chunk::<32>()?;
        if Blake3::of(bytes).as_bytes() != check {
            return None;
        }
        let mut fields = Fields(bytes.strip_prefix(MAGIC)?);
        let library = fields.option(Fields::text)?;
        let mut timelines = Vec::new();
        while !fields.0.is_empty() {
            let name = fields.text()?;
            let known = CachedTimeline {
                head: ObjectId::from(*fields.bytes::<20>()?),
                seen_ns: fields.number()?,
                main: fields.stamp()?,
                lorebook: fields
                    .option(|fields| Some((fields.text()?, fields.option(Fields::stamp)?)))?,
                group: fields.option(|fields| Some((fields.text()?, fields.stamp()?)))?,
                other_book: fields.flag()?,
            };
            timelines.push((name, known));
        }
        Some(Self { library, timelines: timelines.into_iter().collect() })
    }
}

fn put_number(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as i64);
    out.extend_from_slice(text.as_bytes());
}

fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    put_number(out, stamp.len.cast_signed());
    put_number(out, stamp.mtime_ns);
    put_number(out, stamp.inode.cast_signed());
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl Fn(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// What was put, one after the other.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn bytes<const N: usize>(&mut self) -> Option<&'b [u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<i64> {
        self.bytes().map(|bytes| i64::from_le_bytes(*bytes))
    }

    fn flag(&mut self) -> Option<bool> {
        self.bytes().map(|[flag]| *flag != 0)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(str::from_utf8(text).ok()?.to_owned())
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let (len, mtime_ns, inode) = (self.number()?, self.number()?, self.number()?);
        Some(Stamp { len: len.cast_unsigned(), mtime_ns, inode: inode.cast_unsigned() })
    }

    /// A value that may be missing; `None` if what is there is none.
    fn option<T>(&mut self, get: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { get(self).map(Some) } else { Some(None) }
    }
}

/// Whether a chat's lorebook has a history of its own: then the chat need not be looked at because of it.
fn is_apart(known: &CachedTimeline) -> bool {
    let path = known.lorebook.as_ref().and_then(|(path, _)| LibraryPath::parse(path).ok());
    path.is_some_and(|path| TimelineName::of_file(&path).is_some())
}

/// Nothing shall be known any more.
pub(crate) fn forget_all(store: &Store) {
    durable::remove_own(&store.private_dir().join(FILE));
    known_folders::forget(store);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let stamp = |number| Stamp { len: number, mtime_ns: -7, inode: u64::MAX - number };
        let known = |lorebook, group, other_book| CachedTimeline {
            head: ObjectId::from([7; 20]),
            seen_ns: i64::MIN,
            main: stamp(1),
            lorebook,
            group,
            other_book,
        };
        let book = "worlds/\u{1f98a}\n.json".to_owned();
        let timelines = [
            ("chats/M/a\tb".to_owned(), known(None, None, false)),
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
    fn what_is_written_is_read() {
        for document in [document(), Document::default()] {
            assert_eq!(Document::decode(&document.encode()), Some(document));
        }
    }

    #[test]
    fn what_is_damaged_or_cut_is_nothing() {
        let bytes = document().encode();
        for at in 0..bytes.len() {
            assert_eq!(Document::decode(&bytes[..at]), None, "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Document::decode(&damaged), None, "damaged at {at}");
        }
        // One whose hash is right and whose fields are not.
        let mut odd = [MAGIC, &[1, 255, 255, 255, 255, 255, 255, 255, 127]].concat();
        odd.extend_from_slice(Blake3::of(&odd).as_bytes());
        assert_eq!(Document::decode(&odd), None);
    }
}
