use super::SnapshotId;
use super::problem::Problems;
use crate::exit;
use crate::hint::Hint;
use crate::store::{self, Loss};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("commit {id} is not a snapshot: {why}")]
    NotASnapshot { id: SnapshotId, why: String },
    #[error(
        "tree {tree} has manifest format {found}{}, which this version of stvc does not support",
        named(needs)
    )]
    NewerFormat { tree: store::ObjectId, found: u64, needs: Vec<String> },
    #[error("tree {tree} is not a complete snapshot: {why}")]
    Incomplete { tree: store::ObjectId, why: String },
    #[error("snapshot {id} is not valid: {problems}")]
    Invalid { id: SnapshotId, problems: Box<Problems> },
    #[error(
        "{path}, rebuilt from tree {tree}, does not match the manifest (BLAKE3 or length differs)"
    )]
    Differs { tree: store::ObjectId, path: String },
}

fn named(needs: &[String]) -> String {
    if needs.is_empty() { String::new() } else { format!(" with {}", needs.join(", ")) }
}

impl Loss for Error {
    fn is_loss(&self) -> bool {
        match self {
            Self::Store(error) => error.is_loss(),
            _ => true,
        }
    }
}

impl Error {
    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.into(),
            error => error.into(),
        }
    }

    pub fn exit(&self) -> u8 {
        match self {
            Self::Store(error) => error.exit(),
            _ => exit::FAILED,
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::NewerFormat { .. } => {
                Some("update stvc: a newer version wrote this snapshot".into())
            }
            Self::Incomplete { .. } | Self::Differs { .. } | Self::Invalid { .. } => {
                Some("run `stvc check` to list all damage; other snapshots are not affected".into())
            }
            Self::NotASnapshot { .. } => None,
        }
    }
}
