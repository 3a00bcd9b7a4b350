use std::path::PathBuf;

use crate::hint::{Hint, unchanged};
use crate::{engine, exit, st, store, verbs};

/// The result of a step of the watch.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the watch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    #[error("this library is watched already{}", process.as_ref().map_or(String::new(), |id| format!(", by process {}", id.trim())))]
    Watched { process: Option<String> },
    /// A unit of that name was not written by this program.
    #[error("{} is there already and was not written by stvc", path.display())]
    UnitInTheWay { path: PathBuf },
    #[error("it is not known where your home folder is")]
    NoHome,
}

impl Error {
    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Verb(error) => error.exit(),
            Self::Watched { .. } => exit::LOCKED,
            Self::UnitInTheWay { .. } => exit::REFUSED,
            Self::NoHome => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Verb(error) => return error.hint(),
            Self::Watched { .. } => {
                "one is enough: it takes a snapshot after every save. Stop it first if you want to start another".into()
            }
            Self::UnitInTheWay { .. } => unchanged("look at it, and move it away"),
            Self::NoHome => "set HOME or XDG_CONFIG_HOME".into(),
        })
    }
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
