//! The line of an error, and functions that extract its lists from an error.

use serde::Serialize;

use crate::engine::written_since::EarlierState;
use crate::verbs::{self, UndoError};
use crate::{engine, history};

/// The line of an error. It precedes the summary.
#[derive(Default, Serialize)]
pub struct ErrorLine {
    /// The kind of error.
    pub code: &'static str,
    /// The reason why the command failed, in one sentence.
    pub message: String,
    /// The next step for the user; `None` if there is no advice.
    pub hint: Option<String>,
    /// Names that the user may have meant.
    pub candidates: Vec<String>,
    /// Number of candidates beyond the listed ones.
    pub more_candidates: usize,
    /// Earlier states that can be restored instead, if an undo was refused.
    pub offers: Vec<EarlierState>,
    /// The exit code of the command.
    pub exit: u8,
}

impl From<&verbs::Error> for ErrorLine {
    fn from(error: &verbs::Error) -> Self {
        let (candidates, more_candidates) = candidates(error);
        Self {
            code: error.code(),
            message: error.to_string(),
            hint: error.hint().map(|hint| hint.to_string()),
            candidates,
            more_candidates,
            offers: offers(error),
            exit: error.exit(),
        }
    }
}

/// Returns the earlier states that the user can restore as new chats, if an undo was refused.
fn offers(error: &verbs::Error) -> Vec<EarlierState> {
    match error {
        verbs::Error::Undo(UndoError::ChangedSince { offers, .. }) => offers.clone(),
        _ => Vec::new(),
    }
}

/// The maximum number of candidates that an error lists.
const CANDIDATES: usize = 10;

/// Returns the first candidates for a name, and the number of further candidates. Candidates are
/// the meanings of an ambiguous name, or existing names that are similar to an unknown name.
fn candidates(error: &verbs::Error) -> (Vec<String>, usize) {
    let of_history = |error: &history::Error| match error {
        history::Error::Ambiguous { candidates, .. } => candidates.clone(),
        history::Error::NoSuchTimeline { similar, .. }
        | history::Error::NoSuchSnapshot { similar, .. } => {
            similar.iter().map(|name| name.to_string()).collect()
        }
        _ => Vec::new(),
    };
    let mut all = match error {
        verbs::Error::Engine(engine::Error::History(error)) => of_history(error),
        verbs::Error::NoSuchEntry { similar, .. } => similar.clone(),
        _ => Vec::new(),
    };
    let more = all.len().saturating_sub(CANDIDATES);
    all.truncate(CANDIDATES);
    (all, more)
}
