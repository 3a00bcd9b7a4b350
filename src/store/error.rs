use std::path::PathBuf;

use super::ObjectId;

/// What this layer returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the store could not do what was asked.
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
    #[error("the store {} is in use by {holder}", path.display())]
    Locked { path: PathBuf, holder: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("object {id} is missing from the store")]
    Missing { id: ObjectId },
    #[error("object {id} is damaged: {why}")]
    Damaged { id: ObjectId, why: String },
    #[error("the pack {} is damaged: {why}", path.display())]
    DamagedPack { path: PathBuf, why: String },
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

impl Error {
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
