//! The line of a lorebook entry: as it is, or as it was at a moment.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::archive::SnapshotId;
use crate::store::Time;
use crate::verbs::lore::{
    Book, Elsewhere, EntryNow, EntryStory, EntryThen, KnownFrom, Since, Then, UidHolder, raw,
};

/// An entry. Unknown or unasked facts are null.
#[derive(Default, Serialize)]
pub struct LoreEntryLine<'a> {
    lorebook: &'a str,
    uid: String,
    live: Option<bool>,
    newer: Option<bool>,
    #[serde(flatten)]
    now: Now<'a>,
    #[serde(flatten)]
    source: Source,
    value: Option<Box<RawValue>>,
}

#[derive(Default, Serialize)]
struct Now<'a> {
    title: Option<&'a str>,
    keys: Option<&'a [String]>,
    disabled: Option<bool>,
    changes: Option<usize>,
    formatting: Option<usize>,
    same_uid: Option<&'a [UidHolder]>,
}

#[derive(Default, Serialize)]
struct Source {
    snapshot: Option<SnapshotId>,
    time: Option<Time>,
    noted_at: Option<usize>,
}

impl<'a> LoreEntryLine<'a> {
    pub(super) fn listed(book: &'a Book, entry: &'a EntryNow) -> Self {
        let now = Now {
            title: Some(&entry.title),
            keys: Some(&entry.keys),
            disabled: Some(entry.is_off),
            changes: Some(entry.changes),
            ..Now::default()
        };
        let (snapshot, time) = (Some(entry.changed.id), Some(entry.changed.time));
        let source = Source { snapshot, time, noted_at: None };
        let (lorebook, uid) = (book.name.chat(), entry.uid.clone());
        Self { lorebook, uid, live: Some(true), now, source, ..Self::default() }
    }

    /// The line before the history of an entry.
    pub(super) fn of_story(story: &'a EntryStory) -> Self {
        let now = Now {
            title: Some(&story.title),
            changes: Some(story.changes.total),
            formatting: Some(story.changes.formatting),
            same_uid: Some(&story.same_uid),
            ..Now::default()
        };
        let (lorebook, uid) = (story.book.chat(), story.uid.clone());
        Self { lorebook, uid, live: Some(story.is_there), now, ..Self::default() }
    }

    pub(super) fn elsewhere(other: &'a Elsewhere) -> Self {
        let (lorebook, uid) = (other.book.chat(), other.uid.clone());
        Self { lorebook, uid, live: Some(true), value: raw(&other.text), ..Self::default() }
    }

    pub(super) fn then(then: &'a Then, entry: &EntryThen) -> Self {
        let source = match &then.known_from {
            KnownFrom::Snapshot(snapshot) => {
                let (id, time) = (Some(snapshot.id), Some(snapshot.time));
                Source { snapshot: id, time, noted_at: None }
            }
            KnownFrom::Notes(origin) => {
                let noted_at = origin.scene.as_ref().map(|(message, _)| *message);
                Source { snapshot: origin.book_of, time: None, noted_at }
            }
        };
        Self {
            lorebook: then.book.chat(),
            uid: entry.key.to_string_lossy(),
            live: entry.since.map(|since| since != Since::Gone),
            newer: entry.since.map(|since| since == Since::Changed),
            source,
            value: raw(&entry.text),
            ..Self::default()
        }
    }
}
