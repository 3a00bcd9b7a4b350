//! What to do next when something could not be done.

use super::error::Error;
use stvc::api::extension;
use stvc::lines::hint::{self, Hint, unchanged};
use stvc::watch;

/// The hint for an error, if there is one.
pub fn hint(error: &Error) -> Option<Hint> {
    Some(match error {
        Error::Verb(error)
        | Error::Watch(watch::Error::Verb(error))
        | Error::Extension(extension::Error::Verb(error)) => return hint::hint(error),
        Error::Extension(extension::Error::Io { .. }) => return None,
        Error::Extension(extension::Error::Foreign { .. }) => unchanged("look at it, and move it away"),
        Error::Extension(extension::Error::Edited { .. }) => {
            unchanged("keep a copy of what you changed, and delete these files")
        }
        Error::Watch(watch::Error::Watched { .. }) => {
            "one is enough: it takes a snapshot after every save. Stop it first if you want to start another".into()
        }
        Error::Watch(watch::Error::UnitInTheWay { .. }) => unchanged("look at it, and move it away"),
        Error::Watch(watch::Error::NoHome) => "set HOME or XDG_CONFIG_HOME".into(),
        Error::BackupIsNoStore { .. } => {
            "take it in: `stvc import FILE`; log, show, diff, search, timelines, stats, check and `restore … --to DIR` work on the file itself".into()
        }
        Error::BadOutput { .. } => "`stvc backup - | …`, or name a file".into(),
        Error::NoPassphrase { .. } => {
            "type it on a terminal, or name it with `--passphrase-file FILE` or `--passphrase-command COMMAND`".into()
        }
        Error::NoPlace { command: "sync" } => {
            "name a folder or a git server that both devices reach, behind `sync`".into()
        }
        Error::NoPlace { .. } => "name a file, a folder or a git server, such as `stvc backup chats.stvc`".into(),
        Error::OneUser { .. } => "choose one with `--user NAME`".into(),
        Error::OneTimeline { .. } => "several go into one file: `stvc view … --out FILE.html`".into(),
        Error::NoServer { source } if source.kind() == std::io::ErrorKind::AddrInUse => {
            "another program has that port; without `--port` a free one is taken".into()
        }
        Error::BadClock => unchanged("set the clock"),
        Error::BadSourceDate { .. } => unchanged("unset the variable, or set it to such a number"),
        Error::NoServer { .. } | Error::NoSignals { .. } => return None,
    })
}
