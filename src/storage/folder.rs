//! A folder as a storage. Each object is a file.
//!
//! Another program may synchronise the folder with other devices, and other devices may write to
//! it. So a name never leaves the folder, and no link in it is followed. A file is written under a
//! temporary name, synced and renamed. Listings omit temporary files, as well as all other names
//! that begin with a dot.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Error, Listed, Result, Storage};
use crate::durable::{self, Existing, Temp};
use crate::folder::Folder;
use crate::regular;

/// Maximum depth of folders in a listing.
const MAX_DEPTH: usize = 8;

pub struct FolderStorage {
    root: PathBuf,
}

impl FolderStorage {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn unreachable(&self, error: &io::Error) -> Error {
        Error::Unreachable { address: self.root.display().to_string(), why: error.to_string() }
    }

    fn open_root(&self) -> Result<Folder> {
        Folder::open(&self.root).map_err(|error| self.unreachable(&error))
    }

    /// Opens the folder of the object `name`. Returns the folder and the object's own name in it.
    fn folder_of<'n>(&self, name: &'n str, missing: Missing) -> Result<(Folder, &'n str)> {
        let mut folder = self.open_root()?;
        let (folders, own) = split(name)?;
        for part in folders {
            let opened = match folder.folder(part.as_ref()) {
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && missing == Missing::Created =>
                {
                    match folder.make_folder(part.as_ref()) {
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                        _ => folder.sync().and_then(|()| folder.folder(part.as_ref())),
                    }
                }
                opened => opened,
            };
            folder = opened.map_err(at(name))?;
        }
        Ok((folder, own))
    }
}

/// How to treat a missing folder of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsAnError,
    Created,
}

/// Splits a name into the folders and the object's own name. Refuses a name that could leave the
/// folder or that a listing would omit.
fn split(name: &str) -> Result<(Vec<&str>, &str)> {
    let is_valid = |part: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain)
    };
    let mut parts: Vec<_> = name.split('/').collect();
    match parts.pop().filter(|own| parts.iter().chain([own]).all(is_valid)) {
        Some(own) if parts.len() < MAX_DEPTH => Ok((parts, own)),
        _ => {
            Err(at(name)(io::Error::new(io::ErrorKind::InvalidInput, "invalid name of an object")))
        }
    }
}

fn at(name: &str) -> impl FnOnce(io::Error) -> Error {
    let name = name.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { name },
        io::ErrorKind::PermissionDenied => Error::Denied { name },
        _ if durable::is_full(&source) => Error::Full { name },
        _ => Error::Io { name, source },
    }
}

impl Storage for FolderStorage {
    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.open_root()?;
        let mut listed = Vec::new();
        let start = match prefix.strip_suffix('/') {
            None => self.root.clone(),
            Some(prefix) => {
                let (mut folders, own) = split(prefix)?;
                folders.push(own);
                let mut path = self.root.clone();
                for part in folders {
                    path.push(part);
                    match fs::symlink_metadata(&path) {
                        Ok(found) if found.is_dir() => {}
                        Ok(_) => return Ok(listed),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
                        Err(error) => return Err(at(prefix)(error)),
                    }
                }
                path
            }
        };
        list_into(&mut listed, &start, prefix, MAX_DEPTH)?;
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>> {
        let (folder, own) = self.folder_of(name, Missing::IsAnError)?;
        let file = folder.open_file(own.as_ref()).map_err(at(name))?;
        read_at_most(file, limit)
            .map_err(at(name))?
            .ok_or_else(|| Error::TooLarge { name: name.to_owned(), limit })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (folder, own) = self.folder_of(name, Missing::Created)?;
        let folder = Arc::new(folder);
        let write = || {
            let mut temp = Temp::in_folder(Arc::clone(&folder), durable::TEMP_PREFIX)?;
            temp.file().write_all(bytes)?;
            temp.finish(Path::new(own), Existing::Replace)?;
            folder.sync()
        };
        write().map_err(at(name))
    }

