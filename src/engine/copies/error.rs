use std::path::PathBuf;

use crate::archive::backup::BackupError;
use crate::exit;
use crate::hint::{Hint, unchanged};
use crate::words::shell;

/// Why a copy elsewhere could not be written, read or found.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The folder in which a backup shall be made.
    #[error("{} is not there", path.display())]
    NoFolder { path: PathBuf },
    /// A backup could not be written, or is not believed.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: BackupError },
    /// A file is there that a backup must not replace.
    #[error("{} is there already: {what}", path.display())]
    InTheWay { path: PathBuf, what: InTheWay },
    /// It is not known how to back up to there, or to read from there.
    #[error("{destination:?} is no place for a backup: {why}")]
    UnknownDestination { destination: String, why: &'static str },
    /// A copy elsewhere has snapshots that were never here; nothing was changed.
    #[error("{destination} holds snapshots that are not here, of {}", in_short(refs))]
    NotHere { destination: String, refs: Vec<String> },
}

/// What is where a backup should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InTheWay {
    /// The store that is to be backed up.
    #[error("the store itself")]
    TheStore,
    /// Another store, which a library uses.
    #[error("a store of its own and no backup")]
    AnotherStore,
    /// A file where a folder should be.
    #[error("a file that is no backup")]
    File,
    /// A file of something else.
    #[error("no backup of stvc's")]
    OtherFile,
    /// A folder with something else in it.
    #[error("it is not empty, and no backup of stvc's")]
    OtherFolder,
    /// Somebody's repository.
    #[error("a git repository that is no backup of stvc's")]
    OtherRepository,
    /// A backup that may be better than what would replace it.
    #[error("a backup that may have whole what is damaged here")]
    PerhapsWhole,
    /// A backup with more in it.
    #[error("a backup that holds snapshots which this one would not")]
    Fuller,
    /// A backup that nobody can look into without its passphrase.
    #[error("an encrypted backup")]
    Encrypted,
    /// A backup that is damaged.
    #[error("a backup that cannot be read")]
    Unreadable,
}

impl InTheWay {
    /// Whether it is a backup, which the user may let go.
    pub fn is_backup(self) -> bool {
        matches!(self, Self::PerhapsWhole | Self::Fuller | Self::Encrypted | Self::Unreadable)
    }
}

impl CopyError {
    /// Returns the exit code of a command that ends with it.
    pub fn exit(&self) -> u8 {
        match self {
            Self::InTheWay { .. } | Self::NotHere { .. } => exit::REFUSED,
            Self::UnknownDestination { .. } => exit::USAGE,
            Self::NoFolder { .. } | Self::File { .. } => exit::FAILED,
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NoFolder { .. } => {
                unchanged("is the drive plugged in? If it shall be a new folder, make it first")
            }
            Self::File { source, .. } => return source.hint(),
            Self::InTheWay { what, .. } if !what.is_backup() => unchanged("choose another name"),
            Self::InTheWay { .. } => {
                unchanged("choose another name, or `--overwrite` if that backup may go")
            }
            Self::UnknownDestination { .. } => {
                "a file such as /media/stick/chats.stvc, a folder, or a git server such as ssh://host/chats.git".into()
            }
            Self::NotHere { destination, .. } => {
                let place = shell(destination);
                unchanged(format!("`stvc sync {place}` joins both sides; `stvc import {place}` takes in what is there; `--overwrite` leads it to what is here and keeps what was there out of sight"))
            }
        })
    }
}

/// The first of some names, and how many more there are.
fn in_short(refs: &[String]) -> String {
    let name = |name: &String| {
        let name = name.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/");
        crate::store::name_encoding::decode(name)
    };
    match refs {
        [] => String::new(),
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    }
}
