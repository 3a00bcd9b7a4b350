//! Changes the parents of forks at the user's request.

use std::collections::HashMap;

use super::operation::{HeldLock, Operation};
use super::{Result, Workspace};
use crate::archive::{Snapshot, SnapshotId};
use crate::history::origin::NewParent;
use crate::history::rewrite_history::{begin_elsewhere, shared_messages};
use crate::history::{self, History};
use crate::store::Store;

/// Gives the first snapshots of timelines new parents, in one operation. `beginnings` maps each
/// first snapshot to its new parent. Returns the number of snapshots whose id changed.
pub(crate) fn begin(
    workspace: &Workspace,
    store: &Store,
    held: &HeldLock,
    history: &History,
    beginnings: &HashMap<SnapshotId, NewParent>,
) -> Result<usize> {
    let mut operation = Operation::new(workspace, store, None);
    let rewritten = begin_elsewhere(&mut operation.pack, store, history, beginnings)?;
    let new_ids = operation.follow(&rewritten)?;
    operation.finish(held)?;
    Ok(new_ids.len())
}

pub(crate) fn closest(
    store: &Store,
    history: &History,
    parent: &Snapshot,
    first: &Snapshot,
) -> history::Result<Option<(Snapshot, u64)>> {
    let mut best: Option<(Snapshot, u64)> = None;
    // The snapshots are in order from the newest to the oldest. Of equally good matches, the oldest
    // is returned.
    for snapshot in history.own(parent).0 {
        let shared = shared_messages(store, snapshot, first)?;
        if shared > 0 && best.as_ref().is_none_or(|(_, most)| shared >= *most) {
            best = Some((snapshot.clone(), shared));
        }
    }
    Ok(best)
}
