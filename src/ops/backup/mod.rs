//! Copies of the store elsewhere, and the way back: one file a kind.
//!
//! A backup is called done when it was read back and every object in it hashed; one that is taken in moves no ref before all of it was unpacked and held against the format.

mod chosen;
pub mod file;
pub(super) mod incoming;
pub mod last;
pub mod mirror;
mod place;
pub mod server;
pub mod take_in;
mod update;

use std::path::{Path, PathBuf};

pub use incoming::{Incoming, Source, receive};
pub use place::Place;
pub use update::May;

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

/// Whether a folder is a repository: then it is read as a backup or refused as one.
pub fn is_repository(folder: &Path) -> bool {
    crate::store::is_repository(folder)
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

/// Read a backup to its end, hash every object and rebuild every snapshot. What is not a folder is unpacked into a temporary one for that.
pub fn check(
    workspace: &Workspace,
    place: &Place,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Checked> {
    let found = look_at(workspace, place, passphrase, asks, monitor)?;
    let objects = found.objects.len() as u64;
    Ok(Checked { header: found.header, objects, snapshots: found.snapshots })
}

/// The same, and what was found is there to be looked at until it is dropped.
pub fn look_at(
    workspace: &Workspace,
    place: &Place,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Incoming> {
    let beside = std::env::temp_dir();
    let source = Source { place, passphrase, asks, beside: &beside, store: None };
    receive(workspace, &source, monitor)
}

/// For `map_err`: what is wrong with a backup, and which one it is.
fn about(path: &Path) -> impl FnOnce(BackupError) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        BackupError::Store(error) => error.into(),
        source => Error::Backup { path, source },
    }
}
