//! Making and opening a store, and telling a store from somebody's ordinary repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::features::Use;
use super::files::{self, unless_absent};
use super::object_files::ObjectFiles;
use super::{Error, Kind, Result, Store, unless_lost};
use crate::durable;

pub const FORMAT: u32 = 1;

/// The folder inside the repository that is stvc's own.
pub(super) const PRIVATE: &str = "stvc";

/// There in a store that is kept as a copy of others, so that a backup may be written to it.
const MIRROR: &str = "mirror";

/// Every commit on a branch of a store has this trailer.
pub const MARK_TRAILER: &str = "Stvc-Content";

/// The state of the file `stvc/format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The format this program writes.
    Known,
    /// There is no such file: the store is a clone.
    Missing,
    Damaged,
}

impl Store {
    pub fn open(path: &Path) -> Result<Self> {
        let store = match Place::look(path)? {
            Place::Repository(git_dir) => Self::over(git_dir),
            Place::Occupied => return Err(Error::NotEmpty { path: path.to_owned() }),
            Place::Free => return Err(Error::NoStore { path: path.to_owned() }),
        };
        match store.format()? {
            Format::Known => {}
            Format::Missing | Format::Damaged => store.must_hold_snapshots()?,
        }
        store.must_be_known(Use::Read)?;
        Ok(store)
    }

    /// Makes a store at `path`, which must not exist or be empty. It appears whole or not at all.
    pub fn create(path: &Path) -> Result<Self> {
        match Place::look(path)? {
            Place::Repository(_) => Self::open(path),
            Place::Occupied => Err(Error::NotEmpty { path: path.to_owned() }),
            Place::Free => Self::create_free(path, |_| Ok(())),
        }
    }

    pub fn create_mirror(path: &Path) -> Result<Self> {
        match Place::look(path)? {
            Place::Free => Self::create_free(path, mark_mirror),
            _ => Err(Error::NotEmpty { path: path.to_owned() }),
        }
    }

    fn create_free(path: &Path, mark: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let parent = durable::parent(path);
        durable::create_dir_all(parent).map_err(Error::io(parent))?;
        durable::clear_left_behind(parent);
        let temp = durable::create_temp_dir(parent, ".stvc-new-").map_err(Error::io(parent))?;
        let made = Self::create_in(&temp).and_then(|()| mark(&temp.join(PRIVATE))).and_then(|()| {
            // An empty folder may stand in the way on systems whose rename does not replace one.
            let _ = fs::remove_dir(path);
            durable::rename(&temp, path).map_err(Error::io(path))?;
            files::sync_dir(parent)
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&temp);
            // Another process may have been quicker; its store is as good.
            if git_dir(path)?.is_none() {
                made?;
            }
        }
        Self::open(path)
    }

    fn create_in(dir: &Path) -> Result<()> {
        make_private(dir).map_err(Error::io(dir))?;
        let what = || format!("making a repository in {}", dir.display());
        gix::create::into(dir, gix::create::Kind::Bare, gix::create::Options::default())
            .map_err(Error::git(what()))?;
        // Samples of hooks, which nobody will ever want here.
        fs::remove_dir_all(dir.join("hooks")).map_err(Error::io(dir))?;
        let description =
            "Snapshots of SillyTavern timelines, written by stvc. Each branch is a chat.\n";
        fs::write(dir.join("description"), description).map_err(Error::io(dir))?;
        let private = dir.join(PRIVATE);
        fs::create_dir(&private).map_err(Error::io(&private))?;
        write_format_file(&private)?;
        sync_all_below(dir).map_err(Error::io(dir))
    }

    /// Opens a bare repository for a backup: with snapshots, or empty. `None` if there is none.
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

    /// Returns the store with empty caches, but for open packs.
    pub fn refreshed(&self) -> Self {
        Self::with(self.git_dir.clone(), Arc::clone(&self.objects))
    }

    pub fn is_mirror(&self) -> bool {
        self.private_dir().join(MIRROR).is_file()
    }

