//! Writing files so that a power cut leaves either the old bytes or the new ones.
//!
//! The order is always the same: the bytes go to a temporary file beside the target, the file is
//! synced, it takes the target's name, the folder is synced. Before the rename nobody can see the
//! new file under its name; after the folder's sync nobody can lose it. Both the library and the
//! store write through this module; it knows nothing of either.

// Here they are retried.
#![allow(clippy::disallowed_methods)]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::folder::{Folder, open_in_place, own_like, patiently, unlink};
pub use crate::folder::{is_held_elsewhere, remove, rename, sync_dir};

/// The treatment of an existing file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fail with [`io::ErrorKind::AlreadyExists`] and leave it alone.
    Keep,
    Replace,
}

/// Writes `bytes` to `path`, durably; `path`'s folder must exist.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    let mut temp = Temp::beside(path)?;
    temp.write_all(bytes)?;
    temp.finish(path, existing)?;
    sync_dir(parent(path))
}

/// The prefix of temporary files beside a user's own.
pub const TEMP_PREFIX: &str = ".stvc-";

/// Returns a new folder in `dir`, to be filled and then renamed.
pub fn create_temp_dir(dir: &Path, prefix: &str) -> io::Result<PathBuf> {
    make_temp(prefix, |name| fs::create_dir(dir.join(name))).map(|(name, ())| dir.join(name))
}

/// Makes something under a new random name, which others cannot have occupied.
fn make_temp<T>(prefix: &str, make: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(OsString, T)> {
    loop {
        let random = getrandom::u64().map_err(io::Error::other)?;
        // Short on purpose: a chat's name may use up all 255 bytes that a file name has.
        let name = OsString::from(format!("{prefix}{}-{random}.tmp", std::process::id()));
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (name, made)),
        }
    }
}

/// A file that has no name of its own yet and vanishes when dropped, unless
/// [`finish`](Temp::finish)ed.
///
/// The one way to write a file into a folder: it is made exclusively and under a random name, no
/// link is followed, and it is renamed within the folder that was opened for it.
pub struct Temp {
    folder: Arc<Folder>,
    name: OsString,
    file: File,
}

impl Temp {
    /// Returns a new temporary file in the folder of `target`, so that it can be renamed to it.
    pub fn beside(target: &Path) -> io::Result<Self> {
        Self::within(parent(target), TEMP_PREFIX)
    }

    /// Returns a new temporary file in `dir` whose name begins with `prefix`. It can be read, too.
    pub fn within(dir: &Path, prefix: &str) -> io::Result<Self> {
        Self::in_folder(Arc::new(Folder::open(dir)?), prefix)
    }

    /// Returns a new temporary file in an open folder.
    pub fn in_folder(folder: Arc<Folder>, prefix: &str) -> io::Result<Self> {
        let (name, file) = make_temp(prefix, |name| folder.create_new(name))?;
        Ok(Self { folder, name, file })
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Lets it have the mode of `other`, and its owner as far as that is allowed.
    pub fn resemble(&self, other: &fs::Metadata) -> io::Result<()> {
        own_like(&self.file, &self.file.metadata()?, other)?;
        self.file.set_permissions(other.permissions())
    }

    /// Gives the file to the owner of the folder: what root creates there, that user could not
    /// write otherwise.
    pub fn belong_to(&self, folder: &fs::Metadata) -> io::Result<()> {
        own_like(&self.file, &self.file.metadata()?, folder)
    }

    /// Whether the file `other` has the same bytes.
    pub fn is_same_as(&self, other: &Path) -> io::Result<bool> {
        let hash = |file: File| {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file)?;
            io::Result::Ok(hasher.finalize())
        };
        Ok(hash(self.folder.open_file(&self.name)?)? == hash(File::open(other)?)?)
    }

    /// Syncs the file and gives it its name. The folder is **not** synced: several files may share
    /// that step.
    pub fn finish(self, target: &Path, existing: Existing) -> io::Result<()> {
        self.file.sync_all()?;
        let target = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        match existing {
            Existing::Replace => self.folder.rename(&self.name, target),
            Existing::Keep => match self.folder.hard_link(&self.name, target) {
                // Drop removes the temporary name; the target's own name stays.
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Without hard links, looking before the rename is not atomic, but the best there
                // is.
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
        // Gone already after a rename. A failure that passes must not leave it for ever.
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

/// Writes a file where it stands, such as a note of who holds a lock.
pub fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    open_in_place(path, options.write(true).create(true).truncate(true))?.write_all(bytes)
}

/// Opens a file to append to it.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_in_place(path, OpenOptions::new().read(true).append(true).create(true))
}

/// Opens a file that processes lock.
pub fn open_to_lock(path: &Path) -> io::Result<File> {
    open_in_place(path, OpenOptions::new().write(true).create(true).truncate(false))
}

/// Removes a file if it is there, without waiting; `false` if another program holds it open.
pub fn remove_unless_held(path: &Path) -> io::Result<bool> {
    match unlink(path) {
        Err(error) if is_held_elsewhere(&error) => Ok(false),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => Ok(true),
        // On FAT or a share it may stay until the last program closes it.
        Ok(()) => Ok(!cfg!(windows) || matches!(path.try_exists(), Ok(false))),
    }
}

/// Renames a file within its folder and returns the new name. On Windows that is allowed where
/// removing is not: for a mapped file.
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

/// Whether it failed because there is no room left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether it failed because nothing may be written there: a read-only disk or folder.
pub fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Removes a file of ours, if it is there. Tries twice: a passing failure must not leave it for
/// ever.
pub fn remove_own(path: &Path) {
    if unlink(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        let _ = unlink(path);
    }
}

/// Removes temporary files and folders of ours whose process is dead. A failure matters to nobody:
/// the next command tries again.
///
/// Their names are `.stvc-`, perhaps a word, and the process: `.stvc-4711-0.tmp`,
/// `.stvc-incoming-4711-x`.
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

/// Whether the process that made a temporary file may still need it. Another program that has its
/// number is recognised by its name; where the system shows no processes, an hour is enough.
fn may_be_at_work(process: u32, age: Duration) -> bool {
    const LONG: Duration = Duration::from_secs(3600);
    if process == std::process::id() {
        return true;
    }
    // On Windows `/proc` may be a folder; Wine's has other numbers.
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

/// Makes `dir` and the folders above it, each synced into its parent.
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

/// Syncs a file that is there. Windows wants to be asked by somebody who may write it.
pub fn sync_file(path: &Path) -> io::Result<()> {
    open_in_place(path, OpenOptions::new().append(true))?.sync_all()
}

/// Returns the folder that holds `path`; the current one for a bare name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Replaces a cache, without syncing: a torn one is detected. Ignores failures.
pub fn replace_cache(path: &Path, bytes: &[u8]) {
    if let (Ok(folder), Some(name)) = (Folder::open(parent(path)), path.file_name()) {
        let _ = replace_unsynced(&Arc::new(folder), name, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_tell_their_process() {
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

    /// A process that was killed, and one that is at work.
    #[cfg(unix)]
    #[test]
    fn only_what_dead_processes_left_is_removed() {
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
