//! A message, whole.

use chrono::{DateTime, SecondsFormat};
use serde::Serialize;

use crate::archive::{Snapshot, SnapshotId};
use crate::verbs::read::SpokenMessage;

/// A message of a snapshot.
#[derive(Serialize)]
pub struct MessageLine<'a> {
    snapshot: SnapshotId,
    timeline: &'a str,
    index: usize,
    name: &'a str,
    user: bool,
    hidden: bool,
    said: Option<String>,
    text: &'a str,
    swipes: &'a [String],
    /// Which of them is shown.
    swipe: Option<usize>,
    reasoning: Option<&'a str>,
}

impl<'a> MessageLine<'a> {
    pub fn new(snapshot: &'a Snapshot, message: &'a SpokenMessage) -> Self {
        let said = message.said.and_then(|said| DateTime::from_timestamp(said, 0));
        Self {
            snapshot: snapshot.id,
            timeline: snapshot.timeline.as_str(),
            index: message.number,
            name: &message.name,
            user: message.is_user,
            hidden: message.is_hidden,
            said: said.map(|said| said.to_rfc3339_opts(SecondsFormat::Secs, true)),
            text: &message.text,
            swipes: &message.swipes,
            swipe: message.shown,
            reasoning: message.reasoning.as_deref(),
        }
    }
}
