use std::path::PathBuf;

use crate::archive::merge::Side;
use crate::archive::{self, Role, SnapshotId};
use crate::engine::copies::CopyError;
use crate::engine::written_since::{ChangeSince, Offer};
use crate::engine::{self, TagError};
use crate::listed::listed;
use crate::store::{self, Loss};
use crate::{history, st};

/// What verbs return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What verbs are made of.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// Of `merge`.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// Of `restore`.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Of `undo`.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// What is searched for is no regular expression.
    #[error("this is no regular expression: {why}")]
    BadPattern { why: String },
    /// A timeline cannot come from another.
    #[error("{child} does not come from {parent}: they share no message")]
    NoParent { parent: String, child: String },
    /// What is to be removed for good is still in use.
    #[error("{timeline} is still in SillyTavern: {}", path.display())]
    StillThere { timeline: String, path: PathBuf },
    /// The option needs exactly one timeline.
    #[error("{option} needs exactly one timeline")]
    NeedsOneTimeline { option: &'static str },
    /// What somebody has in memory is not in the file.
    #[error("{path} is not what is to be stored: it was not saved yet")]
    NotSaved { path: String },
    /// The option is about checkpoints.
    #[error("{option} is for checkpoints")]
    NeedsCheckpoint { option: &'static str },
    /// Two options contradict each other.
    #[error("{option} cannot be given together with {other}")]
    Together { option: &'static str, other: &'static str },
    /// `forget` was told nothing, and nor is the store's configuration.
    #[error("it is not said what to keep")]
    NoPolicy,
    /// Nothing can be called that.
    #[error("{name:?} cannot be a chat's name: {why}")]
    BadName { name: String, why: &'static str },
    /// No lorebook has that name.
    #[error("there is no lorebook {name:?}")]
    NoSuchLorebook { name: String },
    /// A copy of damage is damage.
    #[error("{path} is not copied: it {why}")]
    DamagedLorebook { path: String, why: &'static str },
    #[error("there is no group {name:?}")]
    NoSuchGroup { name: String },
    #[error("there are several groups called {name:?}")]
    SeveralGroups { name: String },
    /// No entry has that name.
    #[error("no entry is called {name:?}{}", book.as_ref().map(|book| format!(" in the lorebook {book:?}")).unwrap_or_default())]
    NoSuchEntry { name: String, book: Option<String> },
    /// Which lorebook is not said.
    #[error("it is not said which lorebook is meant")]
    NeedsOneLorebook,
    /// A snapshot has no lorebook.
    #[error("snapshot {snapshot} has no lorebook")]
    NoLorebookThen { snapshot: SnapshotId },
    /// Steps without a name are one.
    #[error("{at:?} is more than one step")]
    OneStep { at: String },
    /// There is no chat yet.
    #[error("no chat is stored yet")]
    NoChat,
    /// Messages cannot be counted in it.
    #[error("no chat has the lorebook {book:?}, so there are no messages to count")]
    NoChatWith { book: String },
    /// It failed after part of it was done, which stays.
    #[error("{source}")]
    Partway { source: Box<Error> },
}

/// Why nothing was merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A timeline has no lorebook to merge.
    #[error("{timeline} has no lorebook")]
    NoLorebook { timeline: String },
    /// Only the lorebook as it is now can be merged into.
    #[error("{name:?} is an older state of {timeline}")]
    NotNewest { name: String, timeline: String },
    /// A lorebook is not one that can be merged.
    #[error("{book} cannot be merged: {why}")]
    Unmergeable { book: String, why: &'static str },
    /// Both lorebooks changed the same values differently; nothing was changed.
    #[error("{}", if *count == 1 { "1 conflict is not settled".to_owned() } else { format!("{count} conflicts are not settled") })]
    Conflicts { count: usize, into: String, from: String, local: Option<Side> },
    /// Neither lorebook was set aside by a sync, so that neither has the values of this device.
    #[error("neither {into} nor {from} was set aside by a sync")]
    NotSetAside { into: String, from: String },
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The name for a restored chat is taken.
    #[error("{path} is there already")]
    NameTaken { path: String },
    /// A deleted chat had the name, and its history still has.
    #[error("a deleted chat was called {timeline}, and its snapshots are under that name")]
    NameStored { timeline: String },
    /// A restore would overwrite files that hold something else.
    #[error("something else is there: {}", listed(paths))]
    InTheWay {
        /// The files.
        paths: Vec<String>,
        /// The snapshot, to name it in a hint.
        snapshot: SnapshotId,
        /// The part that was asked for.
        only: Option<Role>,
        /// The message that was asked for.
        at: Option<usize>,
        /// Whether the chat alone could be restored.
        chat_is_free: bool,
        /// Whether it can be restored under another name.
        can_be_copied: bool,
    },
    /// A file that a restore would replace is not the one that was expected there.
    #[error("{path} is not what it was when the restore was planned")]
    NotExpected { path: String },
    /// SillyTavern is running, and files would be replaced that it may have in memory.
    #[error("{source}")]
    SillyTavernRuns {
        /// What the engine says.
        source: engine::Error,
        /// The snapshot, to name it in a hint.
        snapshot: SnapshotId,
        /// The part that was asked for.
        only: Option<Role>,
        /// The message that was asked for.
        at: Option<usize>,
    },
    /// The folder for a restore is not empty.
    #[error("{} is not empty", path.display())]
    NotEmpty { path: PathBuf },
}

/// Why nothing was taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// An earlier operation, on which it builds, was undone after it.
    #[error(
        "operation {number} cannot be undone before operation {first}, which undid operation {undone} later"
    )]
    UndoneBelow { number: u64, first: u64, undone: u64 },
    /// What the operation did has changed since.
    #[error("operation {number} cannot be undone: {} since", in_short_changes(changes))]
    ChangedSince {
        number: u64,
        changes: Vec<ChangeSince>,
        /// The states before it that can be restored beside what is there.
        offers: Vec<Offer>,
        /// It wrote files only where there were none, so there is no state before it.
        is_new: bool,
    },
}

/// The first changes, and how many more there are.
fn in_short_changes(changes: &[ChangeSince]) -> String {
    const MOST: usize = 3;
    let told: Vec<_> = changes.iter().take(MOST).map(ToString::to_string).collect();
    match changes.len().saturating_sub(MOST) {
        0 => told.join(", "),
        1 => format!("{}, and 1 other file was changed", told.join(", ")),
        more => format!("{}, and {more} other files were changed", told.join(", ")),
    }
}

macro_rules! from_below {
    ($($error:ty),*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Engine(error.into())
            }
        })*
    };
}

from_below!(
    st::Error,
    store::Error,
    store::RemoteError,
    archive::Error,
    history::Error,
    TagError,
    CopyError
);

impl Loss for Error {
    fn is_loss(&self) -> bool {
        matches!(self, Self::Engine(error) if error.is_loss())
    }
}

impl Error {
    /// For `map_err` of what comes after something was done, or not.
    pub(super) fn after(done: bool) -> impl FnOnce(Self) -> Self {
        move |error| if done { Self::Partway { source: Box::new(error) } } else { error }
    }
}
