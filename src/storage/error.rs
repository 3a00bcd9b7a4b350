use crate::exit;
use crate::hint::{Hint, unchanged};

pub type Result<T> = std::result::Result<T, Error>;

/// An error of a storage.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "storage-")]
pub enum Error {
    #[error("{name} does not exist")]
    NotFound { name: String },
    #[error("{name} is longer than {limit} bytes")]
    TooLarge { name: String, limit: u64 },
    #[error("cannot access {name}: permission denied")]
    Denied { name: String },
    #[error("cannot write {name}: the storage is full")]
    Full { name: String },
    #[error("cannot reach {address}: {why}")]
    Unreachable { address: String, why: String },
    #[error("{name}: {source}")]
    Io { name: String, source: std::io::Error },
}

impl Error {
    /// Returns the exit code of a command that fails with this error.
    pub fn exit(&self) -> u8 {
        exit::FAILED
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NotFound { .. } => {
                unchanged("wait until the storage has synchronised, then try again")
            }
            Self::TooLarge { .. } => unchanged("delete the object: stvc did not write it"),
            Self::Denied { .. } => unchanged("check the login and the permissions of the folder"),
            Self::Full { .. } => unchanged("free space on the storage, then try again"),
            Self::Unreachable { .. } => {
                unchanged("check the address and the connection, then try again")
            }
            Self::Io { .. } => return None,
        })
    }
}
