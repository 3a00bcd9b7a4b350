//! The lines of `--json`: a documented product (`docs/json.md`). Fields may be added, never renamed.

use serde::Serialize;

use super::wording::rfc3339;
use crate::archive::reconstruct::EntryOrigin;
use crate::archive::{CheckpointState, FileRecord, Snapshot};
use crate::engine::copies::last_backups::Since;
use crate::engine::copies::mirror;
use crate::engine::files::{Action, FileAction};
use crate::history::at_message::{BookSource, Origin};
use crate::rules::Finding;
use crate::store::LoggedOperation;
use crate::verbs::backup::file;
use crate::verbs::doctor::Repair;
use crate::verbs::import::chat_backups::{ChatBackup, ChatBackupOutcome};
use crate::verbs::import::stvc_backup;
use crate::verbs::restore;
use crate::verbs::search::{self, Match};
use crate::verbs::timelines::Timeline;

/// A snapshot.
#[derive(Serialize)]
pub struct SnapshotLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    id: String,
    content: String,
    timeline: &'a str,
    parents: Vec<String>,
    fork_at: Option<u64>,
    messages: u64,
    kind: &'a str,
    time: String,
    tags: &'a [String],
    subject: &'a str,
    lorebook: Option<&'a str>,
    last_words: Option<&'a str>,
    main_chat: Option<&'a str>,
    renamed_from: Option<&'a str>,
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [FileRecord]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a CheckpointState>,
}

impl<'a> SnapshotLine<'a> {
    pub fn new(snapshot: &'a Snapshot, tags: &'a [String]) -> Self {
        Self {
            kind_of_line: "snapshot",
            id: snapshot.id.to_string(),
            content: snapshot.content.to_string(),
            timeline: snapshot.timeline.as_str(),
            parents: snapshot.parents.iter().map(ToString::to_string).collect(),
            fork_at: snapshot.fork_at,
            messages: snapshot.messages,
            kind: snapshot.kind.as_str(),
            time: rfc3339(snapshot.time),
            tags,
            subject: &snapshot.subject,
            lorebook: snapshot.lorebook.as_deref(),
            last_words: snapshot.last_words.as_deref(),
            main_chat: snapshot.main_chat.as_deref(),
            renamed_from: snapshot.renamed_from.as_ref().map(|name| name.as_str()),
            source: snapshot.source.as_deref(),
            unchanged: None,
            files: None,
            state: None,
        }
    }

    pub fn state(mut self, state: Option<&'a CheckpointState>) -> Self {
        self.state = state;
        self
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
    #[serde(rename = "type")]
    pub kind_of_line: &'static str,
    pub timeline: &'a str,
    pub messages: u64,
    pub messages_before: Option<u64>,
}

/// A timeline.
#[derive(Serialize)]
pub struct TimelineLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    timeline: &'a str,
    head: Option<String>,
    state: &'static str,
    messages: u64,
    snapshots: usize,
    parent: Option<&'a str>,
    fork_at: Option<u64>,
    lorebook: Option<&'a str>,
    renamed_from: Option<&'a str>,
    tags: &'a [String],
}

impl<'a> From<&'a Timeline> for TimelineLine<'a> {
    fn from(timeline: &'a Timeline) -> Self {
        Self {
            kind_of_line: "timeline",
            timeline: timeline.name.as_str(),
            head: timeline.head.as_ref().map(|head| head.id.to_string()),
            state: timeline.change.as_str(),
            messages: timeline.messages,
            snapshots: timeline.snapshots,
            parent: timeline.parent.as_ref().map(|parent| parent.as_str()),
            fork_at: timeline.fork_at,
            lorebook: timeline.lorebook.as_deref(),
            renamed_from: timeline.renamed_from.as_ref().map(|name| name.as_str()),
            tags: &timeline.tags,
        }
    }
}

/// A file that was written or kept.
#[derive(Serialize)]
pub struct FileLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    path: &'a str,
    action: &'static str,
    bytes: u64,
    blake3: String,
    replaces: bool,
}

impl<'a> From<&'a FileAction> for FileLine<'a> {
    fn from(file: &'a FileAction) -> Self {
        let action = match file.action {
            Action::Write => "write",
            Action::Keep => "keep",
            Action::Delete => "delete",
        };
        Self {
            kind_of_line: "file",
            path: file.path.as_str(),
            action,
            bytes: file.bytes,
            blake3: file.blake3.to_string(),
            replaces: file.replaces,
        }
    }
}

