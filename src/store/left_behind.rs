//! What commands that were killed left in a store, and what git keeps there that names objects which are gone.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::files::{self, files_ending, is_there};
use super::pack_folder::{BESIDE_PACK, TEMP_PREFIX, is_kept, remove_pack};
use super::{Error, RefName, Result, Store};
use crate::durable;

impl Store {
    /// Git may keep a list of commits, which would name those that are gone; it makes it anew when it wants it.
    pub(super) fn forget_commit_graph(&self) -> Result<()> {
        let info = self.objects_dir().join("info");
        let graph = info.join("commit-graph");
        files::remove(&graph)?;
        let chain = info.join("commit-graphs");
        match fs::remove_dir_all(&chain) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Io { path: chain, source: error })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a removal of packs was cut short, and their bytes are still there.
    pub fn has_half_removed_packs(&self) -> Result<bool> {
        for pack in files_ending(&self.pack_dir(), "pack")? {
            if !is_there(&pack.with_extension("idx"))? && !is_kept(&pack)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What commands that were killed left: temporary files, packs without an index, and what stood beside a pack that is gone. The caller has the lock, so temporary files of ours are
    /// nobody's; a pack may be a git's that is about to name its index. That one cannot be removed matters to nobody: the next `gc` tries again.
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
        // Locks on refs that nobody but stvc writes; the caller has the store's.
        let kept = self.git_dir.join(RefName::KEPT);
        for entry in fs::read_dir(&kept).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "lock") {
                durable::remove_own(&entry.path());
            }
        }
        // Of commands that were killed: halves of caches, of stores, of backups that were being read.
        let parent = durable::parent(&self.git_dir);
        for dir in [&*self.private_dir().join("folders"), &self.git_dir, parent] {
            durable::clear_left_behind(dir);
        }
        for pack in files_ending(packs, "pack")? {
            if !is_there(&pack.with_extension("idx"))? && !is_kept(&pack)? && is_old(&pack) {
                let _ = remove_pack(&pack);
            }
        }
        // A power cut may have kept them and lost the pack.
        for extension in ["idx"].into_iter().chain(BESIDE_PACK) {
            for path in files_ending(packs, extension)? {
                if !is_there(&path.with_extension("pack"))? {
                    let _ = remove_pack(&path);
                }
            }
        }
        Ok(held)
    }
}
