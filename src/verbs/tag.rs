//! Names for snapshots.

use crate::archive::{Snapshot, SnapshotId};
use crate::engine::TagError;
use crate::engine::{Workspace, tags};
use crate::history::{History, name_lookup};
use crate::store::{Effect, LoggedOperation, ObjectId, RefChange, RefName, Store};
use crate::verbs::Result;

/// What to do.
#[derive(Clone, Debug)]
pub enum Options {
    /// List them, or the one of that name.
    List {
        /// Only this one.
        name: Option<String>,
    },
    /// Give a snapshot a name.
    Add {
        /// The name.
        name: String,
        /// The snapshot.
        snapshot: String,
        /// Also if another one has it.
        lead: bool,
    },
    /// Take a name away; the snapshot stays while its timeline has it.
    Delete {
        /// The name.
        name: String,
    },
}

/// A tag and what it names.
pub struct Tag {
    /// The name.
    pub name: String,
    /// The snapshot.
    pub snapshot: Snapshot,
}

/// List, add or delete: the tags that were listed, added or deleted.
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
            let snapshot = workspace.snapshot(snapshot, &store)?;
            let tag = tags::tag_ref(name)?;
            let before = store.ref_target(&tag)?;
            if before != Some(snapshot.id.0) {
                match lead {
                    true => tags::wanted(&store, name)?,
                    false => tags::free(&store, name)?,
                };
                let mut changes = vec![RefChange { name: tag, before, after: Some(snapshot.id.0) }];
                changes.extend(before.map(|before| keeping(&store, before)).transpose()?);
                store.transact(&held.lock, workspace.timestamp(), Effect::moves(changes))?;
            }
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

/// A checkpoint may hang by its tag alone; the operation log must still find it.
fn keeping(store: &Store, id: ObjectId) -> Result<RefChange> {
    let name = RefName::kept(id);
    let before = store.ref_target(&name)?;
    Ok(RefChange { name, before, after: Some(id) })
}

/// What the tag named that an interrupted deletion took away.
fn was_deleted(done: &LoggedOperation, tag: &RefName, name: &str) -> Result<ObjectId> {
    let change = done.refs.iter().find(|change| change.name == *tag);
    let before = change.and_then(|change| change.before);
    Ok(before.ok_or_else(|| TagError::Missing { name: name.to_owned() })?)
}
