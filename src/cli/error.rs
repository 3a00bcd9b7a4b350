//! Why a command could not be done.

use std::path::PathBuf;

use stvc::api::extension;
use stvc::engine::copies::CopyError;
use stvc::verbs::{self, MergeError};
use stvc::{engine, st, watch};

/// What commands return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be done for all users at once.
    #[error("{command} works for one user at a time")]
    OneUser { command: &'static str },
    /// What was asked for.
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    /// The watch.
    #[error(transparent)]
    Watch(#[from] watch::Error),
    /// The extension.
    #[error(transparent)]
    Extension(#[from] extension::Error),
    /// Standard output cannot take a backup and words, nor a terminal a backup.
    #[error("a backup cannot be written to {what}")]
    BadOutput { what: &'static str },
    /// Nobody says where a copy goes, and none was made before.
    #[error("it is not said where to: nothing is set, and there is no last time")]
    NoPlace { command: &'static str },
    /// There is no passphrase.
    #[error("no passphrase: {why}")]
    NoPassphrase { why: String },
    /// A backup can be looked at, not written to.
    #[error("{} is a backup, not a store", path.display())]
    BackupIsNoStore { path: PathBuf },
    /// A page begins in one place.
    #[error("the page begins with one timeline, and {given} are named")]
    OneTimeline { given: usize },
    /// The page cannot be served.
    #[error("the page cannot be served: {source}")]
    NoServer { source: std::io::Error },
    /// No snapshot could say when it was created.
    #[error("the clock of this machine shows a time before 1970 or after the year 9999")]
    BadClock,
    /// No snapshot could say when it was created.
    #[error(
        "SOURCE_DATE_EPOCH is {text:?}, which is not a number of seconds between the years 1970 and 9999"
    )]
    BadSourceDate { text: String },
    /// Ctrl-C and the like cannot be caught.
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

from_below!(engine::Error, CopyError, MergeError, st::Error);

impl Error {
    /// What the engine says, if it is that.
    pub fn of_engine(&self) -> Option<&engine::Error> {
        match self.of_verb()? {
            verbs::Error::Engine(error) => Some(error),
            _ => None,
        }
    }

    /// What the verb says, whoever asked for it.
    pub fn of_verb(&self) -> Option<&verbs::Error> {
        match self {
            Self::Verb(error)
            | Self::Watch(watch::Error::Verb(error))
            | Self::Extension(extension::Error::Verb(error)) => Some(error),
            _ => None,
        }
    }
}
