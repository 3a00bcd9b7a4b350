//! Make the store small: one pack with deltas, nothing in it that nobody can ask for any more.

use std::time::Duration;

use crate::engine::Workspace;
use crate::engine::collect::{Disposal, collect};
use crate::progress::Monitor;
use crate::store::{Before, Collected};
use crate::verbs::Result;

/// What to drop.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Operations older than this can no longer be undone, and what only they needed goes.
    pub undo: Duration,
    /// Objects that nothing refers to go when they are older than this.
    pub grace: Duration,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// How long commands can be undone, if nothing else is said.
pub const KEEP_UNDO: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long objects that nothing refers to stay, if nothing else is said.
pub const GRACE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

impl Default for Options {
    fn default() -> Self {
        Self { undo: KEEP_UNDO, grace: GRACE, dry_run: false }
    }
}

/// What was done.
pub struct Report {
    /// The packs.
    pub collected: Collected,
    /// Operations that can no longer be undone.
    pub expired: usize,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Collect.
pub fn gc(workspace: &Workspace, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let (store, held) = workspace.hold(&workspace.open_store()?)?;
    // Longer ago than any clock tells: nothing is that old.
    let span = chrono::Duration::from_std(options.undo).ok();
    let before = span.and_then(|span| workspace.now.checked_sub_signed(span));
    let before = before.map_or(Before::Never, Before::Moment);
    let disposal = Disposal { before, grace: options.grace, dry_run: options.dry_run };
    let (collected, expired) = collect(workspace, &store, &held, disposal, monitor)?;
    Ok(Report { collected, expired, dry_run: options.dry_run })
}
