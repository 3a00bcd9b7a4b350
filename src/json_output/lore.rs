//! The line of a lorebook entry, as it is now or as it was at a moment.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::archive::SnapshotId;
use crate::store::Time;
use crate::verbs::lore::{
    Book, ChangeAfter, CopyInOtherBook, EntryNow, EntryStory, EntryThen, KnownFrom, LoreAtMoment,
    UidHolder, raw,
};

/// The line of a lorebook entry. Values that are unknown or were not requested are null.
#[derive(Default, Serialize)]
pub struct LoreEntryLine<'a> {
    lorebook: &'a str,
    uid: String,
    live: Option<bool>,
    newer: Option<bool>,
    #[serde(flatten)]
    now: LatestEntry<'a>,
    #[serde(flatten)]
    source: Source,
    value: Option<Box<RawValue>>,
}

#[derive(Default, Serialize)]
struct LatestEntry<'a> {
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
        let now = LatestEntry {
            title: Some(&entry.title),
            keys: Some(&entry.keys),
            disabled: Some(entry.is_off),
            changes: Some(entry.changes),
            ..LatestEntry::default()
        };
        let (snapshot, time) = (Some(entry.changed.id), Some(entry.changed.time));
        let source = Source { snapshot, time, noted_at: None };
        let (lorebook, uid) = (book.name.chat(), entry.uid.clone());
        Self { lorebook, uid, live: Some(true), now, source, ..Self::default() }
    }

    /// Returns the line of an entry. The lines of its history follow.
    pub(super) fn of_story(story: &'a EntryStory) -> Self {
        let now = LatestEntry {
            title: Some(&story.title),
            changes: Some(story.changes.total),
            formatting: Some(story.changes.formatting),
            same_uid: Some(&story.same_uid),
            ..LatestEntry::default()
        };
        let (lorebook, uid) = (story.book.chat(), story.uid.clone());
        Self { lorebook, uid, live: Some(story.is_there), now, ..Self::default() }
    }

    pub(super) fn elsewhere(other: &'a CopyInOtherBook) -> Self {
        let (lorebook, uid) = (other.book.chat(), other.uid.clone());
        Self { lorebook, uid, live: Some(true), value: raw(&other.text), ..Self::default() }
    }

    pub(super) fn then(then: &'a LoreAtMoment, entry: &EntryThen) -> Self {
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
            live: entry.since.map(|since| since != ChangeAfter::Gone),
            newer: entry.since.map(|since| since == ChangeAfter::Changed),
            source,
            value: raw(&entry.text),
            ..Self::default()
        }
    }
}
