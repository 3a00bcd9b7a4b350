//! Lists the versions of one message in the snapshots of its timeline and of related timelines.

use std::collections::HashMap;
use std::sync::Arc;

use crate::archive::diff::{Change, message_change};
use crate::archive::message_lives::{MessageLists, counterpart};
use crate::archive::{Snapshot, SnapshotId};
use crate::engine::{self, Workspace};
use crate::history::at_message::message_not_found;
use crate::history::{History, name_lookup};
use crate::st::TimelineName;
use crate::store::{Loss, ObjectId, Reader, Store, unless_lost};
use crate::verbs::Result;

/// The message, and the number of versions to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the timeline.
    pub timeline: String,
    /// Number of the message in the latest snapshot that contains it.
    pub message: usize,
    /// Maximum number of versions. `None` lists all.
    pub limit: Option<usize>,
}

/// The history of a message.
#[non_exhaustive]
pub struct Report {
    /// Latest name of the timeline.
    pub timeline: TimelineName,
    /// Number of the message in `last`.
    pub message: usize,
    /// Whether the latest snapshot of the timeline contains the message.
    pub is_there: bool,
    /// The latest snapshot that contains the message.
    pub last: Snapshot,
    /// Newest first.
    pub versions: Vec<Version>,
    /// Number of versions before `Options::limit` is applied.
    pub total: usize,
    /// Timelines that share the message, or once did.
    pub elsewhere: Vec<MessageElsewhere>,
    /// Descriptions of unreadable snapshots.
    pub broken: Vec<String>,
}

/// Number of a message in a snapshot, and the JSON of the message. The JSON is `None` if the store
/// has lost it.
pub type NumberedMessage = (usize, Option<Arc<[u8]>>);

/// A version of a message.
pub struct Version {
    /// The first snapshot that contains this version.
    pub snapshot: Snapshot,
    /// This version, in `snapshot`.
    pub after: NumberedMessage,
    /// The previous version. `None` if the message did not exist in the previous snapshot.
    pub before: Option<NumberedMessage>,
    /// Whether the message had been deleted before this version.
    pub is_again: bool,
}

impl Version {
    /// Returns the change as `diff` reports it. Returns `None` if this version or the previous
    /// version cannot be read.
    pub fn change(&self) -> Option<Change<'_>> {
        let after = (self.after.0, self.after.1.as_deref()?);
        match &self.before {
            Some((number, before)) => message_change(Some((*number, before.as_deref()?)), after),
            None => message_change(None, after),
        }
    }
}

/// The message in another timeline.
pub struct MessageElsewhere {
    /// The other timeline.
    pub timeline: TimelineName,
    /// Latest snapshot of that timeline.
    pub head: Snapshot,
    /// The message in `head`. `None` if the message was deleted from that timeline.
    pub now: Option<NumberedMessage>,
    /// The first snapshot of the requested timeline with the version in `now`. `None` if the
    /// requested timeline never had that version.
    pub same_as: Option<Snapshot>,
    /// Whether the version in `now` is the latest version in the requested timeline.
    pub is_same: bool,
}

/// A version of the message, which begins with `snapshot`.
struct MessageVersion<'h> {
    snapshot: &'h Snapshot,
    number: usize,
    id: ObjectId,
    /// Whether the message had been removed before this version restored it.
    is_again: bool,
}

/// The message in the past of one timeline.
#[derive(Default)]
struct MessagePast<'h> {
    /// Newest first.
    versions: Vec<MessageVersion<'h>>,
    /// The latest snapshot that contains the message.
    last: Option<&'h Snapshot>,
    /// Number of the message in each snapshot, to find the message in timelines that were forked
    /// there.
    places: HashMap<SnapshotId, usize>,
    broken: Vec<String>,
}

