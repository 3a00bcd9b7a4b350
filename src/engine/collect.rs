//! Removes unreachable objects and expired operations.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use super::operation::HeldLock;
use super::{Result, Workspace, search_files};
use crate::archive::{self, Referenced};
use crate::progress::Monitor;
use crate::store::{
    Collected, Collection, ExpireBefore, Expiry, Kind, Loss, ObjectId, PackSlot, Repack, STEP,
    Store,
};

/// A span that is longer than the error of any clock. Objects whose date is in the future by less
/// than this span still count as old.
const LONG: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

#[derive(Clone, Copy)]
pub(crate) struct Disposal {
    /// Operations before this time are removed from the log.
    pub before: ExpireBefore,
    /// Unreachable objects that are younger than this are kept.
    pub grace: Duration,
    pub dry_run: bool,
}

impl Disposal {
    pub(crate) const EVERYTHING: Self =
        Self { before: ExpireBefore::Everything, grace: Duration::ZERO, dry_run: false };
}

/// Removes expired operations and unreachable objects, and packs the remaining objects. Returns the
/// collected objects and the number of removed operations.
pub(crate) fn collect(
    workspace: &Workspace,
    store: &Store,
    held: &HeldLock,
    disposal: Disposal,
    monitor: &mut dyn Monitor,
) -> Result<(Collected, usize)> {
    let expiry = store.plan_expiry(disposal.before)?;
    let collected = collect_beyond(workspace, store, held, &expiry, disposal, monitor)?;
    Ok((collected, expiry.dropped))
}

/// Removes the operations in `expiry`, and the objects that the remaining refs and operations do
/// not reach.
pub(crate) fn collect_beyond(
    workspace: &Workspace,
    store: &Store,
    held: &HeldLock,
    expiry: &Expiry,
    Disposal { before, grace, dry_run }: Disposal,
    monitor: &mut dyn Monitor,
) -> Result<Collected> {
    let lock = &held.lock;
    if !dry_run {
        store.release_reserve(lock);
        // The search index contains the words of erased texts.
        if matches!(before, ExpireBefore::Everything) {
            search_files::forget(store)?;
        }
    }
    monitor.begin("looking for objects", None);
    let Referenced { mut objects, attachments, mut lost } = archive::all_objects(store, expiry)?;
    let keep_after = match before {
        // Also remove objects with a date in the future.
        ExpireBefore::Everything => SystemTime::now().checked_add(LONG),
        _ => SystemTime::now().checked_sub(grace),
    };
    let keep_after = keep_after.unwrap_or(SystemTime::UNIX_EPOCH);
    let mut expire = || store.expire(lock, expiry);
    if let (Ok(library), false) = (workspace.library(), dry_run) {
        library.clear_left_behind();
    }
    let mut collect = |objects: &[PackSlot], lost: &HashSet<ObjectId>| {
        // Files that contain a damaged object are normally kept. An erasure removes them, because
        // they may also contain erased content.
        let none = HashSet::new();
        let keep = if matches!(before, ExpireBefore::Everything) { &none } else { lost };
        // An erasure must be fast, so it does not compress the remaining objects well.
        let repack = match before {
            ExpireBefore::Everything => Repack::Quick,
            _ => Repack::Thorough,
        };
        let collection = Collection { objects, damaged: keep, keep_after, repack, step: STEP };
        if dry_run {
            return store.count_collected(&collection);
        }
        store.collect(lock, &collection, &mut expire, monitor)
    };
    Ok(match collect(&objects, &lost) {
        // A lost attachment must not prevent the other objects from being packed. All attachments
        // are read to find the lost ones, which is slow, so this happens only after an error.
        Err(error) if error.is_loss() => {
            let reader = store.reader();
            let known = lost.len();
            for id in attachments {
                if !reader.is_valid(id, Kind::Blob)? {
                    lost.insert(id);
                }
            }
            if lost.len() == known {
                return Err(error.into());
            }
            objects.retain(|object| !lost.contains(&object.id));
            collect(&objects, &lost)?
        }
        collected => collected?,
    })
}
