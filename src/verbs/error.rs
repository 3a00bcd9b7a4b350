use std::io;
use std::path::PathBuf;

use crate::archive::merge::Side;
use crate::archive::{self, SnapshotId};
use crate::engine::copies::CopyError;
use crate::engine::sillytavern_runs::RestoreCommand;
use crate::engine::written_since::{ChangeSince, EarlierState};
use crate::engine::{self, TagError};
use crate::hint::{Hint, unchanged};
use crate::rules::Finding;
use crate::store::{self, Loss};
use crate::words::{clean, count, listed, shell};
use crate::{exit, history, st};

/// The result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a verb failed.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant describes it")]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] engine::Error),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error("invalid regular expression: {why}")]
    BadPattern { why: String },
    #[error("{child} is not a fork of {parent}: they share no messages")]
    NoParent { parent: String, child: String },
    #[error("cannot erase {timeline}: its file still exists: {}", path.display())]
    StillThere { timeline: String, path: PathBuf },
    #[error("{option} needs exactly one timeline")]
    NeedsOneTimeline { option: &'static str },
    #[error("{path} has unsaved changes in SillyTavern")]
    NotSaved { path: String },
    #[error("{option} applies only to checkpoints")]
    NeedsCheckpoint { option: &'static str },
    #[error("{option} cannot be used with {other}")]
    Together { option: &'static str, other: &'static str },
    #[error("no retention policy: none was given and none is configured")]
    NoPolicy,
    #[error("{name:?} cannot be used as a name: {why}")]
    BadName { name: String, why: &'static str },
    #[error("there is no lorebook {name:?}")]
    NoSuchLorebook { name: String },
    #[error("cannot copy {path}: it {why}")]
    DamagedLorebook { path: String, why: &'static str },
    #[error("there is no group {name:?}")]
    NoSuchGroup { name: String },
    #[error("this repair is no longer planned: {what}")]
    NotPlanned { what: String },
    #[error("several groups are named {name:?}")]
    SeveralGroups { name: String },
    #[error("there is no entry {name:?}{}", book.as_ref().map(|book| format!(" in the lorebook {book:?}")).unwrap_or_default())]
    NoSuchEntry { name: String, book: Option<String>, similar: Vec<String> },
    #[error("`--at` requires exactly one lorebook")]
    NeedsOneLorebook,
    #[error("snapshot {snapshot} has no lorebook")]
    NoLorebookThen { snapshot: SnapshotId },
    #[error("{at:?} has several steps, but only one is allowed here")]
    OneStep { at: String },
    #[error("cannot export {timeline} as a story: it is neither a chat nor a lorebook")]
    NoStory { timeline: String },
    #[error("there is no stored picture {name:?}")]
    NoPicture { name: String },
    #[error("{path} is too large to show")]
    LargePicture { path: String },
    #[error("the store has no chats yet")]
    NoChat,
    #[error("a message number cannot be used here, because no chat uses the lorebook {book:?}")]
    NoChatWith { book: String },
    #[error("operation {number} was interrupted, and the library that it needs was not found")]
    Unfinished { number: u64 },
    #[error("erased data is still on the disk: {} in use", count(packs, "pack file"))]
    PacksInUse { packs: usize },
    #[error("the store still has {}, reached by another ref", count(snapshots, "erased snapshot"))]
    ErasedReachable { snapshots: usize },
    /// A failure after some steps were completed. The completed steps are not rolled back.
    #[error("{source}")]
    Partway { source: Box<Error> },
}

/// The reason why nothing was merged.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum MergeError {
    #[error("{timeline} has no lorebook")]
    NoLorebook { timeline: String },
    #[error("{name:?} is not the latest snapshot of {timeline}")]
    NotNewest { name: String, timeline: String },
    #[error("cannot merge {book}: {why}")]
    Unmergeable { book: String, why: &'static str },
    #[error("{}", if *count == 1 { "1 conflict is not resolved".to_owned() } else { format!("{count} conflicts are not resolved") })]
    Conflicts { count: usize, into: String, from: String, local: Option<Side> },
    #[error("neither {into} nor {from} was set aside by a sync")]
    NotSetAside { into: String, from: String },
}

/// The reason why nothing was restored.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RestoreError {
    #[error("{path} already exists")]
    NameTaken { path: String },
    #[error("{timeline} is the name of a deleted chat that still has snapshots")]
    NameStored { timeline: String },
    #[error("the restore would replace {}", listed(paths))]
    InTheWay {
        paths: Vec<String>,
        restore: RestoreCommand,
        chat_is_free: bool,
        can_be_copied: bool,
    },
    #[error("{path} changed after the restore was planned")]
    NotExpected { path: String },
    #[error("{} is not empty", path.display())]
    NotEmpty { path: PathBuf },
}

/// The reason why nothing was undone.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum UndoError {
    #[error(
        "cannot undo operation {number} yet: operation {first} is later (it undid operation {undone}) and must be undone first"
    )]
    UndoneBelow { number: u64, first: u64, undone: u64 },
    #[error("cannot undo operation {number}: {} since", first_changes(changes))]
    ChangedSince {
        number: u64,
        changes: Vec<ChangeSince>,
        offers: Vec<EarlierState>,
        /// The operation only created files, so there is no earlier snapshot to offer.
        is_new: bool,
    },
}

