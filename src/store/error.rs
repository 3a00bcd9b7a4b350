use std::io::ErrorKind;
use std::path::PathBuf;

use super::ObjectId;
use crate::hint::{HELD, Hint, unchanged};
use crate::{durable, exit};

pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the store, with its subject.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no store at {}", path.display())]
    NoStore { path: PathBuf },
    #[error("{} is a git repository that stvc did not make", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is not empty and is no store", path.display())]
    NotEmpty { path: PathBuf },
    #[error("the store {} has format {found}; this program knows format {known} and older", path.display())]
    NewerFormat { path: PathBuf, found: String, known: u32 },
    #[error("the store {} needs a program that knows {name:?}, and this one does not", path.display())]
    UnknownFeature { path: PathBuf, name: String },
    #[error("the store {} is in use by {holder}", path.display())]
    Locked { path: PathBuf, holder: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("packing {} takes up to {needed} bytes more on its disk, and {free} are free: the new pack is written before the old ones are removed", path.display())]
    NoRoom { path: PathBuf, needed: u64, free: u64 },
    #[error("{} is a link, and no link inside a store is followed", path.display())]
    Link { path: PathBuf },
    #[error("object {id} is missing from the store")]
    Missing { id: ObjectId },
    #[error("object {id} is damaged: {why}")]
    Damaged { id: ObjectId, why: String },
    #[error("the pack {} is damaged: {why}", path.display())]
    DamagedPack { path: PathBuf, why: String },
    #[error("a {kind} of {bytes} bytes is too long to be stored: at most {} MiB", super::longest(*kind) >> 20)]
    TooLong { kind: super::Kind, bytes: u64 },
    #[error("the ref {name} was moved by somebody else meanwhile")]
    RefMoved { name: String },
    #[error("another program holds {}", path.display())]
    RefLocked { path: PathBuf },
    #[error("operation {number} was begun and could not be ended: {source}")]
    Interrupted { number: u64, source: Box<Error> },
    #[error("{name} is no name that git accepts for a ref")]
    BadRefName { name: String },
    #[error("{what}: {why}")]
    Git { what: String, why: String },
}

/// An error that may mean that something stored is lost.
pub trait Loss {
    /// Whether it says that something stored is lost: that it is not there, or not what it was.
    /// Then what else there is may stand in for it. Any other error says that something could not
    /// be done or read just now, and nobody may go on as if it were not there.
    fn is_loss(&self) -> bool;
}

/// `None` for what is lost; what could not be read stays an error.
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
    /// Returns the I/O error behind it, if that is why it failed.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Interrupted { source, .. } => source.io_error(),
            _ => None,
        }
    }

    /// Returns the exit code of a command that ends with it.
    pub fn exit(&self) -> u8 {
        match self {
            Self::NoStore { .. } => exit::NO_STORE,
            Self::Locked { .. } => exit::LOCKED,
            Self::Link { .. } => exit::REFUSED,
            _ => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NoStore { .. } => "`stvc snapshot` makes it and takes the first snapshots".into(),
            Self::NewerFormat { .. } | Self::UnknownFeature { .. } => {
                unchanged("a newer stvc wrote this; get that version")
            }
            Self::Foreign { .. } | Self::NotEmpty { .. } => {
                unchanged("choose another place with `--store DIR`")
            }
            Self::RefLocked { .. } => unchanged(
                "wait for git to finish; a lock that nobody holds is removed by itself after a minute",
            ),
            Self::Link { .. } => {
                "put what it leads to in its place, if you trust that; nothing was written".into()
            }
            Self::Locked { .. } => "wait for it to finish, then try again".into(),
            Self::Missing { .. } | Self::Damaged { .. } => {
                "`stvc check` lists all that is damaged; other snapshots are not affected".into()
            }
            Self::NoRoom { .. } => {
                "remove other files from that disk, or move the store to a larger one and name it with `--store DIR`. Nothing is lost".into()
            }
            Self::Io { source, .. } if durable::is_held_elsewhere(source) => HELD.into(),
            Self::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull => {
                    "the disk is full; make room and try again. Nothing is lost".into()
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "stvc may not write there; check the permissions, or keep the store elsewhere with `--store DIR`. What is stored can be read, backed up, and restored into a folder: `--to DIR`".into()
                }
                ErrorKind::AlreadyExists => unchanged(
                    "what is there is not written over: choose another name, or move it away first",
                ),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// For `map_err`: an I/O error and the file it is about.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }

    /// For `map_err`: an error of the git library and what was being done.
    pub(crate) fn git<E: std::fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |error| Error::Git { what, why: error.to_string() }
    }
}