/// Reads the versions of a message, and the message in related timelines. If the latest snapshot
/// has fewer messages, starts with the latest snapshot that has a message of this number.
pub fn message_versions(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let library = workspace.library().ok();
    let head = name_lookup::stored(&options.timeline, &history, library.as_ref())?;
    let past = past(&store, &history, head, options.message)?;
    let Some(last) = past.last else {
        let messages = usize::try_from(head.messages).unwrap_or(usize::MAX);
        let finding = message_not_found(&head.timeline, messages, options.message);
        return Err(engine::Error::refused(finding).into());
    };
    let reader = store.reader();
    let total = past.versions.len();
    let mut versions = Vec::new();
    for (n, version) in past.versions.iter().enumerate().take(options.limit.unwrap_or(total)) {
        let older = past.versions.get(n + 1).filter(|_| !version.is_again);
        versions.push(Version {
            snapshot: version.snapshot.clone(),
            after: line(&reader, (version.number, version.id))?,
            before: older.map(|older| line(&reader, (older.number, older.id))).transpose()?,
            is_again: version.is_again,
        });
    }
    Ok(Report {
        timeline: head.timeline.clone(),
        message: options.message,
        is_there: last.id == head.id,
        last: last.clone(),
        versions,
        total,
        elsewhere: elsewhere(&store, &history, head, &past)?,
        broken: past.broken,
    })
}

fn past<'h>(
    store: &Store,
    history: &'h History,
    head: &'h Snapshot,
    number: usize,
) -> Result<MessagePast<'h>> {
    let reader = store.reader();
    let mut lists = MessageLists::new(store.reader());
    let mut past = MessagePast::default();
    // The messages of the next newer snapshot that has the message, and its number there.
    let mut newer: Option<(Vec<ObjectId>, usize)> = None;
    let mut is_gap = false;
    for snapshot in history.ancestry(head) {
        let list = match lists.of(snapshot.tree) {
            Ok(list) => list,
            Err(error) if error.is_loss() => {
                past.broken.push(format!("{}: {error}", snapshot.id));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let place = match &newer {
            Some((newer, at)) => counterpart(&reader, newer, &list, *at)?,
            None => Some(number).filter(|number| *number < list.len()),
        };
        let Some(number) = place else {
            is_gap = true;
            continue;
        };
        let id = list[number];
        match past.versions.last_mut() {
            Some(version) if version.id == id && !is_gap => {
                (version.snapshot, version.number) = (snapshot, number);
            }
            newest => {
                newest.into_iter().for_each(|version| version.is_again = is_gap);
                past.versions.push(MessageVersion { snapshot, number, id, is_again: false });
            }
        }
        past.last.get_or_insert(snapshot);
        past.places.insert(snapshot.id, number);
        (newer, is_gap) = (Some((list, number)), false);
    }
    Ok(past)
}

/// Finds the message in the other timelines that share a snapshot with its timeline.
fn elsewhere(
    store: &Store,
    history: &History,
    own: &Snapshot,
    past: &MessagePast<'_>,
) -> Result<Vec<MessageElsewhere>> {
    let reader = store.reader();
    let mut lists = MessageLists::new(store.reader());
    let newest = past.versions.first().map(|version| version.id);
    let mut found = Vec::new();
    for (timeline, head) in history.heads() {
        if head.id == own.id || !timeline.is_chat() {
            continue;
        }
        let shared = history.ancestry(head).find(|snapshot| past.places.contains_key(&snapshot.id));
        let Some(shared) = shared else { continue };
        let then = unless_lost(lists.of(shared.tree))?;
        let now = unless_lost(lists.of(head.tree))?;
        let (Some(then), Some(now)) = (then, now) else { continue };
        let place = counterpart(&reader, &then, &now, past.places[&shared.id])?;
        let id = place.map(|place| now[place]);
        let same_as = past.versions.iter().find(|version| Some(version.id) == id);
        found.push(MessageElsewhere {
            timeline: timeline.clone(),
            head: head.clone(),
            now: place.map(|place| line(&reader, (place, now[place]))).transpose()?,
            same_as: same_as.map(|version| version.snapshot.clone()),
            is_same: id.is_some() && id == newest,
        });
    }
    Ok(found)
}

fn line(reader: &Reader, (number, id): (usize, ObjectId)) -> Result<NumberedMessage> {
    Ok((number, unless_lost(reader.blob(id))?.map(Arc::from)))
}
