//! Errors of the command line itself, beside those of the library.

use std::path::PathBuf;

use stvc::api::extension;
use stvc::copies::CopyError;
use stvc::hint::{Hint, unchanged};
use stvc::verbs::{self, MergeError};
use stvc::{errors, exit, watch};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{command} works for one user at a time")]
    OneUser { command: &'static str },
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    #[error(transparent)]
    Watch(#[from] watch::Error),
    #[error(transparent)]
    Extension(#[from] extension::Error),
    #[error("a backup cannot be written to {what}")]
    BadOutput { what: &'static str },
    #[error("it is not said where to: nothing is set, and there is no last time")]
    NoPlace { command: &'static str },
    #[error("no passphrase: {why}")]
    NoPassphrase { why: String },
    #[error("{} is a backup, not a store", path.display())]
    BackupIsNoStore { path: PathBuf },
    #[error("the page begins with one timeline, and {given} are named")]
    OneTimeline { given: usize },
    #[error("the page cannot be served: {source}")]
    NoServer { source: std::io::Error },
    #[error("the clock of this machine shows a time before 1970 or after the year 9999")]
    BadClock,
    #[error(
        "SOURCE_DATE_EPOCH is {text:?}, which is not a number of seconds between the years 1970 and 9999"
    )]
    BadSourceDate { text: String },
    #[error("cannot be told to stop: {why}")]
    NoSignals { why: String },
}

macro_rules! from_below {
    ($($error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Verb(error.into())
            }
        })*
    };
}

from_below!(errors::EngineError, CopyError, MergeError, errors::LibraryError);

impl Error {
    pub fn exit(&self) -> u8 {
        match self {
            Self::Verb(error) => error.exit(),
            Self::Watch(error) => error.exit(),
            Self::Extension(error) => error.exit(),
            Self::OneUser { .. }
            | Self::OneTimeline { .. }
            | Self::NoPlace { .. }
            | Self::BadOutput { .. }
            | Self::BackupIsNoStore { .. } => exit::USAGE,
            Self::BadClock
            | Self::BadSourceDate { .. }
            | Self::NoPassphrase { .. }
            | Self::NoServer { .. }
            | Self::NoSignals { .. } => exit::FAILED,
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Verb(error) => return error.hint(),
            Self::Watch(error) => return error.hint(),
            Self::Extension(error) => return error.hint(),
            Self::BackupIsNoStore { .. } => {
                "take it in: `stvc import FILE`; log, show, diff, search, timelines, stats, check and `restore … --to DIR` work on the file itself".into()
            }
            Self::BadOutput { .. } => "`stvc backup - | …`, or name a file".into(),
            Self::NoPassphrase { .. } => {
                "type it on a terminal, or name it with `--passphrase-file FILE` or `--passphrase-command COMMAND`".into()
            }
            Self::NoPlace { command: "sync" } => {
                "name a folder or a git server that both devices reach, behind `sync`".into()
            }
            Self::NoPlace { .. } => {
                "name a file, a folder or a git server, such as `stvc backup chats.stvc`".into()
            }
            Self::OneUser { .. } => "choose one with `--user NAME`".into(),
            Self::OneTimeline { .. } => {
                "several go into one file: `stvc view … --out FILE.html`".into()
            }
            Self::NoServer { source } if source.kind() == std::io::ErrorKind::AddrInUse => {
                "another program has that port; without `--port` a free one is taken".into()
            }
            Self::BadClock => unchanged("set the clock"),
            Self::BadSourceDate { .. } => {
                unchanged("unset the variable, or set it to such a number")
            }
            Self::NoServer { .. } | Self::NoSignals { .. } => return None,
        })
    }

    pub fn of_engine(&self) -> Option<&errors::EngineError> {
        match self.of_verb()? {
            verbs::Error::Engine(error) => Some(error),
            _ => None,
        }
    }

    pub fn of_verb(&self) -> Option<&verbs::Error> {
        match self {
            Self::Verb(error)
            | Self::Watch(watch::Error::Verb(error))
            | Self::Extension(extension::Error::Verb(error)) => Some(error),
            _ => None,
        }
    }
}
