use std::path::PathBuf;

use crate::archive::merge::Side;
use crate::archive::{self, SnapshotId};
use crate::engine::copies::CopyError;
use crate::engine::sillytavern_runs::RestoreCommand;
use crate::engine::written_since::{ChangeSince, Offer};
use crate::engine::{self, TagError};
use crate::hint::{Hint, unchanged};
use crate::listed::listed;
use crate::store::{self, Loss};
use crate::words::{clean, shell};
use crate::{exit, history, st};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error("this is no regular expression: {why}")]
    BadPattern { why: String },
    /// A timeline cannot come from another.
    #[error("{child} does not come from {parent}: they share no message")]
    NoParent { parent: String, child: String },
    /// What is to be removed for good is still in use.
    #[error("{timeline} is still in SillyTavern: {}", path.display())]
    StillThere { timeline: String, path: PathBuf },
    #[error("{option} needs exactly one timeline")]
    NeedsOneTimeline { option: &'static str },
    /// What somebody has in memory is not in the file.
    #[error("{path} is not what is to be stored: it was not saved yet")]
    NotSaved { path: String },
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
    #[error("there is no lorebook {name:?}")]
    NoSuchLorebook { name: String },
    /// A copy of damage is damage.
    #[error("{path} is not copied: it {why}")]
    DamagedLorebook { path: String, why: &'static str },
    #[error("there is no group {name:?}")]
    NoSuchGroup { name: String },
    #[error("there are several groups called {name:?}")]
    SeveralGroups { name: String },
    #[error("no entry is called {name:?}{}", book.as_ref().map(|book| format!(" in the lorebook {book:?}")).unwrap_or_default())]
    NoSuchEntry { name: String, book: Option<String> },
    #[error("it is not said which lorebook is meant")]
    NeedsOneLorebook,
    #[error("snapshot {snapshot} has no lorebook")]
    NoLorebookThen { snapshot: SnapshotId },
    /// Steps without a name are one.
    #[error("{at:?} is more than one step")]
    OneStep { at: String },
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
    #[error("{path} is there already")]
    NameTaken { path: String },
    /// A deleted chat had the name, and its history still has.
    #[error("a deleted chat was called {timeline}, and its snapshots are under that name")]
    NameStored { timeline: String },
    /// A restore would overwrite files that hold something else.
    #[error("something else is there: {}", listed(paths))]
    InTheWay {
        paths: Vec<String>,
        restore: RestoreCommand,
        /// Whether the chat alone could be restored.
        chat_is_free: bool,
        /// Whether it can be restored under another name.
        can_be_copied: bool,
    },
    /// A file that a restore would replace is not the one that was expected there.
    #[error("{path} is not what it was when the restore was planned")]
    NotExpected { path: String },
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

    /// Returns the exit code of a command that ends with it.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Engine(error) => error.exit(),
            Self::Merge(error) => error.exit(),
            Self::Partway { source } => source.exit(),
            Self::Restore(_)
            | Self::NoParent { .. }
            | Self::NotSaved { .. }
            | Self::StillThere { .. }
            | Self::Undo(_) => exit::REFUSED,
            Self::NeedsOneTimeline { .. }
            | Self::NeedsCheckpoint { .. }
            | Self::Together { .. }
            | Self::BadName { .. }
            | Self::BadPattern { .. }
            | Self::NeedsOneLorebook
            | Self::OneStep { .. }
            | Self::NoPolicy => exit::USAGE,
            Self::NoSuchLorebook { .. }
            | Self::DamagedLorebook { .. }
            | Self::NoSuchGroup { .. }
            | Self::SeveralGroups { .. }
            | Self::NoSuchEntry { .. }
            | Self::NoLorebookThen { .. }
            | Self::NoChat
            | Self::NoChatWith { .. } => exit::FAILED,
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Engine(error) => return error.hint(),
            Self::Merge(error) => error.hint(),
            Self::Restore(error) => error.hint(),
            Self::Undo(error) => error.hint(),
            Self::NoPolicy => {
                "say what stays, such as `stvc forget --keep-last 10 --keep-daily 30 --dry-run`, or write a [retention] table into stvc/config.toml in the store".into()
            }
            Self::Partway { source } => {
                let more = source.hint().map_or(String::new(), |hint| format!("{}. ", hint.words));
                format!("{more}What was done before that stays; give the command again").into()
            }
            Self::NeedsCheckpoint { option } => {
                format!("add `--at N` or `--scenes` to {option}; `--tag NAME` names the state as it is").into()
            }
            Self::Together { option, .. } => format!("leave out {option:?} or the other").into(),
            Self::NotSaved { .. } => unchanged("save the chat, and ask again"),
            Self::NeedsOneTimeline { option } => {
                format!("name the chat: `stvc snapshot \"Chat name\" {option} …`").into()
            }
            Self::NoParent { .. } => {
                unchanged("name the chat that it was forked from; `stvc timelines --tree` shows all")
            }
            Self::StillThere { .. } => unchanged(
                "delete the chat in SillyTavern first; the next snapshot would take it again",
            ),
            Self::BadPattern { .. } => {
                "without `--regex` words are searched for as they are".into()
            }
            Self::NoSuchGroup { .. } | Self::SeveralGroups { .. } => {
                "name it by its file under groups/, without `.json`".into()
            }
            Self::NoSuchLorebook { .. } => {
                "it is called as its file in `worlds`, without `.json`".into()
            }
            Self::DamagedLorebook { .. } => {
                "`stvc doctor` names the latest valid version that is stored".into()
            }
            Self::NoSuchEntry { book: Some(book), .. } => {
                format!("`stvc lore {}` lists its entries", shell(book)).into()
            }
            Self::NoSuchEntry { .. } => {
                "`stvc lore` lists lorebooks and entries; `stvc search` looks into what they say"
                    .into()
            }
            Self::NeedsOneLorebook => "name it: `stvc lore \"Lorebook\" --at …`".into(),
            Self::NoLorebookThen { .. } | Self::NoChatWith { .. } => {
                "`--at` takes a date, too: `--at yesterday`".into()
            }
            Self::OneStep { .. } => {
                "write one of ~N, @DATE and :N, or a moment with its name, such as `Chat@yesterday~1`".into()
            }
            Self::NoChat => "`stvc snapshot` takes the first snapshots".into(),
            Self::BadName { .. } => return None,
        })
    }
}

