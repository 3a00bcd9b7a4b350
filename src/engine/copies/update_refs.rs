//! Plans the ref changes of a backup in a folder or on a server, so that the backup has everything
//! that this store has. Nothing is removed from the backup without permission: snapshots that would
//! become unreachable are kept there, hidden under `refs/stvc/kept/`.

use std::collections::{BTreeSet, HashSet};

use super::chosen_refs::{ChosenRefs, HEADS, Refs};
use super::removed_here::{self, RemovedHere};
use crate::archive::SnapshotId;
use crate::engine::copies::CopyError;
use crate::engine::{Error, Result, Workspace};
use crate::history::History;
use crate::rules::Finding;
use crate::store::{ObjectId, Reader, RefChange, RefName, Store};

/// Permissions for changing a backup in a folder or on a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdatePermissions {
    /// Whether branches of the backup may be moved away from snapshots that this store does not
    /// have. The backup keeps these snapshots, hidden under `refs/stvc/kept/`.
    pub overwrite: bool,
    /// Whether refs of the backup that this store does not have may be deleted.
    pub prune: bool,
}

/// Options for updating a backup in a folder or on a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The timelines to back up. An empty list means all timelines.
    pub timelines: Vec<String>,
    /// Changes at the destination that need the user's permission.
    pub may: UpdatePermissions,
    /// Refs of the backup that stay unchanged.
    pub except: BTreeSet<RefName>,
    /// Refs of the backup that are deleted because their snapshots were erased.
    pub erased: BTreeSet<RefName>,
}

impl Options {
    pub(crate) fn choose(&self, workspace: &Workspace, store: &Store) -> Result<ChosenRefs> {
        let chosen = ChosenRefs::of(workspace, store, &self.timelines)?.without(&self.except);
        match chosen.history.broken.first().filter(|_| self.may.prune) {
            // If the local history is partly unreadable, refs that seem to be missing may exist, so
            // nothing may be deleted from the backup.
            Some(broken) => {
                let (subject, why) = (broken.subject.clone(), broken.why.clone());
                Err(Error::BrokenHistory { subject, why })
            }
            None => Ok(chosen),
        }
    }
}

#[derive(Debug, Default)]
pub struct Update {
    /// Refs that are created or fast-forwarded.
    pub forward: Vec<RefChange>,
    /// Refs that are deleted, or moved without a fast-forward.
    pub forced: Vec<RefChange>,
    /// The number of branches that have newer snapshots in the backup. These branches stay
    /// unchanged.
    pub ahead: usize,
    /// Refs of the backup that pointed to snapshots that were removed from this store.
    pub removed: Vec<RefName>,
}

impl Update {
    pub fn changes(&self) -> Vec<RefChange> {
        self.forward.iter().chain(&self.forced).cloned().collect()
    }

    pub fn removed_finding(&self, destination: &str, may: UpdatePermissions) -> Option<Finding> {
        let then = if may.prune {
            "they were removed from it, too"
        } else {
            "it keeps them, but no longer lists them"
        };
        removed_here::finding(destination, &self.removed, then)
    }
}

/// Compares the chosen refs with the refs `there` of the backup. `known` is the history of the
/// backup, as far as it is known, and a reader for its snapshots. An erased ref is deleted, or
/// moved to the timeline that now has its name.
pub(crate) fn plan(
    chosen: &ChosenRefs,
    there: &Refs,
    store: &Store,
    (history_there, reader): (&History, &Reader),
    options: &Options,
    destination: &str,
) -> Result<Update> {
    let (mut update, may) = (Update::default(), options.may);
    let (erased, there): (Refs, Refs) =
        there.clone().into_iter().partition(|(name, _)| options.erased.contains(name));
    let removed = RemovedHere::of(store)?;
    let mut kept = HashSet::new();
    let mut unknown = Vec::new();
    let sent = chosen.snapshots();
    // Plans a hidden ref for a snapshot of the backup that would become unreachable. Returns
    // `false` for an erased snapshot, which must not be kept.
    let mut keep = |id: ObjectId| -> Result<bool> {
        let may_be_kept = !removed.reaches_erased(history_there, reader, id)?;
        // A snapshot that a local branch or tag reaches needs no other ref.
        let is_held = chosen.history.get(SnapshotId(id)).is_some();
        if !may.prune && !is_held && may_be_kept {
            kept.insert(id);
        }
        Ok(may_be_kept)
    };
    for (name, id) in &chosen.refs {
        let is_branch = name.as_str().starts_with(HEADS);
        let change =
            RefChange { name: name.clone(), before: there.get(name).copied(), after: Some(*id) };
        match change.before {
            None => update.forward.push(change),
            Some(before) if before == *id => {}
            Some(before)
                if is_branch && chosen.history.reaches(SnapshotId(*id), SnapshotId(before)) =>
            {
                update.forward.push(change);
            }
            Some(before)
                if is_branch
                    && !may.prune
                    && history_there.reaches(SnapshotId(before), SnapshotId(*id)) =>
            {
                update.ahead += 1
            }
            // Another chosen branch reaches the snapshot: its timeline was renamed, and another
            // timeline has its former name.
            Some(before) if is_branch && sent.contains(&SnapshotId(before)) => {
                update.forced.push(change);
            }
            // Another chosen tag names the snapshot, because a sync gave the tag a number.
            Some(before) if !is_branch && chosen.has_tag_of(before) => update.forced.push(change),
            Some(before) if removed.was_here(name, before)? => {
                if keep(before)? {
                    update.removed.push(name.clone());
                }
                update.forced.push(change);
            }
            Some(before) if may.overwrite || may.prune => {
                keep(before)?;
                update.forced.push(change);
            }
            Some(_) => unknown.push(name.to_string()),
        }
    }
    if !unknown.is_empty() {
        return Err(
            CopyError::NotHere { destination: destination.to_owned(), refs: unknown }.into()
        );
    }
    if may.prune && chosen.whole {
        let gone = there.iter().filter(|(name, _)| !chosen.refs.contains_key(*name));
        let gone =
            gone.map(|(name, id)| RefChange { name: name.clone(), before: Some(*id), after: None });
        update.forced.extend(gone);
    }
    // Delete the hidden refs of snapshots that were erased after an earlier update kept them.
    for (name, id) in there.iter().filter(|(name, _)| name.is_kept()) {
        let is_planned = update.forced.iter().any(|change| change.name == *name);
        let is_known = history_there.get(SnapshotId(*id)).is_some();
        let goes = if is_known {
            removed.reaches_erased(history_there, reader, *id)?
        } else {
            removed.is_erased(*id)
        };
        if goes && !is_planned {
            let (name, before) = (name.clone(), Some(*id));
            update.forced.push(RefChange { name, before, after: None });
        }
    }
    for id in kept {
        let name = RefName::kept(id);
        if !there.contains_key(&name) {
            update.forward.push(RefChange { name, before: None, after: Some(id) });
        }
    }
    for (name, id) in erased {
        let taken = update.forward.iter().position(|change| change.name == name);
        let after = taken.and_then(|at| update.forward.remove(at).after);
        update.forced.push(RefChange { name, before: Some(id), after });
    }
    Ok(update)
}
