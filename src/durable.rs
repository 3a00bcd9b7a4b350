//! Writing files so that a power cut leaves either the old bytes or the new ones.
//!
//! The order is always the same: the bytes go to a temporary file beside the target, the file is synced,
//! it takes the target's name, the folder is synced. Before the rename nobody can see the new file under its name;
//! after the folder's sync nobody can lose it. Both the library and the store write through this module;
//! it knows nothing of either.

// Here they are tried again.
#![allow(clippy::disallowed_methods)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to do when a file of that name is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Fail with [`io::ErrorKind::AlreadyExists`] and leave it alone.
    Keep,
    Replace,
}

/// Write `bytes` to `path`, durably; `path`'s folder must exist.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    let mut temp = Temp::beside(path)?;
    temp.file().write_all(bytes)?;
    temp.finish(path, existing)?;
    sync_dir(parent(path))
}

/// How the names of temporary files beside a user's own begin.
pub const TEMP_PREFIX: &str = ".stvc-";

/// Tells the temporary files of this process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A new folder in `dir`, to be filled and then renamed.
pub fn create_temp_dir(dir: &Path) -> io::Result<PathBuf> {
    make_temp(dir, TEMP_PREFIX, |path| fs::create_dir(path)).map(|(path, ())| path)
}

/// Make something under a name that nothing has yet.
fn make_temp<T>(
    dir: &Path,
    prefix: &str,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        // Short on purpose: a chat's name may use up all 255 bytes that a file name has.
        let path = dir.join(format!("{prefix}{}-{n}.tmp", std::process::id()));
        match make(&path) {
            // Left behind by a process of the same id that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
    }
}

/// A file that has no name of its own yet and vanishes when dropped, unless [`finish`](Temp::finish)ed.
pub struct Temp {
    path: PathBuf,
    file: File,
}

impl Temp {
    /// A new temporary file in the folder of `target`, so that it can be renamed to it.
    pub fn beside(target: &Path) -> io::Result<Self> {
        Self::within(parent(target), TEMP_PREFIX)
    }

    /// A new temporary file in `dir` whose name begins with `prefix`. It can be read, too.
    pub fn within(dir: &Path, prefix: &str) -> io::Result<Self> {
        let make =
            |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
        make_temp(dir, prefix, make).map(|(path, file)| Self { path, file })
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Let it have the mode of `other`, and its owner as far as that is allowed.
    pub fn resemble(&self, other: &fs::Metadata) -> io::Result<()> {
        own_like(&self.file, &self.file.metadata()?, other)?;
        self.file.set_permissions(other.permissions())
    }

    /// What root makes in somebody's folder is that person's, who could not write it otherwise.
    pub fn belong_to(&self, folder: &fs::Metadata) -> io::Result<()> {
        own_like(&self.file, &self.file.metadata()?, folder)
    }

    /// Whether the file `other` has the same bytes.
    pub fn is_same_as(&self, other: &Path) -> io::Result<bool> {
        let hash = |path: &Path| {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(File::open(path)?)?;
            io::Result::Ok(hasher.finalize())
        };
        Ok(hash(&self.path)? == hash(other)?)
    }

    /// Sync the file and give it its name. The folder is **not** synced: several files may share that step.
    pub fn finish(self, target: &Path, existing: Existing) -> io::Result<()> {
        self.file.sync_all()?;
        match existing {
            Existing::Replace => rename(&self.path, target),
            Existing::Keep => match fs::hard_link(&self.path, target) {
                // Drop removes the temporary name; the target's own name stays.
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // A file system without hard links: the look before the rename is not atomic, but it is the best there is.
                Err(_) if !target.try_exists()? => rename(&self.path, target),
                Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
            },
        }
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // Gone already after a rename.
        remove_own(&self.path);
    }
}

/// Give a file its name, in the place of what has it.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patiently(|| though_protected(to, || fs::rename(from, to)))
}

/// Remove a file.
pub fn remove(path: &Path) -> io::Result<()> {
    patiently(|| unlink(path))
}

/// Remove a file if it is there, and do not wait if somebody else has it open: then it is still there, and the answer is `false`.
pub fn remove_unless_held(path: &Path) -> io::Result<bool> {
    match unlink(path) {
        Err(error) if is_held_elsewhere(&error) => Ok(false),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => Ok(true),
        // Where Windows has not the ways of Unix (FAT, a share) it may be there until the last one closes it.
        Ok(()) => Ok(!cfg!(windows) || matches!(path.try_exists(), Ok(false))),
    }
}

/// Give a file a name that nobody asks for, in the same folder; the name. On Windows that is allowed where removing is not: for a file that is mapped.
pub fn move_aside(path: &Path, prefix: &str) -> io::Result<PathBuf> {
    let rename = |to: &Path| match to.try_exists()? {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => patiently(|| fs::rename(path, to)),
    };
    make_temp(parent(path), prefix, rename).map(|(path, ())| path)
}

