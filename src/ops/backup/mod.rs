//! Copies of the store elsewhere, and the way back: one file a kind.
//!
//! A backup is called done when it was read back, every object in it hashed and every snapshot judged; one that is taken in moves no ref before the same was done with it.

mod chosen;
pub mod file;
pub(super) mod incoming;
mod join;
mod judged;
pub mod last;
pub mod mirror;
mod place;
pub mod server;
pub mod take_in;
mod update;

use std::path::{Path, PathBuf};

pub use incoming::{Incoming, Received, Source, receive_as_it_is, receive_what_is_fit};
pub use join::Anew;
pub use place::Place;
pub use update::May;

use super::verdict::{self, Tally};
use super::{Error, Result, Workspace};
use crate::archive::backup::{BackupError, Header, Known, Passphrase, Peek, is_backup};
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

/// What a check of a backup says: what one of a store does, and what the backup says of itself.
pub struct Checked {
    /// What it says of itself.
    pub header: Header,
    /// What was checked and found.
    pub report: super::check::Report,
}

/// Read a backup to its end, hash every object and judge every snapshot. What is not a folder is unpacked into a temporary one for that.
pub fn check(
    workspace: &Workspace,
    place: &Place,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Checked> {
    let found = look_at(workspace, place, passphrase, asks, monitor)?;
    let mut tally = Tally::default();
    found.judged.snapshots().for_each(|(_, verdict)| tally.count(verdict));
    let findings = verdict::checked(found.findings());
    let objects = found.judged.objects as u64;
    let report = super::check::Report::of(objects, tally, findings);
    Ok(Checked { header: found.header, report })
}

/// The same, and what was found is there to be looked at until it is dropped.
pub fn look_at(
    workspace: &Workspace,
    place: &Place,
    passphrase: Option<&Passphrase>,
    asks: bool,
    monitor: &mut dyn Monitor,
) -> Result<Received> {
    let beside = std::env::temp_dir();
    let source = Source { place, passphrase, asks, beside: &beside, store: None };
    incoming::read(workspace, &source, &Known::new(), monitor)
}

/// For `map_err`: what is wrong with a backup, and which one it is.
fn about(path: &Path) -> impl FnOnce(BackupError) -> Error {
    let path: PathBuf = path.to_owned();
    move |error| match error {
        BackupError::Store(error) => error.into(),
        source => Error::Backup { path, source },
    }
}
