//! What goes to other places and comes from them.

use serde::Serialize;

use crate::archive::SnapshotId;
use crate::engine::copies::last_backups::{LastBackup, Since};
use crate::engine::receive::{Outcome, ReceivedTimeline};
use crate::st::TimelineName;
use crate::store::Time;
use crate::verbs::import::chat_backups::{ChatBackup, ChatBackupOutcome};
use crate::words::shell;

/// A backup that was taken in, or not.
#[derive(Serialize)]
pub struct ImportLine<'a> {
    file: &'a str,
    outcome: &'static str,
    timeline: Option<&'a str>,
    time: Time,
    messages: u64,
    bytes: u64,
    message: Option<&'a str>,
}

impl<'a> From<&'a ChatBackup> for ImportLine<'a> {
    fn from(entry: &'a ChatBackup) -> Self {
        let (outcome, timeline, message) = match &entry.outcome {
            ChatBackupOutcome::Imported(timeline) => ("imported", Some(timeline.as_str()), None),
            ChatBackupOutcome::Known(timeline) => ("known", Some(timeline.as_str()), None),
            ChatBackupOutcome::Empty => ("empty", None, None),
            ChatBackupOutcome::Failed(why) => ("failed", None, Some(why.as_str())),
        };
        Self {
            file: &entry.file,
            outcome,
            timeline,
            time: entry.time,
            messages: entry.messages,
            bytes: entry.bytes,
            message,
        }
    }
}

/// A copy of the store elsewhere.
#[derive(Default, Serialize)]
pub struct CopyLine<'a> {
    kind: &'a str,
    destination: String,
    taken: &'a str,
    whole: bool,
    encrypted: bool,
    bytes: Option<u64>,
    /// How far the store has moved since.
    snapshots_since: usize,
    timelines_since: usize,
}

impl<'a> From<&'a LastBackup> for CopyLine<'a> {
    fn from(taken: &'a LastBackup) -> Self {
        Self {
            kind: &taken.kind,
            destination: taken.destination.clone(),
            taken: &taken.taken,
            whole: taken.whole,
            encrypted: taken.encrypted,
            bytes: taken.bytes,
            ..Self::default()
        }
    }
}

impl<'a> From<&'a Since> for CopyLine<'a> {
    fn from(since: &'a Since) -> Self {
        Self {
            snapshots_since: since.snapshots,
            timelines_since: since.timelines,
            ..Self::from(&since.taken)
        }
    }
}

/// A timeline of a backup that was taken in.
#[derive(Serialize)]
pub struct TakenInLine<'a> {
    timeline: &'a str,
    outcome: &'static str,
    /// What it is called here.
    name: &'a str,
    head: SnapshotId,
    messages: u64,
    snapshots: usize,
}

impl<'a> From<&'a ReceivedTimeline> for TakenInLine<'a> {
    fn from(entry: &'a ReceivedTimeline) -> Self {
        let name = match &entry.outcome {
            Outcome::Beside(name) => name.as_str(),
            Outcome::Tagged(tag) => tag.as_str(),
            _ => entry.timeline.as_str(),
        };
        Self {
            timeline: entry.timeline.as_str(),
            outcome: entry.outcome.word(),
            name,
            head: entry.head.id,
            messages: entry.head.messages,
            snapshots: entry.snapshots,
        }
    }
}

/// A timeline of the other side.
#[derive(Serialize)]
pub struct SyncLine<'a> {
    timeline: &'a str,
    outcome: &'static str,
    /// The other name of the local state: the one it has now if both stay, else the one it had.
    other: Option<&'a str>,
    /// Why it was left alone.
    why: Option<&'a str>,
    head: SnapshotId,
    snapshots: usize,
    /// The lorebook here, if it stands against the other side's.
    lorebook: Option<&'a str>,
    conflicts: usize,
    /// The device that set the other lorebook aside, if it is not this one.
    device: Option<&'a str>,
    /// What settles it.
    settle: Option<String>,
}

impl<'a> From<&'a ReceivedTimeline> for SyncLine<'a> {
    fn from(entry: &'a ReceivedTimeline) -> Self {
        let (other, why): (Option<&TimelineName>, _) = match &entry.outcome {
            Outcome::Renamed | Outcome::Merged => (entry.former.as_ref(), None),
            Outcome::Apart(other) => (Some(other), None),
            Outcome::ForkOfErased => (None, Some("the chat it was forked from was erased")),
            Outcome::Left(why) => (None, Some(*why)),
            _ => (None, None),
        };
        Self {
            timeline: entry.timeline.as_str(),
            outcome: entry.outcome.word(),
            other: other.map(TimelineName::as_str),
            why,
            head: entry.head.id,
            snapshots: entry.snapshots,
            lorebook: entry.conflict.as_ref().map(|conflict| conflict.book.as_str()),
            conflicts: entry.conflict.as_ref().map_or(0, |conflict| conflict.count()),
            device: entry
                .conflict
                .as_ref()
                .and_then(|conflict| conflict.set_aside_by.as_ref())
                .map(|device| device.name.as_str()),
            settle: entry.set_aside().map(|_| {
                let (into, from) = sides(entry);
                format!("stvc merge {} {}", shell(into), shell(from))
            }),
        }
    }
}

/// Returns what is merged into what, to settle a conflict: of a lorebook by itself, what was set aside into the one that all use.
pub fn sides(entry: &ReceivedTimeline) -> (&str, &str) {
    let there = entry.timeline.as_str();
    let aside = entry.set_aside().map_or(there, |aside| aside.as_str());
    if entry.timeline.is_chat() { (aside, there) } else { (there, aside) }
}
