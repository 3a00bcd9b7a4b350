//! Packs that come and go: in which order, and which stay.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::files::{self, is_there, unless_absent};
use super::{Error, Result, Store};
use crate::durable::{self, Existing, Temp};

/// Git clears away what begins so and was left behind.
pub(super) const TEMP_PREFIX: &str = "tmp_pack_stvc_";

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
    if found { files::sync_dir(dir) } else { Ok(()) }
}

impl Store {
    /// Remove packs, of which what is open here is closed first. The removal of the indices survives a power cut before the first pack goes.
    pub(super) fn remove_packs<'p>(
        &self,
        indices: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<()> {
        self.objects.let_go();
        let indices: Vec<_> = indices.into_iter().collect();
        for index in &indices {
            remove(index)?;
        }
        if let Some(dir) = indices.first().map(|index| durable::parent(index)) {
            files::sync_dir(dir)?;
        }
        indices.into_iter().try_for_each(|index| remove_pack(index))
    }
}

/// Give a pack, or an index, its name. On Windows one that has that name already may be mapped, and then cannot be replaced; it is the same one, unless it is damaged.
pub(super) fn give_name(temp: Temp, name: &Path) -> io::Result<()> {
    if cfg!(windows) && name.try_exists()? {
        if temp.is_same_as(name)? {
            return durable::sync_file(name);
        }
        durable::move_aside(name, TEMP_PREFIX)?;
    }
    temp.finish(name, Existing::Replace)
}

/// Files that git may keep beside a pack, and that are of no use without it.
pub(super) const BESIDE_PACK: [&str; 3] = ["rev", "bitmap", "mtimes"];

/// Remove a pack. The index first: a pack without one is nothing to git, an index without its pack is an error. The pack last: where it is left without an index, somebody sees
/// that its removal was cut short and ends it.
pub(super) fn remove_pack(index: &Path) -> Result<()> {
    remove(&index.with_extension("idx"))?;
    for extension in BESIDE_PACK {
        remove(&index.with_extension(extension))?;
    }
    remove(&index.with_extension("pack"))
}

/// Remove a file of packs. On Windows one that somebody else still reads cannot be removed, or keeps its name until that one is done: it is put aside first, and the next command removes what is left of it.
fn remove(path: &Path) -> Result<()> {
    if !cfg!(windows) {
        return files::remove(path);
    }
    if let Some(aside) = unless_absent(durable::move_aside(path, TEMP_PREFIX), path)? {
        durable::remove_unless_held(&aside).map_err(Error::io(aside))?;
    }
    Ok(())
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
