use super::SnapshotId;
use super::problem::Problems;
use crate::exit;
use crate::hint::Hint;
use crate::store::{self, Loss};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("commit {id} is no snapshot: {why}")]
    NotASnapshot { id: SnapshotId, why: String },
    #[error(
        "tree {tree} has manifest format {found}{}, which this program does not know",
        named(needs)
    )]
    NewerFormat { tree: store::ObjectId, found: u64, needs: Vec<String> },
    #[error("tree {tree} is no whole snapshot: {why}")]
    Incomplete { tree: store::ObjectId, why: String },
    #[error("snapshot {id} is not sound: {problems}")]
    Unsound { id: SnapshotId, problems: Box<Problems> },
    #[error(
        "{path}, rebuilt from tree {tree}, is not what the manifest says (BLAKE3 or length differ)"
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
    pub fn exit(&self) -> u8 {
        match self {
            Self::Store(error) => error.exit(),
            _ => exit::FAILED,
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::NewerFormat { .. } => Some("a newer stvc wrote this; get that version".into()),
            Self::Incomplete { .. } | Self::Differs { .. } | Self::Unsound { .. } => Some(
                "`stvc check` lists all that is damaged; other snapshots are not affected".into(),
            ),
            Self::NotASnapshot { .. } => None,
        }
    }
}
