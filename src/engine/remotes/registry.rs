//! The remotes that this device uses, in the file `stvc/remotes.json` of the store.
//!
//! The file contains the keys, so only its owner may read it. Keys are in no other file: not in the
//! configuration, the operation log or the record of backups.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::PlainRemoteError;
use super::key::RemoteKey;
use crate::durable::{self, Existing, Temp};
use crate::regular;
use crate::store::Store;

type Result<T> = std::result::Result<T, PlainRemoteError>;

/// A remote that this device uses.
#[derive(Clone, Serialize, Deserialize)]
pub struct Remote {
    /// The name that the user chose.
    pub name: String,
    /// The address of the storage. The path of a folder is absolute.
    pub address: String,
    /// The id of the remote.
    pub id: String,
    /// The recovery key; `None` if the remote is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

impl Remote {
    pub(crate) fn new(name: String, address: String, key: &RemoteKey) -> Self {
        Self { name, address, id: key.id().to_owned(), key: key.recovery_key() }
    }

    /// Returns whether the remote is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.key.is_some()
    }

    /// Returns whether this is the name or the address of the remote.
    pub(super) fn is_called(&self, text: &str) -> bool {
        self.name == text || absolute(&self.address) == absolute(text)
    }

    pub(super) fn key(&self) -> Result<RemoteKey> {
        match &self.key {
            None => Ok(RemoteKey::unencrypted(self.id.clone())),
            Some(text) => RemoteKey::from_recovery_key(text)
                .filter(|key| key.id() == self.id)
                .ok_or_else(|| local(format!("the key of {:?} is not valid", self.name))),
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    remotes: Vec<Remote>,
}

pub(super) fn local(why: impl Into<String>) -> PlainRemoteError {
    PlainRemoteError::LocalState { why: why.into() }
}

pub(super) fn local_at(path: &Path) -> impl FnOnce(io::Error) -> PlainRemoteError {
    let path = path.display().to_string();
    move |error| local(format!("{path}: {error}"))
}

fn path(store: &Store) -> PathBuf {
    store.private_dir().join("remotes.json")
}

/// Returns the remotes of a store, the default one first.
pub fn load(store: &Store) -> Result<Vec<Remote>> {
    let path = path(store);
    match regular::read(&path) {
        Ok(text) => {
            let file: File = serde_json::from_slice(&text)
                .map_err(|error| local_at(&path)(io::Error::other(error)))?;
            Ok(file.remotes)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(local_at(&path)(error)),
    }
}

pub(super) fn save(store: &Store, remotes: Vec<Remote>) -> Result<()> {
    let path = path(store);
    let text = serde_json::to_vec_pretty(&File { remotes })
        .map_err(|error| local_at(&path)(io::Error::other(error)))?;
    write_secret(&path, &text).map_err(local_at(&path))
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temp = Temp::beside(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        temp.file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    temp.file().write_all(bytes)?;
    temp.finish(path, Existing::Replace)?;
    durable::sync_dir(durable::parent(path))
}

/// Returns the remote with this name or address.
pub fn find(store: &Store, text: &str) -> Result<Option<Remote>> {
    Ok(load(store)?.into_iter().find(|remote| remote.is_called(text)))
}

/// Returns an address as it is recorded: the path of a folder as an absolute path.
pub fn absolute(address: &str) -> String {
    let path = address.strip_prefix("file://").unwrap_or(address);
    if !crate::storage::names_server(address) {
        std::path::absolute(path).map_or_else(|_| path.into(), |path| path.display().to_string())
    } else {
        address.to_owned()
    }
}
