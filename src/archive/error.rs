use super::SnapshotId;
use super::problem::Problems;
use crate::store::{self, Loss};

/// What this layer returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The commit is no snapshot of ours.
    #[error("commit {id} is no snapshot: {why}")]
    NotASnapshot {
        /// The commit.
        id: SnapshotId,
        /// What it lacks.
        why: String,
    },
    /// The manifest is of a later format.
    #[error("tree {tree} has manifest format {found}; this program knows format {known} and older")]
    NewerFormat {
        /// The snapshot's tree.
        tree: store::ObjectId,
        /// Its format.
        found: u64,
        /// The newest one known.
        known: u64,
    },
    /// The tree is not as the format says.
    #[error("tree {tree} is no whole snapshot: {why}")]
    Incomplete {
        /// The snapshot's tree.
        tree: store::ObjectId,
        /// What is wrong.
        why: String,
    },
    /// Its files cannot be brought back as its commit says.
    #[error("snapshot {id} is not sound: {problems}")]
    Unsound {
        /// The commit.
        id: SnapshotId,
        /// What is wrong with it.
        problems: Problems,
    },
    /// A rebuilt file is not the one that was stored.
    #[error(
        "{path}, rebuilt from tree {tree}, is not what the manifest says (BLAKE3 or length differ)"
    )]
    Differs {
        /// The snapshot's tree.
        tree: store::ObjectId,
        /// The file's path in the library.
        path: String,
    },
}

impl Loss for Error {
    fn is_loss(&self) -> bool {
        match self {
            Self::Store(error) => error.is_loss(),
            _ => true,
        }
    }
}
