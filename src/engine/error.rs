use std::path::PathBuf;

use super::sillytavern_runs::SillyTavernRuns;
use crate::engine::copies::CopyError;
use crate::engine::remotes::PlainRemoteError;
use crate::hint::{Hint, unchanged};
use crate::rules::Finding;
use crate::words::shell;
use crate::{archive, exit, history, st, store};

pub type Result<T> = std::result::Result<T, Error>;

/// An error in the code that the verbs share.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant describes it")]
#[strum(serialize_all = "kebab-case")]
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
    PlainRemote(#[from] PlainRemoteError),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    SillyTavernRuns(#[from] SillyTavernRuns),
    /// A rule forbids the command. Nothing was changed.
    #[error("{}", findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; "))]
    Refused { findings: Vec<Finding> },
    /// A file could not be written, and the operation could not be reverted. The next command that
    /// writes finishes or reverts the operation.
    #[error("{source}")]
    Unfinished { source: Box<Error> },
    /// A file could not be written, and the entire operation was reverted.
    #[error("{source}")]
    Reverted { source: Box<Error> },
    /// Another program saved the files `paths` during the operation, so these files were not
    /// written. `others` is the number of files that were written.
    #[error(
        "{} not written, because another program saved at the same time",
        in_short_paths(paths)
    )]
    SavedByOther { paths: Vec<String>, others: usize },
    #[error("snapshot {snapshot} has no {part}")]
    NoSuchPart { snapshot: String, part: &'static str },
    /// A part of the history cannot be read, so a command must not remove snapshots.
    #[error("the history is damaged at {subject}: {why}")]
    BrokenHistory { subject: String, why: String },
    #[error("there is no operation {number}")]
    NoSuchOperation { number: u64 },
}

/// An error in the configuration file, or in a new value for a setting.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "setting-")]
pub enum ConfigurationError {
    /// The configuration file is invalid or cannot be read.
    #[error("{}: {why}", path.display())]
    Bad { path: PathBuf, why: String },
    #[error("unknown setting {key:?}")]
    Unknown { key: String },
    #[error("invalid value for {key}: {why}")]
    BadValue { key: String, why: String },
}

#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "tag-")]
pub enum TagError {
    #[error("the tag {name:?} already exists, for snapshot {snapshot}")]
    Taken { name: String, snapshot: String },
    #[error("there is no tag {name:?}")]
    Missing { name: String },
    #[error("invalid tag {name:?}: {why}")]
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

    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::St(error) => error.into(),
            Self::Store(error) => error.into(),
            Self::Remote(error) => error.code(),
            Self::Archive(error) => error.code(),
            Self::History(error) => error.code(),
            Self::Tag(error) => error.into(),
            Self::Copy(error) => error.into(),
            Self::PlainRemote(error) => error.code(),
            Self::Configuration(error) => error.into(),
            Self::Unfinished { source } | Self::Reverted { source } => source.code(),
            error => error.into(),
        }
    }

    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Store(error) => error.exit(),
            Self::Remote(error) => error.exit(),
            Self::Archive(error) => error.exit(),
            Self::History(error) => error.exit(),
            Self::Copy(error) => error.exit(),
            Self::PlainRemote(error) => error.exit(),
            Self::Tag(TagError::BadName { .. }) => exit::USAGE,
            Self::Refused { .. } | Self::SillyTavernRuns(_) => exit::REFUSED,
            Self::SavedByOther { others, .. } if *others > 0 => exit::PARTLY,
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
            Self::PlainRemote(error) => return error.hint(),
            Self::SillyTavernRuns(error) => error.hint(),
            Self::Tag(TagError::Missing { .. }) => {
                "run `stvc tag` to list the tags; run `stvc tag NAME SNAPSHOT` to create one".into()
            }
            Self::Tag(TagError::Taken { name, .. }) => format!(
                "choose another name; run `stvc tag {} SNAPSHOT --move` to move the tag",
                shell(name)
            )
            .into(),
            Self::Configuration(ConfigurationError::Bad { .. }) => {
                unchanged("correct the file, or move it away")
            }
            Self::Refused { findings } => {
                let remedies: Vec<_> =
                    findings.iter().filter_map(|finding| finding.remedy.as_deref()).collect();
                return (!remedies.is_empty()).then(|| remedies.join("; ").into());
            }
            Self::BrokenHistory { .. } => unchanged("run `stvc check` to list the damage"),
            Self::Unfinished { .. } => {
                "run any command that writes, such as `stvc snapshot`, to finish or revert the interrupted command. Nothing is lost"
                    .into()
            }
            Self::Reverted { source } => {
                let more = source.hint().map_or(String::new(), |hint| format!(". {}", hint.words));
                format!(
                    "fix the cause, then run the command again. All its changes were reverted{more}"
                )
                .into()
            }
            Self::SavedByOther { others, .. } => {
                let rest = if *others > 0 { "All other files were written" } else { "Nothing was written" };
                format!(
                    "check the file, which SillyTavern may have saved, then run the command again. {rest}"
                )
                .into()
            }
            Self::NoSuchOperation { .. } => "run `stvc operations` to list the operations".into(),
            Self::Tag(TagError::BadName { .. })
            | Self::Configuration(_)
            | Self::NoSuchPart { .. } => return None,
        })
    }
}
