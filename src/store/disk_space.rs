//! Measures the disk space of the store, and maintains a reserve: a dummy file (`stvc/reserve`)
//! that can be removed when the disk is full.
//!
//! On a full disk not even a line of the operation log can be written, but removing snapshots
//! requires such a line. So `forget`, `erase` and `gc` remove the reserve when the disk is nearly
//! full. A later command that writes creates the reserve again once the disk has enough free space.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::files::files_ending;
use super::pack_entries::PackEntries;
use super::pack_file::{OpenResult, PackFile};
use super::{Lock, ObjectId, Result, Store};
use crate::durable;

const RESERVE: &str = "reserve";
/// Size of the reserve in bytes: enough for a line of the log, a pack of commits, and 200 refs of
/// one disk block each.
const RESERVED: usize = 1 << 20;
/// Number of free bytes below which a disk counts as nearly full.
const PLENTY: u64 = 64 << 20;

impl Store {
    /// Creates the reserve unless it exists or the disk is nearly full. Failures are ignored.
    pub(super) fn make_reserve(&self) {
        let path = self.private(RESERVE);
        if path.symlink_metadata().is_ok() || self.is_disk_nearly_full() {
            return;
        }
        // Pseudo-random bytes, because zeros would reserve nothing on a file system that compresses
        // files.
        let mut bytes = vec![0; RESERVED];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        if made.and_then(|mut file| file.write_all(&bytes)).is_err() {
            durable::remove_own(&path);
        }
    }

    /// Removes the reserve if the disk is nearly full. For commands that free space afterwards.
    pub fn release_reserve(&self, _lock: &Lock) {
        if self.is_disk_nearly_full() {
            durable::remove_own(&self.private(RESERVE));
        }
    }

    fn is_disk_nearly_full(&self) -> bool {
        free_bytes(&self.git_dir).is_none_or(|free| free < PLENTY)
    }

    pub fn packed_sizes(&self) -> Result<HashMap<ObjectId, u64>> {
        let mut sizes: HashMap<ObjectId, u64> = HashMap::new();
        for path in files_ending(&self.pack_dir(), "idx")? {
            let Ok(pack) = fs::metadata(path.with_extension("pack")) else { continue };
            let file = PackFile::new(path);
            let OpenResult::Whole(list) = file.index()? else { continue };
            // The last 20 bytes of a pack are its checksum.
            for entry in PackEntries::new(list, pack.len().saturating_sub(20)).iter() {
                let size = entry.span.end.saturating_sub(entry.span.start);
                let known = sizes.entry(entry.id).or_insert(size);
                *known = size.min(*known);
            }
        }
        Ok(sizes)
    }

    /// Returns the total size in bytes of all files in the repository, except the reserve.
    pub fn bytes_on_disk(&self) -> u64 {
        let reserve = fs::symlink_metadata(self.private(RESERVE)).map_or(0, |found| found.len());
        let mut total: u64 = 0;
        let mut open = vec![self.git_dir.clone()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => open.push(entry.path()),
                    Ok(found) => total += found.len(),
                    Err(_) => {}
                }
            }
        }
        total.saturating_sub(reserve)
    }
}

#[cfg(unix)]
pub(super) fn free_bytes(dir: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
pub(super) fn free_bytes(_dir: &Path) -> Option<u64> {
    None
}
