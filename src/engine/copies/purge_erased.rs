//! Removes erased objects from a mirror as soon as they are unreachable there, together with the
//! log that could restore them. `gc` would keep these objects for weeks.

use super::removed_here::RemovedHere;
use crate::archive::SnapshotId;
use crate::engine::collect::{Disposal, collect_beyond};
use crate::engine::operation::HeldLock;
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::store::{ExpireBefore, Store};

/// Returns whether a mirror still has erased objects that are unreachable.
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

/// Removes the snapshots in the mirror's record of erasures that no branch or tag reaches. The
/// record may lack ids of snapshots from other devices, so this must also be called after erased
/// branches were removed from the mirror.
pub(crate) fn purge_erased(
    workspace: &Workspace,
    folder: &Store,
    held: &HeldLock,
    monitor: &mut dyn Monitor,
) -> Result<()> {
    let reader = folder.reader();
    let mut expiry = folder.plan_expiry(ExpireBefore::Everything)?;
    // Keep hidden snapshots that do not reach an erased snapshot.
    let removed = RemovedHere::of(folder)?;
    let kept = History::load_with_kept(folder)?;
    let mut gone = Vec::new();
    for change in expiry.refs {
        let Some(id) = change.before else { continue };
        if kept.get(SnapshotId(id)).is_none() || removed.reaches_erased(&kept, &reader, id)? {
            gone.push(change);
        }
    }
    expiry.refs = gone;
    folder.remove_set_aside(&held.lock)?;
    collect_beyond(workspace, folder, held, &expiry, Disposal::EVERYTHING, monitor)?;
    Ok(())
}
