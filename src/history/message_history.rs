//! The history of one message: its versions, and its counterparts in related timelines.

use std::collections::HashMap;

use super::{History, Result};
use crate::archive::message_lives::{MessageLists, counterpart};
use crate::archive::{Snapshot, SnapshotId};
use crate::store::{Loss, ObjectId, Store, unless_lost};

pub struct MessageHistory<'h> {
    /// Versions of the message, newest first.
    pub versions: Vec<MessageVersion<'h>>,
    /// The latest snapshot that contains the message. `is_there` is true if this is the latest
    /// snapshot of the timeline.
    pub last: &'h Snapshot,
    pub is_there: bool,
    /// The message in other timelines that share a snapshot with its timeline.
    pub elsewhere: Vec<OtherTimelineMessage<'h>>,
    /// Unreadable snapshots, each with the reason.
    pub broken: Vec<String>,
}

/// A version of a message, which begins with `snapshot`.
pub struct MessageVersion<'h> {
    pub snapshot: &'h Snapshot,
    pub number: usize,
    pub id: ObjectId,
    /// Whether the message had been removed before this version restored it.
    pub is_again: bool,
}

/// The message in another timeline.
pub struct OtherTimelineMessage<'h> {
    pub head: &'h Snapshot,
    /// Number and object of the message in `head`; `None` if the message was removed there.
    pub now: Option<(usize, ObjectId)>,
}

impl<'h> MessageHistory<'h> {
    /// Reads the history of message `number` in the timeline of `head`. If `head` has fewer
    /// messages, uses the latest snapshot that has such a message. Returns `None` if no snapshot
    /// has one.
    pub fn read(
        store: &Store,
        history: &'h History,
        head: &'h Snapshot,
        number: usize,
    ) -> Result<Option<Self>> {
        let reader = store.reader();
        let mut lists = MessageLists::new(store.reader());
        let mut broken = Vec::new();
        let mut past = history.ancestry(head);
        let mut start = None;
        for snapshot in past.by_ref() {
            match lists.of(snapshot.tree) {
                Ok(list) if number < list.len() => {
                    start = Some((snapshot, list));
                    break;
                }
                Ok(_) => {}
                Err(error) if error.is_loss() => broken.push(format!("{}: {error}", snapshot.id)),
                Err(error) => return Err(error.into()),
            }
        }
        let Some((last, mut list)) = start else { return Ok(None) };
        let mut at = number;
        // Number of the message in each snapshot, to find the message in timelines that were forked
        // there.
        let mut places = HashMap::from([(last.id, at)]);
        let first = MessageVersion { snapshot: last, number: at, id: list[at], is_again: false };
        let mut versions = vec![first];
        let mut is_gap = false;
        for snapshot in past {
            let older = match lists.of(snapshot.tree) {
                Ok(older) => older,
                Err(error) if error.is_loss() => {
                    broken.push(format!("{}: {error}", snapshot.id));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Some(place) = counterpart(&reader, &list, &older, at)? else {
                is_gap = true;
                continue;
            };
            let newest = versions.last_mut().filter(|version| version.id == older[place]);
            match newest {
                Some(version) if !is_gap => (version.snapshot, version.number) = (snapshot, place),
                _ => {
                    if let Some(version) = versions.last_mut() {
                        version.is_again = is_gap;
                    }
                    let id = older[place];
                    versions.push(MessageVersion { snapshot, number: place, id, is_again: false });
                }
            }
            places.insert(snapshot.id, place);
            (list, at, is_gap) = (older, place, false);
        }
        let elsewhere = elsewhere(store, history, head, &places)?;
        let is_there = last.id == head.id;
        Ok(Some(Self { versions, last, is_there, elsewhere, broken }))
    }
}

fn elsewhere<'h>(
    store: &Store,
    history: &'h History,
    own: &Snapshot,
    places: &HashMap<SnapshotId, usize>,
) -> Result<Vec<OtherTimelineMessage<'h>>> {
    let reader = store.reader();
    let mut lists = MessageLists::new(store.reader());
    let mut found = Vec::new();
    for (_, head) in history.heads() {
        if head.id == own.id || !head.timeline.is_chat() {
            continue;
        }
        let shared = history.ancestry(head).find(|snapshot| places.contains_key(&snapshot.id));
        let Some(shared) = shared else { continue };
        let then = unless_lost(lists.of(shared.tree))?;
        let now = unless_lost(lists.of(head.tree))?;
        let (Some(then), Some(now)) = (then, now) else { continue };
        let place = counterpart(&reader, &then, &now, places[&shared.id])?;
        found.push(OtherTimelineMessage { head, now: place.map(|place| (place, now[place])) });
    }
    Ok(found)
}
