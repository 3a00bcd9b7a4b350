use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::scenes::SceneName;
use crate::archive::diff::{Change, entry_change};
use crate::archive::{Snapshot, SnapshotId, id_and_time};
use crate::history::at_message::Origin;
use crate::st::{Key, Raw, TimelineName};

/// A lorebook, an entry, or a moment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Without `entry` it may name an entry.
    pub book: Option<String>,
    /// Without `book` it may name a lorebook.
    pub entry: Option<String>,
    /// Report the origin of each sentence instead of the history.
    pub blame: bool,
    /// A message's number, a date or a snapshot.
    pub at: Option<String>,
    /// The lorebook of this snapshot; names are those of entries then.
    pub snapshot: Option<String>,
    /// The chat whose messages are counted.
    pub chat: Option<String>,
    /// The entries in the prompt of this message.
    pub active: Option<usize>,
    #[serde(skip)]
    pub limit: Option<usize>,
    /// Also changes of formatting alone.
    pub all: bool,
    /// A range of the entries of a whole lorebook.
    #[serde(skip)]
    pub entries: Option<Range<usize>>,
}

impl Options {
    /// Returns the given names: a lorebook, an entry, or a lorebook and one of its entries.
    pub(super) fn named(&self) -> Vec<&str> {
        self.book.iter().chain(&self.entry).map(String::as_str).collect()
    }
}

/// The answer, by the kind of question.
pub enum Report {
    Books(Vec<Book>),
    Entry(Box<EntryStory>),
    /// An entry or a whole lorebook at a moment.
    Then(Box<Then>),
    /// The entries in the prompt of a message.
    Active(Box<Active>),
}

/// A lorebook, with its entries now.
pub struct Book {
    pub name: TimelineName,
    pub entries: Vec<EntryNow>,
    pub states: usize,
    pub last: Option<Snapshot>,
    /// Messages about unreadable snapshots.
    pub broken: Vec<String>,
}

/// An entry as it is now.
pub struct EntryNow {
    pub uid: String,
    pub title: String,
    pub keys: Vec<String>,
    pub is_off: bool,
    /// The snapshot with the last change, but for formatting.
    pub changed: Snapshot,
    /// The number of changes, without those of formatting alone.
    pub changes: usize,
}

/// The history of an entry.
pub struct EntryStory {
    pub book: TimelineName,
    pub uid: String,
    pub title: String,
    pub is_there: bool,
    pub changes: EntryChanges,
    /// The other entries that had its UID, the last one first.
    pub same_uid: Vec<UidHolder>,
    /// The latest text by sentences, if asked for.
    pub sentences: Vec<Sentence>,
    pub elsewhere: Vec<Elsewhere>,
    pub broken: Vec<String>,
}

/// Changes of an entry, newest first.
pub struct EntryChanges {
    pub list: Vec<EntryChange>,
    /// Without the limit.
    pub total: usize,
    /// The number of changes of formatting alone that were left out.
    pub formatting: usize,
}

/// An entry that had a UID at some time.
#[derive(Serialize)]
pub struct UidHolder {
    /// `5~1` for the one before the last that had UID 5, which is just `5`.
    pub name: String,
    pub title: String,
}

/// The state of a book before a change.
#[derive(Serialize)]
pub struct Previous {
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    /// The chat then; `None` if it was not stored yet.
    #[serde(rename = "index", serialize_with = "last_message")]
    pub story: Option<Snapshot>,
}

/// A change of an entry in one state of its book.
#[derive(Serialize)]
pub struct EntryChange {
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    /// The chat's snapshot of that time.
    #[serde(flatten, serialize_with = "story")]
    pub story: Option<Snapshot>,
    /// Key and JSON before and after; `None` if it was not there, or is lost.
    #[serde(skip)]
    pub before: Option<(Key, Arc<str>)>,
    #[serde(skip)]
    pub after: Option<(Key, Arc<str>)>,
    /// It was deleted before.
    #[serde(rename = "again")]
    pub is_again: bool,
    /// `None` for the first state of the book.
    pub previous: Option<Previous>,
    /// The scene whose recap wrote it, if that is certain: it ended after the previous state, and
    /// ST-Auto-Recap recorded the new text at its end.
    pub scene: Option<SceneName>,
    /// The text before or after cannot be read.
    #[serde(skip)]
    pub is_lost: bool,
}

impl EntryChange {
    /// Returns the change as `diff` reports it; `None` if one of the texts cannot be read.
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

/// Serialises the place in the story: the chat, its snapshot, its last message and how that ends.
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

/// Returns the JSON of an entry as it stands in its file.
pub(crate) fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

fn value<S: Serializer>(text: &Arc<str>, out: S) -> Result<S::Ok, S::Error> {
    raw(text).serialize(out)
}

/// Another lorebook with the same entry.
pub struct Elsewhere {
    pub book: TimelineName,
    pub uid: String,
    pub text: Arc<str>,
    pub is_same: bool,
}

/// A sentence of the latest text.
#[derive(Serialize)]
pub struct Sentence {
    pub text: String,
    /// The first snapshot with it.
    #[serde(flatten, serialize_with = "id_and_time")]
    pub snapshot: Snapshot,
    #[serde(flatten, serialize_with = "story")]
    pub story: Option<Snapshot>,
}

/// A lorebook, or one entry of it, at a moment.
pub struct Then {
    pub book: TimelineName,
    /// The UID of the entry that was asked for; `None`: the whole lorebook.
    pub entry: Option<String>,
    pub entries: Vec<EntryThen>,
    /// The number of entries without the range.
    pub total: usize,
    pub known_from: KnownFrom,
}

/// An entry at a moment.
pub struct EntryThen {
    pub key: Key,
    pub text: Arc<str>,
    pub since: Option<Since>,
}

/// The fate of an entry since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Same,
    Changed,
    Gone,
}

/// The source of a state.
pub enum KnownFrom {
    /// A snapshot of the lorebook, or of a chat with it.
    Snapshot(Box<Snapshot>),
    /// A record of ST-Auto-Recap in a message, completed from other states.
    Notes(Box<Origin>),
}

/// The entries in the prompt of a message.
pub struct Active {
    pub chat: Snapshot,
    pub message: usize,
    /// `None`: the message does not record them.
    pub entries: Option<Vec<ActiveEntry>>,
    /// The nearest messages that do, if this one does not.
    pub before: Option<usize>,
    pub after: Option<usize>,
}

/// An entry as the message has it.
#[derive(Serialize)]
pub struct ActiveEntry {
    pub lorebook: Option<String>,
    pub uid: String,
    pub title: String,
    #[serde(rename = "value", serialize_with = "value")]
    pub text: Arc<str>,
}
