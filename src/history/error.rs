use chrono::{DateTime, FixedOffset};

use crate::hint::{Hint, unchanged};
use crate::rules::Finding;
use crate::st::TimelineName;
use crate::words::shell;
use crate::{archive, exit, store};

pub type Result<T> = std::result::Result<T, Error>;

/// An error of resolving a moment, or of reading the history of a store.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Archive(#[from] archive::Error),
    #[error("no timeline is called {name:?}")]
    NoSuchTimeline { name: String, similar: Vec<TimelineName> },
    #[error("no snapshot, tag or timeline is called {name:?}")]
    NoSuchSnapshot { name: String, similar: Vec<TimelineName> },
    #[error("{name:?} has no snapshot from that time: its first snapshot is from {}", first.format("%Y-%m-%d %H:%M"))]
    NotThatOld { name: String, first: DateTime<FixedOffset> },
    #[error("{name:?} does not go back that far: {}", moments_before(*steps))]
    NotSoFarBack { name: String, steps: usize },
    /// The text after a name cannot be parsed as steps to a moment.
    #[error("cannot parse {text:?} at {:?}: expected {expected}", &text[*at..])]
    Unreadable { text: String, at: usize, expected: &'static str },
    /// No snapshot was created at that message. The state may still be known from other records.
    #[error("there is no snapshot of {timeline} at message {message}")]
    NotTakenThen { timeline: TimelineName, message: usize },
    #[error("{name:?} is ambiguous")]
    Ambiguous { name: String, candidates: Vec<String> },
    #[error(
        "this would keep only tagged snapshots, fork points and the latest snapshot of each timeline"
    )]
    KeepsNothing,
    /// The state at that message is unknown.
    #[error("{}", finding.message)]
    Unknowable { finding: Box<Finding> },
}

fn moments_before(steps: usize) -> String {
    match steps {
        0 => "there is no moment before it".into(),
        1 => "there is only 1 moment before it".into(),
        steps => format!("there are only {steps} moments before it"),
    }
}

impl store::Loss for Error {
    fn is_loss(&self) -> bool {
        match self {
            Self::Store(error) => error.is_loss(),
            Self::Archive(error) => error.is_loss(),
            _ => false,
        }
    }
}

impl Error {
    pub fn no_such_timeline(name: impl Into<String>) -> Self {
        Self::NoSuchTimeline { name: name.into(), similar: Vec::new() }
    }

    /// Returns the code of the error, which scripts and pages can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.into(),
            Self::Archive(error) => error.code(),
            error => error.into(),
        }
    }

    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Store(error) => error.exit(),
            Self::Archive(error) => error.exit(),
            Self::KeepsNothing => exit::REFUSED,
            _ => exit::FAILED,
        }
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Store(error) => return error.hint(),
            Self::Archive(error) => return error.hint(),
            Self::KeepsNothing => unchanged(
                "add `--keep-last N` to keep more snapshots; add `--keep-tag` if you want to keep only these",
            ),
            Self::Ambiguous { .. } => "type more of the name".into(),
            Self::NoSuchTimeline { similar, .. } | Self::NoSuchSnapshot { similar, .. }
                if !similar.is_empty() =>
            {
                "use one of these similar names".into()
            }
            Self::NoSuchTimeline { .. } => "run `stvc timelines` to list all timelines".into(),
            Self::NoSuchSnapshot { .. } => {
                "run `stvc log` to list the snapshots; run `stvc timelines` to list the timelines"
                    .into()
            }
            Self::NotThatOld { .. } => "run `stvc log` to list the snapshots".into(),
            Self::NotTakenThen { timeline, message } => {
                let chat = shell(timeline.as_str());
                format!("run `stvc reconstruct {chat} --at {message}` to create one from recorded data; run `stvc snapshot {chat} --at {message}` to create one with the current lorebook").into()
            }
            Self::Unreadable { .. } => "see docs/moments.md for how to write a moment".into(),
            Self::NotSoFarBack { .. } | Self::Unknowable { .. } => return None,
        })
    }

    pub(super) fn unknowable(finding: Finding) -> Self {
        Self::Unknowable { finding: Box::new(finding) }
    }
}
