use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::scenes::SceneName;
use crate::archive::diff::{Change, entry_change};
use crate::archive::{Snapshot, SnapshotId, id_and_time};
use crate::history::at_message::Origin;
use crate::st::{Key, Raw, TimelineName};

/// The lorebook, entry or moment to report.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Name of a lorebook. If `entry` is `None`, this may also be the name of an entry.
    pub book: Option<String>,
    /// Name of an entry. If `book` is `None`, this may also be the name of a lorebook.
    pub entry: Option<String>,
    /// Report the origin of each sentence instead of the history.
    pub blame: bool,
    /// The moment to report: a message number, a date, or the name of a moment.
    pub at: Option<String>,
    /// Report the lorebook of this moment. `book` or `entry` is then the name of an entry in this
    /// lorebook.
    pub snapshot: Option<String>,
    /// The chat to which message numbers refer.
    pub chat: Option<String>,
    /// Report the entries that were in the prompt of this message.
    pub active: Option<usize>,
    /// Maximum number of changes per entry. `None` lists all.
    #[serde(skip)]
    pub limit: Option<usize>,
    /// Include changes that affect only the formatting.
    pub all: bool,
    /// Range of entries to return if a complete lorebook is reported at a moment.
    #[serde(skip)]
    pub entries: Option<Range<usize>>,
}

impl Options {
    /// Returns the given names: a lorebook, an entry, or a lorebook and one of its entries.
    pub(super) fn named(&self) -> Vec<&str> {
        self.book.iter().chain(&self.entry).map(String::as_str).collect()
    }
}

/// The answer to a query.
pub enum Report {
    /// All lorebooks, or one, with their entries.
    Books(Vec<Book>),
    /// The history of the requested entry.
    Entry(Box<EntryStory>),
    /// An entry or a complete lorebook at a moment.
    Then(Box<LoreAtMoment>),
    /// The entries that were in the prompt of a message.
    Active(Box<ActiveEntries>),
}

/// A lorebook with its current entries.
pub struct Book {
    /// Timeline of the lorebook.
    pub name: TimelineName,
    /// Entries of the current file, or of the latest snapshot if there is no file.
    pub entries: Vec<EntryNow>,
    /// Number of different states of the lorebook in the store.
    pub states: usize,
    /// Latest snapshot that contains the lorebook.
    pub last: Option<Snapshot>,
    /// Descriptions of unreadable snapshots.
    pub broken: Vec<String>,
}

/// A current entry.
pub struct EntryNow {
    /// UID as written in the file.
    pub uid: String,
    /// Comment of the entry, which SillyTavern shows as its title.
    pub title: String,
    /// Words in a chat that activate the entry.
    pub keys: Vec<String>,
    /// Whether the entry is disabled.
    pub is_off: bool,
    /// The snapshot with the last change that affected more than the formatting.
    pub changed: Snapshot,
    /// Number of changes that affected more than the formatting.
    pub changes: usize,
}

/// The history of an entry.
pub struct EntryStory {
    /// Timeline of the lorebook.
    pub book: TimelineName,
    /// UID as written in the file.
    pub uid: String,
    /// Latest comment, which SillyTavern shows as the title.
    pub title: String,
    /// Whether the entry exists now.
    pub is_there: bool,
    /// Changes of the entry in this lorebook.
    pub changes: EntryChanges,
    /// Other entries that had the UID of this entry, most recent first.
    pub same_uid: Vec<UidHolder>,
    /// Sentences of the latest text. Empty unless `Options::blame` is set.
    pub sentences: Vec<Sentence>,
    /// The entry in other lorebooks, with its text there.
    pub elsewhere: Vec<CopyInOtherBook>,
    /// Descriptions of unreadable snapshots.
    pub broken: Vec<String>,
}

/// Changes of an entry, newest first.
pub struct EntryChanges {
    /// The newest changes, as many as requested.
    pub list: Vec<EntryChange>,
    /// Number of changes before `Options::limit` is applied.
    pub total: usize,
    /// Number of omitted changes that affected only the formatting.
    pub formatting: usize,
}

/// Another entry that had the same UID.
#[derive(Serialize)]
pub struct UidHolder {
    /// Name by UID: `5` is the latest entry with UID 5, and `5~1` is the entry that had this UID
    /// before.
    pub name: String,
    /// Latest comment of that entry.
    pub title: String,
}

/// The state of a lorebook before a change.
#[derive(Serialize)]
pub struct StateBefore {
    /// Snapshot with that state of the lorebook.
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    /// Snapshot of the chat at that time. `None` if the chat had no snapshot yet.
    #[serde(rename = "index", serialize_with = "last_message")]
    pub story: Option<Snapshot>,
}

/// A change of an entry between two consecutive states of its lorebook.
#[derive(Serialize)]
pub struct EntryChange {
    /// First snapshot with the change.
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    /// Snapshot of the chat at the time of the change.
    #[serde(flatten, serialize_with = "story")]
    pub story: Option<Snapshot>,
    /// Key and JSON of the entry before the change. `None` if the entry did not exist or cannot be
    /// read.
    #[serde(skip)]
    pub before: Option<(Key, Arc<str>)>,
    /// Key and JSON of the entry after the change. `None` if the entry was deleted or cannot be
    /// read.
    #[serde(skip)]
    pub after: Option<(Key, Arc<str>)>,
    /// Whether the entry had been deleted before this change.
    #[serde(rename = "again")]
    pub is_again: bool,
    /// The previous state of the lorebook. `None` for the first state.
    pub previous: Option<StateBefore>,
    /// The scene whose recap made the change. `None` unless this is certain: the scene must have
    /// ended after the previous state, and ST-Auto-Recap must have recorded the new text at the end
    /// of the scene.
    pub scene: Option<SceneName>,
    /// Whether the text before or after the change cannot be read.
    #[serde(skip)]
    pub is_lost: bool,
}

