use std::io;

use crate::store::{self, ObjectId};

pub type Result<T> = std::result::Result<T, BackupError>;

/// Why a backup could not be written or is not believed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("it is no backup of stvc's")]
    Foreign,
    #[error("it has format {found}; this program knows format 1")]
    Newer { found: String },
    #[error("it is encrypted, and no passphrase was given")]
    Encrypted,
    #[error("the passphrase is wrong, or the beginning of the file is damaged")]
    WrongPassphrase,
    #[error("it is damaged: {why}")]
    Damaged { why: String },
    #[error("it holds what no backup of stvc's holds: {why}")]
    Hostile { why: String },
    #[error("object {id} is longer than 512 MiB")]
    TooLong { id: ObjectId },
    #[error(transparent)]
    Store(#[from] store::Error),
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
