use std::path::PathBuf;

use crate::archive::backup::BackupError;
use crate::exit;
use crate::hint::{Hint, unchanged};
use crate::words::shell;

/// An error about a backup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    #[error("{} is not there", path.display())]
    NoFolder { path: PathBuf },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: BackupError },
    #[error("{} is there already: {what}", path.display())]
    InTheWay { path: PathBuf, what: InTheWay },
    #[error("{destination:?} is no place for a backup: {why}")]
    UnknownDestination { destination: String, why: &'static str },
    #[error("{destination} holds snapshots that are not here, of {}", in_short(refs))]
    NotHere { destination: String, refs: Vec<String> },
}

/// An obstacle at the destination of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InTheWay {
    #[error("the store itself")]
    TheStore,
    #[error("a store of its own and no backup")]
    AnotherStore,
    #[error("a file that is no backup")]
    File,
    #[error("no backup of stvc's")]
    OtherFile,
    #[error("it is not empty, and no backup of stvc's")]
    OtherFolder,
    #[error("a git repository that is no backup of stvc's")]
    OtherRepository,
    /// It may be complete where this store is damaged.
    #[error("a backup that may have whole what is damaged here")]
    PerhapsWhole,
    #[error("a backup that holds snapshots which this one would not")]
    Fuller,
    #[error("an encrypted backup")]
    Encrypted,
    #[error("a backup that cannot be read")]
    Unreadable,
}

impl InTheWay {
    /// Returns whether it is a backup, which the user may replace.
    pub fn is_backup(self) -> bool {
        matches!(self, Self::PerhapsWhole | Self::Fuller | Self::Encrypted | Self::Unreadable)
    }
}

impl CopyError {
    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::InTheWay { .. } | Self::NotHere { .. } => exit::REFUSED,
            Self::UnknownDestination { .. } => exit::USAGE,
            Self::NoFolder { .. } | Self::File { .. } => exit::FAILED,
        }
    }

    /// Returns advice for the user.
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
