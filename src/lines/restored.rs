//! What a restore did: the state, and where the entries of one that was put together come from.

use serde::Serialize;

use crate::archive::SnapshotId;
use crate::auto_recap::{CheckpointState, EntryOrigin};
use crate::history::at_message::{BookSource, Origin};
use crate::store::Time;
use crate::verbs::restore;

/// What was restored.
#[derive(Serialize)]
pub struct RestoredLine<'a> {
    snapshot: SnapshotId,
    /// The name that always means the moment that was restored: a later request can send it back as it is.
    moment: &'a str,
    timeline: &'a str,
    /// The new timeline of `--as`.
    fork: Option<SnapshotId>,
    /// What the timeline ends with now, if that was not its newest snapshot before.
    restored_as: Option<SnapshotId>,
    name: &'a str,
    taken: Time,
    messages: u64,
    running_recap_version: Option<i64>,
    running_recap_scene_count: Option<i64>,
    combined_recap_message_count: Option<i64>,
    /// How many entries the lorebook has that came with the chat.
    entries: Option<u64>,
    state: Option<&'a CheckpointState>,
    reconstructed: Option<OriginLine>,
}

/// Where a state that was put together comes from.
#[derive(Serialize)]
pub struct OriginLine {
    message: usize,
    scene_message: Option<usize>,
    scene: Option<String>,
    book_of: Option<SnapshotId>,
    versions_before: usize,
    versions_after: usize,
    current_version: Option<i64>,
    cache_dropped: usize,
    entries: usize,
}

impl From<&Origin> for OriginLine {
    fn from(origin: &Origin) -> Self {
        let scene = origin.scene.as_ref();
        Self {
            message: origin.message,
            scene_message: scene.map(|(message, _)| *message),
            scene: scene.and_then(|(_, name)| name.clone()),
            book_of: origin.book_of,
            versions_before: origin.trimmed.versions_before,
            versions_after: origin.trimmed.versions_after,
            current_version: origin.trimmed.current_version,
            cache_dropped: origin.trimmed.cache_dropped,
            entries: origin.entries.len(),
        }
    }
}

impl<'a> From<&'a restore::Report> for RestoredLine<'a> {
    fn from(report: &'a restore::Report) -> Self {
        let (source, written) = (&report.source, &report.written);
        let snapshot = &source.snapshot;
        let made = source.origin.as_ref();
        let state = report.state.as_ref();
        let scene = state.and_then(|state| state.scene_break_name.as_deref());
        let name = source.tags.first().map(String::as_str).or(scene);
        Self {
            snapshot: snapshot.id,
            moment: &source.moment,
            timeline: written.fork.as_ref().map_or(&source.timeline, |it| &it.timeline).as_str(),
            fork: written.fork.as_ref().map(|fork| fork.id),
            restored_as: written.restored.as_ref().map(|restored| restored.id),
            name: name.unwrap_or(source.timeline.chat()),
            taken: snapshot.time,
            messages: report.messages,
            running_recap_version: match made {
                Some(made) => made.trimmed.current_version,
                None => state.and_then(|state| state.running_recap_version),
            },
            running_recap_scene_count: state.and_then(|state| state.running_recap_scene_count),
            combined_recap_message_count: state
                .and_then(|state| state.combined_recap_message_count),
            entries: report.entries,
            state,
            reconstructed: made.map(OriginLine::from),
        }
    }
}

/// Where one entry of a lorebook that was put together comes from.
#[derive(Serialize)]
pub struct EntryLine<'a> {
    uid: &'a str,
    title: &'a str,
    /// The message whose note it is from.
    noted_at: Option<usize>,
    /// A snapshot's id, or `here`; null: found in no book.
    filled_from: Option<String>,
    filled: &'a [String],
    defaults: &'a [String],
}

impl<'a> EntryLine<'a> {
    pub fn new(entry: &'a EntryOrigin, origin: &Origin) -> Self {
        let filled_from = entry.filled_from.and_then(|n| origin.books.get(n));
        Self {
            uid: &entry.uid,
            title: &entry.title,
            noted_at: origin.scene.as_ref().map(|(message, _)| *message),
            filled_from: filled_from.map(|source| match source {
                BookSource::Snapshot(id) => id.to_string(),
                BookSource::Here => "here".into(),
            }),
            filled: &entry.filled,
            defaults: &entry.defaults,
        }
    }
}