impl EntryChange {
    /// Returns the change as `diff` reports it. Returns `None` if the text before or after the
    /// change cannot be read.
    pub fn change(&self) -> Option<Change<'_>> {
        fn side(side: &Option<(Key, Arc<str>)>) -> Option<(&Key, Raw<'_>)> {
            let (key, text) = side.as_ref()?;
            Some((key, Raw::parse_str(text)?))
        }
        if self.is_lost { None } else { entry_change(side(&self.before), side(&self.after)) }
    }
}

fn last_message<S: Serializer>(story: &Option<Snapshot>, out: S) -> Result<S::Ok, S::Error> {
    story.as_ref().and_then(|story| story.messages.checked_sub(1)).serialize(out)
}

/// Serialises the chat at the time of a change: timeline, snapshot, number of the last message, and
/// last words.
fn story<S: Serializer>(story: &Option<Snapshot>, out: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Story<'a> {
        timeline: Option<&'a TimelineName>,
        story: Option<SnapshotId>,
        index: Option<u64>,
        last_words: Option<&'a str>,
    }
    let chat = story.as_ref();
    Story {
        timeline: chat.map(|chat| &chat.timeline),
        story: chat.map(|chat| chat.id),
        index: chat.and_then(|chat| chat.messages.checked_sub(1)),
        last_words: chat.and_then(|chat| chat.last_words.as_deref()),
    }
    .serialize(out)
}

/// Returns the JSON of an entry exactly as it is in the lorebook file.
pub(crate) fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

fn value<S: Serializer>(text: &Arc<str>, out: S) -> Result<S::Ok, S::Error> {
    raw(text).serialize(out)
}

/// A copy of the entry in another lorebook.
pub struct CopyInOtherBook {
    /// The other lorebook.
    pub book: TimelineName,
    /// UID of the copy.
    pub uid: String,
    /// Raw JSON of the copy.
    pub text: Arc<str>,
    /// Whether the copy equals the current version of the entry.
    pub is_same: bool,
}

/// A sentence of the entry's latest text.
#[derive(Serialize)]
pub struct Sentence {
    /// The sentence, without surrounding spaces.
    pub text: String,
    /// The first snapshot with this sentence.
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    /// Snapshot of the chat at that time. `None` if the chat had no snapshot yet.
    #[serde(flatten, serialize_with = "story")]
    pub story: Option<Snapshot>,
}

/// A lorebook, or one entry of it, at a moment.
pub struct LoreAtMoment {
    /// Timeline of the lorebook.
    pub book: TimelineName,
    /// UID of the requested entry. `None` if the complete lorebook was requested.
    pub entry: Option<String>,
    /// The requested entries, in the order of the file.
    pub entries: Vec<EntryThen>,
    /// Number of entries before `Options::entries` is applied.
    pub total: usize,
    /// Source of the state.
    pub known_from: KnownFrom,
}

/// An entry at a moment.
pub struct EntryThen {
    /// Key of the entry in the lorebook's file.
    pub key: Key,
    /// Raw JSON of the entry.
    pub text: Arc<str>,
    /// Change of the entry since the moment. `None` if the latest state of the lorebook is not
    /// known or was not requested.
    pub since: Option<ChangeAfter>,
}

/// The difference between an entry at the moment and the latest state of the lorebook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAfter {
    /// The entry is unchanged.
    Same,
    /// The entry has another value.
    Changed,
    /// The entry was removed.
    Gone,
}

/// The source of a lorebook's state.
pub enum KnownFrom {
    /// A snapshot of the lorebook, or of a chat that uses the lorebook.
    Snapshot(Box<Snapshot>),
    /// A record of ST-Auto-Recap in a message, completed with entries from other states.
    Notes(Box<Origin>),
}

/// The entries that were in the prompt of a message.
pub struct ActiveEntries {
    /// Snapshot from which the message was read.
    pub chat: Snapshot,
    /// Number of the message.
    pub message: usize,
    /// `None` if the message does not record its entries.
    pub entries: Option<Vec<ActiveEntry>>,
    /// Number of the nearest earlier message that records its entries. Only set if `entries` is
    /// `None`.
    pub before: Option<usize>,
    /// Number of the nearest later message that records its entries. Only set if `entries` is
    /// `None`.
    pub after: Option<usize>,
}

/// An entry as the message records it.
#[derive(Serialize)]
pub struct ActiveEntry {
    /// Name of the lorebook; `None` if the message does not record it.
    pub lorebook: Option<String>,
    /// UID at that time.
    pub uid: String,
    /// Comment at that time.
    pub title: String,
    /// Raw JSON of the entry.
    #[serde(rename = "value", serialize_with = "value")]
    pub text: Arc<str>,
}
