//! Objects of what was removed for good go from a folder as soon as nothing there leads to them,
//! and so does the log that could bring them back. `gc` would leave them there for weeks.

use super::removed_here::RemovedHere;
use crate::archive::SnapshotId;
use crate::engine::collect::{Disposal, collect_beyond};
use crate::engine::operation::Held;
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::store::{Before, Store};

/// Returns whether a folder still has erased objects that no ref leads to.
pub(super) fn is_erased_left(folder: &Store) -> Result<bool> {
    let erasures = folder.erasures()?;
    if erasures.is_empty() {
        return Ok(false);
    }
    let (history, reader) = (History::load(folder)?, folder.reader());
    let mut is_left = folder.has_half_removed_packs()?;
    for id in erasures.commits() {
        is_left = is_left || history.get(SnapshotId(id)).is_none() && reader.has(id)?;
    }
    Ok(is_left)
}

/// Removes from a folder what its record of erasures names and no branch or tag leads to. The
/// record does not have the ids of another device's snapshots, so that it is also to be called when
/// branches were removed there.
pub(crate) fn purge_erased(
    workspace: &Workspace,
    folder: &Store,
    held: &Held,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let reader = folder.reader();
    let mut expiry = folder.plan_expiry(Before::Everything)?;
    // Other snapshots that are kept there out of sight stay.
    let removed = RemovedHere::of(folder)?;
    let kept = History::load_with_kept(folder)?;
    let mut gone = Vec::new();
    for change in expiry.refs {
        let Some(id) = change.before else { continue };
        if kept.get(SnapshotId(id)).is_none() || removed.leads_to_erased(&kept, &reader, id)? {
            gone.push(change);
        }
    }
    expiry.refs = gone;
    folder.remove_set_aside(&held.lock)?;
    collect_beyond(workspace, folder, held, &expiry, Disposal::EVERYTHING, monitor)?;
    Ok(())
}
