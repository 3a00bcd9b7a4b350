//! Drop what nobody can ask for any more.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use super::operation::Held;
use super::{Result, Workspace};
use crate::archive::{self, Referenced};
use crate::progress::Monitor;
use crate::store::{
    Before, Collected, Collection, Expiry, Kind, Loss, ObjectId, Placed, Repack, Store,
};

/// Further in the future than any clock is wrong.
const LONG: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

#[derive(Clone, Copy)]
pub(crate) struct Disposal {
    /// The oldest operations to keep.
    pub before: Before,
    /// Objects that nothing refers to and that are older than this.
    pub grace: Duration,
    pub dry_run: bool,
}

impl Disposal {
    pub(crate) const EVERYTHING: Self =
        Self { before: Before::Everything, grace: Duration::ZERO, dry_run: false };
}

/// Drops operations and objects, and packs the rest. Returns how many operations went.
pub(crate) fn collect(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    disposal: Disposal,
    monitor: &mut dyn Monitor,
) -> Result<(Collected, usize)> {
    let expiry = store.plan_expiry(disposal.before)?;
    let collected = collect_beyond(workspace, store, held, &expiry, disposal, monitor)?;
    Ok((collected, expiry.dropped))
}

/// Drops what nothing refers to any more once the operations of `expiry` are dropped.
pub(crate) fn collect_beyond(
    workspace: &Workspace,
    store: &Store,
    held: &Held,
    expiry: &Expiry,
    Disposal { before, grace, dry_run }: Disposal,
    monitor: &mut dyn Monitor,
) -> Result<Collected> {
    let lock = &held.lock;
    if !dry_run {
        store.release_reserve(lock);
    }
    monitor.begin("looking for objects", None);
    let Referenced { mut objects, attachments, mut lost } = archive::all_objects(store, expiry)?;
    let keep_after = match before {
        // However young a clock that was wrong makes it.
        Before::Everything => SystemTime::now().checked_add(LONG),
        _ => SystemTime::now().checked_sub(grace),
    };
    let keep_after = keep_after.unwrap_or(SystemTime::UNIX_EPOCH);
    let mut expire = || store.expire(lock, expiry);
    if let (Ok(library), false) = (workspace.library(), dry_run) {
        library.clear_left_behind();
    }
    let mut collect = |objects: &[Placed], lost: &HashSet<ObjectId>| {
        // What is erased must be gone, also where something beside it is damaged.
        let none = HashSet::new();
        let keep = if matches!(before, Before::Everything) { &none } else { lost };
        // Whoever erases waits for it to be gone, not for the rest to be small.
        let repack = match before {
            Before::Everything => Repack::Quick,
            _ => Repack::Thorough,
        };
        let collection = Collection { objects, damaged: keep, keep_after, repack };
        if dry_run {
            return store.count_collected(&collection);
        }
        store.collect(lock, &collection, &mut expire, monitor)
    };
    Ok(match collect(&objects, &lost) {
        // Lost attachments do not prevent the rest from being packed. All are read only if one is
        // known to be lost.
        Err(error) if error.is_loss() => {
            let reader = store.reader();
            let known = lost.len();
            for id in attachments {
                if !reader.is_sound(id, Kind::Blob)? {
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
