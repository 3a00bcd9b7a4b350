//! The lines that `--json` prints, in a documented format (docs/json.md). Fields may be added but
//! never renamed. Every front end answers with these lines. [`answers`] converts reports to lines.

pub mod answers;
mod change;
mod error;
mod lore;
mod merge;
mod restored;
mod snapshot;

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::archive::{Snapshot, SnapshotId, id_and_time};
use crate::auto_recap::EntryOrigin;
use crate::engine::copies::last_backups::{BackupAge, LastBackup};
use crate::engine::copies::last_sync::LastSync;
use crate::engine::files::FileAction;
use crate::rules::Finding;
use crate::st::{LibraryPath, TimelineName};
use crate::store::{LoggedOperation, Time};
use crate::verbs::doctor::{MissingBookRepair, Repair};
use crate::verbs::erase::{ErasedTimeline, Trace};
use crate::verbs::import::chat_backups::ChatBackup;
use crate::verbs::lore::{ActiveEntry, EntryChange, Sentence};
use crate::verbs::read::SpokenMessage;
use crate::verbs::search::Match;
use crate::verbs::stats::{LargeMessage, TimelineShare};
use crate::verbs::timelines::{Timeline, graph};
pub use change::{ChangeLine, ComparisonLine, kind_word, path};
pub use error::ErrorLine;
pub use lore::LoreEntryLine;
pub use merge::MergeLine;
pub use restored::RestoredLine;
pub use snapshot::SnapshotLine;

