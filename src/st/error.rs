//! Errors of reading and writing the library. Each error names its file or folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::durable;
use crate::hint::{self, EXAMPLE_FOLDER, Hint, unchanged};
use crate::words::listed;

pub type Result<T> = std::result::Result<T, Error>;

/// An error of reading or writing the library.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a SillyTavern folder", path.display())]
    NotALibrary { path: PathBuf },
    #[error("the SillyTavern folder {} does not exist", path.display())]
    NoSuchFolder { path: PathBuf },
    /// SillyTavern creates its user folders when it first starts; `root` is the folder that it
    /// would create.
    #[error("SillyTavern in {} was never started, so it has no chats yet", path.display())]
    NeverStarted { path: PathBuf, root: PathBuf },
    #[error("cannot find a SillyTavern folder at or above {}", start.display())]
    NoLibraryFound { start: PathBuf },
    #[error("{} has several users ({}), and none was chosen", path.display(), listed(users))]
    SeveralUsers { path: PathBuf, users: Vec<String> },
    #[error("{} has no user {user:?}{}", path.display(), there_is(users))]
    NoSuchUser { path: PathBuf, user: String, users: Vec<String> },
    #[error("{name:?} is not a valid name of a library file: {why}")]
    BadName { name: String, why: &'static str },
    #[error("{} changed each time stvc read it", path.display())]
    ChangedWhileReading { path: PathBuf },
    #[error("{} already exists", path.display())]
    AlreadyThere { path: PathBuf },
    #[error("{} was just saved or removed by another program, so it was left unchanged", path.display())]
    SavedMeanwhile { path: PathBuf },
    #[error("{} does not contain the bytes that were just written to it", path.display())]
    WrittenDiffers { path: PathBuf },
}

impl Error {
    /// Adds the path to an I/O error, for `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<Hint> {
        if let Self::Io { source, .. } = self
            && let Some(hint) = hint::of_io(source)
        {
            return Some(hint);
        }
        Some(match self {
            Self::NeverStarted { .. } => {
                "start SillyTavern once; or restore chats from a backup: `stvc import BACKUP --restore`".into()
            }
            Self::NoLibraryFound { .. } | Self::NotALibrary { .. } => {
                format!("run stvc in your SillyTavern folder; or pass the folder: `stvc --data {EXAMPLE_FOLDER} …`").into()
            }
            Self::NoSuchFolder { .. } => {
                format!("pass your SillyTavern folder: `stvc --data {EXAMPLE_FOLDER} …`").into()
            }
            Self::SeveralUsers { .. } => "choose a user with `--user NAME`".into(),
            Self::SavedMeanwhile { .. } => {
                unchanged("check the file, which SillyTavern may have saved, then try again")
            }
            Self::ChangedWhileReading { .. } => {
                "try again later: another program saves the file repeatedly".into()
            }
            Self::Io { source, .. } if durable::is_read_only(source) => {
                "check the permissions of the file and its folder, and whether the disk is mounted read-only".into()
            }
            _ => return None,
        })
    }
}

fn there_is(users: &[String]) -> String {
    if users.is_empty() { String::new() } else { format!("; known users: {}", listed(users)) }
}
