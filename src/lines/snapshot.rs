//! Snapshots, timelines and tags.

use std::borrow::Cow;

use serde::Serialize;

use crate::archive::{FileRecord, Snapshot, SnapshotId};
use crate::auto_recap::CheckpointState;
use crate::st::TimelineName;
use crate::store::Time;
use crate::verbs::erase::Trace;
use crate::verbs::log::LoggedSnapshot;
use crate::verbs::show;
use crate::verbs::timelines::Timeline;

/// A snapshot.
#[derive(Serialize)]
pub struct SnapshotLine<'a> {
    #[serde(flatten)]
    snapshot: Cow<'a, Snapshot>,
    tags: &'a [String],
    #[serde(flatten)]
    more: Option<More<'a>>,
}

/// What only some commands know of a snapshot.
#[derive(Serialize)]
#[serde(untagged)]
enum More<'a> {
    Taken {
        unchanged: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<&'a CheckpointState>,
    },
    Logged {
        lorebook_only: bool,
        damaged: bool,
        /// The name that always means this moment, lorebook and all.
        moment: &'a str,
        /// For a change of the lorebook alone: the chat's snapshot that it stands beside.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<SnapshotId>,
        /// How many moments it is back from the latest of the timeline.
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<usize>,
    },
    Shown {
        /// It is what it was when this message was its last.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<usize>,
        files: &'a [FileRecord],
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<&'a CheckpointState>,
        /// The name that its timeline has today.
        timeline_now: &'a TimelineName,
        /// The name that always means this moment, lorebook and all.
        moment: &'a str,
        /// The snapshot that has the lorebook of the moment, where that changed after this one was created.
        #[serde(skip_serializing_if = "Option::is_none")]
        lorebook_snapshot: Option<SnapshotId>,
    },
}

impl<'a> SnapshotLine<'a> {
    pub fn new(snapshot: &'a Snapshot, tags: &'a [String]) -> Self {
        Self { snapshot: Cow::Borrowed(snapshot), tags, more: None }
    }

    /// One that was created now.
    pub fn taken(
        snapshot: &'a Snapshot,
        tags: &'a [String],
        state: Option<&'a CheckpointState>,
    ) -> Self {
        let more = Some(More::Taken { unchanged: false, state });
        Self { more, ..Self::new(snapshot, tags) }
    }

    /// One that was there already.
    pub fn unchanged(snapshot: &'a Snapshot, tags: &'a [String]) -> Self {
        let more = Some(More::Taken { unchanged: true, state: None });
        Self { more, ..Self::new(snapshot, tags) }
    }

    /// As the log lists it. A change of the lorebook alone has as many messages as the chat that it stands beside.
    pub fn logged(entry: &'a LoggedSnapshot) -> Self {
        let more = More::Logged {
            lorebook_only: entry.lorebook_only,
            damaged: entry.is_damaged,
            moment: &entry.moment,
            chat: entry.chat.as_ref().map(|chat| chat.id),
            step: entry.step,
        };
        let mut line = Self { more: Some(more), ..Self::new(&entry.snapshot, &entry.tags) };
        if let Some(chat) = &entry.chat {
            line.snapshot.to_mut().messages = chat.messages;
        }
        line
    }

    /// As `show` shows it.
    pub fn shown(report: &'a show::Report) -> Self {
        let more = More::Shown {
            at: report.at,
            files: &report.contents.manifest.files,
            state: report.contents.manifest.checkpoint.as_ref(),
            timeline_now: &report.timeline,
            moment: &report.moment,
            lorebook_snapshot: report.book.as_ref().map(|book| book.id),
        };
        Self { more: Some(more), ..Self::new(&report.snapshot, &report.tags) }
    }
}

/// A snapshot that a dry run did not take.
#[derive(Serialize)]
pub struct PlanLine<'a> {
    pub timeline: &'a str,
    pub messages: u64,
    pub messages_before: Option<u64>,
}

/// A timeline.
#[derive(Serialize)]
pub struct TimelineLine<'a> {
    #[serde(flatten)]
    timeline: &'a Timeline,
    head: Option<SnapshotId>,
    time: Option<Time>,
    changed: Vec<&'static str>,
    damaged: bool,
    last_sound: Option<SnapshotId>,
}

impl<'a> From<&'a Timeline> for TimelineLine<'a> {
    fn from(timeline: &'a Timeline) -> Self {
        Self {
            timeline,
            head: timeline.head.as_ref().map(|head| head.id),
            time: timeline.head.as_ref().map(|head| head.time),
            changed: timeline.changed_parts(),
            damaged: timeline.damaged.is_some(),
            last_sound: timeline.damaged.flatten(),
        }
    }
}

/// A tag.
#[derive(Serialize)]
pub struct TagLine<'a> {
    pub name: &'a str,
    pub snapshot: SnapshotId,
    pub timeline: &'a str,
}

/// A file of the library that still has the text of an erased timeline.
#[derive(Serialize)]
pub struct TraceLine<'a> {
    #[serde(flatten)]
    pub trace: &'a Trace,
    pub removed: bool,
}
