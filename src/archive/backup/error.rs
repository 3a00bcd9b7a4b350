use std::io;

use crate::hint::{Hint, unchanged};
use crate::store::{self, ObjectId};

pub type Result<T> = std::result::Result<T, BackupError>;

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

    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Foreign => unchanged("a backup is what `stvc backup` wrote"),
            Self::Newer { .. } => unchanged("a newer stvc wrote this; get that version"),
            Self::Encrypted | Self::WrongPassphrase => unchanged(
                "type it on a terminal, or name it with `--passphrase-file FILE` or `--passphrase-command COMMAND`",
            ),
            Self::Damaged { .. } | Self::Hostile { .. } => {
                unchanged("nothing of it was taken in; use another backup")
            }
            Self::Io(source) if source.kind() == io::ErrorKind::StorageFull => {
                "the disk is full; make room and try again. Nothing is lost".into()
            }
            _ => return None,
        })
    }
}

/// For `map_err`: errors of the system stay, all others mean that the bytes are damaged.
pub(super) fn reading(error: io::Error) -> BackupError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => BackupError::damaged("it ends too early"),
        _ if error.raw_os_error().is_some() => BackupError::Io(error),
        _ => BackupError::damaged(error.to_string()),
    }
}
