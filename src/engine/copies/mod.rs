//! Backups of the store, one module for each kind.
//!
//! A backup is complete when it was read back: all its objects were hashed, and all its snapshots
//! were validated. An import checks the backup in the same way before it moves a ref.

pub(crate) mod chosen_refs;
pub(crate) mod copy_place;
pub(crate) mod erased;
mod error;
pub(crate) mod judge_outgoing;
pub mod last_backups;
pub mod last_sync;
pub mod mirror;
pub(crate) mod purge_erased;
pub(crate) mod removed_here;
pub(crate) mod same_disk;
pub mod server;
pub(crate) mod synchronised_folder;
pub(crate) mod update_refs;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use copy_place::CopyPlace;
pub use error::{CopyError, InTheWay};
pub use update_refs::UpdatePermissions;

use super::Error;
use crate::archive::backup::{BackupError, BackupKind, peek};
use crate::regular;

/// Returns whether a backup file is encrypted; `None` if the file is not a backup.
pub fn is_encrypted(path: &Path) -> Option<bool> {
    let mut begin = Vec::new();
    regular::open(path).and_then(|file| file.take(32).read_to_end(&mut begin)).ok()?;
    match peek(&begin) {
        BackupKind::Plain => Some(false),
        BackupKind::Encrypted => Some(true),
        BackupKind::Other => None,
    }
}

/// Returns whether a folder is a git repository.
pub fn is_repository(folder: &Path) -> bool {
    crate::store::is_repository(folder)
}

/// Returns a function for `map_err` that adds the path of the backup to an error.
pub(crate) fn about(path: &Path) -> impl FnOnce(BackupError) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        BackupError::Store(error) => error.into(),
        source => CopyError::File { path, source }.into(),
    }
}
