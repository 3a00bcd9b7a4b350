//! Finds snapshots that were erased on this or another device, and refs that reach such snapshots.

use std::collections::HashSet;

use super::chosen_refs::Refs;
use crate::archive::{Snapshot, SnapshotId, erasure_marks};
use crate::engine::Result;
use crate::history::History;
use crate::store::{Erasures, ObjectId, Reader, RefName, Store, unless_lost};

/// A branch or tag that reaches an erased snapshot.
pub struct ErasedRef {
    pub name: RefName,
    pub head: Snapshot,
    /// Whether only the parent of the timeline was erased, and not the timeline itself.
    pub is_fork: bool,
}

pub(crate) fn erased_among<'s>(
    erasures: &Erasures,
    reader: &Reader,
    snapshots: impl Iterator<Item = &'s Snapshot>,
) -> Result<HashSet<ObjectId>> {
    let mut erased = HashSet::new();
    if erasures.is_empty() {
        return Ok(erased);
    }
    for snapshot in snapshots {
        let is_marked = || -> Result<bool> {
            let marks = unless_lost(erasure_marks(reader, snapshot))?.unwrap_or_default();
            Ok(marks.iter().any(|mark| erasures.has(mark)))
        };
        if erasures.has(&snapshot.id.to_string()) || is_marked()? {
            erased.insert(snapshot.id.0);
        }
    }
    Ok(erased)
}

/// Returns the local refs that reach erased snapshots.
pub fn erased_refs(
    store: &Store,
    history: &History,
    refs: &Refs,
    erasures: &Erasures,
) -> Result<Vec<ErasedRef>> {
    let erased = erased_among(erasures, &store.reader(), history.iter())?;
    let mut found = Vec::new();
    if erased.is_empty() {
        return Ok(found);
    }
    for (name, id) in refs {
        let Some(head) = history.get(SnapshotId(*id)) else { continue };
        if history.walk_from([head.id]).any(|snapshot| erased.contains(&snapshot.id.0)) {
            let own = history.own(head).0;
            let is_fork = !own.iter().any(|snapshot| erased.contains(&snapshot.id.0));
            found.push(ErasedRef { name: name.clone(), head: head.clone(), is_fork });
        }
    }
    Ok(found)
}
