//! Packs that go: in which order, and which stay.

use std::fs;
use std::path::Path;

use super::find_files::is_there;
use super::{Error, Result};
use crate::durable;

/// Git may have made an index over all packs. It names packs that are about to go, and git makes it anew when it wants it.
pub(super) fn forget_multi_pack_index(dir: &Path) -> Result<()> {
    let mut found = false;
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let entry = entry.map_err(Error::io(dir))?;
        let name = entry.file_name();
        if name == "multi-pack-index.d" {
            fs::remove_dir_all(entry.path()).map_err(Error::io(entry.path()))?;
            found = true;
        } else if name.to_string_lossy().starts_with("multi-pack-index") {
            remove(&entry.path())?;
            found = true;
        }
    }
    if found { durable::sync_dir(dir).map_err(Error::io(dir)) } else { Ok(()) }
}

/// Remove a pack. The index first: a pack without one is nothing to git, an index without its pack is an error.
pub(super) fn remove_pack(index: &Path) -> Result<()> {
    for extension in ["idx", "pack", "rev", "bitmap", "mtimes"] {
        remove(&index.with_extension(extension))?;
    }
    Ok(())
}

pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Whether somebody asked for a pack to stay.
pub(super) fn is_kept(index: &Path) -> Result<bool> {
    for mark in ["keep", "promisor"] {
        if is_there(&index.with_extension(mark))? {
            return Ok(true);
        }
    }
    Ok(false)
}
