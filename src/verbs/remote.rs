//! Adds, lists, tests and removes remotes on plain storage.

use crate::archive::backup::Passphrase;
use crate::engine::remotes::{self, PlainRemoteError, Protection};
use crate::engine::{self, Workspace};
use crate::storage::{Credentials, Storage};
use crate::verbs::Result;

pub use crate::engine::remotes::{Added, Remote};

/// The protection of a remote: of an existing one, or the wish for a new one.
#[derive(Clone, Debug)]
pub enum Access {
    /// Encrypted. The passphrase or the recovery key opens it.
    Secret(Passphrase),
    /// Not encrypted: whoever can read the storage can read the chats.
    Unencrypted,
}

/// Options for adding a remote.
#[derive(Clone, Debug)]
pub struct AddOptions {
    /// The address of the storage.
    pub address: String,
    /// The name of the remote; `None` for an unused name.
    pub name: Option<String>,
    /// How the remote is opened, or protected if it is created.
    pub access: Access,
    /// The login that the user typed, which the store keeps.
    pub login: Option<Credentials>,
}

fn open(address: &str, login: Option<&Credentials>) -> Result<Box<dyn Storage>> {
    Ok(remotes::open_with(address, login.cloned().unwrap_or_default()).map_err(failed)?)
}

fn failed(error: impl Into<PlainRemoteError>) -> engine::Error {
    error.into().into()
}

/// Returns whether there is a remote at this address.
pub fn exists(address: &str, login: Option<&Credentials>) -> Result<bool> {
    Ok(remotes::exists(&*open(address, login)?).map_err(failed)?)
}

/// Adds a remote to the store. Creates the store and the remote if they do not exist.
pub fn add(workspace: &Workspace, options: &AddOptions) -> Result<Added> {
    let (workspace, begun) = workspace.for_recovery();
    if let Some(root) = begun {
        Workspace::begin_library(&root)?;
    }
    let address = remotes::absolute(&options.address);
    let storage = open(&address, options.login.as_ref())?;
    let store = workspace.find_or_create_store()?;
    let protection = match &options.access {
        Access::Secret(passphrase) => Protection::Passphrase(passphrase),
        Access::Unencrypted => Protection::None,
    };
    let (name, time) = (options.name.as_deref(), workspace.timestamp());
    let added = remotes::add(&store, &*storage, &address, name, protection, time);
    let added = added.map_err(failed)?;
    if let Some(login) = &options.login {
        remotes::save_login(&store, &address, login).map_err(failed)?;
    }
    Ok(added)
}

/// Returns the remotes of the store, the default one first.
pub fn list(workspace: &Workspace) -> Result<Vec<Remote>> {
    match workspace.find_store()? {
        Some(store) => Ok(remotes::load(&store).map_err(failed)?),
        None => Ok(Vec::new()),
    }
}

/// Returns the remote with this name or address, if there is one.
pub fn find(workspace: &Workspace, text: &str) -> Result<Option<Remote>> {
    match workspace.find_store()? {
        Some(store) => Ok(remotes::find(&store, text).map_err(failed)?),
        None => Ok(None),
    }
}

/// Removes a remote and its key from the store. The storage stays unchanged.
pub fn remove(workspace: &Workspace, name: &str) -> Result<Remote> {
    Ok(remotes::remove(&workspace.open_store()?, name).map_err(failed)?)
}

/// Writes, lists, reads and deletes an object, to find out whether the storage works.
pub fn test(workspace: &Workspace, name: &str) -> Result<Remote> {
    let found = find(workspace, name)?;
    let remote = found.ok_or_else(|| failed(PlainRemoteError::Unknown { name: name.into() }))?;
    let store = workspace.open_store()?;
    let storage = remotes::open_storage(Some(&store), &remote.address).map_err(failed)?;
    remotes::test(&*storage, &remote).map_err(failed)?;
    Ok(remote)
}
