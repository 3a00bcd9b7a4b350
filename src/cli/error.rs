//! Errors of the command line, in addition to the library's errors.

use std::path::PathBuf;

use super::wording::shell;
use stvc::api::extension;
use stvc::copies::CopyError;
use stvc::hint::{Hint, unchanged};
use stvc::verbs;
use stvc::{errors, exit, watch};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    #[error("{command} does not support --all-users")]
    OneUser { command: &'static str },
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    #[error(transparent)]
    Watch(#[from] watch::Error),
    #[error(transparent)]
    Extension(#[from] extension::Error),
    #[error("the setup needs your consent, and there is no terminal to ask on")]
    NotConfirmed,
    #[error("several SillyTavern folders were found, and none was chosen")]
    SeveralLibraries { first: PathBuf },
    #[error("cannot write a backup to {what}")]
    BadOutput { what: &'static str },
    #[error(
        "no {command} destination: none was given, none is configured, and no earlier {command} is recorded"
    )]
    NoPlace { command: &'static str },
    #[error("no passphrase: {why}")]
    NoPassphrase { why: String },
    #[error("{} is a backup and cannot be changed like a store", path.display())]
    BackupIsNoStore { path: PathBuf },
    #[error("the viewer can open with only one timeline, but {given} were named")]
    OneTimeline { given: usize },
    #[error("cannot serve metrics at {address}: {source}")]
    NoMetrics { address: std::net::SocketAddr, source: std::io::Error },
    #[error("cannot start the viewer's server: {source}")]
    NoServer { source: std::io::Error },
    #[error("the system clock is before 1970 or after 9999")]
    BadClock,
    #[error(
        "SOURCE_DATE_EPOCH is {text:?}, not a number of seconds between the years 1970 and 9999"
    )]
    BadSourceDate { text: String },
    #[error("there is no command {name:?}")]
    NoSuchCommand { name: String },
    #[error("an internal error occurred")]
    Internal,
    #[error("cannot install a signal handler: {why}")]
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

from_below!(errors::EngineError, CopyError);

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Verb(error) | Self::Watch(watch::Error::Verb(error)) => error.code(),
            Self::Extension(extension::Error::Verb(error)) => error.code(),
            Self::Watch(error) => error.into(),
            Self::Extension(error) => error.into(),
            error => error.into(),
        }
    }

    pub fn exit(&self) -> u8 {
        match self {
            Self::Verb(error) => error.exit(),
            Self::Watch(error) => error.exit(),
            Self::Extension(error) => error.exit(),
            Self::OneUser { .. }
            | Self::OneTimeline { .. }
            | Self::NotConfirmed
            | Self::SeveralLibraries { .. }
            | Self::NoPlace { .. }
            | Self::BadOutput { .. }
            | Self::NoSuchCommand { .. }
            | Self::BackupIsNoStore { .. } => exit::USAGE,
            Self::BadClock
            | Self::BadSourceDate { .. }
            | Self::NoPassphrase { .. }
            | Self::Internal
            | Self::NoMetrics { .. }
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
                "import it with `stvc import FILE`; read it with log, show, diff, search, timelines, stats, check or `restore … --to DIR`".into()
            }
            Self::NotConfirmed => unchanged("run the command again with `--yes`"),
            Self::SeveralLibraries { first } => {
                let first = shell(&first.display().to_string());
                unchanged(format!("choose one, for example `stvc --data {first} setup`"))
            }
            Self::BadOutput { .. } => "pipe the output to a program with `stvc backup - | …`; or pass a file, for example `stvc backup chats.stvc`".into(),
            Self::NoPassphrase { .. } => {
                "enter it on a terminal, or pass `--passphrase-file FILE` or `--passphrase-command COMMAND`".into()
            }
            Self::NoPlace { command: "sync" } => {
                "pass a folder or a git server that both devices can access, for example /media/shared/chats".into()
            }
            Self::NoPlace { .. } => {
                "pass a file, a folder or a git server, for example `stvc backup chats.stvc`".into()
            }
            Self::OneUser { .. } => "choose a user with `--user NAME`".into(),
            Self::OneTimeline { .. } => {
                "write several timelines into one file with `stvc view … --out FILE.html`".into()
            }
            Self::NoServer { source } if source.kind() == std::io::ErrorKind::AddrInUse => {
                "omit `--port` to use a free port".into()
            }
            Self::NoSuchCommand { .. } => "run `stvc help` to list the commands".into(),
            Self::BadClock => unchanged("set the system clock"),
            Self::BadSourceDate { .. } => {
                unchanged("unset the variable, or set it to a number of seconds since 1970")
            }
            Self::NoMetrics { .. } => "choose a free port with `--metrics PORT`".into(),
            Self::Internal | Self::NoServer { .. } | Self::NoSignals { .. } => return None,
        })
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
