//! Reads, replaces and removes the store's own files. A file counts as missing only if the system
//! reports that it does not exist. Any other failure is an error.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, Result};
use crate::durable::{self, Existing};
use crate::regular;

/// Returns the bytes of a file; `None` if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    unless_absent(regular::read(path), path)
}

/// Writes or replaces a file. A power cut leaves either the old bytes or the new ones.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    durable::write(path, bytes, Existing::Replace).map_err(Error::io(path))
}

pub(super) fn remove(path: &Path) -> Result<()> {
    unless_absent(durable::remove(path), path).map(drop)
}

/// Syncs a folder, so that added, renamed and removed files survive a power cut.
pub(super) fn sync_dir(dir: &Path) -> Result<()> {
    durable::sync_dir(dir).map_err(Error::io(dir))
}

/// Returns the files in a folder that have the extension `ending`, sorted by path. Fails if the
/// folder cannot be listed completely.
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

/// Whether `path` is a file or a link to a file. Fails if this cannot be determined.
pub(super) fn is_file(path: &Path) -> Result<bool> {
    Ok(unless_absent(fs::metadata(path), path)?.is_some_and(|found| found.is_file()))
}

/// Whether `path` exists, as a file, folder or link. Fails if this cannot be determined.
pub(super) fn exists(path: &Path) -> Result<bool> {
    Ok(unless_absent(fs::symlink_metadata(path), path)?.is_some())
}

/// Turns the error for a missing file or folder into `None`, and adds the path to any other error.
pub(super) fn unless_absent<T>(given: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match given {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// Whether the error reports a missing file or folder.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
