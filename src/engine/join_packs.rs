//! Joins the small packs of snapshots. A command does this after each save, if there are many. The
//! watch does it when nobody has saved for a while, so that no save waits for it.

use super::operation::HeldLock;
use super::{Result, Workspace};
use crate::archive;
use crate::rules::{Code, Finding};
use crate::store::Store;

/// Joins the packs, unless the watch will do it later. Returns a finding if that fails: the
/// snapshots are stored nevertheless.
pub(super) fn after_save(workspace: &Workspace, store: &Store, held: &HeldLock) -> Option<Finding> {
    let join = || match workspace.automatic && !store.has_too_many_packs()? {
        true => Ok(()),
        false => store.tidy(&held.lock, &archive::new_versions),
    };
    let error = join().err()?;
    let message = format!("small packs and refs could not be combined: {error}");
    Some(Finding::new(Code::PacksNotJoined, store.path().display().to_string(), message))
}

/// Joins the packs that the saves of the watch have left.
pub(crate) fn when_idle(workspace: &Workspace) -> Result<()> {
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    Ok(store.tidy(&held.lock, &archive::new_versions)?)
}
