//! What did not work.

use std::borrow::Cow;

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
    /// How many more candidates there are.
    pub more_candidates: usize,
    pub offers: Vec<OfferLine>,
    pub exit: u8,
}

/// A state that a `restore` with these values writes beside what is there.
#[derive(Serialize)]
pub struct OfferLine {
    pub timeline: String,
    pub moment: String,
    pub name: String,
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

/// Returns the states that can be restored beside what is there, where an undo is refused.
pub fn offers(error: &verbs::Error) -> Vec<OfferLine> {
    let verbs::Error::Undo(UndoError::ChangedSince { offers, .. }) = error else {
        return Vec::new();
    };
    let line = |offer: &Offer| OfferLine {
        timeline: offer.timeline.to_string(),
        moment: offer.moment.clone(),
        name: offer.name.clone(),
    };
    offers.iter().map(line).collect()
}

/// How many candidates an error lists.
const CANDIDATES: usize = 10;

/// Returns the first few meanings of an ambiguous name, or names that resemble an unknown one; and how many more there are.
pub fn candidates(error: &verbs::Error) -> (Vec<String>, usize) {
    let mut all = all_candidates(error);
    let more = all.len().saturating_sub(CANDIDATES);
    all.truncate(CANDIDATES);
    (all, more)
}

fn all_candidates(error: &verbs::Error) -> Vec<String> {
    let verbs::Error::Engine(engine::Error::History(error)) = error else { return Vec::new() };
    match error {
        history::Error::Ambiguous { candidates, .. } => candidates.clone(),
        history::Error::NoSuchTimeline { similar, .. }
        | history::Error::NoSuchSnapshot { similar, .. } => {
            similar.iter().map(|name| name.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// A timeline that could not be read or restored, or that a rule refused.
#[derive(Serialize)]
pub struct FailedLine<'a> {
    timeline: &'a str,
    message: Cow<'a, str>,
}

impl<'a> FailedLine<'a> {
    pub fn new(timeline: &'a str, message: impl Into<Cow<'a, str>>) -> Self {
        Self { timeline, message: message.into() }
    }
}
