//! How much room the store takes, and room for a bad day: a file of no use (`stvc/reserve`) that
//! the commands which make room remove first.
//!
//! On a full disk not even a line of the log can be written, and nothing could be removed without
//! one. `forget`, `erase` and `gc` therefore give this file up when the disk is nearly full; the
//! next command that writes makes it again once there is plenty of room.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::files::files_ending;
use super::pack_entries::entries_in_order;
use super::pack_file::{Opened, PackFile};
use super::{Lock, ObjectId, Result, Store};
use crate::durable;

/// Enough for the log, a pack of commits, and a block of the disk for each of 200 refs.
const RESERVED: usize = 1 << 20;
/// A disk with less than this is nearly full.
const PLENTY: u64 = 64 << 20;

impl Store {
    /// Makes the reserve if the disk has plenty of room. Failures are ignored.
    pub(super) fn make_reserve(&self) {
        let path = self.reserve_path();
        if path.symlink_metadata().is_ok() || self.is_disk_nearly_full() {
            return;
        }
        // Some file systems compress, and zeros would reserve nothing there.
        let mut bytes = vec![0; RESERVED];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        if made.and_then(|mut file| file.write_all(&bytes)).is_err() {
            durable::remove_own(&path);
        }
    }

    /// Gives the reserve up if the disk is nearly full, because the caller is going to make room.
    pub fn release_reserve(&self, _lock: &Lock) {
        if self.is_disk_nearly_full() {
            durable::remove_own(&self.reserve_path());
        }
    }

    fn is_disk_nearly_full(&self) -> bool {
        free_bytes(&self.git_dir).is_none_or(|free| free < PLENTY)
    }

    fn reserve_path(&self) -> PathBuf {
        self.private_dir().join("reserve")
    }

    pub fn packed_sizes(&self) -> Result<HashMap<ObjectId, u64>> {
        let mut sizes: HashMap<ObjectId, u64> = HashMap::new();
        for path in files_ending(&self.pack_dir(), "idx")? {
            let Ok(pack) = fs::metadata(path.with_extension("pack")) else { continue };
            let file = PackFile::new(path);
            let Opened::Whole(list) = file.index()? else { continue };
            // The checksum ends the pack.
            for entry in entries_in_order(list, pack.len().saturating_sub(20)) {
                let size = entry.span.end.saturating_sub(entry.span.start);
                let known = sizes.entry(entry.id).or_insert(size);
                *known = size.min(*known);
            }
        }
        Ok(sizes)
    }

    /// Returns the size of the whole repository, without the reserve.
    pub fn bytes_on_disk(&self) -> u64 {
        let reserve = fs::symlink_metadata(self.reserve_path()).map_or(0, |found| found.len());
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
