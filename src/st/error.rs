//! What can go wrong with the library's files; every error names its subject.

use std::io;
use std::path::{Path, PathBuf};

/// The result of a call into this layer.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done with the library's files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused to read or write a file or folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder is neither a user directory nor something that holds one.
    #[error("{} is not a SillyTavern folder", path.display())]
    NotALibrary {
        /// The folder.
        path: PathBuf,
    },
    /// No folder from `start` upward is a library.
    #[error("no SillyTavern folder at or above {}", start.display())]
    NoLibraryFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// There are several users, and none was chosen.
    #[error("{} holds several users: {}", path.display(), users.join(", "))]
    SeveralUsers {
        /// The folder that holds their directories.
        path: PathBuf,
        /// Their names, sorted.
        users: Vec<String>,
    },
    /// The chosen user has no directory.
    #[error("{} holds no user {user:?}{}", path.display(), there_is(users))]
    NoSuchUser {
        /// The folder where their directory should be.
        path: PathBuf,
        /// The chosen name.
        user: String,
        /// Those that are there.
        users: Vec<String>,
    },
    /// A name that cannot stand for a file of the library.
    #[error("{name:?} cannot name a file of the library: {why}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file was written to at every attempt to read it.
    #[error("{} kept changing while it was read", path.display())]
    ChangedWhileReading {
        /// The file.
        path: PathBuf,
    },
    /// A file is in the way, and it was not to be replaced.
    #[error("{} is already there", path.display())]
    AlreadyThere {
        /// The file.
        path: PathBuf,
    },
    /// Somebody saved or removed the file while it was to be replaced.
    #[error("{} was saved or removed by another program just now; it was left as it is", path.display())]
    SavedMeanwhile {
        /// The file.
        path: PathBuf,
    },
    /// A symbolic link in the path leads out of the library.
    #[error("{} leads out of the library", path.display())]
    LeadsOutside {
        /// The path as it was to be written.
        path: PathBuf,
    },
    /// What was read back is not what was written.
    #[error("{} does not hold what was just written to it", path.display())]
    WrittenDiffers {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err`: an I/O error with its path.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }
}

fn there_is(users: &[String]) -> String {
    if users.is_empty() { String::new() } else { format!("; there is {}", users.join(", ")) }
}
