//! What a command tells the one who started it. docs/cli.md lists them.

use super::error::Error;
use stvc::api::extension;
pub use stvc::lines::exit::*;
use stvc::watch;

/// The code that a command ends with.
pub fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Verb(error)
        | Error::Watch(watch::Error::Verb(error))
        | Error::Extension(extension::Error::Verb(error)) => code_of_verb(error),
        Error::Extension(extension::Error::Io { .. }) => FAILED,
        Error::Extension(_) => REFUSED,
        Error::Watch(watch::Error::Watched { .. }) => LOCKED,
        Error::Watch(watch::Error::UnitInTheWay { .. }) => REFUSED,
        Error::OneUser { .. }
        | Error::OneTimeline { .. }
        | Error::NoPlace { .. }
        | Error::BadOutput { .. }
        | Error::BackupIsNoStore { .. } => USAGE,
        Error::Watch(watch::Error::NoHome)
        | Error::BadClock
        | Error::BadSourceDate { .. }
        | Error::NoPassphrase { .. }
        | Error::NoServer { .. }
        | Error::NoSignals { .. } => FAILED,
    }
}
