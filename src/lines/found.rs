//! What was found: texts, and what can be repaired.

use chrono::{DateTime, SecondsFormat};
use serde::Serialize;

use crate::archive::SnapshotId;
use crate::st::Category;
use crate::store::Time;
use crate::verbs::doctor::Repair;
use crate::verbs::search::{self, Match};

/// A text that was found. Messages have an `index`, lorebook entries a `uid`.
#[derive(Serialize)]
pub struct MatchLine<'a> {
    snapshot: SnapshotId,
    timeline: &'a str,
    time: Time,
    part: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    /// Null for a lorebook that cannot be read: it is one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<Option<&'a str>>,
    /// The speaker, the entry's title, or the field of a card.
    name: &'a str,
    lorebook: Option<&'a str>,
    swipe: Option<usize>,
    hidden: bool,
    live: bool,
    deleted: bool,
    /// The timeline in which it was first said.
    first: &'a str,
    /// Others that have it now.
    others: Vec<&'a str>,
    /// When it was said.
    said: Option<String>,
    text: &'a str,
}

impl<'a> From<&'a Match> for MatchLine<'a> {
    fn from(found: &'a Match) -> Self {
        let (index, uid, name, swipe, hidden) = match &found.place {
            search::MatchPlace::Message { index, name, hidden, swipe } => {
                (Some(*index), None, name, swipe.map(|(n, _)| n), *hidden)
            }
            search::MatchPlace::Entry { uid, title } => {
                (None, Some(uid.as_deref()), title, None, false)
            }
            search::MatchPlace::Field { field } => (None, None, field, None, false),
        };
        Self {
            snapshot: found.snapshot.id,
            timeline: found.timeline.as_str(),
            time: found.snapshot.time,
            part: match &found.place {
                search::MatchPlace::Message { .. } => "message",
                search::MatchPlace::Entry { .. } => "lorebook",
                search::MatchPlace::Field { .. } => "card",
            },
            index,
            uid,
            name,
            lorebook: uid.and(match found.timeline.category() {
                Category::Lorebook => Some(found.timeline.chat()),
                _ => found.snapshot.lorebook.as_deref(),
            }),
            swipe,
            hidden,
            live: found.live,
            deleted: found.deleted,
            first: found.first.as_str(),
            others: found.others.iter().map(|other| other.as_str()).collect(),
            said: found
                .said
                .and_then(|said| DateTime::from_timestamp(said, 0))
                .map(|said| said.to_rfc3339_opts(SecondsFormat::Secs, true)),
            text: &found.excerpt.text,
        }
    }
}

/// A repair.
#[derive(Serialize)]
pub struct RepairLine<'a> {
    #[serde(flatten)]
    pub repair: &'a Repair,
    pub done: bool,
}
