//! Refuses links inside a store, in places that stvc writes to. If other users can write to the
//! folder, a link could redirect every write. The path of the store itself may contain links.

use std::fs::{self, FileType};
use std::path::Path;

use super::files::unless_absent;
use super::{Error, Result, Store};
use crate::regular;

/// Paths in the repository that stvc writes to. Refs are checked when they are written.
const PLACES: [&str; 11] = [
    "HEAD",
    "packed-refs",
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
    "refs/stvc",
    "refs/stvc/kept",
    "logs",
];

impl Store {
    /// Fails if a place that stvc writes to is a link, or is neither a file nor a folder.
    pub fn refuse_links(&self) -> Result<()> {
        for place in PLACES {
            refuse_link(&self.git_dir.join(place))?;
        }
        let private = self.private_dir();
        refuse_link(&private)?;
        for entry in unless_absent(fs::read_dir(&private), &private)?.into_iter().flatten() {
            let entry = entry.map_err(Error::io(&private))?;
            refuse_kind(entry.file_type().map_err(Error::io(entry.path()))?, &entry.path())?;
        }
        Ok(())
    }

    /// Fails if a component of the path `name`, such as that of a ref, is a link.
    pub(super) fn refuse_links_to(&self, name: &str) -> Result<()> {
        let mut path = self.git_dir.clone();
        for part in Path::new(name) {
            path.push(part);
            refuse_link(&path)?;
        }
        Ok(())
    }
}

/// Fails if `path` is a link, or is neither a file nor a folder. A missing path is accepted.
pub(super) fn refuse_link(path: &Path) -> Result<()> {
    match unless_absent(fs::symlink_metadata(path), path)? {
        Some(found) => refuse_kind(found.file_type(), path),
        None => Ok(()),
    }
}

fn refuse_kind(kind: FileType, path: &Path) -> Result<()> {
    if kind.is_symlink() {
        return Err(Error::Link { path: path.to_owned() });
    }
    if kind.is_dir() { Ok(()) } else { regular::must_be_file(kind).map_err(Error::io(path)) }
}
