use std::path::PathBuf;

use crate::rules::Finding;
use crate::{archive, store};

/// What this room returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the history does not tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A snapshot.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// No timeline is called that.
    #[error("no timeline is called {name:?}")]
    NoSuchTimeline {
        /// What was asked for.
        name: String,
    },
    /// No snapshot is called that.
    #[error("no snapshot, tag or timeline is called {name:?}")]
    NoSuchSnapshot {
        /// What was asked for.
        name: String,
    },
    /// The history is shorter.
    #[error("{name:?} does not go back that far: there are only {steps} snapshots before it")]
    NotSoFarBack {
        /// What was asked for.
        name: String,
        /// How many there are.
        steps: usize,
    },
    /// The name fits several.
    #[error("{name:?} can mean several")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it can mean.
        candidates: Vec<String>,
    },
    /// The policy keeps nothing.
    #[error(
        "this would keep nothing but tagged snapshots, fork points and the newest of each timeline"
    )]
    KeepsNothing,
    /// The store's configuration cannot be read.
    #[error("{}: {why}", path.display())]
    BadConfiguration {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// What a timeline was at that message cannot be known.
    #[error("{}", finding.message)]
    Unknowable {
        /// Why not.
        finding: Box<Finding>,
    },
}

impl store::Loss for Error {
    fn is_loss(&self) -> bool {
        match self {
            Self::Store(error) => error.is_loss(),
            Self::Archive(error) => error.is_loss(),
            _ => false,
        }
    }
}

impl Error {
    pub(super) fn unknowable(finding: Finding) -> Self {
        Self::Unknowable { finding: Box::new(finding) }
    }
}
