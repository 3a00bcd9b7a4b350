//! Packs the store into one pack with deltas, and drops unreachable objects.

use std::time::Duration;

use crate::engine::Workspace;
use crate::engine::collect::{Disposal, collect};
use crate::progress::Monitor;
use crate::store::{Before, Collected};
use crate::verbs::Result;

/// Ages at which things are dropped.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Operations older than this can no longer be undone.
    pub undo: Duration,
    /// Unreachable objects older than this are dropped.
    pub grace: Duration,
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

/// The repacked store.
pub struct Report {
    pub collected: Collected,
    pub expired: usize,
    pub dry_run: bool,
}

/// Collects garbage.
pub fn gc(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    // A span beyond the calendar keeps everything.
    let span = chrono::Duration::from_std(options.undo).ok();
    let before = span.and_then(|span| workspace.now.checked_sub_signed(span));
    let before = before.map_or(Before::Never, Before::Moment);
    let disposal = Disposal { before, grace: options.grace, dry_run: options.dry_run };
    let (collected, expired) = collect(workspace, &store, &held, disposal, monitor)?;
    Ok(Report { collected, expired, dry_run: options.dry_run })
}
