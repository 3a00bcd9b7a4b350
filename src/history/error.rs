use chrono::{DateTime, FixedOffset};

use crate::hint::{Hint, unchanged};
use crate::rules::Finding;
use crate::st::TimelineName;
use crate::words::shell;
use crate::{archive, exit, store};

pub type Result<T> = std::result::Result<T, Error>;

/// An error of the history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Archive(#[from] archive::Error),
    #[error("no timeline is called {name:?}")]
    NoSuchTimeline { name: String, similar: Vec<TimelineName> },
    #[error("no snapshot, tag or timeline is called {name:?}")]
    NoSuchSnapshot { name: String, similar: Vec<TimelineName> },
    #[error("{name:?} was not stored yet then: its first snapshot is of {}", first.format("%Y-%m-%d %H:%M"))]
    NotThatOld { name: String, first: DateTime<FixedOffset> },
    #[error("{name:?} does not go back that far: {}", moments_before(*steps))]
    NotSoFarBack { name: String, steps: usize },
    /// The text behind a name is not a moment.
    #[error("{text:?} cannot be read from {:?} on: expected {expected}", &text[*at..])]
    Unreadable { text: String, at: usize, expected: &'static str },
    /// No snapshot of that state exists, though it may be known.
    #[error("no snapshot of {timeline} was taken at message {message}")]
    NotTakenThen { timeline: TimelineName, message: usize },
    #[error("{name:?} can mean several")]
    Ambiguous { name: String, candidates: Vec<String> },
    #[error(
        "this would keep nothing but tagged snapshots, fork points and the newest of each timeline"
    )]
    KeepsNothing,
    /// The state at that message cannot be known.
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

    /// Returns the exit code of the command.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Store(error) => error.exit(),
            Self::Archive(error) => error.exit(),
            Self::KeepsNothing => exit::REFUSED,
            _ => exit::FAILED,
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Store(error) => return error.hint(),
            Self::Archive(error) => return error.hint(),
            Self::KeepsNothing => {
                unchanged("keep some: `--keep-last N`, or `--keep-tag` if that is what you want")
            }
            Self::Ambiguous { .. } => "type more of the name".into(),
            Self::NoSuchTimeline { similar, .. } | Self::NoSuchSnapshot { similar, .. }
                if !similar.is_empty() =>
            {
                "perhaps one of these is meant".into()
            }
            Self::NoSuchTimeline { .. } => "`stvc timelines` lists them".into(),
            Self::NoSuchSnapshot { .. } => {
                "`stvc log` lists the snapshots, `stvc timelines` the timelines".into()
            }
            Self::NotThatOld { .. } => "`stvc log` lists what there is".into(),
            Self::NotTakenThen { timeline, message } => {
                let chat = shell(timeline.as_str());
                format!("`stvc reconstruct {chat} --at {message}` makes one of what is known; `stvc snapshot {chat} --at {message}` takes one with the lorebook of now").into()
            }
            Self::Unreadable { .. } => "docs/moments.md tells how moments are written".into(),
            Self::NotSoFarBack { .. } | Self::Unknowable { .. } => return None,
        })
    }

    pub(super) fn unknowable(finding: Finding) -> Self {
        Self::Unknowable { finding: Box::new(finding) }
    }
}