fn first_changes(changes: &[ChangeSince]) -> String {
    const MAX_SHOWN: usize = 3;
    let first: Vec<_> = changes.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    let first = first.join(", ");
    match changes.len().saturating_sub(MAX_SHOWN) {
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
    engine::remotes::PlainRemoteError,
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
    /// Wraps an error that happened after some steps were completed.
    pub(super) fn partway(self) -> Self {
        Self::Partway { source: Box::new(self) }
    }

    /// Returns a function that converts the error of reading or writing the file `path`.
    pub fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| st::Error::Io { path, source }.into()
    }

    /// Returns the findings of the rule that refused the command.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Engine(engine::Error::Refused { findings }) => findings,
            _ => &[],
        }
    }

    /// Returns whether no timeline has the requested name.
    pub fn is_unknown_timeline(&self) -> bool {
        matches!(self, Self::Engine(engine::Error::History(history::Error::NoSuchTimeline { .. })))
    }

    /// Returns whether a restore was refused because it would replace files.
    pub fn is_file_in_the_way(&self) -> bool {
        matches!(self, Self::Restore(RestoreError::InTheWay { .. }))
    }

    /// Returns whether a restore was refused because SillyTavern is running.
    pub fn is_sillytavern_running(&self) -> bool {
        matches!(self, Self::Engine(engine::Error::SillyTavernRuns(_)))
    }

    /// If the name of a moment cannot be parsed, returns the unparsed text, and the position in it
    /// in bytes.
    pub fn unparsed(&self) -> Option<(&str, usize)> {
        match self {
            Self::Engine(engine::Error::History(history::Error::Unreadable {
                text, at, ..
            })) => Some((text, *at)),
            _ => None,
        }
    }

    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::Merge(error) => error.into(),
            Self::Restore(error) => error.into(),
            Self::Undo(error) => error.into(),
            Self::Partway { source } => source.code(),
            error => error.into(),
        }
    }

    /// Returns the exit code of a command that fails with this error.
    pub fn exit(&self) -> u8 {
        self.advice().0
    }

    /// Returns a hint that tells the user what to do next.
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
                let hint = format!("{more}The steps before this error are complete and stay");
                (exit, Some(hint.into()))
            }
            Self::NoPolicy => usage(
                "pass one, for example `stvc forget --keep-last 10 --keep-daily 30 --dry-run`; or add a [retention] table to stvc/config.toml in the store",
            ),
            Self::NeedsCheckpoint { option } => usage(&format!(
                "use {option} together with `--at N` or `--scenes`; use `--tag NAME` to tag a snapshot of the current files"
            )),
            Self::Together { option, other } => usage(&format!("omit {option} or {other}")),
            Self::NeedsOneTimeline { option } => {
                usage(&format!("name the chat: `stvc snapshot \"Chat name\" {option} …`"))
            }
            Self::BadPattern { .. } => {
                usage("omit `--regex` to search for the text as it is written")
            }
            Self::NeedsOneLorebook => usage("name it: `stvc lore \"Lorebook\" --at …`"),
            Self::OneStep { .. } => usage(
                "pass only one of ~N, @DATE and :N, or a complete moment such as `Chat@yesterday~1`",
            ),
            Self::BadName { .. } => (exit::USAGE, None),
            Self::NoPicture { .. } | Self::LargePicture { .. } => (exit::FAILED, None),
            Self::NotSaved { .. } => refused("save the chat in SillyTavern, then try again"),
            Self::NoParent { .. } => refused(
                "name the chat from which it was forked; run `stvc timelines --tree` to list all forks",
            ),
            Self::StillThere { .. } => refused(
                "delete the chat in SillyTavern first, otherwise the next snapshot stores it again",
            ),
            Self::NotPlanned { .. } => {
                refused("run `stvc doctor` again: the files changed after the repair was planned")
            }
            Self::NoSuchGroup { .. } | Self::SeveralGroups { .. } => {
                failed("use the name of the group's file in `groups`, without `.json`")
            }
            Self::NoSuchLorebook { .. } => {
                failed("use the name of the lorebook's file in `worlds`, without `.json`")
            }
            Self::DamagedLorebook { .. } => {
                failed("run `stvc doctor` to look for a valid version in the store")
            }
            Self::NoSuchEntry { similar, .. } if !similar.is_empty() => {
                failed("use one of these similar names")
            }
            Self::NoSuchEntry { book: Some(book), .. } => {
                failed(&format!("run `stvc lore {}` to list its entries", shell(book)))
            }
            Self::NoSuchEntry { .. } => failed(
                "run `stvc lore` to list lorebooks and entries; run `stvc search` to search their text",
            ),
            Self::NoLorebookThen { .. } | Self::NoChatWith { .. } => {
                failed("pass a date instead, for example `--at yesterday`")
            }
            Self::NoStory { .. } => usage("name a chat or a lorebook; or add `--all-history`"),
            Self::NoChat => failed("run `stvc snapshot` to create the first snapshots"),
            Self::Unfinished { .. } => {
                (exit::FAILED, Some(unchanged("pass the library with `--data DIR`")))
            }
            Self::PacksInUse { .. } => failed(
                "stop the program that has them open (`stvc view`, `stvc watch` or git), then erase again",
            ),
            Self::ErasedReachable { .. } => failed("run `stvc check` to look for damage"),
        }
    }
}

