//! A folder as storage, also one that Syncthing, Dropbox, OneDrive or iCloud copies to other
//! devices.
//!
//! A write is durable and atomic: a synchroniser may upload the temporary file, but never half of
//! an object under its own name. Names that stvc does not write are left out of lists, among them
//! the temporary files and conflict copies of synchronisers. Other programs may write to the
//! folder, so links in it are not followed.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Error, Listed, Result, Storage, object_name};
use crate::durable::{self, Existing, TEMP_PREFIX, Temp};
use crate::folder::Folder;

/// Temporary files of interrupted writes are removed after this time. The process that writes one
/// may run on another device.
const ABANDONED: Duration = Duration::from_secs(2 * 24 * 3600);

pub struct FolderStorage {
    root: PathBuf,
}

impl FolderStorage {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Opens the folder of an object. Links below the root are not followed.
    fn open(&self, parts: &[&str]) -> io::Result<Folder> {
        let mut folder = Folder::open(&self.root)?;
        for part in parts {
            folder = folder.folder(OsStr::new(part))?;
        }
        Ok(folder)
    }

    /// Opens the folder of an object, and creates it if necessary.
    fn create(&self, parts: &[&str]) -> io::Result<Folder> {
        durable::create_dir_all(&self.root)?;
        let mut folder = Folder::open(&self.root)?;
        for part in parts {
            let name = OsStr::new(part);
            folder = match folder.folder(name) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    match folder.make_folder(name) {
                        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                            return Err(error);
                        }
                        _ => folder.sync()?,
                    }
                    folder.folder(name)?
                }
                opened => opened?,
            };
        }
        Ok(folder)
    }

    fn walk(&self, path: &Path, prefix: &str, found: &mut Vec<Listed>) -> Result<()> {
        let entries = match fs::read_dir(path) {
            // A synchroniser may remove a folder at any time.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(Error::io(path))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::io(path))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let full = format!("{prefix}{name}");
            if name.starts_with(TEMP_PREFIX) {
                remove_abandoned(&entry);
            }
            if !object_name::is_part(name) || !object_name::is_valid(&full) {
                continue;
            }
            // Of a link, this is the kind of the link.
            match entry.metadata() {
                Ok(entry_is) if entry_is.is_dir() => {
                    self.walk(&entry.path(), &format!("{full}/"), found)?;
                }
                Ok(entry_is) if entry_is.is_file() => {
                    found.push(Listed { name: full, bytes: entry_is.len() });
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(entry.path())(error)),
            }
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        name.split('/').fold(self.root.clone(), |path, part| path.join(part))
    }
}

/// Separates the folders of a name from its last part.
fn split(name: &str) -> (Vec<&str>, &OsStr) {
    let mut parts: Vec<_> = name.split('/').collect();
    let last = parts.pop().unwrap_or_default();
    (parts, OsStr::new(last))
}

fn remove_abandoned(entry: &fs::DirEntry) {
    let age = entry.metadata().and_then(|found| found.modified()).map(|time| time.elapsed());
    let is_temp = entry.file_name().to_str().is_some_and(|name| name.ends_with(".tmp"));
    if is_temp && age.is_ok_and(|age| age.is_ok_and(|age| age > ABANDONED)) {
        durable::remove_own(&entry.path());
    }
}

impl Storage for FolderStorage {
    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        object_name::check_prefix(prefix)?;
        let mut found = Vec::new();
        let parts: Vec<_> = prefix.split('/').filter(|part| !part.is_empty()).collect();
        match self.open(&parts) {
            Ok(folder) => self.walk(folder.path(), prefix, &mut found)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(self.path(prefix))(error)),
        }
        found.sort();
        Ok(found)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        object_name::check(name)?;
        let (folders, last) = split(name);
        let place = || self.root.display().to_string();
        let read = || {
            let folder = self.open(&folders)?;
            let file = folder.open_file(last).map_err(|error| {
                // Lists leave out links, pipes and folders, too.
                match fs::symlink_metadata(folder.path().join(last)) {
                    Ok(found) if !found.is_file() => ErrorKind::NotFound.into(),
                    _ => error,
                }
            })?;
            let mut bytes = Vec::new();
            if file.metadata()?.len() <= limit {
                file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
                if bytes.len() as u64 <= limit {
                    return Ok(Some(bytes));
                }
            }
            io::Result::Ok(None)
        };
        match read() {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(Error::TooLarge { place: place(), name: name.to_owned(), limit }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::NotFound { place: place(), name: name.to_owned() })
            }
            Err(error) => Err(Error::io(self.path(name))(error)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        object_name::check(name)?;
        let place = self.root.display().to_string();
        object_name::check_size(&place, name, bytes)?;
        let (folders, last) = split(name);
        let write = || {
            let folder = Arc::new(self.create(&folders)?);
            let mut temp = Temp::in_folder(Arc::clone(&folder), TEMP_PREFIX)?;
            temp.write_all(bytes)?;
            // A link of this name is replaced, not followed.
            temp.finish(Path::new(last), Existing::Replace)?;
            folder.sync()
        };
        match write() {
            Err(error) if durable::is_full(&error) => Err(Error::Full { place }),
            done => done.map_err(Error::io(self.path(name))),
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        object_name::check(name)?;
        let (folders, last) = split(name);
        let delete = || {
            let folder = self.open(&folders)?;
            folder.remove(last)?;
            folder.sync()
        };
        match delete() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done.map_err(Error::io(self.path(name))),
        }
    }
}
