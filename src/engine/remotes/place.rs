//! The storage of a remote: its address, and the login that the user gave for it.

use std::path::PathBuf;

use super::PlainRemoteError;
use super::registry::{absolute, local_at};
use crate::archive::Blake3;
use crate::durable;
use crate::storage::{self, Address, Credentials, Options, Storage};
use crate::store::Store;

type Result<T> = std::result::Result<T, PlainRemoteError>;

/// Opens the storage at an address. The login is that of the environment, or else the one that this
/// store keeps.
pub(crate) fn open_storage(store: Option<&Store>, address: &str) -> Result<Box<dyn Storage>> {
    let saved = match store {
        Some(store) => Credentials::load(&login_path(store, address))?,
        None => None,
    };
    open_with(address, Credentials::default().or(saved.unwrap_or_default()))
}

/// Opens the storage at an address with a login. The environment takes precedence over it.
pub(crate) fn open_with(address: &str, login: Credentials) -> Result<Box<dyn Storage>> {
    let address = Address::parse(address.strip_prefix("file://").unwrap_or(address))?;
    let login = Credentials::from_environment().or(login);
    Ok(storage::open(&address, &login, Options::default())?)
}

/// Keeps a login in the store, in a file that only its owner may read.
pub(crate) fn save_login(store: &Store, address: &str, login: &Credentials) -> Result<()> {
    let path = login_path(store, address);
    durable::create_dir_all(durable::parent(&path)).map_err(local_at(&path))?;
    Ok(login.save(&path)?)
}

/// Removes the login of a remote from the store.
pub(super) fn remove_login(store: &Store, address: &str) -> Result<()> {
    let path = login_path(store, address);
    match durable::remove(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(local_at(&path)(error)),
        _ => Ok(()),
    }
}

fn login_path(store: &Store, address: &str) -> PathBuf {
    let name = Blake3::of(absolute(address).as_bytes()).to_string();
    store.private_dir().join("remote-logins").join(format!("{name}.toml"))
}
