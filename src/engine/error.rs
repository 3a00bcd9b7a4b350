use std::path::PathBuf;

use crate::archive::{self, Role, SnapshotId};
use crate::rules::Finding;
use crate::{history, st, store};

/// What this layer returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a verb could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SillyTavern's files.
    #[error(transparent)]
    St(#[from] st::Error),
    /// The repository.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A git server.
    #[error(transparent)]
    Remote(#[from] store::RemoteError),
    /// A snapshot.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// What the history says.
    #[error(transparent)]
    History(history::Error),
    /// The option needs exactly one timeline.
    #[error("{option} needs exactly one timeline")]
    NeedsOneTimeline {
        /// The option.
        option: &'static str,
    },
    /// A rule forbids it; nothing was changed.
    #[error("{}", findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; "))]
    Refused {
        /// Which and why.
        findings: Vec<Finding>,
    },
    /// The name for a restored chat is taken.
    #[error("{path} is there already")]
    NameTaken {
        /// The file.
        path: String,
    },
    /// A deleted chat had the name, and its history still has.
    #[error("a deleted chat was called {timeline}, and its snapshots are under that name")]
    NameStored {
        /// The timeline.
        timeline: String,
    },
    /// Some files could not be written, nor could what was done be taken back. The next command finishes it.
    #[error("{source}")]
    Unfinished {
        /// What went wrong.
        source: Box<Error>,
    },
    /// It failed after part of it was done, which stays.
    #[error("{source}")]
    Partway {
        /// What went wrong.
        source: Box<Error>,
    },
    /// A file could not be written, and all that was done is as it was.
    #[error("{source}")]
    TakenBack {
        /// What went wrong.
        source: Box<Error>,
    },
    /// Files that another program saved just then are left as they are; all else is done.
    #[error("{} saved by another program in this moment, and left as it is", in_short_paths(paths))]
    LeftAlone {
        /// The files.
        paths: Vec<String>,
        /// How many others were written.
        others: usize,
    },
    /// The name for a restored chat is none.
    #[error("{name:?} cannot be a chat's name: {why}")]
    BadChatName {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A restore would overwrite files that hold something else.
    #[error("something else is there: {}", paths.join(", "))]
    InTheWay {
        /// The files.
        paths: Vec<String>,
        /// The snapshot, to name it in a hint.
        snapshot: String,
        /// The part that was asked for.
        only: Option<Role>,
        /// The message that was asked for.
        at: Option<usize>,
        /// Whether the chat alone could be restored.
        chat_is_free: bool,
    },
    /// SillyTavern is running, and files would be replaced that it may have in memory.
    #[error("SillyTavern is running on this library (process {process}); a chat that is open there would be written back over {}", paths.join(", "))]
    SillyTavernRuns {
        /// Its process.
        process: u32,
        /// The files.
        paths: Vec<String>,
        /// The restore that was asked for, to name it in a hint: snapshot, part, message.
        restore: Option<(String, Option<Role>, Option<usize>)>,
    },
    /// The folder for a restore is not empty.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The snapshot has no such part.
    #[error("snapshot {snapshot} has no {part}")]
    NoSuchPart {
        /// The snapshot.
        snapshot: String,
        /// The part.
        part: &'static str,
    },
    /// A backup could not be written, or is not believed.
    #[error("{}: {source}", path.display())]
    Backup {
        /// The backup.
        path: PathBuf,
        /// What is wrong.
        source: archive::backup::BackupError,
    },
    /// A file is there that a backup must not replace.
    #[error("{} is there already: {what}", path.display())]
    BackupInTheWay {
        /// The file or folder.
        path: PathBuf,
        /// What it is.
        what: InTheWay,
    },
    /// It is not known how to back up to there, or to read from there.
    #[error("{destination:?} is no place for a backup: {why}")]
    UnknownDestination {
        /// What was asked for.
        destination: String,
        /// Why not.
        why: &'static str,
    },
    /// A copy elsewhere has snapshots that were never here; nothing was changed.
    #[error("{destination} holds snapshots that are not here, of {}", in_short(refs))]
    NotHere {
        /// The copy.
        destination: String,
        /// Its branches and tags.
        refs: Vec<String>,
    },
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
    /// A timeline has no lorebook to merge.
    #[error("{timeline} has no lorebook")]
    NoLorebook {
        /// The timeline.
        timeline: String,
    },
    /// Only the lorebook as it is now can be merged into.
    #[error("{name:?} is an older state of {timeline}")]
    NotNewest {
        /// What was asked for.
        name: String,
        /// The timeline.
        timeline: String,
    },
    /// A lorebook is not one that can be merged.
    #[error("{book} cannot be merged: {why}")]
    Unmergeable {
        /// The file.
        book: String,
        /// Why not.
        why: &'static str,
    },
    /// Both lorebooks changed the same values differently; nothing was changed.
    #[error("{}", if *count == 1 { "1 conflict is not settled".to_owned() } else { format!("{count} conflicts are not settled") })]
    Conflicts {
        /// How many.
        count: usize,
        /// The timeline that was to be changed.
        into: String,
        /// The other one.
        from: String,
    },
    /// Another process watches the library.
    #[error("this library is watched already{}", process.as_ref().map_or(String::new(), |id| format!(", by process {}", id.trim())))]
    Watched {
        /// Its store.
        store: PathBuf,
        /// The process, if it said which it is.
        process: Option<String>,
    },
    /// A unit is there that was not written by this program.
    #[error("{} is there already and was not written by stvc", path.display())]
    UnitInTheWay {
        /// The file.
        path: PathBuf,
    },
    /// The home folder is not known.
    #[error("it is not known where your home folder is")]
    NoHome,
    /// Ctrl-C and the like cannot be caught.
    #[error("cannot be told to stop: {why}")]
    NoSignals {
        /// What the system says.
        why: String,
    },
    /// `forget` was told nothing, and nor is the store's configuration.
    #[error("it is not said what to keep")]
    NoPolicy,
    /// The history cannot be read whole, so it must not be written anew.
    #[error("the history is damaged at {subject}: {why}")]
    BrokenHistory {
        /// A ref or commit.
        subject: String,
        /// What is wrong.
        why: String,
    },
    /// The tag is taken.
    #[error("the tag {name:?} is already used for snapshot {snapshot}")]
    TagExists {
        /// The tag.
        name: String,
        /// What it names.
        snapshot: String,
    },
    /// There is nothing to take back.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// No operation has that number.
    #[error("there is no operation {number}")]
    NoSuchOperation {
        /// The number.
        number: u64,
    },
    /// The operation was taken back already.
    #[error("operation {number} was undone already, by operation {by}")]
    UndoneAlready {
        /// The operation.
        number: u64,
        /// The one that took it back.
        by: u64,
    },
    /// What the operation did has changed since.
    #[error("operation {number} cannot be undone: {what} changed since")]
    ChangedSince {
        /// The operation.
        number: u64,
        /// A ref or file.
        what: String,
    },
    /// There is no such tag.
    #[error("there is no tag {name:?}")]
    NoSuchTag {
        /// The tag.
        name: String,
    },
    /// The name cannot be a tag.
    #[error("{name:?} cannot be a tag: {why}")]
    BadTag {
        /// The name.
        name: String,
        /// Why not.
        why: &'static str,
    },
}

/// What is where a backup should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InTheWay {
    /// The store that is to be backed up.
    #[error("the store itself")]
    TheStore,
    /// Another store, which a library uses.
    #[error("a store of its own and no backup")]
    AnotherStore,
    /// A file where a folder should be.
    #[error("a file that is no backup")]
    File,
    /// A file of something else.
    #[error("no backup of stvc's")]
    OtherFile,
    /// A folder with something else in it.
    #[error("it is not empty, and no backup of stvc's")]
    OtherFolder,
    /// Somebody's repository.
    #[error("a git repository that is no backup of stvc's")]
    OtherRepository,
    /// A backup that may be better than what would replace it.
    #[error("a backup that may have whole what is damaged here")]
    PerhapsWhole,
    /// A backup with more in it.
    #[error("a backup that holds snapshots which this one would not")]
    Fuller,
    /// A backup that nobody can look into without its passphrase.
    #[error("an encrypted backup")]
    Encrypted,
    /// A backup that is damaged.
    #[error("a backup that cannot be read")]
    Unreadable,
}

impl InTheWay {
    /// Whether it is a backup, which the user may let go.
    pub fn is_backup(self) -> bool {
        matches!(self, Self::PerhapsWhole | Self::Fuller | Self::Encrypted | Self::Unreadable)
    }
}

/// The first of some names, and how many more there are.
fn in_short(refs: &[String]) -> String {
    let name = |name: &String| {
        let name = name.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/");
        crate::store::name_encoding::decode(name)
    };
    match refs {
        [] => String::new(),
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    }
}

/// The first of some files, and how many more there are, as the beginning of a sentence.
fn in_short_paths(paths: &[String]) -> String {
    match paths {
        [first, rest @ ..] if !rest.is_empty() => {
            format!("{first} and {} more were", rest.len())
        }
        paths => format!("{} was", paths.concat()),
    }
}

impl From<history::Error> for Error {
    fn from(error: history::Error) -> Self {
        match error {
            history::Error::Store(error) => Self::Store(error),
            history::Error::Archive(error) => Self::Archive(error),
            history::Error::Unknowable { finding } => Self::refused(*finding),
            error => Self::History(error),
        }
    }
}

impl store::Loss for Error {
    fn is_loss(&self) -> bool {
        match self {
            Self::Store(error) => error.is_loss(),
            Self::Archive(error) => error.is_loss(),
            Self::History(error) => error.is_loss(),
            _ => false,
        }
    }
}

impl Error {
    /// What was asked for was a restore: hints can name it.
    pub(crate) fn of_restore(self, id: SnapshotId, only: Option<Role>, at: Option<usize>) -> Self {
        match self {
            Self::SillyTavernRuns { process, paths, .. } => {
                let restore = Some((id.to_string(), only, at));
                Self::SillyTavernRuns { process, paths, restore }
            }
            error => error,
        }
    }

    /// For `map_err` of what comes after something was done, or not.
    pub(crate) fn after(done: bool) -> impl FnOnce(Self) -> Self {
        move |error| match done {
            true => Self::Partway { source: Box::new(error) },
            false => error,
        }
    }

    /// A rule forbids it.
    pub(crate) fn refused(finding: Finding) -> Self {
        Self::Refused { findings: vec![finding] }
    }
}
