//! Room for a bad day: a file that is of no use to anybody (`stvc/reserve`), and that the commands which make room remove first.
//!
//! On a full disk not even a line of the log can be written, and nothing could be removed without one. `forget`, `erase` and `gc` therefore give this file up when the disk is nearly
//! full; the next command that writes makes it again once there is plenty of room.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Lock, Store};
use crate::durable;

/// Enough for the log, a pack of commits, and a block of the disk for each of 200 refs.
const RESERVED: usize = 1 << 20;
/// A disk with less than this is nearly full.
const PLENTY: u64 = 64 << 20;

impl Store {
    /// Makes the reserve if it is not there and the disk has plenty of room. A failure costs only the reserve.
    pub(super) fn make_reserve(&self) {
        let path = self.reserve_path();
        if path.symlink_metadata().is_ok()
            || free_bytes(&self.git_dir).is_none_or(|free| free < PLENTY)
        {
            return;
        }
        // Some file systems compress, and zeros would reserve nothing there.
        let mut bytes = vec![0; RESERVED];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(&bytes)
        };
        if write().is_err() {
            durable::remove_own(&path);
        }
    }

    /// Gives the reserve up if the disk is nearly full: what follows makes room.
    pub fn release_reserve(&self, _lock: &Lock) {
        if free_bytes(&self.git_dir).is_none_or(|free| free < PLENTY) {
            durable::remove_own(&self.reserve_path());
        }
    }

    pub(super) fn reserve_path(&self) -> PathBuf {
        self.private_dir().join("reserve")
    }
}

/// Returns how much may be written to the disk of a folder, where the system tells.
#[cfg(unix)]
pub(super) fn free_bytes(dir: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(dir).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
pub(super) fn free_bytes(_dir: &Path) -> Option<u64> {
    None
}
