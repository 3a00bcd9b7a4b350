//! Packs the store into one pack with deltas, and drops unreachable objects.

use std::time::Duration;

use crate::engine::Workspace;
use crate::engine::collect::{Disposal, collect};
use crate::progress::Monitor;
use crate::store::{Collected, ExpireBefore};
use crate::verbs::Result;

/// Ages beyond which undo data and unreachable objects are dropped.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Age beyond which an operation can no longer be undone.
    pub undo: Duration,
    /// Age beyond which an unreachable object is dropped.
    pub grace: Duration,
    /// Only count the objects.
    pub dry_run: bool,
}

/// The default of [`Options::undo`].
pub const KEEP_UNDO: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The default of [`Options::grace`].
pub const GRACE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

impl Default for Options {
    fn default() -> Self {
        Self { undo: KEEP_UNDO, grace: GRACE, dry_run: false }
    }
}

/// The result of packing the store and dropping objects.
#[non_exhaustive]
pub struct Report {
    /// Sizes before and after, and the dropped objects.
    pub collected: Collected,
    /// Number of operations that can no longer be undone.
    pub expired: usize,
    /// Whether the store is unchanged.
    pub dry_run: bool,
}

/// Packs the store and drops unreachable objects that are older than the grace period.
pub fn gc(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    // If the duration is beyond the calendar's range, no operation expires.
    let span = chrono::Duration::from_std(options.undo).ok();
    let before = span.and_then(|span| workspace.now.checked_sub_signed(span));
    let before = before.map_or(ExpireBefore::Never, ExpireBefore::Moment);
    let disposal = Disposal { before, grace: options.grace, dry_run: options.dry_run };
    let (collected, expired) = collect(workspace, &store, &held, disposal, monitor)?;
    Ok(Report { collected, expired, dry_run: options.dry_run })
}