/// A line of JSON. Its field `type` is the variant's name.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a line lives only until it is printed")]
#[expect(missing_docs, reason = "docs/json.md describes every line and its fields")]
#[non_exhaustive]
pub enum Line<'a> {
    Backup {
        #[serde(flatten)]
        backup: &'a ChatBackup,
        outcome: &'static str,
        timeline: Option<&'a TimelineName>,
        message: Option<&'a str>,
    },
    Change(ChangeLine),
    Comparison(ComparisonLine<'a>),
    Copy(CopyLine<'a>),
    Entry {
        #[serde(flatten)]
        entry: &'a EntryOrigin,
        noted_at: Option<usize>,
        filled_from: Option<String>,
    },
    Erased(&'a ErasedTimeline),
    Error(ErrorLine),
    Exported {
        timeline: &'a TimelineName,
        snapshots: usize,
        changed: Option<bool>,
        messages: Option<usize>,
        entries: Option<usize>,
        hidden: Option<usize>,
        disabled: Option<usize>,
        unreadable: Option<usize>,
    },
    Extension {
        path: &'a str,
        installed: Option<&'a str>,
        program: &'static str,
        edited: &'a [String],
        watch: bool,
    },
    Failed {
        timeline: &'a str,
        message: Cow<'a, str>,
    },
    File(&'a FileAction),
    Finding(&'a Finding),
    Found {
        library: String,
        chats: usize,
        characters: usize,
        process: Option<u32>,
        chosen: bool,
    },
    Graph(&'a graph::Report),
    Group {
        timeline: &'a TimelineName,
        group: &'a str,
    },
    Install {
        written: Option<String>,
        running: bool,
        message: Option<&'a str>,
        steps: Vec<&'a str>,
    },
    Lane(&'a graph::Lane),
    Large(&'a LargeMessage),
    LoreActive {
        timeline: &'a TimelineName,
        snapshot: SnapshotId,
        index: usize,
        #[serde(flatten)]
        entry: &'a ActiveEntry,
    },
    LoreBook {
        lorebook: &'a str,
        timeline: &'a TimelineName,
        entries: usize,
        states: usize,
        snapshot: Option<SnapshotId>,
        time: Option<Time>,
    },
    LoreChange {
        #[serde(flatten)]
        entry: &'a EntryChange,
        change: Option<ChangeLine>,
    },
    LoreEntry(LoreEntryLine<'a>),
    LoreSentence(&'a Sentence),
    Match {
        #[serde(flatten)]
        found: &'a Match,
        lorebook: Option<&'a str>,
        hidden: bool,
        swipe: Option<usize>,
    },
    Merge(MergeLine<'a>),
    Message {
        snapshot: SnapshotId,
        timeline: &'a TimelineName,
        #[serde(flatten)]
        message: &'a SpokenMessage,
    },
    MessageElsewhere {
        timeline: &'a TimelineName,
        head: SnapshotId,
        index: Option<usize>,
        same: bool,
        same_as: Option<SnapshotId>,
        text: Option<String>,
    },
    MessageVersion {
        #[serde(flatten, serialize_with = "id_and_time")]
        snapshot: &'a Snapshot,
        timeline: &'a TimelineName,
        index: usize,
        message: usize,
        again: bool,
        change: Option<ChangeLine>,
    },
    Operation {
        #[serde(flatten)]
        operation: &'a LoggedOperation,
        undone_by: Option<u64>,
        continued_by: Option<u64>,
    },
    Protection(ProtectionLine<'a>),
    LastSync(&'a LastSync),
    Picture {
        path: &'a LibraryPath,
        kind: &'static str,
        bytes: usize,
        data: String,
    },
    Page {
        path: String,
        bytes: u64,
        extent: &'static str,
    },
    Plan {
        timeline: &'a TimelineName,
        messages: u64,
        messages_before: Option<u64>,
    },
    Repair {
        #[serde(flatten)]
        repair: &'a Repair,
        choice: Option<&'a MissingBookRepair>,
        done: bool,
    },
    Remote {
        name: &'a str,
        address: &'a str,
        id: &'a str,
        encrypted: bool,
        recovery_key: Option<&'a str>,
    },
    Restored(RestoredLine<'a>),
    Setting {
        key: &'a str,
        value: Option<&'a str>,
    },
    Share(&'a TimelineShare),
    Snapshot(SnapshotLine<'a>),
    Step {
        step: &'static str,
        state: &'static str,
        message: &'a str,
        hint: Option<&'a str>,
    },
    Store {
        path: String,
        created: bool,
    },
    Summary(Summary),
    Synced {
        timeline: &'a TimelineName,
        outcome: &'static str,
        other: Option<&'a TimelineName>,
        why: Option<&'a str>,
        head: SnapshotId,
        snapshots: usize,
        lorebook: Option<&'a str>,
        conflicts: usize,
        device: Option<&'a str>,
        settle: Option<String>,
    },
    Tag {
        name: &'a str,
        snapshot: SnapshotId,
        timeline: &'a str,
    },
    TakenIn {
        timeline: &'a TimelineName,
        outcome: &'static str,
        name: &'a str,
        head: SnapshotId,
        messages: u64,
        snapshots: usize,
    },
    Timeline {
        #[serde(flatten)]
        timeline: &'a Timeline,
        head: Option<SnapshotId>,
        time: Option<Time>,
        changed: Vec<&'static str>,
        damaged: bool,
        last_valid: Option<SnapshotId>,
    },
    Trace {
        #[serde(flatten)]
        trace: &'a Trace,
        removed: bool,
    },
    User {
        user: &'a str,
    },
    Metrics {
        address: &'a str,
    },
    View {
        address: &'a str,
        write: bool,
    },
    Watch {
        time: String,
        #[serde(flatten)]
        event: WatchEvent<'a>,
    },
}

impl<'a> Line<'a> {
    /// Returns the line of a timeline that could not be read or restored, or that a rule refused.
    pub fn failed(timeline: &'a str, message: impl Into<Cow<'a, str>>) -> Self {
        Self::Failed { timeline, message: message.into() }
    }

    /// Returns the line of a [`WatchEvent`].
    pub fn watch(time: DateTime<FixedOffset>, event: WatchEvent<'a>) -> Self {
        Self::Watch { time: time.to_rfc3339_opts(SecondsFormat::Secs, true), event }
    }
}

/// An event of the watch itself, such as its start, not of a snapshot.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/json.md describes every event and its fields")]
#[non_exhaustive]
pub enum WatchEvent<'a> {
    Started { library: String, polling_seconds: Option<f64> },
    Waiting { timelines: &'a [TimelineName] },
    Gone { message: &'a str },
    Back,
    Failed { message: &'a str },
    Tidied { forgotten: usize },
    BackedUp { destination: &'a str },
    BackupFailed { message: &'a str },
    Synced { received: usize, sent: usize },
    SyncFailed { message: &'a str },
}

/// The line of `status` that says whether saves are stored and backed up.
#[derive(Serialize)]
pub struct ProtectionLine<'a> {
    /// Whether `stvc watch` is running.
    pub watch: bool,
    /// Start of the watch.
    pub watch_since: Option<Time>,
    /// Version of the installed extension.
    pub extension: Option<&'a str>,
    /// Latest snapshot of all timelines.
    pub snapshot: Option<SnapshotId>,
    /// Creation time of the latest snapshot.
    pub snapshot_time: Option<Time>,
    /// Destination of the last backup.
    pub backup: Option<&'a str>,
    /// Time of the last backup, as RFC 3339.
    pub backup_time: Option<&'a str>,
    /// Whether the last backup can be reached now; `None` if only a network can tell.
    pub backup_in_reach: Option<bool>,
    /// Number of snapshots that the last backup does not have.
    pub snapshots_since: Option<usize>,
    /// Remote of the last sync.
    pub sync: Option<&'a str>,
    /// Time of the last sync that succeeded, as RFC 3339.
    pub sync_time: Option<&'a str>,
    /// Reason why the last sync failed; `None` if it succeeded.
    pub sync_failure: Option<&'a str>,
}

/// The line of a backup of the store.
#[derive(Serialize)]
pub struct CopyLine<'a> {
    kind: &'a str,
    destination: &'a str,
    taken: &'a str,
    complete: bool,
    encrypted: bool,
    bytes: Option<u64>,
    snapshots_since: usize,
    timelines_since: usize,
}

impl<'a> From<&'a LastBackup> for CopyLine<'a> {
    fn from(taken: &'a LastBackup) -> Self {
        Self {
            kind: &taken.kind,
            destination: &taken.destination,
            taken: &taken.taken,
            complete: taken.whole,
            encrypted: taken.encrypted,
            bytes: taken.bytes,
            snapshots_since: 0,
            timelines_since: 0,
        }
    }
}

impl<'a> From<&'a BackupAge> for CopyLine<'a> {
    fn from(since: &'a BackupAge) -> Self {
        let (snapshots_since, timelines_since) = (since.snapshots, since.timelines);
        Self { snapshots_since, timelines_since, ..Self::from(&since.taken) }
    }
}

/// The last line of an answer: the command, whether it succeeded, and its counts.
#[derive(Serialize)]
pub struct Summary {
    /// Name of the command, as the user types it.
    pub command: &'static str,
    /// Whether the command succeeded completely.
    pub ok: bool,
    /// Numbers and flags that each command defines.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Summary {
    /// Returns the summary of a command that failed and has no counts.
    pub fn failed(command: &'static str) -> Self {
        Self { command, ok: false, counts: Counts::default() }
    }
}

/// The counts of a summary, in the order of its fields.
#[derive(Default)]
pub struct Counts(pub Vec<(&'static str, Value)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Returns a command and its counts: `counts! { "snapshot" => taken: 3, dry_run: false }`.
macro_rules! counts {
    ($command:expr => $($name:ident: $value:expr),* $(,)?) => {
        ($command, $crate::json_output::Counts(vec![$((stringify!($name), $value.into())),*]))
    };
}
pub(crate) use counts;
