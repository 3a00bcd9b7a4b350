use std::path::PathBuf;

use crate::{engine, st, store, verbs};

/// What the watch returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why it does not watch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What it asks for.
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    /// Another process watches the library.
    #[error("this library is watched already{}", process.as_ref().map_or(String::new(), |id| format!(", by process {}", id.trim())))]
    Watched {
        /// Its store.
        store: PathBuf,
        /// The process, if it said which it is.
        process: Option<String>,
    },
    /// A unit is there that was not written by this program.
    #[error("{} is there already and was not written by stvc", path.display())]
    UnitInTheWay { path: PathBuf },
    /// The home folder is not known.
    #[error("it is not known where your home folder is")]
    NoHome,
}

macro_rules! from_below {
    ($($error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Verb(error.into())
            }
        })*
    };
}

from_below!(engine::Error, store::Error, st::Error);