/// What was restored.
#[derive(Serialize)]
pub struct RestoredLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    snapshot: String,
    timeline: &'a str,
    /// The new timeline of `--as`.
    fork: Option<String>,
    name: &'a str,
    taken: String,
    messages: u64,
    running_recap_version: Option<i64>,
    running_recap_scene_count: Option<i64>,
    combined_recap_message_count: Option<i64>,
    state: Option<&'a CheckpointState>,
    reconstructed: Option<OriginLine>,
}

/// Where a state that was put together comes from.
#[derive(Serialize)]
pub struct OriginLine {
    message: usize,
    scene_message: Option<usize>,
    scene: Option<String>,
    book_of: Option<String>,
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
            book_of: origin.book_of.map(|id| id.to_string()),
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
        let snapshot = &report.snapshot;
        let made = report.origin.as_ref();
        // What was put together has other recaps than the snapshot it was cut from.
        let state = report.state.as_ref().filter(|_| made.is_none());
        let scene = state.and_then(|state| state.scene_break_name.as_deref());
        let name = report.tags.first().map(String::as_str).or(scene);
        Self {
            kind_of_line: "restored",
            snapshot: snapshot.id.to_string(),
            timeline: report.fork.as_ref().unwrap_or(snapshot).timeline.as_str(),
            fork: report.fork.as_ref().map(|fork| fork.id.to_string()),
            name: name.unwrap_or(snapshot.timeline.chat()),
            taken: rfc3339(snapshot.time),
            messages: made.map_or(snapshot.messages, |made| made.message as u64 + 1),
            running_recap_version: match made {
                Some(made) => made.trimmed.current_version,
                None => state.and_then(|state| state.running_recap_version),
            },
            running_recap_scene_count: state.and_then(|state| state.running_recap_scene_count),
            combined_recap_message_count: state
                .and_then(|state| state.combined_recap_message_count),
            state,
            reconstructed: made.map(OriginLine::from),
        }
    }
}

/// Where one entry of a lorebook that was put together comes from.
#[derive(Serialize)]
pub struct EntryLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
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
            kind_of_line: "entry",
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

/// A text that was found. Messages have an `index`, lorebook entries a `uid`.
#[derive(Serialize)]
pub struct MatchLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    snapshot: String,
    timeline: &'a str,
    time: String,
    part: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    /// Null for a lorebook that cannot be read: it is one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<Option<&'a str>>,
    /// The speaker, or the entry's title.
    name: &'a str,
    lorebook: Option<&'a str>,
    swipe: Option<usize>,
    hidden: bool,
    live: bool,
    deleted: bool,
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
        };
        Self {
            kind_of_line: "match",
            snapshot: found.snapshot.id.to_string(),
            timeline: found.timeline.as_str(),
            time: rfc3339(found.snapshot.time),
            part: if index.is_some() { "message" } else { "lorebook" },
            index,
            uid,
            name,
            lorebook: uid.and(found.snapshot.lorebook.as_deref()),
            swipe,
            hidden,
            live: found.live,
            deleted: found.deleted,
            text: &found.excerpt.text,
        }
    }
}

/// A finding.
#[derive(Serialize)]
pub struct FindingLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    code: &'static str,
    level: &'static str,
    subject: &'a str,
    message: &'a str,
    remedy: Option<&'a str>,
}

impl<'a> From<&'a Finding> for FindingLine<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            kind_of_line: "finding",
            code: finding.code.as_str(),
            level: finding.level.as_str(),
            subject: &finding.subject,
            message: &finding.message,
            remedy: finding.remedy.as_deref(),
        }
    }
}

/// Something that can be repaired, or was.
#[derive(Serialize)]
pub struct RepairLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    code: &'static str,
    subject: &'a str,
    what: &'a str,
    files: Vec<&'a str>,
    done: bool,
}

impl<'a> RepairLine<'a> {
    pub fn new(repair: &'a Repair, done: bool) -> Self {
        Self {
            kind_of_line: "repair",
            code: repair.code.as_str(),
            subject: &repair.subject,
            what: &repair.what,
            files: repair.files.iter().map(|path| path.as_str()).collect(),
            done,
        }
    }
}

