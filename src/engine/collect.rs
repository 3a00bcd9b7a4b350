//! Drop what nobody can ask for any more.

use std::time::{Duration, SystemTime};

use super::operation::Held;
use super::{Result, Workspace};
use crate::archive;
use crate::progress::Monitor;
use crate::store::{Before, Collected, Store};

/// Drop operations of `before` and earlier, and objects that nothing refers to and that are older than `grace`; pack the rest. How many operations went.
pub(crate) fn collect(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    (before, grace): (Before, Duration),
    dry_run: bool,
    monitor: &mut dyn Monitor,
) -> Result<(Collected, usize)> {
    let lock = &held.lock;
    let expiry = store.plan_expiry(before)?;
    monitor.begin("looking for objects", None);
    let objects = archive::all_objects(store, &expiry)?;
    let keep_after = SystemTime::now().checked_sub(grace).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut expire = || store.expire(lock, &expiry);
    if let (Ok(library), false) = (workspace.library(), dry_run) {
        library.clear_left_behind();
    }
    let collected = store.collect(lock, &objects, keep_after, dry_run, &mut expire, monitor)?;
    Ok((collected, expiry.dropped))
}