    fn delete(&self, name: &str) -> Result<()> {
        let removed = self
            .folder_of(name, Missing::IsAnError)
            .and_then(|(folder, own)| folder.remove(own.as_ref()).map_err(at(name)));
        match removed {
            Err(Error::NotFound { .. }) => Ok(()),
            removed => removed,
        }
    }
}

/// Reads a regular file; `None` if it is longer than `limit`.
fn read_at_most(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    regular::must_be_file(file.metadata()?.file_type())?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn list_into(listed: &mut Vec<Listed>, path: &Path, prefix: &str, depth: usize) -> Result<()> {
    for entry in fs::read_dir(path).map_err(at(prefix))? {
        let entry = entry.map_err(at(prefix))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| split(name).is_ok()) else { continue };
        // Files may be deleted while the folder is listed.
        let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
        if found.is_dir() && depth > 0 {
            list_into(listed, &entry.path(), &format!("{prefix}{name}/"), depth - 1)?;
        } else if found.is_file() {
            listed.push(Listed { name: format!("{prefix}{name}"), bytes: found.len() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage() -> (tempfile::TempDir, FolderStorage) {
        let folder = tempfile::tempdir().unwrap();
        let storage = FolderStorage::new(folder.path().join("remote"));
        fs::create_dir(&storage.root).unwrap();
        (folder, storage)
    }

    #[test]
    fn objects_are_written_listed_read_and_deleted() {
        let (_folder, storage) = storage();
        for name in ["packs/b", "packs/a", "devices/d/1"] {
            storage.write(name, name.as_bytes()).unwrap();
        }
        storage.write("packs/a", b"packs/a").unwrap();
        let names = |prefix| -> Vec<_> {
            storage.list(prefix).unwrap().into_iter().map(|listed| listed.name).collect()
        };
        assert_eq!(names(""), ["devices/d/1", "packs/a", "packs/b"]);
        assert_eq!(names("packs/"), ["packs/a", "packs/b"]);
        assert!(names("missing/").is_empty());
        assert_eq!(storage.read("packs/a", 7).unwrap(), b"packs/a");
        assert!(matches!(storage.read("packs/a", 6), Err(Error::TooLarge { .. })));
        storage.delete("packs/a").unwrap();
        storage.delete("packs/a").unwrap();
        assert!(matches!(storage.read("packs/a", 7), Err(Error::NotFound { .. })));
    }

    #[test]
    fn names_never_leave_the_folder() {
        let (folder, storage) = storage();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        for name in
            ["../secret", "packs/../../secret", "/secret", "a//b", "", ".hidden", "a\\b", "C:"]
        {
            assert!(storage.read(name, 100).is_err(), "{name}");
            assert!(storage.write(name, b"x").is_err(), "{name}");
            assert!(storage.delete(name).is_err(), "{name}");
        }
        assert_eq!(fs::read(folder.path().join("secret")).unwrap(), b"secret");
    }

    #[test]
    #[cfg(unix)]
    fn planted_links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let (folder, storage) = storage();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("1"), "secret").unwrap();
        symlink(&outside, storage.root.join("packs")).unwrap();
        symlink(outside.join("1"), storage.root.join("link")).unwrap();
        assert!(storage.list("").unwrap().is_empty());
        assert!(storage.list("packs/").unwrap().is_empty());
        assert!(storage.read("packs/1", 100).is_err());
        assert!(storage.read("link", 100).is_err());
        assert!(storage.write("packs/2", b"x").is_err());
        // The link itself is replaced, not its target.
        storage.write("link", b"new").unwrap();
        assert_eq!(fs::read(outside.join("1")).unwrap(), b"secret");
        assert!(storage.delete("packs/1").is_err());
        assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
    }

    #[test]
    fn missing_folder_is_unreachable_rather_than_empty() {
        let (folder, _) = storage();
        let storage = FolderStorage::new(folder.path().join("not mounted"));
        assert!(matches!(storage.list(""), Err(Error::Unreachable { .. })));
        assert!(matches!(storage.write("a", b""), Err(Error::Unreachable { .. })));
    }
}
