//! Lists, adds and deletes tags, the user-given names of snapshots.

use crate::archive::{Kind, Snapshot, SnapshotId, State};
use crate::engine::operation::{Operation, SnapshotParents};
use crate::engine::{self, TagError, Workspace, tags};
use crate::history::moment::{Book, Moment, NameKind};
use crate::history::state_then::{NeedBook, StateThen};
use crate::history::{History, name_lookup};
use crate::store::{Effect, LoggedOperation, ObjectId, RefChange, RefName, Store};
use crate::verbs::Result;

/// The action to perform.
#[derive(Clone, Debug)]
pub enum Options {
    /// Lists tags.
    List {
        /// Lists only this tag. `None` lists all tags.
        name: Option<String>,
    },
    /// Adds a tag to a snapshot.
    Add {
        /// Name of the new tag.
        name: String,
        /// Name of the moment.
        snapshot: String,
        /// Move the tag if it already exists on another snapshot.
        lead: bool,
    },
    /// Deletes a tag. A snapshot that is part of a timeline is not affected.
    Delete {
        /// Name of the tag to remove.
        name: String,
    },
}

/// A tag and its snapshot.
pub struct Tag {
    /// Name of the tag.
    pub name: String,
    /// The snapshot to which the tag points.
    pub snapshot: Snapshot,
}

/// Lists, adds or deletes tags. Returns the listed, added or deleted tags.
pub fn tag(workspace: &Workspace, options: &Options) -> Result<Vec<Tag>> {
    let store = workspace.open_store()?;
    match options {
        Options::List { name: wanted } => {
            let history = History::load(&store)?;
            let tag = |(name, id): (&str, SnapshotId)| {
                Some(Tag { name: name.to_owned(), snapshot: history.get(id)?.clone() })
            };
            let all: Vec<_> = history.tags().filter_map(tag).collect();
            match wanted {
                None => Ok(all),
                Some(wanted) => {
                    let found = all.into_iter().find(|tag| tag.name == *wanted);
                    Ok(vec![found.ok_or_else(|| TagError::Missing { name: wanted.clone() })?])
                }
            }
        }
        Options::Add { name, snapshot, lead } => {
            let (store, held) = workspace.hold(&store)?;
            let moment = workspace.moment(snapshot, &store)?;
            let tag = tags::tag_ref(name)?;
            let before = store.ref_target(&tag)?;
            let taken = moment.taken()?;
            if before == Some(taken.id.0) && matches!(moment.book, Book::Recorded) {
                return Ok(vec![Tag { name: name.clone(), snapshot: taken.clone() }]);
            }
            if *lead {
                tags::wanted(&store, name)?
            } else {
                tags::free(&store, name)?
            };
            let mut operation = Operation::new(workspace, &store, None);
            let snapshot = snapshot_of(&store, &moment, &mut operation)?;
            operation.move_ref(tag, snapshot.id)?;
            if let Some(before) = before {
                operation.move_ref(RefName::kept(before), SnapshotId(before))?;
            }
            operation.finish(&held)?;
            Ok(vec![Tag { name: name.clone(), snapshot }])
        }
        Options::Delete { name } => {
            let (store, held) = workspace.hold(&store)?;
            let tag = tags::tag_ref(name)?;
            let before = match (store.ref_target(&tag)?, held.done_before(workspace, &store)?) {
                (Some(before), _) => before,
                (None, Some(done)) => was_deleted(&done, &tag, name)?,
                (None, None) => return Err(TagError::Missing { name: name.clone() }.into()),
            };
            let snapshot = name_lookup::read(&store, SnapshotId(before))?;
            let tag_before = store.ref_target(&tag)?;
            let changes = vec![
                keeping(&store, before)?,
                RefChange { name: tag, before: tag_before, after: None },
            ];
            store.transact(&held.lock, workspace.timestamp(), Effect::moves(changes))?;
            Ok(vec![Tag { name: name.clone(), snapshot }])
        }
    }
}

/// Returns a snapshot with both files of a moment. If the lorebook changed after the chat's
/// snapshot was created, no such snapshot exists yet, and a new snapshot is created. If the moment
/// is the latest of its timeline, the new snapshot is added to the timeline. Otherwise the new
/// snapshot is a checkpoint, which moves no branch.
fn snapshot_of(store: &Store, moment: &Moment, operation: &mut Operation<'_>) -> Result<Snapshot> {
    let taken = moment.taken()?.clone();
    if !matches!(moment.book, Book::Snapshot(_)) {
        return Ok(taken);
    }
    let then = StateThen::rebuild(store, moment, NeedBook::Yes)?;
    if then.book_of.is_none() {
        return Err(engine::Error::Refused { findings: then.findings }.into());
    }
    let state = State::of(&then.contents.files);
    let follows = SnapshotParents::previous(taken);
    Ok(match moment.named {
        NameKind::Timeline => operation.take(&state, Kind::SNAPSHOT, follows)?,
        NameKind::State => operation.commit(&state, Kind::CHECKPOINT, follows)?,
    })
}

/// Returns the ref change that keeps a snapshot reachable, so that the deletion of its tag can be
/// undone. A checkpoint may be reachable only through its tag.
fn keeping(store: &Store, id: ObjectId) -> Result<RefChange> {
    let name = RefName::kept(id);
    let before = store.ref_target(&name)?;
    Ok(RefChange { name, before, after: Some(id) })
}

/// Returns the target of a tag that an interrupted run of this command has deleted.
fn was_deleted(done: &LoggedOperation, tag: &RefName, name: &str) -> Result<ObjectId> {
    let change = done.effect.refs.iter().find(|change| change.name == *tag);
    let before = change.and_then(|change| change.before);
    Ok(before.ok_or_else(|| TagError::Missing { name: name.to_owned() })?)
}
