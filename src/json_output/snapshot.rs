//! The line of a snapshot. Some of its fields are provided only by some commands.

use std::borrow::Cow;

use serde::Serialize;

use crate::archive::{AttachmentsRecord, FileRecord, Snapshot, SnapshotId};
use crate::auto_recap::CheckpointState;
use crate::st::TimelineName;
use crate::verbs::log::LoggedSnapshot;
use crate::verbs::show::ShownMoment;

/// The line of a snapshot. Commands add fields of their own.
#[derive(Serialize)]
pub struct SnapshotLine<'a> {
    #[serde(flatten)]
    snapshot: Cow<'a, Snapshot>,
    tags: &'a [String],
    #[serde(flatten)]
    more: Option<SnapshotDetails<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum SnapshotDetails<'a> {
    Taken {
        unchanged: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<&'a CheckpointState>,
    },
    Logged(&'a LoggedSnapshot),
    Shown {
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<usize>,
        files: &'a [FileRecord],
        #[serde(skip_serializing_if = "Option::is_none")]
        attachments: Option<&'a AttachmentsRecord>,
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<&'a CheckpointState>,
        timeline_now: &'a TimelineName,
        moment: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        lorebook_snapshot: Option<SnapshotId>,
    },
}

impl<'a> SnapshotLine<'a> {
    /// Returns the line of a snapshot without optional fields.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot: Cow::Borrowed(snapshot), tags: &[], more: None }
    }

    /// Returns the line of a snapshot that was just created.
    pub fn taken(
        snapshot: &'a Snapshot,
        tags: &'a [String],
        state: Option<&'a CheckpointState>,
    ) -> Self {
        let more = Some(SnapshotDetails::Taken { unchanged: false, state });
        Self { tags, more, ..Self::new(snapshot) }
    }

    pub(super) fn unchanged(snapshot: &'a Snapshot, tags: &'a [String]) -> Self {
        let more = Some(SnapshotDetails::Taken { unchanged: true, state: None });
        Self { tags, more, ..Self::new(snapshot) }
    }

    /// Returns the line of a snapshot in the log. For a snapshot of only the lorebook, `messages`
    /// is the number of messages in the chat.
    pub(super) fn logged(entry: &'a LoggedSnapshot) -> Self {
        let mut line = Self::new(&entry.snapshot);
        (line.tags, line.more) = (&entry.tags, Some(SnapshotDetails::Logged(entry)));
        if let Some(chat) = &entry.chat {
            line.snapshot.to_mut().messages = chat.messages;
        }
        line
    }

    pub(super) fn shown(shown: &'a ShownMoment) -> Self {
        let more = SnapshotDetails::Shown {
            at: shown.at,
            files: &shown.manifest.files,
            attachments: shown.manifest.attachments.as_ref(),
            state: shown.manifest.checkpoint.as_ref(),
            timeline_now: &shown.timeline,
            moment: &shown.moment,
            lorebook_snapshot: shown.book.as_ref().map(|book| book.id),
        };
        Self { tags: &shown.tags, more: Some(more), ..Self::new(&shown.snapshot) }
    }
}
