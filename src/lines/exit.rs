//! How a command ends, in a number: for whoever started it, and for every front end the same. docs/cli.md lists them.

use crate::engine::copies::CopyError;
use crate::engine::{self, TagError};
use crate::store::{self, RemoteError};
use crate::verbs::{self, MergeError};
use crate::{archive, history};

/// Everything was done, also when there was nothing to do.
pub const DONE: u8 = 0;

/// It failed.
pub const FAILED: u8 = 1;

/// Nothing was found, as grep says it.
pub const NOT_FOUND: u8 = 1;

/// The command line cannot be understood.
pub const USAGE: u8 = 2;

/// Some was done and some was not.
pub const PARTLY: u8 = 3;

/// A rule refused it; nothing was changed.
pub const REFUSED: u8 = 4;

/// There is no store.
pub const NO_STORE: u8 = 10;

/// Another process is at work.
pub const LOCKED: u8 = 11;

pub fn code_of_verb(error: &verbs::Error) -> u8 {
    match error {
        verbs::Error::Engine(error) => code_of_engine(error),
        verbs::Error::Partway { source } => code_of_verb(source),
        verbs::Error::Merge(MergeError::Conflicts { .. } | MergeError::Unmergeable { .. })
        | verbs::Error::Restore(_)
        | verbs::Error::NoParent { .. }
        | verbs::Error::NotSaved { .. }
        | verbs::Error::StillThere { .. }
        | verbs::Error::Undo(_) => REFUSED,
        verbs::Error::Merge(MergeError::NotNewest { .. } | MergeError::NotSetAside { .. })
        | verbs::Error::NeedsOneTimeline { .. }
        | verbs::Error::NeedsCheckpoint { .. }
        | verbs::Error::Together { .. }
        | verbs::Error::BadName { .. }
        | verbs::Error::BadPattern { .. }
        | verbs::Error::NeedsOneLorebook
        | verbs::Error::OneStep { .. }
        | verbs::Error::NoPolicy => USAGE,
        verbs::Error::Merge(MergeError::NoLorebook { .. })
        | verbs::Error::NoSuchLorebook { .. }
        | verbs::Error::DamagedLorebook { .. }
        | verbs::Error::NoSuchGroup { .. }
        | verbs::Error::SeveralGroups { .. }
        | verbs::Error::NoSuchEntry { .. }
        | verbs::Error::NoLorebookThen { .. }
        | verbs::Error::NoChat
        | verbs::Error::NoChatWith { .. } => FAILED,
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