fn unlink(path: &Path) -> io::Result<()> {
    though_protected(path, || fs::remove_file(path))
}

/// On Windows a file that is write-protected, as git's objects are, can be neither replaced nor removed; elsewhere that is up to its folder.
fn though_protected(path: &Path, deed: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let done = deed();
    #[cfg(windows)]
    if done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        && let Ok(found) = fs::symlink_metadata(path)
        && found.permissions().readonly()
    {
        let mut permissions = found.permissions();
        permissions.set_readonly(false);
        fs::set_permissions(path, permissions)?;
        return deed();
    }
    #[cfg(not(windows))]
    let _ = path;
    done
}

/// On Windows a file that somebody has open cannot be replaced or removed: a virus scanner or a synchroniser, mostly, which look at every new file for a moment.
fn patiently(deed: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for wait in [1, 2, 5, 10, 20, 50, 100, 200, 400] {
        match deed() {
            Err(error) if is_held_elsewhere(&error) => {
                std::thread::sleep(Duration::from_millis(wait));
            }
            done => return done,
        }
    }
    deed()
}

/// Whether it failed because somebody else has the file open, as far as Windows tells: access denied, shared, locked, mapped.
pub fn is_held_elsewhere(error: &io::Error) -> bool {
    cfg!(windows) && matches!(error.raw_os_error(), Some(5 | 32 | 33 | 1224))
}

/// Whether it failed because there is no room left.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether it failed because nothing may be written there: a read-only disk or folder.
pub fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Remove a file of ours that nobody needs, if it is there. A failure that passes must not leave it for ever.
pub fn remove_own(path: &Path) {
    if unlink(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        let _ = unlink(path);
    }
}

/// Only root can give a file away; for others it stays theirs, and that is as good as it gets.
#[cfg(unix)]
fn own_like(file: &File, own: &fs::Metadata, other: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    match fchown(file, Some(other.uid()), Some(other.gid())) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

/// On Windows a new file has the owner and the rights of its folder.
#[cfg(not(unix))]
fn own_like(_file: &File, _own: &fs::Metadata, _other: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Removes temporary files and folders of ours whose process is dead. A failure matters to nobody: the next command tries again.
///
/// Their names are `.stvc-`, perhaps a word, and the process: `.stvc-4711-0.tmp`, `.stvc-incoming-4711-x`.
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

/// Returns the process whose temporary file has this name.
fn process_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(TEMP_PREFIX)?;
    let word =
        rest.split_once('-').filter(|(word, _)| word.bytes().all(|c| c.is_ascii_lowercase()));
    let rest = word.map_or(rest, |(_, rest)| rest);
    let (process, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
    let ours = rest.starts_with('-') || rest == ".tmp";
    process.parse().ok().filter(|_| ours)
}

/// Whether the process that made a temporary file of this age may still need it. A number that another program has by now is told by that program's name, where the system shows it;
/// where it shows no processes, an hour must be enough.
fn may_be_at_work(process: u32, age: Duration) -> bool {
    const LONG: Duration = Duration::from_secs(3600);
    if process == std::process::id() {
        return true;
    }
    // On Windows `/proc` may be a folder of the current drive; under Wine it is this, and knows other numbers.
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

/// Make `dir` and the folders above it, each synced into its parent.
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

/// Sync a file that is there. Windows wants to be asked by somebody who may write it.
pub fn sync_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.sync_all()
}

/// Sync a folder, so that the names in it survive a power cut.
#[cfg(unix)]
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Windows promises nothing for a folder. NTFS writes its journal when it is asked here; where it is not, names are as old as the last sync of a file after them, and
/// docs/format.md counts on no more.
#[cfg(not(unix))]
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(windows)]
    {
        /// Without it a folder cannot be opened.
        const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
        std::os::windows::fs::OpenOptionsExt::custom_flags(
            &mut options,
            FILE_FLAG_BACKUP_SEMANTICS,
        );
    }
    let _ = options.open(dir).and_then(|dir| dir.sync_all());
    Ok(())
}

/// The folder that holds `path`; the current one for a bare name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Put a cache in its place; no link there is followed. Nothing is synced: one that is torn is not believed. That it fails matters to nobody.
pub fn replace_cache(path: &Path, bytes: &[u8]) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temp = format!("{}{}-{name}.tmp", TEMP_PREFIX, std::process::id());
    let temp = parent(path).join(temp);
    // Left behind by a process of the same number that was killed.
    let _ = unlink(&temp);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temp)?;
        file.write_all(bytes)?;
        drop(file);
        rename(&temp, path)
    };
    if write().is_err() {
        let _ = unlink(&temp);
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
