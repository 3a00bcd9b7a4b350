//! Messages: one, whole, and what became of one.

use chrono::{DateTime, SecondsFormat};
use serde::Serialize;

use crate::archive::diff::{Change, message_change};
use crate::archive::{Snapshot, SnapshotId};
use crate::lines::ChangeLine;
use crate::st::{self, TimelineName};
use crate::store::Time;
use crate::verbs::message_versions::{Elsewhere, Report, Version};
use crate::verbs::read::SpokenMessage;

/// A message of a snapshot.
#[derive(Serialize)]
pub struct MessageLine<'a> {
    snapshot: SnapshotId,
    timeline: &'a TimelineName,
    said: Option<String>,
    #[serde(flatten)]
    message: &'a SpokenMessage,
}

impl<'a> MessageLine<'a> {
    pub fn new(snapshot: &'a Snapshot, message: &'a SpokenMessage) -> Self {
        let said = message.said.and_then(|said| DateTime::from_timestamp(said, 0));
        Self {
            snapshot: snapshot.id,
            timeline: &snapshot.timeline,
            said: said.map(|said| said.to_rfc3339_opts(SecondsFormat::Secs, true)),
            message,
        }
    }
}

/// What a message was from one snapshot on.
#[derive(Serialize)]
pub struct MessageVersionLine<'a> {
    snapshot: SnapshotId,
    time: Time,
    timeline: &'a str,
    /// Its number there, and the one by which it was asked for.
    index: usize,
    message: usize,
    /// It had gone before, and is there again.
    again: bool,
    /// As in the lines of `diff`; null if what it said cannot be read.
    change: Option<ChangeLine>,
}

impl<'a> MessageVersionLine<'a> {
    pub fn new(report: &Report, version: &'a Version) -> Self {
        Self {
            snapshot: version.snapshot.id,
            time: version.snapshot.time,
            timeline: version.snapshot.timeline.as_str(),
            index: version.after.0,
            message: report.message,
            again: version.is_again,
            change: message_change_of(version).as_ref().map(ChangeLine::from),
        }
    }
}

/// The change as `diff` tells it.
pub fn message_change_of(version: &Version) -> Option<Change<'_>> {
    let after = (version.after.0, version.after.1.as_deref()?);
    match &version.before {
        Some((number, before)) => message_change(Some((*number, before.as_deref()?)), after),
        None => message_change(None, after),
    }
}

/// What a message is in another timeline.
#[derive(Serialize)]
pub struct MessageElsewhereLine<'a> {
    timeline: &'a str,
    head: SnapshotId,
    /// Its number there; null if it is not there any more.
    index: Option<usize>,
    /// Whether it is the same as here now, and the snapshot here that first had just that.
    same: bool,
    same_as: Option<SnapshotId>,
    text: Option<String>,
}

impl<'a> From<&'a Elsewhere> for MessageElsewhereLine<'a> {
    fn from(other: &'a Elsewhere) -> Self {
        let (index, line) = match &other.now {
            Some((number, line)) => (Some(*number), line.as_deref()),
            None => (None, None),
        };
        Self {
            timeline: other.timeline.as_str(),
            head: other.head.id,
            index,
            same: other.is_same,
            same_as: other.same_as.as_ref().map(|snapshot| snapshot.id),
            text: line.and_then(st::text_of).map(|message| message.text),
        }
    }
}
