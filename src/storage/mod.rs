//! Plain object storage: four calls, no locks.
//!
//! An object is a sequence of bytes with a name. An object never changes: it is written as a whole
//! under a new name, and deleted. It may become visible late, and objects may become visible in any
//! order. This layer knows neither git nor chats.

mod error;
mod folder;

use std::path::Path;

pub use error::{Error, Result};
pub use folder::FolderStorage;

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub bytes: u64,
}

/// A place that stores objects. Names consist of components that are separated by `/`.
pub trait Storage: Send + Sync {
    /// Lists all objects whose name begins with `prefix`, which is empty or ends in `/`.
    fn list(&self, prefix: &str) -> Result<Vec<Listed>>;
    /// Reads a whole object of at most `limit` bytes.
    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>>;
    /// Writes a whole object under a new name. Writing the same bytes again is allowed.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()>;
    /// Deletes an object. A missing object is not an error.
    fn delete(&self, name: &str) -> Result<()>;
}

/// Returns whether an address is the path of a folder.
pub fn is_folder(_address: &str) -> bool {
    true
}

/// Returns whether an address, without looking at the network, is known to be a storage: a folder
/// with the object of a remote.
pub fn is_storage(address: &str) -> bool {
    Path::new(address.strip_prefix("file://").unwrap_or(address)).join("stvc-remote").is_dir()
}

/// Opens the storage at an address.
pub fn open(address: &str) -> Result<Box<dyn Storage>> {
    Ok(Box::new(FolderStorage::new(address.strip_prefix("file://").unwrap_or(address))))
}
