//! A timeline that begins elsewhere, because a person says so.

use std::collections::HashMap;

use super::operation::{Held, Operation};
use super::{Result, Workspace};
use crate::archive::{Snapshot, SnapshotId};
use crate::history::origin::Beginning;
use crate::history::rewrite_history::{begin_elsewhere, shared_messages};
use crate::history::{self, History};
use crate::store::Store;

/// Lets these first snapshots follow others, in an operation of its own. Returns how many snapshots
/// got another id.
pub(crate) fn begin(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    history: &History,
    beginnings: &HashMap<SnapshotId, Beginning>,
) -> Result<usize> {
    let mut operation = Operation::new(workspace, store, None);
    let rewritten = begin_elsewhere(&mut operation.pack, store, history, beginnings)?;
    let anew = operation.follow(&rewritten)?;
    operation.finish(held)?;
    Ok(anew.len())
}

pub(crate) fn closest(
    store: &Store,
    history: &History,
    parent: &Snapshot,
    first: &Snapshot,
) -> history::Result<Option<(Snapshot, u64)>> {
    let mut best: Option<(Snapshot, u64)> = None;
    // From the newest to the oldest.
    for snapshot in history.own(parent).0 {
        let shared = shared_messages(store, snapshot, first)?;
        if shared > 0 && best.as_ref().is_none_or(|(_, most)| shared >= *most) {
            best = Some((snapshot.clone(), shared));
        }
    }
    Ok(best)
}
