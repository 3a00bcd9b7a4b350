//! A consistent read of one timeline's files.
//!
//! The chat, its lorebook and its group's file are saved one after the other, and nothing locks them. So: note each file's
//! stamp, read them all, look at all the stamps again. Only if none moved did the bytes stand side by side at one moment
//! (the one between the last read and the first second look).

use super::folder::is_absent;
use super::read_file::{FileBytes, read_file};
use super::{
    BoundBook, Chat, Error, FileAt, Groups, Library, LibraryPath, Result, TimelineFiles,
    TimelineName,
};
use super::{bound_lorebook, lorebook_path, open_file};
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pauses before the second and later attempts. A save takes a few milliseconds; a slow disk gets more time.
const PAUSES_MS: [u64; 4] = [10, 40, 80, 160];

/// What tells two states of a file apart without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    pub len: u64,
    /// Last change, in nanoseconds since 1970; 0 where the system does not say.
    pub mtime_ns: i64,
    /// The file's number, new at every atomic save; 0 where there is none.
    pub inode: u64,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Self {
        let mtime_ns = match metadata.modified().map(|time| time.duration_since(UNIX_EPOCH)) {
            Ok(Ok(since)) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Ok(Err(before)) => {
                i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns)
            }
            Err(_) => 0,
        };
        Self { len: metadata.len(), mtime_ns, inode: inode(metadata) }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

pub trait Files {
    fn read(&self, root: &Path, path: &LibraryPath) -> io::Result<FileBytes>;
    fn stamp(&self, root: &Path, path: &LibraryPath) -> io::Result<Stamp>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, root: &Path, path: &LibraryPath) -> io::Result<FileBytes> {
        read_file(open_file(root, path)?)
    }

    fn stamp(&self, root: &Path, path: &LibraryPath) -> io::Result<Stamp> {
        let path = path.under(root);
        match fs::metadata(&path) {
            Ok(found) => Ok(Stamp::of(&found)),
            // A link to a drive that is not mounted is not a file that was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                is_absent(&path).and(Err(error))
            }
            Err(error) => Err(error),
        }
    }
}

/// One timeline's files as they stood side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    pub files: TimelineFiles,
    /// What they looked like from outside.
    pub stamps: Stamps,
    /// When they were about to be stamped, in nanoseconds since 1970.
    pub seen_ns: i64,
}

/// The stamps of a timeline's files; none for a file that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Of the timeline's own file.
    pub main: Stamp,
    pub lorebook: Option<Stamp>,
    pub group: Option<Stamp>,
}

struct ReadFile {
    file: FileAt,
    stamp: Stamp,
}

/// Reads a timeline's files. A file that exists and cannot be read is an error.
pub fn capture(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    files: &dyn Files,
) -> Result<Captured> {
    attempt(library, groups, name, files, Unread::Fails)
}

/// Reads a timeline's files, also a chat whose lorebook exists and cannot be read: what is written in the chat meanwhile must be stored. The files say why the book could not be
/// read ([`BoundBook::unread`]).
pub fn capture_readable(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    files: &dyn Files,
) -> Result<Captured> {
    attempt(library, groups, name, files, Unread::IsLeftOut)
}

/// The treatment of a chat's lorebook, or of the group's file of a chat that has a header, that exists and cannot be read.
#[derive(Clone, Copy)]
enum Unread {
    Fails,
    IsLeftOut,
}

fn attempt(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    files: &dyn Files,
    unread: Unread,
) -> Result<Captured> {
    let attempt = Attempt { root: library.root(), files, unread };
    let mut pauses = PAUSES_MS.into_iter();
    loop {
        let changed = match attempt.capture(groups, name, now_ns()) {
            Ok(captured) => return Ok(captured),
            Err(Halt::Failed(error)) => return Err(error),
            Err(Halt::Moved(path)) => path,
        };
        match pauses.next() {
            Some(pause) => std::thread::sleep(Duration::from_millis(pause)),
            None => {
                return Err(Error::ChangedWhileReading { path: changed.under(library.root()) });
            }
        }
    }
}