/// A backup that was taken in, or not.
#[derive(Serialize)]
pub struct ImportLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    file: &'a str,
    outcome: &'static str,
    timeline: Option<&'a str>,
    time: String,
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
            kind_of_line: "backup",
            file: &entry.file,
            outcome,
            timeline,
            time: rfc3339(entry.time),
            messages: entry.messages,
            bytes: entry.bytes,
            message,
        }
    }
}

/// A copy of the store elsewhere.
#[derive(Serialize)]
pub struct CopyLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
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

impl<'a> From<&'a file::Report> for CopyLine<'a> {
    fn from(report: &'a file::Report) -> Self {
        let path = report.path.as_ref().map(|path| path.display().to_string());
        Self {
            kind_of_line: "copy",
            kind: "file",
            destination: path.unwrap_or_else(|| "-".into()),
            taken: &report.header.taken,
            whole: report.header.whole,
            encrypted: report.encrypted,
            bytes: Some(report.bytes),
            snapshots_since: 0,
            timelines_since: 0,
        }
    }
}

impl<'a> From<&'a mirror::Report> for CopyLine<'a> {
    fn from(report: &'a mirror::Report) -> Self {
        Self {
            kind_of_line: "copy",
            kind: report.kind,
            destination: report.destination.clone(),
            taken: &report.taken,
            whole: report.whole,
            encrypted: false,
            bytes: None,
            snapshots_since: 0,
            timelines_since: 0,
        }
    }
}

impl<'a> From<&'a Since> for CopyLine<'a> {
    fn from(since: &'a Since) -> Self {
        let taken = &since.taken;
        Self {
            kind_of_line: "copy",
            kind: &taken.kind,
            destination: taken.destination.clone(),
            taken: &taken.taken,
            whole: taken.whole,
            encrypted: taken.encrypted,
            bytes: taken.bytes,
            snapshots_since: since.snapshots,
            timelines_since: since.timelines,
        }
    }
}

/// A timeline of a backup that was taken in.
#[derive(Serialize)]
pub struct TakenInLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    timeline: &'a str,
    outcome: &'static str,
    /// What it is called here.
    name: &'a str,
    head: String,
    messages: u64,
    snapshots: usize,
}

impl<'a> From<&'a stvc_backup::ImportedTimeline> for TakenInLine<'a> {
    fn from(entry: &'a stvc_backup::ImportedTimeline) -> Self {
        let (outcome, name) = match &entry.outcome {
            stvc_backup::ImportOutcome::New => ("new", entry.timeline.as_str()),
            stvc_backup::ImportOutcome::Forward => ("forward", entry.timeline.as_str()),
            stvc_backup::ImportOutcome::Known => ("known", entry.timeline.as_str()),
            stvc_backup::ImportOutcome::Beside(name) => ("beside", name.as_str()),
            stvc_backup::ImportOutcome::Tagged(tag) => ("tagged", tag.as_str()),
        };
        Self {
            kind_of_line: "taken_in",
            timeline: entry.timeline.as_str(),
            outcome,
            name,
            head: entry.head.id.to_string(),
            messages: entry.head.messages,
            snapshots: entry.snapshots,
        }
    }
}

/// An operation.
#[derive(Serialize)]
pub struct OperationLine<'a> {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    #[serde(flatten)]
    operation: &'a LoggedOperation,
    undone_by: Option<u64>,
}

impl<'a> OperationLine<'a> {
    pub fn new(operation: &'a LoggedOperation, undone_by: Option<u64>) -> Self {
        Self { kind_of_line: "operation", operation, undone_by }
    }
}

/// A tag.
#[derive(Serialize)]
pub struct TagLine<'a> {
    #[serde(rename = "type")]
    pub kind_of_line: &'static str,
    pub name: &'a str,
    pub snapshot: String,
    pub timeline: &'a str,
}

/// The store.
#[derive(Serialize)]
pub struct StoreLine {
    #[serde(rename = "type")]
    pub kind_of_line: &'static str,
    pub path: String,
    pub created: bool,
}

/// An error.
#[derive(Serialize)]
pub struct ErrorLine {
    #[serde(rename = "type")]
    pub kind_of_line: &'static str,
    pub message: String,
    pub hint: Option<String>,
    pub candidates: Vec<String>,
    pub exit: u8,
}

/// The last line.
#[derive(Serialize)]
pub struct Summary<C: Serialize> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub command: &'static str,
    pub ok: bool,
    #[serde(flatten)]
    pub counts: C,
}
