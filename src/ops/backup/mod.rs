//! Copies of the store elsewhere, and the way back: one file a kind.
//!
//! A backup is called done when it was read back and every object in it hashed; one that is taken in moves no ref before all of it was unpacked and held against the format.

pub mod file;
mod incoming;
pub mod last;
pub mod take_in;

use std::path::{Path, PathBuf};

pub use incoming::{Incoming, unpack};

use super::{Error, Result, Workspace};
use crate::archive::backup::{BackupError, Header, Passphrase, Peek, is_backup};
use crate::progress::Monitor;

/// Whether a file is a backup, and encrypted. `None`: it is something else.
pub fn is_encrypted(path: &Path) -> Option<bool> {
    match is_backup(path) {
        Peek::Plain => Some(false),
        Peek::Encrypted => Some(true),
        Peek::Other => None,
    }
}

/// What a check of a backup says; that it is not sound is an error.
pub struct Checked {
    /// What it says of itself.
    pub header: Header,
    /// How many objects it has, each hashed.
    pub objects: u64,
    /// How many snapshots it has, each rebuilt and compared.
    pub snapshots: usize,
}

/// Read a backup to its end, hash every object and rebuild every snapshot. It is unpacked into a temporary folder for that.
pub fn check(
    workspace: &Workspace,
    source: &Path,
    passphrase: Option<&Passphrase>,
    monitor: &mut dyn Monitor,
) -> Result<Checked> {
    let found = unpack(workspace, source, passphrase, &std::env::temp_dir(), monitor)?;
    Ok(Checked { header: found.header, objects: found.objects, snapshots: found.snapshots })
}

/// For `map_err`: what is wrong with a backup, and which one it is.
fn about(path: &Path) -> impl FnOnce(BackupError) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        BackupError::Store(error) => error.into(),
        source => Error::Backup { path, source },
    }
}
