use std::io::ErrorKind;
use std::path::PathBuf;

use super::ObjectId;
use crate::exit;
use crate::hint::{self, Hint, unchanged};

pub type Result<T> = std::result::Result<T, Error>;

/// An error of the store. It names the file, object or ref that it concerns.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "store-")]
pub enum Error {
    #[error("there is no store at {}", path.display())]
    NoStore { path: PathBuf },
    #[error("{} is a git repository that was not created by stvc", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is not a store and not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("the store {} has format {found}, but this version of stvc supports only formats up to {known}", path.display())]
    NewerFormat { path: PathBuf, found: String, known: u32 },
    #[error("the store {} uses the feature {name:?}, which this version of stvc does not support", path.display())]
    UnknownFeature { path: PathBuf, name: String },
    #[error("the store {} is in use by {holder}", path.display())]
    Locked { path: PathBuf, holder: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("cannot pack {}: this needs up to {needed} bytes of free disk space, but only {free} are free (the new pack is written before the old ones are removed)", path.display())]
    NoRoom { path: PathBuf, needed: u64, free: u64 },
    #[error("{} is a link, and stvc does not follow links inside a store", path.display())]
    Link { path: PathBuf },
    #[error("object {id} is missing from the store")]
    Missing { id: ObjectId },
    #[error("object {id} is damaged: {why}")]
    Damaged { id: ObjectId, why: String },
    #[error("the pack {} is damaged: {why}", path.display())]
    DamagedPack { path: PathBuf, why: String },
    #[error("cannot store a {kind} of {bytes} bytes: the limit is {} MiB", super::longest(*kind) >> 20)]
    TooLong { kind: super::Kind, bytes: u64 },
    #[error("the ref {name} was changed by another program in the meantime")]
    RefMoved { name: String },
    #[error("another program holds the lock {}", path.display())]
    RefLocked { path: PathBuf },
    #[error("operation {number} was not finished: {source}")]
    Interrupted { number: u64, source: Box<Error> },
    #[error("git does not accept {name} as the name of a ref")]
    BadRefName { name: String },
    #[error("{what}: {why}")]
    Git { what: String, why: String },
}

/// An error that may report the loss of stored data.
pub trait Loss {
    /// Whether the error reports that stored data is missing or damaged, so that another copy or
    /// version may be used instead. After any other error the data may still exist, and must not be
    /// treated as missing.
    fn is_loss(&self) -> bool;
}

/// Turns an error that reports lost data into `None`. Returns all other errors unchanged.
pub fn unless_lost<T, E: Loss>(
    result: std::result::Result<T, E>,
) -> std::result::Result<Option<T>, E> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_loss() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Loss for Error {
    fn is_loss(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Damaged { .. } | Self::DamagedPack { .. })
    }
}

impl Error {
    /// Returns the I/O error that caused this error, if any.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Interrupted { source, .. } => source.io_error(),
            _ => None,
        }
    }

    /// Returns the exit code of a command that fails with this error.
    pub fn exit(&self) -> u8 {
        match self {
            Self::NoStore { .. } => exit::NO_STORE,
            Self::Locked { .. } => exit::LOCKED,
            Self::Link { .. } => exit::REFUSED,
            _ => exit::FAILED,
        }
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<Hint> {
        if let Self::Io { source, .. } = self
            && let Some(hint) = hint::of_io(source)
        {
            return Some(hint);
        }
        Some(match self {
            Self::NoStore { .. } => {
                "run `stvc snapshot` to create the store and the first snapshots".into()
            }
            Self::NewerFormat { .. } | Self::UnknownFeature { .. } => {
                unchanged("update stvc: a newer version wrote this store")
            }
            Self::Foreign { .. } | Self::NotEmpty { .. } => {
                unchanged("choose another folder with `--store DIR`")
            }
            Self::RefLocked { .. } => unchanged(
                "wait until the other program finishes; stvc removes an abandoned lock after a minute",
            ),
            Self::Link { .. } => {
                "replace the link with the file or folder that it points to, if you trust it. Nothing was written".into()
            }
            Self::Locked { .. } => "wait until that process finishes, then try again".into(),
            Self::Missing { .. } | Self::Damaged { .. } => {
                "run `stvc check` to list all damage; other snapshots are not affected".into()
            }
            Self::NoRoom { .. } => {
                "free some disk space; or move the store to a larger disk and pass its new path with `--store DIR`. Nothing is lost".into()
            }
            Self::Io { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "check the permissions of the store; or use a store in another folder with `--store DIR`. Existing snapshots can still be read, backed up, and restored to another folder with `--to DIR`".into()
                }
                ErrorKind::AlreadyExists => unchanged(
                    "choose another name; or move the existing file or folder away first",
                ),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Adds the path to an I/O error, for `map_err`.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }

    /// Adds the failed action, such as `cannot hash an object`, to an error of the git library, for
    /// `map_err`.
    pub(crate) fn git<E: std::fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |error| Error::Git { what, why: error.to_string() }
    }
}