    pub fn become_mirror(&self) -> Result<()> {
        self.refuse_links()?;
        let dir = self.private_dir();
        durable::create_dir_all(&dir).map_err(Error::io(&dir))?;
        if self.is_mirror() { Ok(()) } else { mark_mirror(&dir) }
    }

    fn over(git_dir: PathBuf) -> Self {
        let objects = Arc::new(ObjectFiles::at(git_dir.join("objects")));
        Self::with(git_dir, objects)
    }

    fn with(git_dir: PathBuf, objects: Arc<ObjectFiles>) -> Self {
        let (packed, folding, logged) = Default::default();
        Self { git_dir, objects, packed, folding, logged }
    }

    /// Reads the format file. A newer format than this program knows is an error.
    pub fn format(&self) -> Result<Format> {
        let path = self.private_dir().join("format");
        let Some(text) = files::read(&path)? else {
            return Ok(Format::Missing);
        };
        // The line says its own checksum: one flipped bit must not look like a newer format.
        let Ok(text) = String::from_utf8(text) else { return Ok(Format::Damaged) };
        let line = text.trim_end();
        let number =
            line.strip_prefix("stvc store format ").and_then(|rest| rest.split(' ').next());
        match number
            .filter(|number| format_line(number) == line)
            .map(|number| (number, number.parse::<u32>()))
        {
            Some((_, Ok(FORMAT))) => Ok(Format::Known),
            Some((found, _)) => Err(Error::NewerFormat {
                path: self.git_dir.clone(),
                found: found.into(),
                known: FORMAT,
            }),
            None => Ok(Format::Damaged),
        }
    }

    /// Writes the format file if it is missing or damaged. The caller has the lock.
    pub(super) fn write_format(&self) -> Result<()> {
        match self.format()? {
            Format::Known => Ok(()),
            Format::Missing | Format::Damaged => write_format_file(&self.private_dir()),
        }
    }

    /// Without a format file, only branches that are all snapshots make a repository a store.
    fn must_hold_snapshots(&self) -> Result<()> {
        let branches = self.refs("refs/heads/")?.refs;
        let reader = self.reader();
        let (mut any, mut foreign) = (false, false);
        for (_, id) in branches {
            // A lost commit may be a snapshot, and does not make the repository foreign.
            if let Some(commit) = unless_lost(reader.commit(id))? {
                let snapshot = commit.trailer(MARK_TRAILER).is_some();
                any |= snapshot;
                foreign |= !snapshot;
            } else {
                foreign |= reader.is_sound(id, Kind::Commit)?;
            }
        }
        if any && !foreign { Ok(()) } else { Err(Error::Foreign { path: self.git_dir.clone() }) }
    }
}

enum Place {
    Repository(PathBuf),
    Occupied,
    Free,
}

impl Place {
    fn look(path: &Path) -> Result<Self> {
        if let Some(dir) = git_dir(path)? {
            return Ok(Self::Repository(dir));
        }
        let is_occupied =
            path.is_file() || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if !is_occupied {
            return Ok(Self::Free);
        }
        // A store appears whole: one that was not there at the first look may be now.
        Ok(git_dir(path)?.map_or(Self::Occupied, Self::Repository))
    }
}

pub fn is_repository(path: &Path) -> bool {
    git_dir(path).is_ok_and(|found| found.is_some())
}

/// `HEAD` is not asked for: a store that lost it can still be read.
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
    let path = private.join(MIRROR);
    let words = b"a copy, kept by `stvc backup`\n";
    files::replace(&path, words)
}

fn write_format_file(private: &Path) -> Result<()> {
    let path = private.join("format");
    let line = format!("{}\n", format_line(&FORMAT.to_string()));
    files::replace(&path, line.as_bytes())
}

#[cfg(unix)]
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
}

/// On Windows a folder in the user's profile is private already.
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
    fn store_is_readable_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Store::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    /// Between "no repository" and "not empty" it may have been made.
    #[test]
    fn a_store_that_appears_is_none_or_whole() {
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
