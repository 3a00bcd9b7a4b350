//! The store's own files: reading, replacing and removing them. *Could not look* is an error, and
//! never "it is not there".

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, Result};
use crate::durable::{self, Existing};
use crate::regular;

/// Returns the bytes of a file; `None` if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    unless_absent(regular::read(path), path)
}

/// Writes a file, in the place of one that is there. It survives a power cut.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    durable::write(path, bytes, Existing::Replace).map_err(Error::io(path))
}

pub(super) fn remove(path: &Path) -> Result<()> {
    unless_absent(durable::remove(path), path).map(drop)
}

/// Syncs a folder, so that the names in it survive a power cut.
pub(super) fn sync_dir(dir: &Path) -> Result<()> {
    durable::sync_dir(dir).map_err(Error::io(dir))
}

/// Returns the files in a folder whose names end so, sorted. That some of it cannot be listed is an
/// error.
pub(super) fn files_ending(dir: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let entry = entry.map_err(Error::io(dir))?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != ending) {
            continue;
        }
        let kind = entry.file_type().map_err(Error::io(&path))?;
        if kind.is_file() || is_file(&path)? {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether there is a file, or a link to one. What cannot be looked at is an error.
pub(super) fn is_file(path: &Path) -> Result<bool> {
    Ok(unless_absent(fs::metadata(path), path)?.is_some_and(|found| found.is_file()))
}

/// Whether there is anything of that name. What cannot be looked at is an error.
pub(super) fn is_there(path: &Path) -> Result<bool> {
    Ok(unless_absent(fs::symlink_metadata(path), path)?.is_some())
}

/// Turns "no such file" into `None`.
pub(super) fn unless_absent<T>(given: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match given {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// Whether the system says that there is no such file. Anything else that it says is about reading.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
