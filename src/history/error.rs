use chrono::{DateTime, FixedOffset};

use crate::rules::Finding;
use crate::st::TimelineName;
use crate::{archive, store};

/// What this room returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the history does not tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The repository.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A snapshot.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// No timeline is called that.
    #[error("no timeline is called {name:?}")]
    NoSuchTimeline { name: String, similar: Vec<TimelineName> },
    /// No snapshot is called that.
    #[error("no snapshot, tag or timeline is called {name:?}")]
    NoSuchSnapshot { name: String, similar: Vec<TimelineName> },
    /// The timeline is younger.
    #[error("{name:?} was not stored yet then: its first snapshot is of {}", first.format("%Y-%m-%d %H:%M"))]
    NotThatOld { name: String, first: DateTime<FixedOffset> },
    /// The history is shorter.
    #[error("{name:?} does not go back that far: {}", moments_before(*steps))]
    NotSoFarBack { name: String, steps: usize },
    /// What stands behind a name is no moment.
    #[error("{text:?} cannot be read from {:?} on: expected {expected}", &text[*at..])]
    Unreadable {
        text: String,
        /// Where, in bytes.
        at: usize,
        expected: &'static str,
    },
    /// There is no snapshot of a state, though what it was may be known.
    #[error("no snapshot of {timeline} was taken at message {message}")]
    NotTakenThen { timeline: TimelineName, message: usize },
    /// The name fits several.
    #[error("{name:?} can mean several")]
    Ambiguous { name: String, candidates: Vec<String> },
    /// The policy keeps nothing.
    #[error(
        "this would keep nothing but tagged snapshots, fork points and the newest of each timeline"
    )]
    KeepsNothing,
    /// What a timeline was at that message cannot be known.
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
    /// No timeline is called that, and none nearly so.
    pub fn no_such_timeline(name: impl Into<String>) -> Self {
        Self::NoSuchTimeline { name: name.into(), similar: Vec::new() }
    }

    pub(super) fn unknowable(finding: Finding) -> Self {
        Self::Unknowable { finding: Box::new(finding) }
    }
}
