//! Creates and opens stores, and distinguishes a store from an ordinary repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{error, fs, io};

use super::features::Access;
use super::files::{self, unless_absent};
use super::object_files::ObjectFiles;
use super::pack_file::again;
use super::{Error, Kind, Result, Store, unless_lost};
use crate::durable;

pub const FORMAT: u32 = 1;

/// The folder for stvc's own files inside the repository.
pub(super) const PRIVATE: &str = "stvc";

/// Private file that marks a store as a mirror, so that `stvc backup` may write to it.
const MIRROR: &str = "mirror";

/// Trailer that every commit on a branch of a store has. It identifies a store that has no format
/// file.
pub const MARK_TRAILER: &str = "Stvc-Content";

/// The state of the file `stvc/format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The format that this program writes.
    Known,
    /// The file does not exist: the store is a clone.
    Missing,
    Damaged,
}

impl Store {
    pub fn open(path: &Path) -> Result<Self> {
        let store = match StoreFolder::look(path)? {
            StoreFolder::Repository(git_dir) => Self::over(git_dir),
            StoreFolder::Occupied => return Err(Error::NotEmpty { path: path.to_owned() }),
            StoreFolder::Free => return Err(Error::NoStore { path: path.to_owned() }),
        };
        match store.format()? {
            Format::Known => {}
            Format::Missing | Format::Damaged => store.must_hold_snapshots()?,
        }
        store.must_be_known(Access::Read)?;
        Ok(store)
    }

    /// Creates a store at `path`, or opens the store that exists there. Fails if `path` has other
    /// content. A crash leaves either the complete store or nothing at `path`.
    pub fn create(path: &Path) -> Result<Self> {
        match StoreFolder::look(path)? {
            StoreFolder::Repository(_) => Self::open(path),
            StoreFolder::Occupied => Err(Error::NotEmpty { path: path.to_owned() }),
            StoreFolder::Free => Self::create_free(path, |_| Ok(())),
        }
    }

    pub fn create_mirror(path: &Path) -> Result<Self> {
        match StoreFolder::look(path)? {
            StoreFolder::Free => Self::create_free(path, mark_mirror),
            _ => Err(Error::NotEmpty { path: path.to_owned() }),
        }
    }

    fn create_free(path: &Path, mark: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let parent = durable::parent(path);
        durable::create_dir_all(parent).map_err(Error::io(parent))?;
        durable::clear_left_behind(parent);
        let temp = durable::create_temp_dir(parent, ".stvc-new-").map_err(Error::io(parent))?;
        let made = Self::create_in(&temp).and_then(|()| mark(&temp.join(PRIVATE))).and_then(|()| {
            // Some systems cannot rename a folder to the name of an existing empty folder.
            let _ = fs::remove_dir(path);
            durable::rename(&temp, path).map_err(Error::io(path))?;
            files::sync_dir(parent)
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&temp);
            // Another process may have created a store at `path` first, which is then used.
            if git_dir(path)?.is_none() {
                made?;
            }
        }
        Self::open(path)
    }

    fn create_in(dir: &Path) -> Result<()> {
        make_private(dir).map_err(Error::io(dir))?;
        let what = || format!("cannot create a repository in {}", dir.display());
        gix::create::into(dir, gix::create::Kind::Bare, gix::create::Options::default()).map_err(
            |error| match error::Error::source(&error).and_then(<dyn error::Error>::downcast_ref) {
                Some(source) => Error::Io { path: dir.to_owned(), source: again(source) },
                None => Error::git(what())(error),
            },
        )?;
        // Removes git's sample hooks, which are useless here.
        fs::remove_dir_all(dir.join("hooks")).map_err(Error::io(dir))?;
        let description =
            "Snapshots of SillyTavern timelines, written by stvc. Each branch is a timeline.\n";
        fs::write(dir.join("description"), description).map_err(Error::io(dir))?;
        let private = dir.join(PRIVATE);
        fs::create_dir(&private).map_err(Error::io(&private))?;
        write_format_file(&private)?;
        sync_all_below(dir).map_err(Error::io(dir))
    }

    /// Opens a bare repository that is empty or contains snapshots, to write a backup to it.
    /// Returns `None` if there is no repository at `path`.
    pub fn open_bare(path: &Path) -> Result<Option<Self>> {
        match git_dir(path)? {
            None => return Ok(None),
            Some(dir) if dir != path => return Err(Error::Foreign { path: path.to_owned() }),
            Some(_) => {}
        }
        let store = Self::over(path.to_owned());
        let found = store.refs("refs/")?;
        if store.format()? != Format::Known && (!found.refs.is_empty() || !found.broken.is_empty())
        {
            store.must_hold_snapshots()?;
        }
        Ok(Some(store))
    }

    /// Returns a copy of the store with empty caches. Only open packs are shared.
    pub fn refreshed(&self) -> Self {
        Self::with(self.git_dir.clone(), Arc::clone(&self.objects))
    }

    pub fn is_mirror(&self) -> bool {
        self.private(MIRROR).is_file()
    }

    pub fn become_mirror(&self) -> Result<()> {
        let dir = self.make_private_dir()?;
        if self.is_mirror() { Ok(()) } else { mark_mirror(&dir) }
    }

    pub(super) fn make_private_dir(&self) -> Result<PathBuf> {
        self.refuse_links()?;
        let dir = self.private_dir();
        durable::create_dir_all(&dir).map_err(Error::io(&dir))?;
        Ok(dir)
    }

