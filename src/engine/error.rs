use std::path::PathBuf;

use super::sillytavern_runs::SillyTavernRuns;
use crate::engine::copies::CopyError;
use crate::hint::{Hint, unchanged};
use crate::rules::Finding;
use crate::words::shell;
use crate::{archive, exit, history, st, store};

pub type Result<T> = std::result::Result<T, Error>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    St(#[from] st::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Remote(#[from] store::RemoteError),
    #[error(transparent)]
    Archive(#[from] archive::Error),
    #[error(transparent)]
    History(history::Error),
    #[error(transparent)]
    Tag(#[from] TagError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    SillyTavernRuns(#[from] SillyTavernRuns),
    /// A rule forbids it; nothing was changed.
    #[error("{}", findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; "))]
    Refused { findings: Vec<Finding> },
    /// Some files could not be written, nor could what was done be taken back. The next command
    /// finishes it.
    #[error("{source}")]
    Unfinished { source: Box<Error> },
    /// A file could not be written, and all that was done is as it was.
    #[error("{source}")]
    TakenBack { source: Box<Error> },
    /// Files that another program saved just then are left as they are; all else is done.
    #[error("{} saved by another program in this moment, and left as it is", in_short_paths(paths))]
    LeftAlone { paths: Vec<String>, others: usize },
    #[error("snapshot {snapshot} has no {part}")]
    NoSuchPart { snapshot: String, part: &'static str },
    /// The history cannot be read whole, so it must not be written anew.
    #[error("the history is damaged at {subject}: {why}")]
    BrokenHistory { subject: String, why: String },
    #[error("there is no operation {number}")]
    NoSuchOperation { number: u64 },
}

/// An error in the configuration, or in a value for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// The file cannot be understood.
    #[error("{}: {why}", path.display())]
    Bad { path: PathBuf, why: String },
    #[error("there is no setting {key:?}")]
    Unknown { key: String },
    #[error("{key} cannot be set to that: {why}")]
    BadValue { key: String, why: String },
}

/// An error about a tag.
#[derive(Debug, thiserror::Error)]
pub enum TagError {
    #[error("the tag {name:?} is already used for snapshot {snapshot}")]
    Taken { name: String, snapshot: String },
    #[error("there is no tag {name:?}")]
    Missing { name: String },
    #[error("{name:?} cannot be a tag: {why}")]
    BadName { name: String, why: &'static str },
}

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
    pub(crate) fn refused(finding: Finding) -> Self {
        Self::Refused { findings: vec![finding] }
    }

    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Store(error) => error.exit(),
            Self::Remote(error) => error.exit(),
            Self::Archive(error) => error.exit(),
            Self::History(error) => error.exit(),
            Self::Copy(error) => error.exit(),
            Self::Tag(TagError::BadName { .. }) => exit::USAGE,
            Self::Refused { .. } | Self::SillyTavernRuns(_) => exit::REFUSED,
            Self::LeftAlone { others, .. } if *others > 0 => exit::PARTLY,
            _ => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::St(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::Remote(error) => return error.hint(),
            Self::Archive(error) => return error.hint(),
            Self::History(error) => return error.hint(),
            Self::Copy(error) => return error.hint(),
            Self::SillyTavernRuns(error) => error.hint(),
            Self::Tag(TagError::Missing { .. }) => {
                "`stvc tag` lists the tags, `stvc tag NAME SNAPSHOT` makes one".into()
            }
            Self::Tag(TagError::Taken { name, .. }) => {
                format!("choose another name, or `stvc tag {} SNAPSHOT --move`", shell(name)).into()
            }
            Self::Configuration(ConfigurationError::Bad { .. }) => {
                unchanged("correct the file, or move it away")
            }
            Self::Refused { findings } => {
                let remedies: Vec<_> =
                    findings.iter().filter_map(|finding| finding.remedy.as_deref()).collect();
                return (!remedies.is_empty()).then(|| remedies.join("; ").into());
            }
            Self::BrokenHistory { .. } => unchanged("`stvc check` lists all that is damaged"),
            Self::Unfinished { .. } => {
                "nothing is lost: the next command that writes finishes it, or takes it back".into()
            }
            Self::TakenBack { source } => {
                let more = source.hint().map_or(String::new(), |hint| format!(". {}", hint.words));
                format!("what had been written before it was taken back{more}").into()
            }
            Self::LeftAlone { others, .. } => {
                let rest = if *others > 0 { "all else is done" } else { "nothing was written" };
                format!(
                    "SillyTavern may have saved it; {rest}. Look at it, then give the command again"
                )
                .into()
            }
            Self::NoSuchOperation { .. } => "`stvc operations` lists what was done".into(),
            Self::Tag(TagError::BadName { .. })
            | Self::Configuration(_)
            | Self::NoSuchPart { .. } => return None,
        })
    }
}
