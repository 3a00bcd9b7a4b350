//! Reads the entire state of a remote without joining it, for commands that only read a backup.

use std::path::Path;
use std::sync::Arc;

use super::PlainRemoteError;
use super::opened::OpenedRemote;
use super::place::open_storage;
use super::registry::{self, Remote};
use super::remote_object::{self, Secret};
use super::session::Session;
use crate::archive::backup::Passphrase;
use crate::engine::{Result, Workspace};
use crate::progress::Monitor;
use crate::storage::Storage;
use crate::store::{Store, temporary_folder};

/// Parameters for reading a remote.
pub(crate) struct Reading<'r> {
    /// The store whose list of remotes may have the key.
    pub local: Option<&'r Store>,
    pub passphrase: Option<&'r Passphrase>,
    /// The folder in which temporary folders are created.
    pub beside: &'r Path,
    /// The store whose objects need not be downloaded.
    pub objects: Option<&'r Store>,
}

/// Downloads a remote into a temporary store. Problems of single objects become notices of the
/// workspace.
pub(crate) fn read_everything(
    workspace: &Workspace,
    address: &str,
    reading: &Reading<'_>,
    monitor: &mut dyn Monitor,
) -> Result<OpenedRemote> {
    let known = match reading.local {
        Some(store) => registry::find(store, address)?,
        None => None,
    };
    let address = known.as_ref().map_or(address, |known| &known.address).to_owned();
    let storage = open_storage(reading.local, &address)?;
    let remote = match known {
        Some(known) => known,
        None => with_secret(&*storage, &address, reading.passphrase)?,
    };
    // The state of this device must not change, so the session uses a temporary store.
    let folder = temporary_folder(reading.beside)?;
    let scratch = Store::create(&folder.path().join("scratch"))?;
    let mut session = Session::over(workspace, &scratch, &remote, Arc::from(storage))?;
    session.refresh(monitor)?;
    let new = session.new_announcements();
    if new.is_empty() {
        return Err(PlainRemoteError::Empty { address }.into());
    }
    for announcement in &new {
        session.join(announcement)?;
    }
    let opened = session.open_joined_state(reading.objects, reading.beside, monitor)?;
    workspace.notice(session.take_all_findings());
    Ok(opened)
}

fn with_secret(
    storage: &dyn Storage,
    address: &str,
    passphrase: Option<&Passphrase>,
) -> super::Result<Remote> {
    let unlocked = match passphrase {
        Some(passphrase) => remote_object::find(storage, address, Secret::Passphrase(passphrase)),
        // Reading a remote that is not encrypted needs no consent, unless an encrypted one is
        // there.
        None => match remote_object::find(storage, address, Secret::Missing) {
            locked @ Err(PlainRemoteError::NoPassphrase { .. }) => locked,
            _ => remote_object::find(storage, address, Secret::Unencrypted),
        },
    };
    let key =
        unlocked?.ok_or_else(|| PlainRemoteError::NoRemote { address: address.to_owned() })?;
    Ok(Remote::new(String::new(), address.to_owned(), &key))
}