    fn over(git_dir: PathBuf) -> Self {
        let objects = Arc::new(ObjectFiles::at(git_dir.join("objects")));
        Self::with(git_dir, objects)
    }

    fn with(git_dir: PathBuf, objects: Arc<ObjectFiles>) -> Self {
        let (packed, folding, logged) = Default::default();
        Self { git_dir, objects, packed, folding, logged }
    }

    /// Reads the format file. Fails if the format is newer than this program supports.
    pub fn format(&self) -> Result<Format> {
        let Some(text) = files::read(&self.private("format"))? else {
            return Ok(Format::Missing);
        };
        // The line ends with a checksum: a flipped bit must not look like a newer format.
        let Ok(text) = String::from_utf8(text) else { return Ok(Format::Damaged) };
        let line = text.trim_end();
        let number =
            line.strip_prefix("stvc store format ").and_then(|rest| rest.split(' ').next());
        match number.filter(|number| format_line(number) == line) {
            None => Ok(Format::Damaged),
            Some(found) if found.parse() == Ok(FORMAT) => Ok(Format::Known),
            Some(found) => Err(Error::NewerFormat {
                path: self.git_dir.clone(),
                found: found.into(),
                known: FORMAT,
            }),
        }
    }

    /// Writes the format file if it is missing or damaged. The caller holds the lock.
    pub(super) fn write_format(&self) -> Result<()> {
        match self.format()? {
            Format::Known => Ok(()),
            Format::Missing | Format::Damaged => write_format_file(&self.private_dir()),
        }
    }

    /// Fails unless there is a branch that points to a snapshot, and no branch that points to
    /// another commit. Without a format file, only this distinguishes a store from an ordinary
    /// repository.
    fn must_hold_snapshots(&self) -> Result<()> {
        let branches = self.refs("refs/heads/")?.refs;
        let reader = self.reader();
        let (mut any, mut foreign) = (false, false);
        for (_, id) in branches {
            // A missing or damaged commit may have been a snapshot, and does not make the
            // repository foreign.
            if let Some(commit) = unless_lost(reader.commit(id))? {
                let snapshot = commit.trailer(MARK_TRAILER).is_some();
                any |= snapshot;
                foreign |= !snapshot;
            } else {
                foreign |= reader.is_valid(id, Kind::Commit)?;
            }
        }
        if any && !foreign { Ok(()) } else { Err(Error::Foreign { path: self.git_dir.clone() }) }
    }
}

enum StoreFolder {
    Repository(PathBuf),
    Occupied,
    Free,
}

impl StoreFolder {
    fn look(path: &Path) -> Result<Self> {
        if let Some(dir) = git_dir(path)? {
            return Ok(Self::Repository(dir));
        }
        let is_occupied =
            path.is_file() || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if !is_occupied {
            return Ok(Self::Free);
        }
        // Another process may have created a store since the first call of `git_dir`.
        Ok(git_dir(path)?.map_or(Self::Occupied, Self::Repository))
    }
}

pub fn is_repository(path: &Path) -> bool {
    git_dir(path).is_ok_and(|found| found.is_some())
}

/// Returns the git directory of the repository at `path`: `path` itself or its folder `.git`. Does
/// not require `HEAD`, so that a store that lost this file can still be read.
fn git_dir(path: &Path) -> Result<Option<PathBuf>> {
    let is_dir = |dir: PathBuf| -> Result<bool> {
        Ok(unless_absent(fs::metadata(&dir), &dir)?.is_some_and(|found| found.is_dir()))
    };
    for dir in [path.to_owned(), path.join(".git")] {
        if is_dir(dir.join("objects"))? && is_dir(dir.join("refs"))? {
            return Ok(Some(dir));
        }
    }
    Ok(None)
}

fn format_line(number: &str) -> String {
    let words = format!("stvc store format {number}");
    let check = blake3::hash(words.as_bytes()).to_hex();
    format!("{words} {}", &check[..8])
}

fn mark_mirror(private: &Path) -> Result<()> {
    files::replace(&private.join(MIRROR), b"a copy, kept by `stvc backup`\n")
}

fn write_format_file(private: &Path) -> Result<()> {
    let line = format!("{}\n", format_line(&FORMAT.to_string()));
    files::replace(&private.join("format"), line.as_bytes())
}

#[cfg(unix)]
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}

/// On Windows a folder in the user's profile is already private.
#[cfg(not(unix))]
fn make_private(_dir: &Path) -> io::Result<()> {
    Ok(())
}

fn sync_all_below(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all_below(&entry.path())?;
        } else {
            durable::sync_file(&entry.path())?;
        }
    }
    durable::sync_dir(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn store_is_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Store::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// `open` first looks for a repository and then for other content. A store may be created
    /// between these two steps.
    #[test]
    fn store_opened_during_creation_is_missing_or_complete() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..40 {
            let path = folder.path().join(round.to_string());
            std::thread::scope(|scope| {
                let opened = scope.spawn(|| {
                    loop {
                        match Store::open(&path) {
                            Err(Error::NoStore { .. }) => {}
                            other => return other.map(drop),
                        }
                    }
                });
                Store::create(&path).unwrap();
                opened.join().unwrap().unwrap();
            });
        }
    }
}