/// Why an attempt ended early.
enum Halt {
    Failed(Error),
    /// This file changed meanwhile.
    Moved(LibraryPath),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Attempted<T> = std::result::Result<T, Halt>;

struct Attempt<'a> {
    root: &'a Path,
    files: &'a dyn Files,
    unread: Unread,
}

impl Attempt<'_> {
    fn capture(&self, groups: &Groups, name: &TimelineName, seen_ns: i64) -> Attempted<Captured> {
        let Some(chat) = self.read(&name.file())? else {
            let path = name.file().under(self.root);
            return Err(Error::Io { path, source: io::ErrorKind::NotFound.into() }.into());
        };
        if !name.is_chat() {
            let ReadFile { file, stamp } = chat;
            if self.stamp(&file.path)? != Some(stamp) {
                return Err(Halt::Moved(file.path));
            }
            let files = TimelineFiles::alone(name, file.bytes);
            let stamps = Stamps { main: stamp, lorebook: None, group: None };
            return Ok(Captured { files, stamps, seen_ns });
        }
        let group_path = if name.is_group() { groups.group_of(name.chat()) } else { None };
        // The metadata of a chat without a header is in its group's file. For others that is only evidence.
        let is_needed = || match self.unread {
            Unread::Fails => true,
            Unread::IsLeftOut => Chat::header_of(&chat.file.bytes, true).header.is_none(),
        };
        if let (None, true, Some((file, why))) = (group_path, name.is_group(), &groups.unread)
            && is_needed()
        {
            let source = io::Error::other(why.clone());
            return Err(Error::Io { path: self.root.join(file), source }.into());
        }
        let group = group_path.map(|path| self.read(path)).transpose()?.flatten();
        let bound = bound_lorebook(
            &Chat::header_of(&chat.file.bytes, name.is_group()),
            name,
            group.as_ref().map(|group| group.file.bytes.as_slice()),
        );
        let path = bound.as_deref().and_then(lorebook_path);
        let (book, unread) = match path.as_ref().map(|path| self.read(path)).transpose() {
            Ok(book) => (book.flatten(), None),
            Err(Halt::Failed(why)) if matches!(self.unread, Unread::IsLeftOut) => {
                (None, Some(why.to_string()))
            }
            Err(halt) => return Err(halt),
        };
        let stamps = Stamps {
            main: chat.stamp,
            lorebook: book.as_ref().map(|book| book.stamp),
            group: group.as_ref().map(|group| group.stamp),
        };
        let seen = [
            (Some(&chat.file.path), Some(stamps.main)),
            (group_path, stamps.group),
            (path.as_ref().filter(|_| unread.is_none()), stamps.lorebook),
        ];
        for (path, stamp) in seen {
            if let Some(path) = path
                && self.stamp(path)? != stamp
            {
                return Err(Halt::Moved(path.clone()));
            }
        }
        let bytes = book.map(|book| book.file.bytes);
        let files = TimelineFiles {
            timeline: name.clone(),
            main: chat.file,
            lorebook: bound.map(|name| BoundBook { name, path, bytes, unread }),
            group: group.map(|group| group.file),
        };
        Ok(Captured { files, stamps, seen_ns })
    }

    /// A file with the stamp it had before it was read; none if it is missing.
    fn read(&self, path: &LibraryPath) -> Attempted<Option<ReadFile>> {
        let Some(stamp) = self.stamp(path)? else { return Ok(None) };
        match self.files.read(self.root, path) {
            Ok(bytes) if bytes.len() as u64 == stamp.len => {
                let file = FileAt { path: path.clone(), bytes };
                Ok(Some(ReadFile { file, stamp }))
            }
            Ok(_) => Err(Halt::Moved(path.clone())),
            // Gone, or cut shorter, since it was stamped.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
                ) =>
            {
                Err(Halt::Moved(path.clone()))
            }
            Err(source) => Err(Error::Io { path: path.under(self.root), source }.into()),
        }
    }

    fn stamp(&self, path: &LibraryPath) -> Result<Option<Stamp>> {
        match self.files.stamp(self.root, path) {
            Ok(stamp) => Ok(Some(stamp)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io { path: path.under(self.root), source }),
        }
    }
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}
