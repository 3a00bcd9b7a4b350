//! Errors with the library's files; each names its subject.

use std::io;
use std::path::{Path, PathBuf};

use crate::durable;
use crate::hint::{EXAMPLE_FOLDER, HELD, Hint, unchanged};
use crate::words::listed;

pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done with the library's files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a SillyTavern folder", path.display())]
    NotALibrary { path: PathBuf },
    #[error("the SillyTavern folder {} does not exist", path.display())]
    NoSuchFolder { path: PathBuf },
    /// SillyTavern creates its users' folders when it starts; `root` will be one of them.
    #[error("the SillyTavern in {} was never started, so there are no chats yet", path.display())]
    NeverStarted { path: PathBuf, root: PathBuf },
    #[error("no SillyTavern folder at or above {}", start.display())]
    NoLibraryFound { start: PathBuf },
    #[error("{} holds several users: {}", path.display(), listed(users))]
    SeveralUsers { path: PathBuf, users: Vec<String> },
    #[error("{} holds no user {user:?}{}", path.display(), there_is(users))]
    NoSuchUser { path: PathBuf, user: String, users: Vec<String> },
    #[error("{name:?} cannot name a file of the library: {why}")]
    BadName { name: String, why: &'static str },
    #[error("{} kept changing while it was read", path.display())]
    ChangedWhileReading { path: PathBuf },
    #[error("{} is already there", path.display())]
    AlreadyThere { path: PathBuf },
    #[error("{} was saved or removed by another program just now; it was left as it is", path.display())]
    SavedMeanwhile { path: PathBuf },
    #[error("{} does not hold what was just written to it", path.display())]
    WrittenDiffers { path: PathBuf },
}

impl Error {
    /// Adds the path to an I/O error, for `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NeverStarted { .. } => {
                "start it once; or bring chats back into it: `stvc import BACKUP`, then `stvc restore --all`".into()
            }
            Self::NoLibraryFound { .. } | Self::NotALibrary { .. } => {
                format!("go to your SillyTavern folder, or name it: `stvc --data {EXAMPLE_FOLDER} …`").into()
            }
            Self::NoSuchFolder { .. } => {
                format!("name your SillyTavern folder: `stvc --data {EXAMPLE_FOLDER} …`").into()
            }
            Self::SeveralUsers { .. } => "choose one with `--user NAME`".into(),
            Self::SavedMeanwhile { .. } => {
                unchanged("SillyTavern may have saved it; look at it, then try again")
            }
            Self::ChangedWhileReading { .. } => {
                "something keeps saving it; try again in a moment".into()
            }
            Self::Io { source, .. } if durable::is_held_elsewhere(source) => HELD.into(),
            Self::Io { source, .. } if durable::is_read_only(source) => {
                "check the permissions of that file and of its folder, and whether its disk is mounted read-only".into()
            }
            _ => return None,
        })
    }
}

fn there_is(users: &[String]) -> String {
    if users.is_empty() { String::new() } else { format!("; there is {}", listed(users)) }
}
