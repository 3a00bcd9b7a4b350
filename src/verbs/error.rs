use std::path::PathBuf;

use crate::archive::merge::Side;
use crate::archive::{self, SnapshotId};
use crate::engine::copies::CopyError;
use crate::engine::sillytavern_runs::RestoreCommand;
use crate::engine::written_since::{ChangeSince, Offer};
use crate::engine::{self, TagError};
use crate::hint::{Hint, unchanged};
use crate::store::{self, Loss};
use crate::words::{clean, listed, shell};
use crate::{exit, history, st};

/// The result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    #[error("{child} does not come from {parent}: they share no message")]
    NoParent { parent: String, child: String },
    #[error("{timeline} is still in SillyTavern: {}", path.display())]
    StillThere { timeline: String, path: PathBuf },
    #[error("{option} needs exactly one timeline")]
    NeedsOneTimeline { option: &'static str },
    #[error("{path} is not what is to be stored: it was not saved yet")]
    NotSaved { path: String },
    #[error("{option} is for checkpoints")]
    NeedsCheckpoint { option: &'static str },
    #[error("{option} cannot be given together with {other}")]
    Together { option: &'static str, other: &'static str },
    #[error("it is not said what to keep")]
    NoPolicy,
    #[error("{name:?} cannot be a chat's name: {why}")]
    BadName { name: String, why: &'static str },
    #[error("there is no lorebook {name:?}")]
    NoSuchLorebook { name: String },
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
    #[error("{at:?} is more than one step")]
    OneStep { at: String },
    #[error("no chat is stored yet")]
    NoChat,
    #[error("no chat has the lorebook {book:?}, so there are no messages to count")]
    NoChatWith { book: String },
    /// Failed after a part was done, which stays.
    #[error("{source}")]
    Partway { source: Box<Error> },
}

/// Why nothing was merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("{timeline} has no lorebook")]
    NoLorebook { timeline: String },
    #[error("{name:?} is an older state of {timeline}")]
    NotNewest { name: String, timeline: String },
    #[error("{book} cannot be merged: {why}")]
    Unmergeable { book: String, why: &'static str },
    #[error("{}", if *count == 1 { "1 conflict is not settled".to_owned() } else { format!("{count} conflicts are not settled") })]
    Conflicts { count: usize, into: String, from: String, local: Option<Side> },
    #[error("neither {into} nor {from} was set aside by a sync")]
    NotSetAside { into: String, from: String },
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("{path} is there already")]
    NameTaken { path: String },
    #[error("a deleted chat was called {timeline}, and its snapshots are under that name")]
    NameStored { timeline: String },
    #[error("something else is there: {}", listed(paths))]
    InTheWay {
        paths: Vec<String>,
        restore: RestoreCommand,
        chat_is_free: bool,
        can_be_copied: bool,
    },
    #[error("{path} is not what it was when the restore was planned")]
    NotExpected { path: String },
    #[error("{} is not empty", path.display())]
    NotEmpty { path: PathBuf },
}

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(
        "operation {number} cannot be undone before operation {first}, which undid operation {undone} later"
    )]
    UndoneBelow { number: u64, first: u64, undone: u64 },
    #[error("operation {number} cannot be undone: {} since", first_changes(changes))]
    ChangedSince {
        number: u64,
        changes: Vec<ChangeSince>,
        offers: Vec<Offer>,
        /// It only wrote files where there were none, so there is no state before it.
        is_new: bool,
    },
}

