use std::path::PathBuf;

use crate::archive::backup::BackupError;
use crate::exit;
use crate::hint::{Hint, unchanged};
use crate::words::shell;

/// An error about a backup.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant describes it")]
#[strum(serialize_all = "kebab-case", prefix = "backup-")]
pub enum CopyError {
    #[error("{} does not exist", path.display())]
    NoFolder { path: PathBuf },
    #[error("no backup destination is configured or recorded")]
    NoDestination,
    #[error("no remote is configured or recorded")]
    NoSyncDestination,
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: BackupError },
    #[error("cannot use {}: {what}", path.display())]
    InTheWay { path: PathBuf, what: InTheWay },
    #[error("{destination:?} is not a valid place for a backup: {why}")]
    UnknownDestination { destination: String, why: &'static str },
    #[error("{destination} has snapshots of {} that this store does not have", in_short(refs))]
    NotHere { destination: String, refs: Vec<String> },
}

/// The reason why a destination cannot be used for a backup. In error messages, this text follows
/// the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InTheWay {
    #[error("it is the store itself")]
    TheStore,
    #[error("it is the store of another library")]
    AnotherStore,
    #[error("it is a file, not a folder")]
    File,
    #[error("it already exists and was not created by `stvc backup`")]
    OtherFile,
    #[error("the folder is not empty and was not created by `stvc backup`")]
    OtherFolder,
    #[error("it is a git repository that was not created by `stvc backup`")]
    OtherRepository,
    #[error(
        "the existing backup may have valid copies of snapshots that are damaged in this store"
    )]
    PerhapsWhole,
    #[error("the existing backup has snapshots that the new one would not have")]
    HasOtherSnapshots,
    #[error("the existing backup is encrypted")]
    Encrypted,
    #[error("the existing backup cannot be read")]
    Unreadable,
}

impl InTheWay {
    /// Returns whether the destination is an existing backup, which `--overwrite` may replace.
    pub fn is_backup(self) -> bool {
        matches!(
            self,
            Self::PerhapsWhole | Self::HasOtherSnapshots | Self::Encrypted | Self::Unreadable
        )
    }
}

impl CopyError {
    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::InTheWay { .. } | Self::NotHere { .. } => exit::REFUSED,
            Self::UnknownDestination { .. } => exit::USAGE,
            Self::NoFolder { .. }
            | Self::NoDestination
            | Self::NoSyncDestination
            | Self::File { .. } => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NoFolder { .. } => {
                unchanged("connect the drive, or create the folder first")
            }
            Self::NoDestination => "run `stvc config backup.destination PLACE`".into(),
            Self::NoSyncDestination => "run `stvc remote add ADDRESS`".into(),
            Self::File { source, .. } => return source.hint(),
            Self::InTheWay { what, .. } if !what.is_backup() => unchanged("choose another name"),
            Self::InTheWay { .. } => {
                unchanged("choose another name; add `--overwrite` to replace that backup")
            }
            Self::UnknownDestination { .. } => {
                "name a file such as /media/stick/chats.stvc, a folder, or a git server such as ssh://host/chats.git".into()
            }
            Self::NotHere { destination, .. } => {
                let place = shell(destination);
                unchanged(format!("run `stvc sync {place}` to merge both sides; run `stvc import {place}` to import its snapshots; add `--overwrite` to replace its branches with those of this store. The replaced snapshots stay there, but are no longer listed"))
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
