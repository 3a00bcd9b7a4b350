use std::path::PathBuf;

use crate::archive;
use crate::engine::copies::CopyError;
use crate::listed::listed;
use crate::rules::Finding;
use crate::{history, st, store};

/// What this room returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the engine could not do it.
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
    /// A tag.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// A copy elsewhere.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// A rule forbids it; nothing was changed.
    #[error("{}", findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; "))]
    Refused { findings: Vec<Finding> },
    /// Some files could not be written, nor could what was done be taken back. The next command finishes it.
    #[error("{source}")]
    Unfinished { source: Box<Error> },
    /// A file could not be written, and all that was done is as it was.
    #[error("{source}")]
    TakenBack { source: Box<Error> },
    /// Files that another program saved just then are left as they are; all else is done.
    #[error("{} saved by another program in this moment, and left as it is", in_short_paths(paths))]
    LeftAlone { paths: Vec<String>, others: usize },
    /// SillyTavern is running, and files would be replaced that it may have in memory.
    #[error(
        "SillyTavern is running on this library (process {process}); what its page has in memory would be written back over {}",
        listed(paths)
    )]
    SillyTavernRuns { process: u32, paths: Vec<String> },
    /// The snapshot has no such part.
    #[error("snapshot {snapshot} has no {part}")]
    NoSuchPart { snapshot: String, part: &'static str },
    /// The history cannot be read whole, so it must not be written anew.
    #[error("the history is damaged at {subject}: {why}")]
    BrokenHistory { subject: String, why: String },
    /// No operation has that number.
    #[error("there is no operation {number}")]
    NoSuchOperation { number: u64 },
}

/// What is wrong with a configuration, or with what it shall become.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file cannot be understood.
    #[error("{}: {why}", path.display())]
    Bad { path: PathBuf, why: String },
    /// Nothing can be set under that name.
    #[error("there is no setting {key:?}")]
    Unknown { key: String },
    /// A setting cannot have that value.
    #[error("{key} cannot be set to that: {why}")]
    BadValue { key: String, why: String },
}

/// Why a tag could not be set or found.
#[derive(Debug, thiserror::Error)]
pub enum TagError {
    /// The tag is taken.
    #[error("the tag {name:?} is already used for snapshot {snapshot}")]
    Taken { name: String, snapshot: String },
    /// There is no such tag.
    #[error("there is no tag {name:?}")]
    Missing { name: String },
    /// The name cannot be a tag.
    #[error("{name:?} cannot be a tag: {why}")]
    BadName { name: String, why: &'static str },
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
    /// A rule forbids it.
    pub(crate) fn refused(finding: Finding) -> Self {
        Self::Refused { findings: vec![finding] }
    }
}
