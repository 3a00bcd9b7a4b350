//! Plain object storage: four calls, no locks.
//!
//! A remote may be a folder, a WebDAV server, an S3 bucket, or anything that the user's rclone
//! reaches. All of them can list, read, write and delete objects; nothing else is used. Objects may
//! become visible late and in any order.
//!
//! Nothing that a storage returns is trusted: names that stvc would not write are left out of
//! lists, answers are bounded, and requests go to no other server than that of the address.

pub mod address;
mod credentials;
mod error;
mod failure;
mod folder;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod http;
mod object_name;
mod open;
mod opendal;
mod options;
mod rclone;
mod request_rate;
mod s3_list;
mod tls;
mod webdav_list;
mod xml;

pub use address::{Address, names_server};
pub use credentials::{Credentials, Password};
pub use error::{Error, Result};
#[cfg(any(test, fuzzing))]
pub(crate) use object_name::is_valid as is_valid_name;
pub use open::open;
pub use options::Options;
pub use request_rate::Limit;

/// Maximum length of an object, in bytes.
pub const LONGEST_OBJECT: u64 = 16 << 20;

/// Maximum number of entries of a list. It bounds the memory that a hostile server can use.
const LONGEST_LIST: usize = 200_000;
const TOO_LONG: &str = "its list of files is too long";

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// The full name, with all its parts.
    pub name: String,
    /// The length of the object.
    pub bytes: u64,
}

/// A place for objects of at most [`LONGEST_OBJECT`] bytes.
///
/// A name consists of parts separated by `/`. Each part has at most 100 ASCII letters, digits, `-`,
/// `_` and `.`, and does not begin with `.`.
pub trait Storage: Send + Sync {
    /// Lists all objects whose name begins with `prefix` (names use `/`; `prefix` is "" or ends in
    /// `/`).
    fn list(&self, prefix: &str) -> Result<Vec<Listed>>;
    /// Reads a whole object of at most `limit` bytes.
    fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>>;
    /// Writes a whole object under a new name. Writing the same bytes again is allowed.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()>;
    /// Deletes an object. Does nothing if it does not exist.
    fn delete(&self, name: &str) -> Result<()>;
}
