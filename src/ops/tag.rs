//! Names for snapshots.

use super::{Error, Result, Workspace, resolve};
use crate::archive::{History, Snapshot, SnapshotId};
use crate::store::{Effect, LoggedOperation, ObjectId, RefChange, RefName, Store};

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
            let tags: Vec<_> = history.tags().filter_map(tag).collect();
            match wanted {
                None => Ok(tags),
                Some(wanted) => {
                    let found = tags.into_iter().find(|tag| tag.name == *wanted);
                    Ok(vec![found.ok_or_else(|| Error::NoSuchTag { name: wanted.clone() })?])
                }
            }
        }
        Options::Add { name, snapshot } => {
            let (store, held) = workspace.hold(store)?;
            let snapshot = resolve::snapshot(snapshot, &store, workspace.library().ok().as_ref())?;
            let tag = tag_ref(name)?;
            let before = store.ref_target(&tag)?;
            if before != Some(snapshot.id.0) {
                free(&store, name)?;
                let change = RefChange { name: tag, before, after: Some(snapshot.id.0) };
                store.transact(&held.lock, workspace.timestamp(), Effect::moves(vec![change]))?;
            }
            Ok(vec![Tag { name: name.clone(), snapshot }])
        }
        Options::Delete { name } => {
            let (store, held) = workspace.hold(store)?;
            let tag = tag_ref(name)?;
            let before = match (store.ref_target(&tag)?, held.done_before(workspace, &store)?) {
                (Some(before), _) => before,
                (None, Some(done)) => was_deleted(&done, &tag, name)?,
                (None, None) => return Err(Error::NoSuchTag { name: name.clone() }),
            };
            let snapshot = resolve::read(&store, SnapshotId(before))?;
            // A checkpoint may hang by its tag alone; the operation log must still find it.
            let kept = RefName::kept(before);
            let kept_before = store.ref_target(&kept)?;
            let tag_before = store.ref_target(&tag)?;
            let changes = vec![
                RefChange { name: kept, before: kept_before, after: Some(before) },
                RefChange { name: tag, before: tag_before, after: None },
            ];
            store.transact(&held.lock, workspace.timestamp(), Effect::moves(changes))?;
            Ok(vec![Tag { name: name.clone(), snapshot }])
        }
    }
}

/// What the tag named that an interrupted deletion took away.
fn was_deleted(done: &LoggedOperation, tag: &RefName, name: &str) -> Result<ObjectId> {
    let change = done.refs.iter().find(|change| change.name == *tag);
    change
        .and_then(|change| change.before)
        .ok_or_else(|| Error::NoSuchTag { name: name.to_owned() })
}

/// The tags of one snapshot.
pub(super) fn tags_of(store: &Store, snapshot: SnapshotId) -> Result<Vec<String>> {
    let tags = store.refs("refs/tags/")?.refs.into_iter();
    Ok(tags.filter(|(_, id)| *id == snapshot.0).filter_map(|(name, _)| name.tag_name()).collect())
}

fn tag_ref(name: &str) -> Result<RefName> {
    let bad = |why| Error::BadTag { name: name.to_owned(), why };
    if name.trim().is_empty() {
        return Err(bad("it is empty"));
    }
    if name.starts_with("b3:") {
        return Err(bad("names that begin with b3: are content ids"));
    }
    RefName::tag(name).ok_or_else(|| bad("it is too long"))
}

/// The ref of a tag that must not exist yet.
pub(super) fn free(store: &Store, name: &str) -> Result<RefName> {
    let tag = tag_ref(name)?;
    match store.ref_target(&tag)? {
        None => Ok(tag),
        Some(id) => Err(Error::TagExists { name: name.to_owned(), snapshot: id.to_string() }),
    }
}

/// A tag for a checkpoint that the user gave no name: `<chat> @<message>`, numbered if it is taken by another one.
pub(super) fn free_for(store: &Store, snapshot: &Snapshot, at: Option<usize>) -> Result<RefName> {
    let chat: String = snapshot.timeline.chat().chars().take(60).collect();
    let name = format!("{} @{}", chat.trim(), at.unwrap_or_default());
    free_like(store, |_| None, &name, snapshot.id)
}

/// A tag of that name for `snapshot`, numbered if another one has it. `moving` tells where the command itself leads a ref.
pub(super) fn free_like(
    store: &Store,
    moving: impl Fn(&RefName) -> Option<ObjectId>,
    name: &str,
    snapshot: SnapshotId,
) -> Result<RefName> {
    let mut number = 1;
    loop {
        let numbered = if number == 1 { name.to_owned() } else { format!("{name} ({number})") };
        let tag = tag_ref(&numbered)?;
        match moving(&tag).or(store.ref_target(&tag)?) {
            Some(id) if id != snapshot.0 => number += 1,
            _ => return Ok(tag),
        }
    }
}
