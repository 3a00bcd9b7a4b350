//! Reads the files of one timeline consistently.
//!
//! SillyTavern saves the chat, its lorebook and its group's file one after the other, and does not
//! lock them. Therefore the stamps of all files (size, time and inode) are recorded, all files are
//! read, and all stamps are compared. If no stamp changed, there was a moment at which all files
//! had these bytes: between the last read and the first comparison.

use super::folder::is_absent;
use super::read_file::{FileBytes, read_file};
use super::{
    BoundBook, Category, Chat, Error, FileAt, Groups, Library, LibraryPath, Result, TimelineFiles,
    TimelineName, bound_lorebook, lorebook_path, open_file,
};
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pauses before the second and later attempts. A save takes a few milliseconds; a slow disk gets
/// more time.
const PAUSES_MS: [u64; 4] = [10, 40, 80, 160];

/// Metadata that distinguishes two versions of a file without reading the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    pub len: u64,
    /// Last change, in nanoseconds since 1970; 0 if the system does not provide it.
    pub mtime_ns: i64,
    /// Inode number, which changes with every atomic save; 0 if the system has no inode numbers.
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

/// Source of file contents: the disk, or the disk with the planned changes of an operation.
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
            // For a link to an unmounted drive this returns another error, so that the file does
            // not count as removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                is_absent(&path).and(Err(error))
            }
            Err(error) => Err(error),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    pub files: TimelineFiles,
    pub stamps: Stamps,
    /// Time just before the first stamp was recorded, in nanoseconds since 1970.
    pub seen_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    pub main: Stamp,
    pub lorebook: Option<Stamp>,
    pub group: Option<Stamp>,
}

/// Treatment of a lorebook that exists but cannot be read. Also applies to an unreadable group
/// file, if the chat has a header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unread {
    Fails,
    IsLeftOut,
}

/// Reads a timeline's files. Fails if a file exists but cannot be read.
pub fn capture(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    files: &dyn Files,
) -> Result<Captured> {
    Attempt { root: library.root(), files, unread: Unread::Fails }.repeat(groups, name)
}

/// Reads a timeline's files. If the lorebook exists but cannot be read, returns the other files and
/// the reason ([`BoundBook::unread`]), because new messages must still be stored.
pub fn capture_readable(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    files: &dyn Files,
) -> Result<Captured> {
    Attempt { root: library.root(), files, unread: Unread::IsLeftOut }.repeat(groups, name)
}

enum CaptureFailure {
    Failed(Error),
    Changed(LibraryPath),
}

impl From<Error> for CaptureFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type AttemptResult<T> = std::result::Result<T, CaptureFailure>;

struct Attempt<'a> {
    root: &'a Path,
    files: &'a dyn Files,
    unread: Unread,
}

impl Attempt<'_> {
    fn repeat(&self, groups: &Groups, name: &TimelineName) -> Result<Captured> {
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let changed = match self.capture(groups, name) {
                Ok(captured) => return Ok(captured),
                Err(CaptureFailure::Failed(error)) => return Err(error),
                Err(CaptureFailure::Changed(path)) => path,
            };
            let Some(pause) = pauses.next() else {
                return Err(Error::ChangedWhileReading { path: changed.under(self.root) });
            };
            std::thread::sleep(Duration::from_millis(pause));
        }
    }

    fn capture(&self, groups: &Groups, name: &TimelineName) -> AttemptResult<Captured> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seen_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let Some((main, stamp)) = self.read(&name.file())? else {
            let path = name.file().under(self.root);
            return Err(Error::Io { path, source: io::ErrorKind::NotFound.into() }.into());
        };
        let is_left_out = self.unread == Unread::IsLeftOut;
        let group_path = groups.group_of(name.chat()).filter(|_| name.is_group());
        // The metadata of a chat without a header is in its group's file.
        let header = |category| Chat::header_of(&main.bytes, category);
        let has_header = || header(Category::GroupChat).header.is_some();
        if let (None, true, Some((file, why))) = (group_path, name.is_group(), &groups.unread)
            && !(is_left_out && has_header())
        {
            let source = io::Error::other(why.clone());
            return Err(Error::Io { path: self.root.join(file), source }.into());
        }
        let group = group_path.map(|path| self.read(path)).transpose()?.flatten();
        let bytes = group.as_ref().map(|(group, _)| group.bytes.as_slice());
        let bound = || bound_lorebook(&header(name.category()), name, bytes);
        let bound = name.is_chat().then(bound).flatten();
        let path = bound.as_deref().and_then(lorebook_path);
        let (book, unread) = match path.as_ref().map(|path| self.read(path)).transpose() {
            Ok(book) => (book.flatten(), None),
            Err(CaptureFailure::Failed(why)) if is_left_out => (None, Some(why.to_string())),
            Err(halt) => return Err(halt),
        };
        let stamps = Stamps {
            main: stamp,
            lorebook: book.as_ref().map(|(_, stamp)| *stamp),
            group: group.as_ref().map(|(_, stamp)| *stamp),
        };
        let seen = [
            (Some(&main.path), Some(stamps.main)),
            (group_path, stamps.group),
            (path.as_ref().filter(|_| unread.is_none()), stamps.lorebook),
        ];
        for (path, stamp) in seen {
            if let Some(path) = path
                && self.stamp(path)? != stamp
            {
                return Err(CaptureFailure::Changed(path.clone()));
            }
        }
        let bytes = book.map(|(book, _)| book.bytes);
        let files = TimelineFiles {
            timeline: name.clone(),
            lorebook: bound.map(|name| BoundBook { name, path, bytes, unread }),
            group: group.map(|(group, _)| group),
            main,
        };
        Ok(Captured { files, stamps, seen_ns })
    }

    /// Returns a file and the stamp that the file had before it was read; `None` if the file does
    /// not exist.
    fn read(&self, path: &LibraryPath) -> AttemptResult<Option<(FileAt, Stamp)>> {
        use io::ErrorKind::{NotFound, UnexpectedEof};
        let Some(stamp) = self.stamp(path)? else { return Ok(None) };
        match self.files.read(self.root, path) {
            Ok(bytes) if bytes.len() as u64 == stamp.len => {
                Ok(Some((FileAt { path: path.clone(), bytes }, stamp)))
            }
            Ok(_) => Err(CaptureFailure::Changed(path.clone())),
            // The file was removed or truncated after its stamp was recorded.
            Err(error) if matches!(error.kind(), NotFound | UnexpectedEof) => {
                Err(CaptureFailure::Changed(path.clone()))
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
