//! What has to move in a copy elsewhere, so that it has all that is here. Nothing that the copy has
//! is dropped unless that was asked for: what a branch there led to before, and nothing else leads
//! to, is kept there under `refs/stvc/kept/`.

use std::collections::{BTreeSet, HashSet};

use super::chosen_refs::{Chosen, HEADS, Refs};
use super::removed_here::{self, RemovedHere};
use crate::archive::SnapshotId;
use crate::engine::copies::CopyError;
use crate::engine::{Error, Result, Workspace};
use crate::history::History;
use crate::rules::Finding;
use crate::store::{ObjectId, Reader, RefChange, RefName, Store};

/// Permissions for changing the copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct May {
    /// Move branches away from snapshots that are not here; these are kept, hidden.
    pub overwrite: bool,
    /// Delete what is not here.
    pub prune: bool,
}

/// The choice of refs for a folder or server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these timelines; empty: all.
    pub timelines: Vec<String>,
    pub may: May,
    /// Refs that stay unchanged there.
    pub except: BTreeSet<RefName>,
    /// Refs that are deleted there because their snapshots were erased.
    pub erased: BTreeSet<RefName>,
}

impl Options {
    pub(super) fn choose(&self, workspace: &Workspace, store: &Store) -> Result<Chosen> {
        let chosen = Chosen::of(workspace, store, &self.timelines)?.without(&self.except);
        match chosen.history.broken.first().filter(|_| self.may.prune) {
            // A history that cannot be read whole must not decide what is dropped elsewhere.
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
    /// Refs that are moved elsewhere or deleted.
    pub forced: Vec<RefChange>,
    /// Branches with newer snapshots there, which stay.
    pub ahead: usize,
    /// Refs that led to snapshots which were removed here.
    pub removed: Vec<RefName>,
}

impl Update {
    pub fn changes(&self) -> Vec<RefChange> {
        self.forward.iter().chain(&self.forced).cloned().collect()
    }

    pub fn removed_finding(&self, destination: &str, may: May) -> Option<Finding> {
        let then = if may.prune {
            "they are gone there, too"
        } else {
            "they are kept there, out of sight"
        };
        removed_here::finding(destination, &self.removed, then)
    }
}

/// Compares what is chosen with what is there, whose history is `history_there` as far as that is
/// known, and read by `reader`. What was removed for good is removed from the copy, or leads to
/// what has its name now.
pub(super) fn plan(
    chosen: &Chosen,
    there: &Refs,
    store: &Store,
    known: (&History, &Reader),
    options: &Options,
    destination: &str,
) -> Result<Update> {
    let (erased, left): (Refs, Refs) =
        there.clone().into_iter().partition(|(name, _)| options.erased.contains(name));
    let mut update = plan_without_erased(chosen, &left, store, known, options.may, destination)?;
    for (name, id) in erased {
        let taken = update.forward.iter().position(|change| change.name == name);
        let after = taken.and_then(|at| update.forward.remove(at).after);
        update.forced.push(RefChange { name, before: Some(id), after });
    }
    Ok(update)
}

fn plan_without_erased(
    chosen: &Chosen,
    there: &Refs,
    store: &Store,
    (history_there, reader): (&History, &Reader),
    may: May,
    destination: &str,
) -> Result<Update> {
    let mut update = Update::default();
    let removed = RemovedHere::of(store)?;
    let mut kept = HashSet::new();
    let mut unknown = Vec::new();
    let sent = chosen.snapshots();
    // Returns whether it may be kept: what was erased is not kept anywhere.
    let mut keep = |id: ObjectId| -> Result<bool> {
        let may_be_kept = !removed.leads_to_erased(history_there, reader, id)?;
        // What a branch or tag here leads to is there under that name, too.
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
                if is_branch && chosen.history.leads_to(SnapshotId(*id), SnapshotId(before)) =>
            {
                update.forward.push(change);
            }
            Some(before)
                if is_branch
                    && !may.prune
                    && history_there.leads_to(SnapshotId(before), SnapshotId(*id)) =>
            {
                update.ahead += 1
            }
            // Another branch that goes there leads to it: its timeline was renamed, and the name
            // was used again.
            Some(before) if is_branch && sent.contains(&SnapshotId(before)) => {
                update.forced.push(change);
            }
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
    // An earlier update may have kept snapshots there of a chat that was erased since.
    for (name, id) in there.iter().filter(|(name, _)| name.is_kept()) {
        let is_planned = update.forced.iter().any(|change| change.name == *name);
        let is_known = history_there.get(SnapshotId(*id)).is_some();
        let goes = if is_known {
            removed.leads_to_erased(history_there, reader, *id)?
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
    Ok(update)
}
