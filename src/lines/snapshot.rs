//! Snapshots, timelines and tags.

use serde::Serialize;

use crate::archive::{ContentId, FileRecord, Snapshot, SnapshotId};
use crate::auto_recap::CheckpointState;
use crate::store::Time;
use crate::verbs::erase::Trace;
use crate::verbs::log::LoggedSnapshot;
use crate::verbs::show;
use crate::verbs::timelines::Timeline;

/// A snapshot.
#[derive(Serialize)]
pub struct SnapshotLine<'a> {
    id: SnapshotId,
    content: ContentId,
    timeline: &'a str,
    parents: &'a [SnapshotId],
    fork_at: Option<u64>,
    messages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    kind: &'a str,
    time: Time,
    tags: &'a [String],
    subject: &'a str,
    lorebook: Option<&'a str>,
    last_words: Option<&'a str>,
    main_chat: Option<&'a str>,
    renamed_from: Option<&'a str>,
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [FileRecord]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a CheckpointState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lorebook_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<bool>,
    /// The name that its timeline has today.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline_now: Option<&'a str>,
    /// The name that always means this moment, lorebook and all.
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<String>,
    /// The snapshot that has the lorebook of the moment, where that changed after this one was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    lorebook_snapshot: Option<SnapshotId>,
    /// For a change of the lorebook alone: the chat's snapshot that it stands beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    chat: Option<SnapshotId>,
    /// How many moments it is back from the latest of the timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
}

impl<'a> SnapshotLine<'a> {
    pub fn new(snapshot: &'a Snapshot, tags: &'a [String]) -> Self {
        Self {
            id: snapshot.id,
            content: snapshot.content,
            timeline: snapshot.timeline.as_str(),
            parents: &snapshot.parents,
            fork_at: snapshot.fork_at,
            messages: snapshot.messages,
            entries: snapshot.entries,
            kind: snapshot.kind.as_str(),
            time: snapshot.time,
            tags,
            subject: &snapshot.subject,
            lorebook: snapshot.lorebook.as_deref(),
            last_words: snapshot.last_words.as_deref(),
            main_chat: snapshot.main_chat.as_deref(),
            renamed_from: snapshot.renamed_from.as_ref().map(|name| name.as_str()),
            source: snapshot.source.as_deref(),
            at: None,
            unchanged: None,
            files: None,
            state: None,
            lorebook_only: None,
            damaged: None,
            timeline_now: None,
            moment: None,
            lorebook_snapshot: None,
            chat: None,
            step: None,
        }
    }

    /// What it was when this message was its last.
    pub fn at(mut self, message: Option<usize>) -> Self {
        self.at = message;
        self
    }

    pub fn state(mut self, state: Option<&'a CheckpointState>) -> Self {
        self.state = state;
        self
    }

    /// As the log lists it. A change of the lorebook alone has as many messages as the chat that it stands beside.
    pub fn logged(entry: &'a LoggedSnapshot) -> Self {
        let chat = entry.chat.as_ref();
        Self {
            lorebook_only: Some(entry.lorebook_only),
            damaged: Some(entry.is_damaged),
            moment: Some(entry.moment.clone()),
            messages: chat.unwrap_or(&entry.snapshot).messages,
            chat: chat.map(|chat| chat.id),
            step: entry.step,
            ..Self::new(&entry.snapshot, &entry.tags)
        }
    }

    /// As `show` shows it.
    pub fn shown(report: &'a show::Report) -> Self {
        Self {
            files: Some(&report.manifest.files),
            state: report.manifest.checkpoint.as_ref(),
            at: report.at,
            timeline_now: Some(report.timeline.as_str()),
            moment: Some(report.moment.clone()),
            lorebook_snapshot: report.book.as_ref().map(|book| book.id),
            ..Self::new(&report.snapshot, &report.tags)
        }
    }

    pub fn unchanged(mut self, unchanged: bool) -> Self {
        self.unchanged = Some(unchanged);
        self
    }

    pub fn files(mut self, files: &'a [FileRecord]) -> Self {
        self.files = Some(files);
        self
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
    timeline: &'a str,
    head: Option<SnapshotId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<&'a str>,
    time: Option<Time>,
    state: &'static str,
    changed: Vec<&'static str>,
    damaged: bool,
    last_sound: Option<SnapshotId>,
    messages: u64,
    snapshots: usize,
    parent: Option<&'a str>,
    fork_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    lorebook: Option<&'a str>,
    renamed_from: Option<&'a str>,
    tags: &'a [String],
}

impl<'a> From<&'a Timeline> for TimelineLine<'a> {
    fn from(timeline: &'a Timeline) -> Self {
        Self {
            timeline: timeline.name.as_str(),
            head: timeline.head.as_ref().map(|head| head.id),
            moment: timeline.moment.as_deref(),
            time: timeline.head.as_ref().map(|head| head.time),
            state: timeline.change.as_str(),
            changed: timeline.changed_parts(),
            damaged: timeline.damaged.is_some(),
            last_sound: timeline.damaged.flatten(),
            messages: timeline.messages,
            snapshots: timeline.snapshots,
            parent: timeline.parent.as_ref().map(|parent| parent.as_str()),
            fork_at: timeline.fork_at,
            entries: timeline.entries,
            lorebook: timeline.lorebook.as_deref(),
            renamed_from: timeline.renamed_from.as_ref().map(|name| name.as_str()),
            tags: &timeline.tags,
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
