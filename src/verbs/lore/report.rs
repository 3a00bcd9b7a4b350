//! What is asked, and what is told.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::scenes::SceneName;
use crate::archive::Snapshot;
use crate::history::at_message::Origin;
use crate::st::{Key, TimelineName};

/// What to tell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The lorebook. Without an entry it may name an entry as well.
    pub book: Option<String>,
    /// The entry. Without a lorebook it may name a lorebook as well.
    pub entry: Option<String>,
    /// Where each sentence comes from, instead of the history.
    pub blame: bool,
    /// What was known then: a message's number, a date or a snapshot.
    pub at: Option<String>,
    /// The lorebook that this snapshot has, as it has it; a name is that of one of its entries then.
    pub snapshot: Option<String>,
    /// The chat whose messages are counted.
    pub chat: Option<String>,
    /// Which entries the model was told at this message.
    pub active: Option<usize>,
    /// At most this many changes.
    #[serde(skip)]
    pub limit: Option<usize>,
    /// Also changes of formatting alone.
    pub all: bool,
    /// Only these entries of a whole lorebook, as people count them.
    #[serde(skip)]
    pub entries: Option<Range<usize>>,
}

impl Options {
    /// Returns the names that were given: a lorebook, an entry, or a lorebook and one of its entries.
    pub(super) fn named(&self) -> Vec<&str> {
        self.book.iter().chain(&self.entry).map(String::as_str).collect()
    }
}

/// What is told.
pub enum Report {
    /// Lorebooks and their entries.
    Books(Vec<Book>),
    /// One entry.
    Entry(Box<EntryStory>),
    /// An entry or a whole lorebook as it was.
    Then(Box<Then>),
    /// The entries that the model was told.
    Active(Box<Active>),
}

/// A lorebook.
pub struct Book {
    pub name: TimelineName,
    /// Its entries now, by their keys.
    pub entries: Vec<EntryNow>,
    /// How many different states are known.
    pub states: usize,
    /// The snapshot with the newest.
    pub last: Option<Snapshot>,
    /// What could not be read, in words.
    pub broken: Vec<String>,
}

/// An entry as it is now.
pub struct EntryNow {
    pub uid: String,
    pub title: String,
    /// Its key words.
    pub keys: Vec<String>,
    /// Switched off.
    pub is_off: bool,
    /// The snapshot since which it is so, but for its formatting.
    pub changed: Snapshot,
    /// How often it changed, without changes of formatting alone.
    pub changes: usize,
}

/// The history of an entry.
pub struct EntryStory {
    pub book: TimelineName,
    pub uid: String,
    pub title: String,
    /// Whether it is in the lorebook now.
    pub is_there: bool,
    /// Newest first.
    pub changes: Vec<EntryChange>,
    /// How many there are without the limit.
    pub total: usize,
    /// How many changes of formatting alone were left out.
    pub formatting: usize,
    /// The other entries that had its UID at some time, the last one first.
    pub same_uid: Vec<UidHolder>,
    /// The text of now, or the last, by sentences, if that was asked for.
    pub sentences: Vec<Sentence>,
    /// What other lorebooks that come from the same one say of it now.
    pub elsewhere: Vec<Elsewhere>,
    pub broken: Vec<String>,
}

/// An entry that had a UID at some time.
#[derive(Serialize)]
pub struct UidHolder {
    /// The UID and how many entries had it after this one, as it is named: `5~1`. The last one is just `5`.
    pub name: String,
    pub title: String,
}

/// The state of a book before a change.
pub struct Previous {
    pub snapshot: Snapshot,
    /// The chat then; none if it was not stored yet.
    pub story: Option<Snapshot>,
}

/// What became of an entry in one state of its book.
pub struct EntryChange {
    /// The snapshot with it.
    pub snapshot: Snapshot,
    /// Where the story was: the chat's snapshot of that time.
    pub story: Option<Snapshot>,
    /// Its key and its JSON before and from then on; none if it was not there, or cannot be read.
    pub before: Option<(Key, Arc<str>)>,
    pub after: Option<(Key, Arc<str>)>,
    /// It had gone before, and is there again.
    pub is_again: bool,
    /// The state of the book before it; none for the first one.
    pub previous: Option<Previous>,
    /// The scene whose recap brought it, if that is certain: it ended after the state before, and ST-Auto-Recap recorded the new text at its end.
    pub scene: Option<SceneName>,
    /// What it said before or from then on cannot be read.
    pub is_lost: bool,
}

/// Another lorebook with the same entry.
pub struct Elsewhere {
    pub book: TimelineName,
    pub uid: String,
    /// Its JSON.
    pub text: Arc<str>,
    /// Whether it says the same.
    pub is_same: bool,
}

/// A sentence of the text as it is now.
pub struct Sentence {
    pub text: String,
    /// The snapshot that first had it.
    pub snapshot: Snapshot,
    /// Where the story was.
    pub story: Option<Snapshot>,
}

/// A lorebook, or one entry of it, as it was.
pub struct Then {
    pub book: TimelineName,
    /// The entry that was asked for; none: the whole lorebook.
    pub entry: Option<String>,
    pub entries: Vec<EntryThen>,
    /// How many it had.
    pub total: usize,
    pub known_from: KnownFrom,
}

/// An entry as it was.
pub struct EntryThen {
    pub key: Key,
    /// Its JSON.
    pub text: Arc<str>,
    /// What became of it since, if that was asked for.
    pub since: Option<Since>,
}

/// What became of an entry since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Same,
    Changed,
    Gone,
}

/// Where a state is known from.
pub enum KnownFrom {
    /// A snapshot of the lorebook, or of a chat with it.
    Snapshot(Box<Snapshot>),
    /// What ST-Auto-Recap noted in a message, completed from other states.
    Notes(Box<Origin>),
}

/// The entries that the model was told at a message.
pub struct Active {
    pub chat: Snapshot,
    pub message: usize,
    /// None: the message does not carry it.
    pub entries: Option<Vec<ActiveEntry>>,
    /// The nearest messages that do, if this one does not.
    pub before: Option<usize>,
    pub after: Option<usize>,
}

/// One of them, as the message has it.
pub struct ActiveEntry {
    pub lorebook: Option<String>,
    pub uid: String,
    pub title: String,
    /// Its JSON.
    pub text: Arc<str>,
}
