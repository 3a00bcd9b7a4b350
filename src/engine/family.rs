//! Who comes from whom does not depend on who was stored first.
//!
//! A chat may be refused while forks of it are taken: they begin with nothing then, or with each other. When it comes at last, those that name it begin with it.

use std::collections::{BTreeSet, HashMap};

use super::operation::{Held, Operation};
use super::{Result, Workspace};
use crate::archive::{Snapshot, SnapshotId};
use crate::history::origin::named;
use crate::history::owner_of_snapshot::Owners;
use crate::history::rewrite_history::{Beginning, Rewritten, begin_elsewhere, shared_messages};
use crate::history::{self, History};
use crate::st::TimelineName;
use crate::store::Store;

/// Let stored forks of timelines that just came begin with them. None if there are none.
pub(crate) fn settle(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    came: &BTreeSet<TimelineName>,
) -> Result<Option<Rewritten>> {
    if came.is_empty() {
        return Ok(None);
    }
    let history = History::load(store)?;
    let owners = Owners::of(&history);
    let mut beginnings = HashMap::new();
    for (timeline, head) in history.heads().filter(|(timeline, _)| !came.contains(*timeline)) {
        let (own, origin) = history.own(head);
        let Some(first) = own.last() else { continue };
        let main_chat = first.main_chat.as_deref();
        let Some(parent) = main_chat.and_then(|chat| named(timeline, chat)) else { continue };
        let is_known = origin.is_some_and(|origin| *owners.of_snapshot(origin) == parent);
        if !came.contains(&parent) || is_known {
            continue;
        }
        let Some(newest) = history.head(&parent) else { continue };
        let shared = shared_messages(store, newest, first)?;
        // A greeting alone is no sign: another chat may have the name by now.
        if shared > 1 && !history.leads_to(newest.id, first.id) {
            beginnings.insert(first.id, Some((newest.id, shared)));
        }
    }
    match beginnings.is_empty() {
        true => Ok(None),
        false => begin(workspace, store, held, &history, &beginnings).map(Some),
    }
}

/// Let these first snapshots follow others, as an operation of its own.
pub(crate) fn begin(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    history: &History,
    beginnings: &HashMap<SnapshotId, Beginning>,
) -> Result<Rewritten> {
    let mut operation = Operation::new(workspace, store, None);
    let rewritten = begin_elsewhere(&mut operation.pack, store, history, beginnings)?;
    operation.follow(&rewritten)?;
    operation.finish(held)?;
    Ok(rewritten)
}

/// The snapshot of a timeline that shares the most with this one, the earliest of those, and how much.
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
