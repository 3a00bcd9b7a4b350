//! Writes files so that after a power failure each file has either all its old bytes or all its new
//! bytes.
//!
//! A write has four steps: write the bytes to a temporary file in the target's folder, sync the
//! file, rename it to the target's name, sync the folder. Until the rename, no program sees a
//! partial file under the target's name. After the last sync, a power failure cannot undo the
//! rename. Both the library and the store are written through this module.

// clippy disallows these calls elsewhere, because on Windows they must be retried. This module
// retries them.
#![allow(clippy::disallowed_methods)]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::folder::{Folder, open_in_place, own_like, patiently, unlink};
pub use crate::folder::{is_held_elsewhere, remove, rename, sync_dir};

/// How to treat an existing file that has the name of the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fail with [`io::ErrorKind::AlreadyExists`], and leave the existing file unchanged.
    Keep,
    /// Replace the existing file.
    Replace,
}

/// Writes `bytes` to `path` durably. The folder of `path` must exist.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    let mut temp = Temp::beside(path)?;
    temp.write_all(bytes)?;
    temp.finish(path, existing)?;
    sync_dir(parent(path))
}

/// The prefix of the names of stvc's temporary files in the user's folders.
pub const TEMP_PREFIX: &str = ".stvc-";

/// Creates a folder with a random name in `dir`. The caller fills and then renames it.
pub fn create_temp_dir(dir: &Path, prefix: &str) -> io::Result<PathBuf> {
    make_temp(prefix, |name| fs::create_dir(dir.join(name))).map(|(name, ())| dir.join(name))
}

/// Creates a file or folder under a random name. Tries another name if the name already exists.
fn make_temp<T>(prefix: &str, make: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(OsString, T)> {
    loop {
        let random = getrandom::u64().map_err(io::Error::other)?;
        // The target's name is not part of this name: it may already use all 255 bytes of a file
        // name.
        let name = OsString::from(format!("{prefix}{}-{random}.tmp", std::process::id()));
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (name, made)),
        }
    }
}

/// A temporary file. It is removed on drop, unless [`finish`](Temp::finish) renamed it.
///
/// All files are written this way. The temporary file has a random name and is created exclusively,
/// so no link is followed. The rename happens within the open folder, even if another program
/// replaces that folder.
pub struct Temp {
    folder: Arc<Folder>,
    name: OsString,
    file: File,
}

impl Temp {
    /// Creates a temporary file in the folder of `target`, so that the file can be renamed to
    /// `target`.
    pub fn beside(target: &Path) -> io::Result<Self> {
        Self::within(parent(target), TEMP_PREFIX)
    }

    /// Creates a readable temporary file in `dir` whose name begins with `prefix`.
    pub fn within(dir: &Path, prefix: &str) -> io::Result<Self> {
        Self::in_folder(Arc::new(Folder::open(dir)?), prefix)
    }

    /// Creates a temporary file in an open folder.
    pub fn in_folder(folder: Arc<Folder>, prefix: &str) -> io::Result<Self> {
        let (name, file) = make_temp(prefix, |name| folder.create_new(name))?;
        Ok(Self { folder, name, file })
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Copies the mode of `other`, and the owner of `other` if this process may change owners.
    pub fn resemble(&self, other: &fs::Metadata) -> io::Result<()> {
        own_like(&self.file, &self.file.metadata()?, other)?;
        self.file.set_permissions(other.permissions())
    }

    /// Changes the owner of the file to the owner of the folder. Otherwise, if stvc runs as root,
    /// SillyTavern's user could not write the file.
    pub fn belong_to(&self, folder: &fs::Metadata) -> io::Result<()> {
        own_like(&self.file, &self.file.metadata()?, folder)
    }

    /// Returns whether the file at `other` has the same bytes.
    pub fn is_same_as(&self, other: &Path) -> io::Result<bool> {
        let hash = |file: File| {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file)?;
            io::Result::Ok(hasher.finalize())
        };
        Ok(hash(self.folder.open_file(&self.name)?)? == hash(File::open(other)?)?)
    }

    /// Syncs the file and renames it to `target`. The folder is **not** synced, so that one sync
    /// can serve several files.
    pub fn finish(self, target: &Path, existing: Existing) -> io::Result<()> {
        self.file.sync_all()?;
        let target = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        match existing {
            Existing::Replace => self.folder.rename(&self.name, target),
            Existing::Keep => match self.folder.hard_link(&self.name, target) {
                // `drop` removes the temporary name. The file keeps the name `target`.
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // On file systems without hard links, this check and the rename are not atomic.
                Err(_) if !self.folder.has(target)? => self.folder.rename(&self.name, target),
                Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
            },
        }
    }
}

impl Write for Temp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // After a rename, the temporary name does not exist. Other failures are retried once.
        if self
            .folder
            .remove(&self.name)
            .is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        {
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// Replaces a file atomically, without syncing it.
pub fn replace_unsynced(folder: &Arc<Folder>, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let mut temp = Temp::in_folder(Arc::clone(folder), TEMP_PREFIX)?;
    temp.file.write_all(bytes)?;
    temp.folder.rename(&temp.name, name)
}

/// Overwrites a file in place, for example the file that names the holder of a lock. The write is
/// not atomic.
pub fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    open_in_place(path, options.write(true).create(true).truncate(true))?.write_all(bytes)
}

pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_in_place(path, OpenOptions::new().read(true).append(true).create(true))
}

/// Opens a file for locking, and creates it if it does not exist.
pub fn open_to_lock(path: &Path) -> io::Result<File> {
    open_in_place(path, OpenOptions::new().write(true).create(true).truncate(false))
}

