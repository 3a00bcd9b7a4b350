use std::io;

use crate::store::{self, ObjectId};

/// What this module returns.
pub type Result<T> = std::result::Result<T, BackupError>;

/// Why a backup could not be written or is not believed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It begins with something else.
    #[error("it is no backup of stvc's")]
    Foreign,
    /// It is of a later format.
    #[error("it has format {found}; this program knows format 1")]
    Newer {
        /// Its format.
        found: String,
    },
    /// It is encrypted, and no passphrase was given.
    #[error("it is encrypted, and no passphrase was given")]
    Encrypted,
    /// The passphrase does not open it.
    #[error("the passphrase is wrong, or the beginning of the file is damaged")]
    WrongPassphrase,
    /// It is not what was written.
    #[error("it is damaged: {why}")]
    Damaged {
        /// What is wrong.
        why: String,
    },
    /// It is whole, and holds what no backup may hold.
    #[error("it holds what no backup of stvc's holds: {why}")]
    Hostile {
        /// What that is.
        why: String,
    },
    /// An object is too long for a backup.
    #[error("object {id} is longer than 512 MiB")]
    TooLong {
        /// The id of the object.
        id: ObjectId,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The disk, or whatever is written to or read from.
    #[error(transparent)]
    Io(io::Error),
}

impl BackupError {
    pub(super) fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged { why: why.into() }
    }

    pub(super) fn hostile(why: impl Into<String>) -> Self {
        Self::Hostile { why: why.into() }
    }
}

/// For `map_err` while reading: what the system says is its own word, anything else is said about the bytes.
pub(super) fn reading(error: io::Error) -> BackupError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => BackupError::damaged("it ends too early"),
        _ if error.raw_os_error().is_some() => BackupError::Io(error),
        _ => BackupError::damaged(error.to_string()),
    }
}
