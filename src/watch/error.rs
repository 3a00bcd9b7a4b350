use std::path::PathBuf;

use crate::hint::{Hint, unchanged};
use crate::{engine, exit, st, store, verbs};

/// The result of a function of the watch.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the watch or of its installation.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant describes it")]
#[strum(serialize_all = "kebab-case", prefix = "watch-")]
pub enum Error {
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    #[error("another `stvc watch` is already running for this library{}", process.as_ref().map_or(String::new(), |id| format!(" (process {})", id.trim())))]
    Watched { process: Option<String> },
    #[error("{} already exists and was not written by stvc", path.display())]
    UnitInTheWay { path: PathBuf },
    #[error("{} is in a temporary folder, so the watch could not be started from it later", path.display())]
    TemporaryProgram { path: PathBuf },
    #[error("cannot find your home folder")]
    NoHome,
}

impl Error {
    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Verb(error) => error.exit(),
            Self::Watched { .. } => exit::LOCKED,
            Self::UnitInTheWay { .. } | Self::TemporaryProgram { .. } => exit::REFUSED,
            Self::NoHome => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Verb(error) => return error.hint(),
            Self::Watched { .. } => "stop the running `stvc watch` first".into(),
            Self::UnitInTheWay { .. } => unchanged("check the file and move it away"),
            Self::TemporaryProgram { .. } => unchanged(
                "install stvc, for example with `npm install -g stvc`; then run `stvc setup`",
            ),
            Self::NoHome => "set the environment variable HOME or XDG_CONFIG_HOME".into(),
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