/// Removes a file if it exists, without retrying. Returns `false` if another program has the file
/// open.
pub fn remove_unless_held(path: &Path) -> io::Result<bool> {
    match unlink(path) {
        Err(error) if is_held_elsewhere(&error) => Ok(false),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => Ok(true),
        // On FAT or a network share, a removed file exists until the last program closes it.
        Ok(()) => Ok(!cfg!(windows) || matches!(path.try_exists(), Ok(false))),
    }
}

/// Renames a file to a random name in the same folder and returns the new path. Windows allows
/// renaming a memory-mapped file, but not removing it.
pub fn move_aside(path: &Path, prefix: &str) -> io::Result<PathBuf> {
    let rename = |to: &Path| {
        if to.try_exists()? {
            Err(io::ErrorKind::AlreadyExists.into())
        } else {
            patiently(|| fs::rename(path, to))
        }
    };
    let dir = parent(path);
    make_temp(prefix, |name| rename(&dir.join(name))).map(|(name, ())| dir.join(name))
}

/// Returns whether the error means that the disk is full or the quota is exceeded.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns whether the error means that the disk or folder is not writable.
pub fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Removes a file of stvc if it exists. Retries once, and ignores failures.
pub fn remove_own(path: &Path) {
    if unlink(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        let _ = unlink(path);
    }
}

/// Removes temporary files and folders of stvc processes that ended without removing them. Ignores
/// failures: the next command tries again.
///
/// A temporary name has the prefix `.stvc-`, an optional word, and the process id:
/// `.stvc-4711-0.tmp`, `.stvc-incoming-4711-x`.
pub fn clear_left_behind(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else { continue };
        let age = entry.metadata().and_then(|found| found.modified()).map(|time| time.elapsed());
        let age = age.ok().and_then(Result::ok).unwrap_or_default();
        if may_be_at_work(process, age) {
            continue;
        }
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
            _ => unlink(&entry.path()),
        };
    }
}

fn process_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(TEMP_PREFIX)?;
    let word =
        rest.split_once('-').filter(|(word, _)| word.bytes().all(|c| c.is_ascii_lowercase()));
    let rest = word.map_or(rest, |(_, rest)| rest);
    let (process, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
    let ours = rest.starts_with('-') || rest == ".tmp";
    process.parse().ok().filter(|_| ours)
}

/// Returns whether the process that created a temporary file may still need the file. If a program
/// of another name has the process id now, the id was reused, and a file older than an hour is not
/// needed. The age also decides on systems without `/proc`.
fn may_be_at_work(process: u32, age: Duration) -> bool {
    const LONG: Duration = Duration::from_secs(3600);
    if process == std::process::id() {
        return true;
    }
    // Only Unix uses `/proc`: Windows may have an ordinary folder of this name, and Wine shows the
    // `/proc` of Linux, which has other process ids.
    let processes = Path::new("/proc");
    let name = |process: &str| fs::read(processes.join(process).join("comm")).ok();
    match name("self").filter(|_| cfg!(unix)) {
        None => age < LONG,
        Some(own) => match name(&process.to_string()) {
            Some(other) => other == own || age < LONG,
            None => processes.join(process.to_string()).exists(),
        },
    }
}

/// Creates `dir` and its missing parents. Each new folder is synced into its parent.
pub fn create_dir_all(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    create_dir_all(parent(dir))?;
    match fs::create_dir(dir) {
        Ok(()) => sync_dir(parent(dir)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Syncs an existing file. The file is opened for appending, because Windows syncs only handles
/// with write access.
pub fn sync_file(path: &Path) -> io::Result<()> {
    open_in_place(path, OpenOptions::new().append(true))?.sync_all()
}

/// Returns the folder of `path`, or `.` for a bare file name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Replaces a cache file without syncing. A cache that a power failure damaged is detected when it
/// is read. Ignores failures.
pub fn replace_cache(path: &Path, bytes: &[u8]) {
    if let (Ok(folder), Some(name)) = (Folder::open(parent(path)), path.file_name()) {
        let _ = replace_unsynced(&Arc::new(folder), name, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_id_is_read_from_temporary_file_names() {
        for (name, process) in [
            (".stvc-4711-0.tmp", Some(4711)),
            (".stvc-4711-cache.tmp", Some(4711)),
            (".stvc-mail-4711.tmp", Some(4711)),
            (".stvc-new-4711.tmp", Some(4711)),
            (".stvc-incoming-4711-xyz", Some(4711)),
            (".stvc-replaced", None),
            (".stvc-4711", None),
            (".stvc-notes-of-4711.txt", None),
            (".stvc-Mine-4711.tmp", None),
            ("stvc-4711-0.tmp", None),
        ] {
            assert_eq!(process_of(name), process, "{name}");
        }
    }

    /// Uses the ids of a process that has ended and of a process that is running.
    #[cfg(unix)]
    #[test]
    fn only_temporary_files_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let own = std::process::id();
        let names = |id: u32| [format!(".stvc-{id}-0.tmp"), format!(".stvc-mail-{id}.tmp")];
        for name in names(dead).iter().chain(&names(own)) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let parent = names(std::os::unix::process::parent_id());
        for name in &parent {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let own_user = folder.path().join(".stvc-of-mine");
        fs::write(&own_user, "x").unwrap();
        clear_left_behind(folder.path());
        let is_there = |name: &String| folder.path().join(name).exists();
        assert!(names(own).iter().chain(&parent).all(is_there) && own_user.exists());
        if Path::new("/proc/self/comm").exists() {
            assert!(!names(dead).iter().any(is_there));
        }
    }
}
