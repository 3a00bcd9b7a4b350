//! Snapshots that a copy elsewhere has and this store has not: those that `forget`, `erase` or
//! `undo` removed here on purpose, told from those that never were here, or were lost.

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

/// The store's knowledge of snapshots that it no longer has.
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

    /// Returns whether a ref led to that snapshot here once. The object alone proves nothing: an
    /// interrupted sync may have left it.
    pub(crate) fn was_here(&self, name: &RefName, id: ObjectId) -> Result<bool> {
        Ok(self.former.contains_key(&id)
            || self.erased.has(&id.to_string())
            || self.sent.contains(&id)
            || self.store.last_known(name)?.contains(&Some(id)))
    }

    pub(crate) fn is_erased(&self, id: ObjectId) -> bool {
        self.erased.has(&id.to_string())
    }

    /// Returns whether a snapshot of a copy is one that was erased or follows one. `reader` reads
    /// the snapshots of `history_there`. Of a server whose history is not known, every snapshot
    /// that was rewritten here counts, once something was erased.
    pub(crate) fn leads_to_erased(
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

    /// Returns whether a command removed the snapshot that `name` led to, and the timeline is
    /// chosen. A ref that is not where the log left it was lost or moved by another program, which
    /// is no reason to delete it from a backup.
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
            // Here it is; perhaps only not chosen.
            return Ok(chosen.contains(&now));
        }
        if self.erased.has(&id.to_string()) || self.erased.has(&now.to_string()) {
            return Ok(true);
        }
        let is_where_logged = self.store.last_known(name)?.first() == Some(&target);
        Ok(is_where_logged && self.was_here(name, id)?)
    }
}

/// Reports that a copy has snapshots that were removed here; `then` says what became of them there.
pub(crate) fn finding(destination: &str, refs: &[RefName], then: &str) -> Option<Finding> {
    if refs.is_empty() {
        return None;
    }
    let names: Vec<_> = refs.iter().map(spoken).collect();
    let message = format!(
        "it had snapshots of {} that `forget`, `erase` or `undo` removed here since; {then}",
        listed(&names)
    );
    Some(Finding::new(Code::RemovedHere, destination, message))
}
