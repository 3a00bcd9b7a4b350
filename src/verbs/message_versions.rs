//! Traces one message through the snapshots of its timeline and of related ones.

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

/// A message.
#[derive(Clone, Debug)]
pub struct Options {
    pub timeline: String,
    pub message: usize,
    pub limit: Option<usize>,
}

/// The history of a message.
pub struct Report {
    pub timeline: TimelineName,
    pub message: usize,
    pub is_there: bool,
    pub last: Snapshot,
    /// Newest first.
    pub versions: Vec<Version>,
    /// Without the limit.
    pub total: usize,
    pub elsewhere: Vec<Elsewhere>,
    /// Messages about unreadable snapshots.
    pub broken: Vec<String>,
}

/// A version of a message, and the first snapshot with it.
pub struct Version {
    pub snapshot: Snapshot,
    /// Its number there, and its JSON; `None` if that is lost.
    pub after: (usize, Option<Arc<[u8]>>),
    /// `None`: the message was not there.
    pub before: Option<(usize, Option<Arc<[u8]>>)>,
    /// It was deleted before this version.
    pub is_again: bool,
}

impl Version {
    /// Returns the change as `diff` reports it; `None` if one of the texts cannot be read.
    pub fn change(&self) -> Option<Change<'_>> {
        let after = (self.after.0, self.after.1.as_deref()?);
        match &self.before {
            Some((number, before)) => message_change(Some((*number, before.as_deref()?)), after),
            None => message_change(None, after),
        }
    }
}

/// A message in another timeline.
pub struct Elsewhere {
    pub timeline: TimelineName,
    pub head: Snapshot,
    /// Its number and its JSON; `None` if it was deleted there.
    pub now: Option<(usize, Option<Arc<[u8]>>)>,
    /// The first snapshot here with this version.
    pub same_as: Option<Snapshot>,
    /// Whether that is the latest version.
    pub is_same: bool,
}

/// Returns the history of a message.
pub fn message_versions(workspace: &Workspace, options: &Options) -> Result<Report> {
    let store = workspace.open_store()?;
    let history = workspace.history(&store)?;
    let library = workspace.library().ok();
    let head = name_lookup::stored(&options.timeline, &history, library.as_ref())?;
    let Some(told) = MessageHistory::read(&store, &history, head, options.message)? else {
        let messages = usize::try_from(head.messages).unwrap_or(usize::MAX);
        let finding = message_not_found(&head.timeline, messages, options.message);
        return Err(engine::Error::refused(finding).into());
    };
    let reader = store.reader();
    let total = told.versions.len();
    let limit = options.limit.unwrap_or(total);
    let mut versions = Vec::new();
    for (n, version) in told.versions.iter().enumerate().take(limit) {
        let before = match told.versions.get(n + 1).filter(|_| !version.is_again) {
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
    let newest = told.versions.first().map(|version| version.id);
    let mut elsewhere = Vec::new();
    for other in &told.elsewhere {
        let id = other.now.map(|(_, id)| id);
        let same_as = told.versions.iter().find(|version| Some(version.id) == id);
        let now = match other.now {
            Some((number, id)) => Some((number, line(&reader, id)?)),
            None => None,
        };
        elsewhere.push(Elsewhere {
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
        is_there: told.is_there,
        last: told.last.clone(),
        versions,
        total,
        elsewhere,
        broken: told.broken,
    })
}

fn line(reader: &Reader, id: ObjectId) -> Result<Option<Arc<[u8]>>> {
    Ok(unless_lost(reader.blob(id))?.map(|bytes| bytes.to_vec().into()))
}
