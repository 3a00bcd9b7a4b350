//! No link inside a store is followed where something is written: a folder that others write to,
//! too, could lead every write wherever they like. The store's own folder may be reached through a
//! link, which is its user's choice; nothing in it may be one.

use std::fs::{self, FileType};
use std::path::Path;

use super::files::unless_absent;
use super::{Error, Result, Store};
use crate::regular;

/// Places that are written to; refs are checked when they are.
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
    /// Refuses to write if there is a link in it, or a pipe in the place of one of its files.
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

    /// Refuses a link anywhere on the way to `name`, such as a ref.
    pub(super) fn refuse_links_to(&self, name: &str) -> Result<()> {
        let mut path = self.git_dir.clone();
        for part in Path::new(name) {
            path.push(part);
            refuse_link(&path)?;
        }
        Ok(())
    }
}

/// Refuses what is itself a link, or neither file nor folder; what is not there is none.
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