fn first_changes(changes: &[ChangeSince]) -> String {
    const MOST: usize = 3;
    let first: Vec<_> = changes.iter().take(MOST).map(ToString::to_string).collect();
    let first = first.join(", ");
    match changes.len().saturating_sub(MOST) {
        0 => first,
        1 => format!("{first}, and 1 other file was changed"),
        more => format!("{first}, and {more} other files were changed"),
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
    /// Marks an error that follows a step which was done, and stays.
    pub(super) fn partway(self) -> Self {
        Self::Partway { source: Box::new(self) }
    }

    /// Returns the exit code of a command that fails with this.
    pub fn exit(&self) -> u8 {
        self.advice().0
    }

    /// Returns the next step for the user.
    pub fn hint(&self) -> Option<Hint> {
        self.advice().1
    }

    fn advice(&self) -> (u8, Option<Hint>) {
        let usage = |hint: &str| (exit::USAGE, Some(hint.into()));
        let refused = |hint: &str| (exit::REFUSED, Some(unchanged(hint)));
        let failed = |hint: &str| (exit::FAILED, Some(hint.into()));
        match self {
            Self::Engine(error) => (error.exit(), error.hint()),
            Self::Merge(error) => error.advice(),
            Self::Restore(error) => (exit::REFUSED, Some(error.hint())),
            Self::Undo(error) => (exit::REFUSED, Some(error.hint())),
            Self::Partway { source } => {
                let (exit, hint) = source.advice();
                let more = hint.map_or(String::new(), |hint| format!("{}. ", hint.words));
                let hint = format!("{more}What was done before that stays; give the command again");
                (exit, Some(hint.into()))
            }
            Self::NoPolicy => usage(
                "say what stays, such as `stvc forget --keep-last 10 --keep-daily 30 --dry-run`, or write a [retention] table into stvc/config.toml in the store",
            ),
            Self::NeedsCheckpoint { option } => usage(&format!(
                "add `--at N` or `--scenes` to {option}; `--tag NAME` names the state as it is"
            )),
            Self::Together { option, .. } => usage(&format!("leave out {option:?} or the other")),
            Self::NeedsOneTimeline { option } => {
                usage(&format!("name the chat: `stvc snapshot \"Chat name\" {option} …`"))
            }
            Self::BadPattern { .. } => {
                usage("without `--regex` words are searched for as they are")
            }
            Self::NeedsOneLorebook => usage("name it: `stvc lore \"Lorebook\" --at …`"),
            Self::OneStep { .. } => usage(
                "write one of ~N, @DATE and :N, or a moment with its name, such as `Chat@yesterday~1`",
            ),
            Self::BadName { .. } => (exit::USAGE, None),
            Self::NotSaved { .. } => refused("save the chat, and ask again"),
            Self::NoParent { .. } => {
                refused("name the chat that it was forked from; `stvc timelines --tree` shows all")
            }
            Self::StillThere { .. } => refused(
                "delete the chat in SillyTavern first; the next snapshot would take it again",
            ),
            Self::NoSuchGroup { .. } | Self::SeveralGroups { .. } => {
                failed("name it by its file under groups/, without `.json`")
            }
            Self::NoSuchLorebook { .. } => {
                failed("it is called as its file in `worlds`, without `.json`")
            }
            Self::DamagedLorebook { .. } => {
                failed("`stvc doctor` names the latest valid version that is stored")
            }
            Self::NoSuchEntry { book: Some(book), .. } => {
                failed(&format!("`stvc lore {}` lists its entries", shell(book)))
            }
            Self::NoSuchEntry { .. } => failed(
                "`stvc lore` lists lorebooks and entries; `stvc search` looks into what they say",
            ),
            Self::NoLorebookThen { .. } | Self::NoChatWith { .. } => {
                failed("`--at` takes a date, too: `--at yesterday`")
            }
            Self::NoChat => failed("`stvc snapshot` takes the first snapshots"),
        }
    }
}

impl MergeError {
    fn advice(&self) -> (u8, Option<Hint>) {
        let (exit, hint) = match self {
            Self::NoLorebook { .. } => {
                let hint = "only chats that are bound to a lorebook can be merged; `stvc doctor` tells of missing ones";
                return (exit::FAILED, Some(hint.into()));
            }
            Self::Conflicts { into, from, local, .. } => {
                (exit::REFUSED, ways_to_settle(into, from, *local))
            }
            Self::NotSetAside { into, from } => {
                let (into, from) = (clean(into), clean(from));
                let ways = format!(
                    "write `--keep a` for the values of {into}, `--keep b` for those of {from}"
                );
                (exit::USAGE, ways)
            }
            Self::Unmergeable { .. } => (
                exit::REFUSED,
                "mend the file, or bring a sound state of it back with `stvc restore … --only lorebook`".into(),
            ),
            Self::NotNewest { timeline, .. } => {
                let way = format!(
                    "name the timeline {timeline}: its lorebook as it is now is merged into. To go back first: `stvc restore`"
                );
                (exit::USAGE, way)
            }
        };
        (exit, Some(unchanged(hint)))
    }
}

/// Returns the commands that settle the conflicts of two lorebooks. `local` is the side with the
/// values of this device, if a sync set one of the two aside.
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
