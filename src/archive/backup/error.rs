use std::io;

use crate::hint::{self, Hint, unchanged};
use crate::store::{self, ObjectId};

pub type Result<T> = std::result::Result<T, BackupError>;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("it is not a backup created by stvc")]
    Foreign,
    #[error("its format ({found}) is not supported by this version of stvc")]
    Newer { found: String },
    #[error("it is encrypted, but no passphrase was given")]
    Encrypted,
    #[error("the passphrase is wrong, or the beginning of the file is damaged")]
    WrongPassphrase,
    #[error("it is damaged: {why}")]
    Damaged { why: String },
    #[error("it contains data that stvc never writes to a backup: {why}")]
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

    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Foreign => unchanged("name a file or folder that `stvc backup` created"),
            Self::Newer { .. } => unchanged("update stvc: a newer version wrote this backup"),
            Self::Encrypted | Self::WrongPassphrase => unchanged(
                "enter the passphrase on a terminal, or use `--passphrase-file FILE` or `--passphrase-command COMMAND`",
            ),
            Self::Damaged { .. } | Self::Hostile { .. } => unchanged("use another backup"),
            Self::Io(source) => return hint::of_io(source),
            _ => return None,
        })
    }
}

/// Converts a read error, for `map_err`. Errors of the operating system stay I/O errors; any other
/// error means that the backup is damaged.
pub(super) fn reading(error: io::Error) -> BackupError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => BackupError::damaged("it is truncated"),
        _ if error.raw_os_error().is_some() => BackupError::Io(error),
        _ => BackupError::damaged(error.to_string()),
    }
}
