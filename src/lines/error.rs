//! The line of an error, and its parts that need more than the error's own methods.

use serde::Serialize;

use crate::engine::written_since::Offer;
use crate::verbs::{self, UndoError};
use crate::{engine, history};

/// An error.
#[derive(Default, Serialize)]
pub struct ErrorLine {
    pub message: String,
    pub hint: Option<String>,
    pub candidates: Vec<String>,
    pub more_candidates: usize,
    pub offers: Vec<Offer>,
    pub exit: u8,
}

impl From<&verbs::Error> for ErrorLine {
    fn from(error: &verbs::Error) -> Self {
        let (candidates, more_candidates) = candidates(error);
        Self {
            message: error.to_string(),
            hint: error.hint().map(|hint| hint.to_string()),
            candidates,
            more_candidates,
            offers: offers(error),
            exit: error.exit(),
        }
    }
}

/// Returns the states that a `restore` can write beside the present files, where an undo is
/// refused.
pub fn offers(error: &verbs::Error) -> Vec<Offer> {
    match error {
        verbs::Error::Undo(UndoError::ChangedSince { offers, .. }) => offers.clone(),
        _ => Vec::new(),
    }
}

/// How many candidates an error lists.
const CANDIDATES: usize = 10;

/// Returns the first few meanings of an ambiguous name, or names that resemble an unknown one; and
/// how many more there are.
pub fn candidates(error: &verbs::Error) -> (Vec<String>, usize) {
    let verbs::Error::Engine(engine::Error::History(error)) = error else {
        return Default::default();
    };
    let mut all = match error {
        history::Error::Ambiguous { candidates, .. } => candidates.clone(),
        history::Error::NoSuchTimeline { similar, .. }
        | history::Error::NoSuchSnapshot { similar, .. } => {
            similar.iter().map(|name| name.to_string()).collect()
        }
        _ => Vec::new(),
    };
    let more = all.len().saturating_sub(CANDIDATES);
    all.truncate(CANDIDATES);
    (all, more)
}
