//! Errors in words, and their exit codes.

use std::io::Write;
use std::path::PathBuf;

use super::exit::{FAILED, LOCKED, NO_STORE, PARTLY, REFUSED, USAGE};
use super::hint::hint;
use super::output::{LOOK, Out, paint};
use super::wording::clean;
use stvc::engine::copies::CopyError;
use stvc::engine::{self, TagError};
use stvc::lines::{Counts, ErrorLine, Line, Summary};
use stvc::store::{self, RemoteError};
use stvc::verbs::{self, MergeError, UndoError};
use stvc::{archive, history, st, watch};

/// What commands return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for.
    #[error(transparent)]
    Verb(#[from] verbs::Error),
    /// The watch.
    #[error(transparent)]
    Watch(#[from] watch::Error),
    /// Standard output cannot take a backup and words, nor a terminal a backup.
    #[error("a backup cannot be written to {what}")]
    BadOutput {
        /// What it is.
        what: &'static str,
    },
    /// There is no passphrase.
    #[error("no passphrase: {why}")]
    NoPassphrase {
        /// Why not.
        why: String,
    },
    /// A backup can be looked at, not written to.
    #[error("{} is a backup, not a store", path.display())]
    BackupIsNoStore {
        /// The backup.
        path: PathBuf,
    },
    /// Ctrl-C and the like cannot be caught.
    #[error("cannot be told to stop: {why}")]
    NoSignals {
        /// What the system says.
        why: String,
    },
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
            Self::Verb(error) | Self::Watch(watch::Error::Verb(error)) => Some(error),
            _ => None,
        }
    }
}

/// Print an error; its exit code.
pub fn report(error: &Error, command: &'static str, out: &mut Out) -> u8 {
    let exit = exit_code(error);
    let hint = hint(error).map(|hint| hint.to_string());
    let candidates = match error.of_engine() {
        Some(engine::Error::History(history::Error::Ambiguous { candidates, .. })) => {
            candidates.clone()
        }
        _ => Vec::new(),
    };
    if out.is_json() {
        if let Some(engine::Error::Refused { findings }) = error.of_engine() {
            out.findings(findings);
        }
        let message = error.to_string();
        out.object(ErrorLine { message, hint, candidates, exit });
        out.summary(command, false, Counts::None {});
        return exit;
    }
    out.error_line(&format!("{}: {}", paint(LOOK.bad, "error"), clean(&error.to_string())));
    for candidate in candidates {
        out.error_line(&format!("  {}", clean(&candidate)));
    }
    if let Some(hint) = hint {
        out.error_line(&format!("{}: {hint}", paint(LOOK.tag, "hint")));
    }
    exit
}

/// A command line that does not parse; also `--help` and `--version`, which clap reports the same way.
pub fn usage(problem: &clap::Error, json: bool) -> u8 {
    let exit = u8::try_from(problem.exit_code()).unwrap_or(USAGE);
    if json && exit != 0 {
        let message = problem.to_string();
        let message =
            message.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let error = ErrorLine { message, hint: None, candidates: Vec::new(), exit };
        let summary = Summary { command: "", ok: false, counts: Counts::None {} };
        for line in [Line::Error(error), Line::Summary(summary)] {
            let line = serde_json::to_string(&line).unwrap_or_default();
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    } else {
        let _ = problem.print();
    }
    exit
}

/// The code that a command ends with.
pub fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Verb(error) | Error::Watch(watch::Error::Verb(error)) => code_of_verb(error),
        Error::Watch(watch::Error::Watched { .. }) => LOCKED,
        Error::Watch(watch::Error::UnitInTheWay { .. }) => REFUSED,
        Error::BadOutput { .. } | Error::BackupIsNoStore { .. } => USAGE,
        Error::Watch(watch::Error::NoHome)
        | Error::NoPassphrase { .. }
        | Error::NoSignals { .. } => FAILED,
    }
}

pub fn code_of_verb(error: &verbs::Error) -> u8 {
    match error {
        verbs::Error::Engine(error) => code_of_engine(error),
        verbs::Error::Partway { source } => code_of_verb(source),
        verbs::Error::Merge(MergeError::Conflicts { .. } | MergeError::Unmergeable { .. })
        | verbs::Error::Restore(_)
        | verbs::Error::Undo(UndoError::ChangedSince { .. }) => REFUSED,
        verbs::Error::Merge(MergeError::NotNewest { .. })
        | verbs::Error::NeedsOneTimeline { .. }
        | verbs::Error::BadName { .. }
        | verbs::Error::NoPolicy => USAGE,
        verbs::Error::Merge(MergeError::NoLorebook { .. })
        | verbs::Error::Undo(UndoError::Nothing | UndoError::Already { .. }) => FAILED,
    }
}

fn code_of_engine(error: &engine::Error) -> u8 {
    match error {
        engine::Error::Refused { .. }
        | engine::Error::History(history::Error::KeepsNothing)
        | engine::Error::SillyTavernRuns { .. }
        | engine::Error::Copy(CopyError::InTheWay { .. } | CopyError::NotHere { .. })
        | engine::Error::Remote(RemoteError::Foreign { .. }) => REFUSED,
        engine::Error::LeftAlone { others, .. } if *others > 0 => PARTLY,
        engine::Error::Tag(TagError::BadName { .. })
        | engine::Error::Copy(CopyError::UnknownDestination { .. }) => USAGE,
        engine::Error::Store(error)
        | engine::Error::Remote(RemoteError::Store(error))
        | engine::Error::Archive(archive::Error::Store(error)) => match error {
            store::Error::NoStore { .. } => NO_STORE,
            store::Error::Locked { .. } => LOCKED,
            store::Error::Link { .. } => REFUSED,
            _ => FAILED,
        },
        _ => FAILED,
    }
}
