//! What the story knew: lorebooks, their entries, and what became of these.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::archive::diff::{Change, entry_change};
use crate::archive::{Snapshot, SnapshotId};
use crate::lines::ChangeLine;
use crate::st::{Key, Raw};
use crate::store::Time;
use crate::verbs::lore::{
    Active, ActiveEntry, Book, Elsewhere, EntryChange, EntryNow, EntryStory, EntryThen, KnownFrom,
    Previous, SceneName, Sentence, Since, Then, UidHolder,
};

/// A lorebook; its entries follow.
#[derive(Serialize)]
pub struct LoreBookLine<'a> {
    lorebook: &'a str,
    timeline: &'a str,
    entries: usize,
    states: usize,
    snapshot: Option<SnapshotId>,
    time: Option<Time>,
}

impl<'a> From<&'a Book> for LoreBookLine<'a> {
    fn from(book: &'a Book) -> Self {
        Self {
            lorebook: book.name.chat(),
            timeline: book.name.as_str(),
            entries: book.entries.len(),
            states: book.states,
            snapshot: book.last.as_ref().map(|last| last.id),
            time: book.last.as_ref().map(|last| last.time),
        }
    }
}

/// An entry as it is, or was at a moment. What is not known of it is null.
#[derive(Default, Serialize)]
pub struct LoreEntryLine<'a> {
    lorebook: &'a str,
    uid: String,
    title: Option<&'a str>,
    keys: Option<&'a [String]>,
    disabled: Option<bool>,
    /// Since which snapshot it is so, or which tells it.
    snapshot: Option<SnapshotId>,
    time: Option<Time>,
    changes: Option<usize>,
    /// How many changes of formatting alone were left out.
    formatting: Option<usize>,
    /// The other entries that had its UID at some time.
    same_uid: Option<&'a [UidHolder]>,
    /// Whether it is in the lorebook now.
    live: Option<bool>,
    /// Whether it says something else now.
    newer: Option<bool>,
    /// The message whose notes it is told from, where no snapshot has it.
    noted_at: Option<usize>,
    value: Option<Box<RawValue>>,
}

impl<'a> LoreEntryLine<'a> {
    /// One of a list.
    pub fn listed(book: &'a Book, entry: &'a EntryNow) -> Self {
        Self {
            lorebook: book.name.chat(),
            uid: entry.uid.clone(),
            title: Some(&entry.title),
            keys: Some(&entry.keys),
            disabled: Some(entry.is_off),
            snapshot: Some(entry.changed.id),
            time: Some(entry.changed.time),
            changes: Some(entry.changes),
            live: Some(true),
            ..Self::default()
        }
    }

    /// The one whose history follows.
    pub fn of_story(story: &'a EntryStory) -> Self {
        Self {
            lorebook: story.book.chat(),
            uid: story.uid.clone(),
            title: Some(&story.title),
            changes: Some(story.total),
            formatting: Some(story.formatting),
            same_uid: Some(&story.same_uid),
            live: Some(story.is_there),
            ..Self::default()
        }
    }

    /// What another lorebook says of the same entry.
    pub fn elsewhere(other: &'a Elsewhere) -> Self {
        Self {
            lorebook: other.book.chat(),
            uid: other.uid.clone(),
            live: Some(true),
            value: raw(&other.text),
            ..Self::default()
        }
    }

    /// As it was.
    pub fn then(then: &'a Then, entry: &EntryThen) -> Self {
        let line = Self {
            lorebook: then.book.chat(),
            uid: entry.key.to_string_lossy(),
            live: entry.since.map(|since| since != Since::Gone),
            newer: entry.since.map(|since| since == Since::Changed),
            ..Self::default()
        };
        let value = raw(&entry.text);
        match &then.known_from {
            KnownFrom::Snapshot(snapshot) => {
                let (id, time) = (Some(snapshot.id), Some(snapshot.time));
                Self { snapshot: id, time, value, ..line }
            }
            KnownFrom::Notes(origin) => {
                let noted_at = origin.scene.as_ref().map(|(message, _)| *message);
                Self { snapshot: origin.book_of, noted_at, value, ..line }
            }
        }
    }
}