impl MergeError {
    fn exit(&self) -> u8 {
        match self {
            Self::Conflicts { .. } | Self::Unmergeable { .. } => exit::REFUSED,
            Self::NotNewest { .. } | Self::NotSetAside { .. } => exit::USAGE,
            Self::NoLorebook { .. } => exit::FAILED,
        }
    }

    fn hint(&self) -> Hint {
        match self {
            Self::Conflicts { into, from, local, .. } => {
                unchanged(ways_to_settle(into, from, *local))
            }
            Self::NotSetAside { into, from } => unchanged(format!(
                "write `--keep a` for the values of {}, `--keep b` for those of {}",
                clean(into),
                clean(from)
            )),
            Self::Unmergeable { .. } => unchanged(
                "mend the file, or bring a sound state of it back with `stvc restore … --only lorebook`",
            ),
            Self::NotNewest { timeline, .. } => unchanged(format!(
                "name the timeline {timeline}: its lorebook as it is now is merged into. To go back first: `stvc restore`"
            )),
            Self::NoLorebook { .. } => {
                "only chats that are bound to a lorebook can be merged; `stvc doctor` tells of missing ones".into()
            }
        }
    }
}

/// Returns the commands that settle the conflicts of two lorebooks. `local` is the side with the values of this device, where a sync set one of the two aside.
pub fn ways_to_settle(into: &str, from: &str, local: Option<Side>) -> String {
    let merge = format!("stvc merge {} {}", shell(into), shell(from));
    if local.is_some() {
        format!(
            "`{merge} --keep local --yes` keeps the local values, `{merge} --keep remote --yes` the remote ones; or edit both lorebooks in SillyTavern until they agree"
        )
    } else {
        format!(
            "`{merge} --keep a --yes` keeps the values of {}, `{merge} --keep b --yes` takes those of {}; or edit both lorebooks in SillyTavern until they agree",
            clean(into),
            clean(from)
        )
    }
}

impl RestoreError {
    fn hint(&self) -> Hint {
        match self {
            Self::InTheWay { restore, chat_is_free, can_be_copied, .. } => {
                let mut ways = Vec::new();
                if restore.only.is_none() && *chat_is_free {
                    ways.push(format!("`{restore} --only chat` leaves the lorebook as it is now"));
                }
                if restore.only.is_none() && *can_be_copied {
                    ways.push(format!("`{restore} --as Restored` makes a chat of its own of it"));
                }
                ways.push(format!(
                    "`{restore} --overwrite` stores what is there and then replaces it"
                ));
                ways.push(format!("`{restore} --to restored` writes the files into that folder"));
                ways.join("; ").into()
            }
            Self::NameTaken { .. } | Self::NameStored { .. } => unchanged("choose another name"),
            Self::NotExpected { .. } => {
                unchanged("somebody wrote it meanwhile; look at the plan again")
            }
            Self::NotEmpty { .. } => "choose a folder that does not exist yet".into(),
        }
    }
}

impl UndoError {
    fn hint(&self) -> Hint {
        unchanged(match self {
            Self::UndoneBelow { number, first, undone } => format!(
                "run `stvc undo {first}` first, which redoes operation {undone}, then `stvc undo {number}`"
            ),
            Self::ChangedSince { offers, .. } if !offers.is_empty() => {
                let restore = |offer: &Offer| {
                    format!("`stvc restore {} --as {}`", offer.moment, shell(&offer.name))
                };
                let restores: Vec<_> = offers.iter().map(restore).collect();
                format!("{} restores the state before it as a chat of its own", restores.join(", "))
            }
            Self::ChangedSince { is_new: true, .. } => {
                "nothing was there before it; delete the chat in SillyTavern if you do not want it, its snapshots stay".into()
            }
            Self::ChangedSince { .. } => {
                "`stvc operations` lists what was done since; `stvc undo N` undoes one of them".into()
            }
        })
    }
}
