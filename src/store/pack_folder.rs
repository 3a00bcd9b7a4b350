//! The folder `objects/pack`. Files are added and removed in an order in which no reader sees a
//! partial pack. Files of killed commands are cleaned up.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use super::files::{self, exists, files_ending, unless_absent};
use super::{Error, RefName, Result, Store};
use crate::durable::{self, Existing, Temp};

/// Prefix of temporary files in the folder. Git, too, removes abandoned files with this prefix.
pub(super) const TEMP_PREFIX: &str = "tmp_pack_stvc_";

/// Removes git's multi-pack index, because it names packs that are going to be removed.
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
    /// Removes git's commit graph, because it may name removed commits. Git creates it again.
    pub(super) fn forget_commit_graph(&self) -> Result<()> {
        let info = self.objects_dir().join("info");
        files::remove(&info.join("commit-graph"))?;
        let chain = info.join("commit-graphs");
        unless_absent(fs::remove_dir_all(&chain), &chain).map(drop)
    }

    pub fn has_half_removed_packs(&self) -> Result<bool> {
        for pack in files_ending(&self.pack_dir(), "pack")? {
            if !exists(&pack.with_extension("idx"))? && !is_kept(&pack)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes temporary files, packs without an index, and files without their pack. The caller
    /// holds the lock, so no other process uses the temporary files. A recent pack without an index
    /// is not removed, because a git process may be about to write the index. Returns the number of
    /// files that could not be removed because other programs have them open.
    pub(super) fn remove_left_behind(&self, packs: &Path, keep_after: SystemTime) -> Result<usize> {
        const ABOUT_TO: Duration = Duration::from_secs(60);
        let is_old = |path: &Path| {
            let modified = fs::symlink_metadata(path).and_then(|found| found.modified());
            modified.is_ok_and(|time| {
                time <= keep_after || time.elapsed().is_ok_and(|age| age > ABOUT_TO)
            })
        };
        let mut held = 0;
        for dir in [packs, &self.private_dir()] {
            for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
                let path = entry.map_err(Error::io(dir))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(TEMP_PREFIX)
                    || (name.starts_with(durable::TEMP_PREFIX) && name.ends_with(".tmp"))
                {
                    held += usize::from(matches!(durable::remove_unless_held(&path), Ok(false)));
                }
            }
        }
        // Abandoned locks on refs that only stvc writes.
        let kept = self.git_dir.join(RefName::KEPT);
        for entry in fs::read_dir(&kept).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "lock") {
                durable::remove_own(&entry.path());
            }
        }
        // Temporary files of incomplete caches, stores and incoming backups.
        let parent = durable::parent(&self.git_dir);
        let private = self.private_dir();
        for dir in [&*private.join("folders"), &private.join("search"), &self.git_dir, parent] {
            durable::clear_left_behind(dir);
        }
        for pack in files_ending(packs, "pack")? {
            if !exists(&pack.with_extension("idx"))? && !is_kept(&pack)? && is_old(&pack) {
                let _ = remove_pack(&pack);
            }
        }
        // A power cut may have lost the pack to which the file belongs.
        for extension in ["idx"].into_iter().chain(BESIDE_PACK) {
            for path in files_ending(packs, extension)? {
                if !exists(&path.with_extension("pack"))? {
                    let _ = remove_pack(&path);
                }
            }
        }
        Ok(held)
    }

    /// Closes and removes packs. The removal of all indices is synced before the first pack is
    /// removed.
    pub(super) fn remove_packs<'p>(
        &self,
        indices: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<()> {
        self.objects.close_packs();
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

/// Renames a temporary file to the name of a pack or index. On Windows, an existing file of that
/// name may be mapped and cannot be replaced. The existing file stays if it has the same bytes;
/// otherwise it is damaged, and is renamed first.
pub(super) fn give_name(temp: Temp, name: &Path) -> io::Result<()> {
    if cfg!(windows) && name.try_exists()? {
        if temp.is_same_as(name)? {
            return durable::sync_file(name);
        }
        durable::move_aside(name, TEMP_PREFIX)?;
    }
    temp.finish(name, Existing::Replace)
}

/// Extensions of further files that git may write for a pack. They are useless without the pack.
pub(super) const BESIDE_PACK: [&str; 3] = ["rev", "bitmap", "mtimes"];

/// Removes a pack and its other files. The index is removed first: git ignores a pack without an
/// index, but fails on an index without its pack. The pack is removed last: a pack without an index
/// shows that the removal was interrupted, and the next `gc` completes it.
pub(super) fn remove_pack(index: &Path) -> Result<()> {
    remove(&index.with_extension("idx"))?;
    for extension in BESIDE_PACK {
        remove(&index.with_extension(extension))?;
    }
    remove(&index.with_extension("pack"))
}

/// Removes a file. On Windows, a file that is being read is renamed instead, and the next command
/// removes the renamed file.
fn remove(path: &Path) -> Result<()> {
    if !cfg!(windows) {
        return files::remove(path);
    }
    if let Some(aside) = unless_absent(durable::move_aside(path, TEMP_PREFIX), path)? {
        durable::remove_unless_held(&aside).map_err(Error::io(aside))?;
    }
    Ok(())
}

/// Whether a file with the extension `keep` or `promisor` tells git to keep the pack.
pub(super) fn is_kept(index: &Path) -> Result<bool> {
    for mark in ["keep", "promisor"] {
        if exists(&index.with_extension(mark))? {
            return Ok(true);
        }
    }
    Ok(false)
}