impl MergeError {
    fn advice(&self) -> (u8, Option<Hint>) {
        let (exit, hint) = match self {
            Self::NoLorebook { .. } => {
                let hint = "bind a lorebook to the chat in SillyTavern first; run `stvc doctor` to find missing lorebooks";
                return (exit::FAILED, Some(hint.into()));
            }
            Self::Conflicts { into, from, local, .. } => {
                (exit::REFUSED, ways_to_settle(into, from, *local))
            }
            Self::NotSetAside { into, from } => {
                let (into, from) = (clean(into), clean(from));
                let ways = format!(
                    "use `--keep a` to keep the values of {into}; use `--keep b` to keep the values of {from}"
                );
                (exit::USAGE, ways)
            }
            Self::Unmergeable { .. } => (
                exit::REFUSED,
                "repair the lorebook's file; or run `stvc restore … --only lorebook` to restore a valid version".into(),
            ),
            Self::NotNewest { timeline, .. } => {
                let way = format!(
                    "use the name {timeline} to merge into its current lorebook; to merge into an older lorebook, first restore it with `stvc restore`"
                );
                (exit::USAGE, way)
            }
        };
        (exit, Some(unchanged(hint)))
    }
}

/// Returns the commands that resolve the conflicts of two lorebooks. `local` is the side with the
/// values of this device. `local` is `None` unless a sync set one of the two timelines aside (see
/// [`merge`](super::merge)).
pub fn ways_to_settle(into: &str, from: &str, local: Option<Side>) -> String {
    let merge = format!("stvc merge {} {}", shell(into), shell(from));
    if local.is_some() {
        format!(
            "run `{merge} --keep local --yes` to keep the local values; run `{merge} --keep remote --yes` to keep the remote values; or edit both lorebooks in SillyTavern until they agree"
        )
    } else {
        format!(
            "run `{merge} --keep a --yes` to keep the values of {}; run `{merge} --keep b --yes` to keep the values of {}; or edit both lorebooks in SillyTavern until they agree",
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
                    ways.push(format!("run `{restore} --only chat` to keep the current lorebook"));
                }
                if restore.only.is_none() && *can_be_copied {
                    ways.push(format!("run `{restore} --as Restored` to restore it as a new chat"));
                }
                ways.push(format!(
                    "run `{restore} --overwrite` to store the current files and then replace them"
                ));
                ways.push(format!(
                    "run `{restore} --to restored` to write the files into the folder `restored`"
                ));
                ways.join("; ").into()
            }
            Self::NameTaken { .. } | Self::NameStored { .. } => unchanged("choose another name"),
            Self::NotExpected { .. } => unchanged(
                "run the command again and review the new plan: another program changed the file",
            ),
            Self::NotEmpty { .. } => "choose a folder that does not exist yet".into(),
        }
    }
}

impl UndoError {
    fn hint(&self) -> Hint {
        unchanged(match self {
            Self::UndoneBelow { number, first, undone } => format!(
                "run `stvc undo {first}` first to redo operation {undone}; then run `stvc undo {number}`"
            ),
            Self::ChangedSince { offers, .. } if !offers.is_empty() => {
                let restore = |offer: &EarlierState| {
                    format!("`stvc restore {} --as {}`", offer.moment, shell(&offer.name))
                };
                let restores: Vec<_> = offers.iter().map(restore).collect();
                format!("run {} to restore the earlier snapshot as a new chat", restores.join(", "))
            }
            Self::ChangedSince { is_new: true, .. } => {
                "delete the new chat in SillyTavern if you do not need it; its snapshots stay in the store".into()
            }
            Self::ChangedSince { .. } => {
                "run `stvc operations` to list later operations; run `stvc undo N` to undo one of them".into()
            }
        })
    }
}