/// An entry that the model was told at a message.
#[derive(Serialize)]
pub struct LoreActiveLine<'a> {
    timeline: &'a str,
    snapshot: SnapshotId,
    index: usize,
    lorebook: Option<&'a str>,
    uid: &'a str,
    title: &'a str,
    value: Option<Box<RawValue>>,
}

impl<'a> LoreActiveLine<'a> {
    pub fn new(active: &'a Active, entry: &'a ActiveEntry) -> Self {
        Self {
            timeline: active.chat.timeline.as_str(),
            snapshot: active.chat.id,
            index: active.message,
            lorebook: entry.lorebook.as_deref(),
            uid: &entry.uid,
            title: &entry.title,
            value: raw(&entry.text),
        }
    }
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

/// What became of an entry, newest first.
#[derive(Serialize)]
pub struct LoreChangeLine<'a> {
    snapshot: SnapshotId,
    time: Time,
    /// The chat that was written at the time, its snapshot, its last message and how that ends.
    #[serde(flatten)]
    story: StoryFields<'a>,
    /// It had gone before, and is there again.
    again: bool,
    /// The state of the lorebook before: the change was made between the two.
    previous: Option<PreviousFields>,
    /// The scene whose recap brought it, by the message that ends it, if that is certain.
    scene: Option<&'a SceneName>,
    /// As in the lines of `diff`; null if what it said cannot be read.
    change: Option<ChangeLine>,
}

#[derive(Serialize)]
struct PreviousFields {
    snapshot: SnapshotId,
    time: Time,
    /// The last message of the chat then.
    index: Option<u64>,
}

impl From<&Previous> for PreviousFields {
    fn from(previous: &Previous) -> Self {
        Self {
            snapshot: previous.snapshot.id,
            time: previous.snapshot.time,
            index: previous.story.as_ref().and_then(|story| story.messages.checked_sub(1)),
        }
    }
}

#[derive(Serialize)]
struct StoryFields<'a> {
    timeline: Option<&'a str>,
    story: Option<SnapshotId>,
    index: Option<u64>,
    last_words: Option<&'a str>,
}

impl<'a> From<Option<&'a Snapshot>> for StoryFields<'a> {
    fn from(story: Option<&'a Snapshot>) -> Self {
        Self {
            timeline: story.map(|story| story.timeline.as_str()),
            story: story.map(|story| story.id),
            index: story.and_then(|story| story.messages.checked_sub(1)),
            last_words: story.and_then(|story| story.last_words.as_deref()),
        }
    }
}

impl<'a> From<&'a EntryChange> for LoreChangeLine<'a> {
    fn from(change: &'a EntryChange) -> Self {
        Self {
            snapshot: change.snapshot.id,
            time: change.snapshot.time,
            story: change.story.as_ref().into(),
            again: change.is_again,
            previous: change.previous.as_ref().map(PreviousFields::from),
            scene: change.scene.as_ref(),
            change: change_of(change).as_ref().map(ChangeLine::from),
        }
    }
}

/// The change as `diff` tells it.
pub fn change_of(change: &EntryChange) -> Option<Change<'_>> {
    fn side(side: &Option<(Key, std::sync::Arc<str>)>) -> Option<(&Key, Raw<'_>)> {
        let (key, text) = side.as_ref()?;
        Some((key, Raw::parse_str(text)?))
    }
    if change.is_lost { None } else { entry_change(side(&change.before), side(&change.after)) }
}

/// A sentence of an entry, and what brought it.
#[derive(Serialize)]
pub struct LoreSentenceLine<'a> {
    text: &'a str,
    snapshot: SnapshotId,
    time: Time,
    #[serde(flatten)]
    story: StoryFields<'a>,
}

impl<'a> From<&'a Sentence> for LoreSentenceLine<'a> {
    fn from(sentence: &'a Sentence) -> Self {
        Self {
            text: &sentence.text,
            snapshot: sentence.snapshot.id,
            time: sentence.snapshot.time,
            story: sentence.story.as_ref().into(),
        }
    }
}
