//! Distinguishes two kinds of snapshots that a backup has and this store does not have: snapshots
//! that `forget`, `erase` or `undo` removed from this store, and snapshots that were lost or never
//! existed in this store.

use std::collections::{HashMap, HashSet};

use super::chosen_refs::spoken;
use super::erased::erased_among;
use super::last_backups;
use crate::archive::SnapshotId;
use crate::engine::Result;
use crate::history::History;
use crate::rules::{Code, Finding};
use crate::store::{Erasures, ObjectId, Reader, RefName, Store};
use crate::words::listed;

/// The store's records of snapshots that it no longer has.
pub(crate) struct RemovedHere<'s> {
    store: &'s Store,
    former: HashMap<ObjectId, ObjectId>,
    erased: Erasures,
    sent: HashSet<ObjectId>,
}

impl<'s> RemovedHere<'s> {
    pub(crate) fn of(store: &'s Store) -> Result<Self> {
        let (former, erased) = (store.former_ids()?, store.erasures()?);
        Ok(Self { store, former, erased, sent: last_backups::sent(store)? })
    }

    /// Returns whether this store ever had the snapshot `id`, according to its records or to the
    /// log of the ref `name`. The object in the store alone proves nothing, because an interrupted
    /// sync may have left the object.
    pub(crate) fn was_here(&self, name: &RefName, id: ObjectId) -> Result<bool> {
        Ok(self.former.contains_key(&id)
            || self.erased.has(&id.to_string())
            || self.sent.contains(&id)
            || self.store.last_known(name)?.contains(&Some(id)))
    }

    pub(crate) fn is_erased(&self, id: ObjectId) -> bool {
        self.erased.has(&id.to_string())
    }

    /// Returns whether a snapshot of a backup was erased or has an erased ancestor. `history_there`
    /// is the history of the backup, and `reader` reads its snapshots. If `history_there` does not
    /// contain the snapshot, its ancestors are unknown. A snapshot that this store has rewritten
    /// then counts as erased, because an erasure may be the reason.
    pub(crate) fn reaches_erased(
        &self,
        history_there: &History,
        reader: &Reader,
        id: ObjectId,
    ) -> Result<bool> {
        if self.erased.is_empty() {
            return Ok(false);
        }
        if history_there.get(SnapshotId(id)).is_none() {
            return Ok(self.is_erased(id) || self.former.contains_key(&id));
        }
        let past = history_there.walk_from([SnapshotId(id)]);
        Ok(!erased_among(&self.erased, reader, past)?.is_empty())
    }

    /// Returns whether a new backup may omit the snapshot `id`, to which the ref `name` points in
    /// the old backup, because a command removed the snapshot from this store. Returns `false` if
    /// the timeline is not chosen. If the local ref differs from the log, it was lost or moved by
    /// another program; the snapshot then does not count as removed.
    pub(crate) fn is_removed(
        &self,
        name: &RefName,
        id: ObjectId,
        chosen: &HashSet<ObjectId>,
        history: &History,
    ) -> Result<bool> {
        let target = self.store.ref_target(name)?;
        if target.is_some_and(|target| !chosen.contains(&target)) {
            return Ok(false);
        }
        let now = self.former.get(&id).copied().unwrap_or(id);
        if history.get(SnapshotId(now)).is_some() {
            // The snapshot exists in this store, but may belong to a timeline that is not chosen.
            return Ok(chosen.contains(&now));
        }
        if self.erased.has(&id.to_string()) || self.erased.has(&now.to_string()) {
            return Ok(true);
        }
        let is_where_logged = self.store.last_known(name)?.first() == Some(&target);
        Ok(is_where_logged && self.was_here(name, id)?)
    }
}

/// Returns the finding that a backup had snapshots that were removed from this store. `then` is a
/// clause that tells whether the backup still has these snapshots.
pub(crate) fn finding(destination: &str, refs: &[RefName], then: &str) -> Option<Finding> {
    if refs.is_empty() {
        return None;
    }
    let names: Vec<_> = refs.iter().map(spoken).collect();
    let message = format!(
        "it had snapshots of {} that `forget`, `erase` or `undo` has removed from this store; {then}",
        listed(&names)
    );
    Some(Finding::new(Code::RemovedHere, destination, message))
}
