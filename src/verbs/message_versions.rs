//! Lists the versions of one message in the snapshots of its timeline and of related timelines.

use std::sync::Arc;

use crate::archive::Snapshot;
use crate::archive::diff::{Change, message_change};
use crate::engine::{self, Workspace};
use crate::history::at_message::message_not_found;
use crate::history::message_history::MessageHistory;
use crate::history::name_lookup;
use crate::st::TimelineName;
use crate::store::{ObjectId, Reader, unless_lost};
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

/// A version of a message.
pub struct Version {
    /// The first snapshot that contains this version.
    pub snapshot: Snapshot,
    /// Number of the message in the snapshot, and the JSON of the message. The JSON is `None` if
    /// the store has lost it.
    pub after: (usize, Option<Arc<[u8]>>),
    /// Number and JSON of the previous version. `None` if the message did not exist in the previous
    /// snapshot.
    pub before: Option<(usize, Option<Arc<[u8]>>)>,
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
    /// Number and JSON of the message in `head`. `None` if the message was deleted from that
    /// timeline.
    pub now: Option<(usize, Option<Arc<[u8]>>)>,
    /// The first snapshot of the requested timeline with the version in `now`. `None` if the
    /// requested timeline never had that version.
    pub same_as: Option<Snapshot>,
    /// Whether the version in `now` is the latest version in the requested timeline.
    pub is_same: bool,
}

/// Reads the versions of a message, and the message in related timelines.
pub fn message_versions(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let library = workspace.library().ok();
    let head = name_lookup::stored(&options.timeline, &history, library.as_ref())?;
    let Some(message_history) = MessageHistory::read(&store, &history, head, options.message)?
    else {
        let messages = usize::try_from(head.messages).unwrap_or(usize::MAX);
        let finding = message_not_found(&head.timeline, messages, options.message);
        return Err(engine::Error::refused(finding).into());
    };
    let reader = store.reader();
    let total = message_history.versions.len();
    let limit = options.limit.unwrap_or(total);
    let mut versions = Vec::new();
    for (n, version) in message_history.versions.iter().enumerate().take(limit) {
        let before = match message_history.versions.get(n + 1).filter(|_| !version.is_again) {
            Some(older) => Some((older.number, line(&reader, older.id)?)),
            None => None,
        };
        versions.push(Version {
            snapshot: version.snapshot.clone(),
            after: (version.number, line(&reader, version.id)?),
            before,
            is_again: version.is_again,
        });
    }
    let newest = message_history.versions.first().map(|version| version.id);
    let mut elsewhere = Vec::new();
    for other in &message_history.elsewhere {
        let id = other.now.map(|(_, id)| id);
        let same_as = message_history.versions.iter().find(|version| Some(version.id) == id);
        let now = match other.now {
            Some((number, id)) => Some((number, line(&reader, id)?)),
            None => None,
        };
        elsewhere.push(MessageElsewhere {
            timeline: other.head.timeline.clone(),
            head: other.head.clone(),
            now,
            same_as: same_as.map(|version| version.snapshot.clone()),
            is_same: id.is_some() && id == newest,
        });
    }
    Ok(Report {
        timeline: head.timeline.clone(),
        message: options.message,
        is_there: message_history.is_there,
        last: message_history.last.clone(),
        versions,
        total,
        elsewhere,
        broken: message_history.broken,
    })
}

fn line(reader: &Reader, id: ObjectId) -> Result<Option<Arc<[u8]>>> {
    Ok(unless_lost(reader.blob(id))?.map(|bytes| bytes.to_vec().into()))
}
