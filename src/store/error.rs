use std::path::PathBuf;

use super::ObjectId;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
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

/// What can tell whether something is lost.
pub trait Loss {
    /// Whether it says that something stored is lost: that it is not there, or not what it was. Then what else there is may stand in for it. Any other error says that
    /// something could not be done or read just now, and nobody may go on as if it were not there.
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
