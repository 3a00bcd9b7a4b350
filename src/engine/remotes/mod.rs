//! Remotes on plain storage (docs/remotes.md): any number of devices, no locks, encrypted.
//!
//! Each device writes packs with its new objects and then an announcement: all branches and tags of
//! the remote as this device leaves it. Another device joins the announcements that it does not
//! know yet, one after the other, with the plan of `sync` (`engine::receive`). Each announcement
//! lists the announcements that it includes, so a device knows which states are concurrent. If a
//! state includes everything that a device has sent, the device takes it as it is; so all devices
//! converge.

mod announcement;
mod compact;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod key;
mod local_state;
mod opened;
mod pack_objects;
mod place;
mod read_everything;
mod registry;
mod remote_object;
mod send;
mod session;

use getrandom::fill;

pub use error::PlainRemoteError;
pub(crate) use key::RemoteKey;
pub(crate) use opened::OpenedRemote;
pub(crate) use place::{open_storage, open_with, save_login};
pub(crate) use read_everything::{Reading, read_everything};
pub use registry::{Remote, absolute, find, load};
pub use remote_object::exists;
pub(crate) use session::Session;

use crate::archive::backup::Passphrase;
use crate::storage::Storage;
use crate::store::Store;

type Result<T> = std::result::Result<T, PlainRemoteError>;

/// How a new remote is protected.
#[derive(Clone, Copy)]
pub enum Protection<'p> {
    /// Encrypted; this passphrase opens it.
    Passphrase(&'p Passphrase),
    /// Everybody who can read the storage can read the chats.
    None,
}

/// A remote that was added to a store.
pub struct Added {
    /// The remote as the store lists it now.
    pub remote: Remote,
    /// Whether it did not exist before.
    pub created: bool,
    /// The key that opens the remote without the passphrase; `None` if it is not encrypted.
    pub recovery_key: Option<String>,
}

/// Adds the remote at an address to a store. Creates the remote if it does not exist. `name` is the
/// name that the user chose, if any.
pub fn add(
    store: &Store,
    storage: &dyn Storage,
    address: &str,
    name: Option<&str>,
    protection: Protection<'_>,
    time: String,
) -> Result<Added> {
    let mut remotes = load(store)?;
    let address = absolute(address);
    if let Some(known) = remotes.iter().find(|known| known.address == address) {
        return Err(PlainRemoteError::AlreadyAdded { address, name: known.name.clone() });
    }
    let name = match name {
        Some(name) => match remotes.iter().find(|known| known.name == name) {
            Some(known) => {
                let (name, address) = (name.to_owned(), known.address.clone());
                return Err(PlainRemoteError::NameTaken { name, address });
            }
            None => name.to_owned(),
        },
        None => free_name(&remotes),
    };
    let secret = match protection {
        Protection::Passphrase(passphrase) => remote_object::Secret::Passphrase(passphrase),
        Protection::None => remote_object::Secret::Unencrypted,
    };
    let mut found = remote_object::find(storage, &address, secret)?;
    let created = found.is_none();
    if created {
        // Its description may have been deleted, or a synchroniser has not copied it yet. A second
        // remote in the folder would never join the first one.
        let listed = storage.list("devices/")?;
        if listed.iter().any(|listed| announcement::parse_name(&listed.name).is_some()) {
            return Err(PlainRemoteError::Incomplete { address });
        }
        let (key, passphrase) = match protection {
            Protection::Passphrase(passphrase) => (RemoteKey::new_encrypted(), Some(passphrase)),
            Protection::None => (RemoteKey::unencrypted(random_id()?), None),
        };
        remote_object::create(storage, &key, passphrase, time)?;
        // Another device may have created the remote at the same time. Its key is searched for only
        // then, because a passphrase takes much time and memory.
        let is_first = remote_object::ids(storage)?.first().is_none_or(|id| id == key.id());
        let other = match is_first {
            true => None,
            false => remote_object::find(storage, &address, secret)?,
        };
        found = other.or(Some(key));
    }
    let Some(key) = found else { return Err(PlainRemoteError::NoRemote { address }) };
    let remote = Remote::new(name, address, &key);
    remotes.push(remote.clone());
    registry::save(store, remotes)?;
    Ok(Added { remote, created, recovery_key: key.recovery_key() })
}

fn free_name(remotes: &[Remote]) -> String {
    let mut names = std::iter::once("remote".to_owned())
        .chain((2_u32..).map(|number| format!("remote-{number}")));
    let is_free = |name: &String| !remotes.iter().any(|known| known.name == *name);
    names.find(is_free).unwrap_or_default()
}

fn random_id() -> Result<String> {
    let mut random = [0; 16];
    fill(&mut random).map_err(|error| PlainRemoteError::Cipher { why: error.to_string() })?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Removes a remote and its keys from a store. The storage stays unchanged.
pub fn remove(store: &Store, name: &str) -> Result<Remote> {
    let mut remotes = load(store)?;
    let at = remotes.iter().position(|known| known.is_called(name));
    let at = at.ok_or_else(|| PlainRemoteError::Unknown { name: name.to_owned() })?;
    let removed = remotes.remove(at);
    registry::save(store, remotes)?;
    place::remove_login(store, &removed.address)?;
    local_state::StateFolder::remove(store, &removed.id)?;
    Ok(removed)
}

/// Writes, lists, reads and deletes an object. Its name is that of a pack that nobody announces.
pub fn test(storage: &dyn Storage, remote: &Remote) -> Result<()> {
    let key = remote.key()?;
    let random = random_id()?;
    let object = key.seal(random.as_bytes())?;
    let name = pack_objects::object_name(&key.part_name(&random, &object));
    storage.write(&name, &object)?;
    let tested = || -> Result<()> {
        let listed = storage.list(pack_objects::PREFIX)?;
        let entry = listed.iter().find(|listed| listed.name == name);
        let entry = entry.ok_or_else(|| key::damaged(&name, "it was written, but not listed"))?;
        let read = storage.read(&name, object.len() as u64)?;
        if entry.bytes != object.len() as u64 || read != object {
            return Err(key::damaged(&name, "other bytes were read than written"));
        }
        Ok(())
    };
    let tested = tested();
    storage.delete(&name)?;
    tested?;
    if !remote_object::has(storage, key.id())? {
        return Err(PlainRemoteError::NoRemote { address: remote.address.clone() });
    }
    Ok(())
}
