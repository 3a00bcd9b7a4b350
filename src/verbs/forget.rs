//! Removes snapshots from the history of each timeline according to a retention policy.
//!
//! Tagged snapshots, fork points, the latest snapshot of each timeline and snapshots of an unknown
//! format are never removed. The history is rewritten so that it contains only the remaining
//! snapshots. A remaining snapshot can get a new id, but its former id is still accepted as a name.
//! Removed snapshots remain in the store until `gc` drops them.

use std::collections::HashSet;

use crate::archive::{self, Snapshot, SnapshotId, read_manifest};
use crate::engine::Workspace;
use crate::engine::configuration::Configuration;
use crate::engine::operation::{Operation, RunMode};
use crate::history::retention::Policy;
use crate::history::{History, name_lookup, rewrite_history};
use crate::progress::Monitor;
use crate::st::TimelineName;
use crate::store::{Loss, ObjectId, Store};
use crate::verbs::{Error, Result};

/// The timelines and the retention policy. If the policy is empty, the policy in the store's
/// configuration applies.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Names of the timelines. An empty list selects all timelines.
    pub timelines: Vec<String>,
    /// Rules that select the snapshots to keep.
    pub policy: Policy,
    /// Only select the snapshots.
    pub dry_run: bool,
}

/// A timeline and the snapshots that are removed from it, newest first.
pub struct Timeline {
    /// Latest name of the timeline.
    pub name: TimelineName,
    /// Number of its snapshots that stay.
    pub kept: usize,
    /// Snapshots that go, newest first.
    pub forgotten: Vec<Snapshot>,
}

/// The removed snapshots. In a dry run, the snapshots that would be removed.
#[derive(Default)]
#[non_exhaustive]
pub struct Report {
    /// Only the timelines from which snapshots are removed.
    pub timelines: Vec<Timeline>,
    /// Number of snapshots that stay, in all timelines.
    pub kept: usize,
    /// Number of remaining snapshots whose id changed.
    pub rewritten: usize,
    /// Size of the objects that only the removed snapshots use. `gc` frees this space.
    pub bytes: u64,
    /// The policy that was applied, including configured rules.
    pub policy: Policy,
    /// Whether nothing was removed.
    pub dry_run: bool,
}

impl Report {
    /// Counts the removed snapshots of all timelines.
    pub fn forgotten(&self) -> usize {
        self.timelines.iter().map(|timeline| timeline.forgotten.len()).sum()
    }
}

/// Removes the snapshots that the policy does not retain.
pub fn forget(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let (store, held) = workspace.open(RunMode::of_dry_run(options.dry_run))?;
    let policy = if options.policy.is_empty() {
        Configuration::of(&store)?.retention().ok_or(Error::NoPolicy)?
    } else {
        options.policy.clone()
    };
    policy.check()?;
    let history = workspace.whole_history(&store)?;
    let wanted = wanted(&options.timelines, &history, workspace)?;
    let mut fixed = fixed(&history);
    fixed.extend(newer(&store, &history)?);
    let mut report = Report { dry_run: options.dry_run, ..Report::default() };
    let mut gone = HashSet::new();
    for (name, head) in history.heads() {
        let (own, _) = history.own(head);
        let mut forgotten = Vec::new();
        if wanted.as_ref().is_none_or(|wanted| wanted.contains(name)) {
            let kept = policy.keeps(&own, workspace.now);
            let goes = own
                .iter()
                .filter(|snapshot| !kept.contains(&snapshot.id) && !fixed.contains(&snapshot.id));
            forgotten = goes.map(|snapshot| (*snapshot).clone()).collect();
        }
        report.kept += own.len() - forgotten.len();
        gone.extend(forgotten.iter().map(|snapshot| snapshot.id));
        if !forgotten.is_empty() {
            let kept = own.len() - forgotten.len();
            report.timelines.push(Timeline { name: name.clone(), kept, forgotten });
        }
    }
    report.policy = policy;
    report.bytes = freed(&store, &history, &gone)?;
    if gone.is_empty() {
        return Ok(report);
    }
    if let Some(held) = &held {
        store.release_reserve(&held.lock);
    }
    monitor.begin("rewriting the history", None);
    let mut operation = Operation::new(workspace, &store, None);
    let rewritten = rewrite_history::without(&mut operation.pack, &store, &history, &gone)?;
    report.rewritten = rewritten.rewritten_ids().len();
    if let Some(held) = &held {
        operation.follow(&rewritten)?;
        operation.finish(held)?;
    }
    Ok(report)
}

fn wanted(
    names: &[String],
    history: &History,
    workspace: &Workspace,
) -> Result<Option<HashSet<TimelineName>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let library = workspace.library().ok();
    let found = names
        .iter()
        .map(|name| Ok(name_lookup::stored(name, history, library.as_ref())?.timeline.clone()));
    found.collect::<Result<_>>().map(Some)
}

/// Returns the snapshots that are never removed: the latest snapshot of each timeline, tagged
/// snapshots, and fork points.
fn fixed(history: &History) -> HashSet<SnapshotId> {
    let owners = history.owners();
    let mut fixed: HashSet<_> = history.heads().map(|(_, head)| head.id).collect();
    fixed.extend(history.tags().map(|(_, id)| id));
    for snapshot in history.iter() {
        for parent in snapshot.parents.iter().filter_map(|parent| history.get(*parent)) {
            if owners.of_snapshot(parent) != owners.of_snapshot(snapshot) {
                fixed.insert(parent.id);
            }
        }
    }
    fixed
}

/// Returns the snapshots whose format is newer than this program supports, and all their ancestors.
/// These snapshots are neither removed nor rewritten.
fn newer(store: &Store, history: &History) -> Result<HashSet<SnapshotId>> {
    let reader = store.reader();
    let mut newer = Vec::new();
    for snapshot in history.iter() {
        match read_manifest(&reader, snapshot.tree) {
            Err(archive::Error::NewerFormat { .. }) => newer.push(snapshot.id),
            // A damaged snapshot may be removed, but any other error stops the command.
            Err(error) if !error.is_loss() => return Err(error.into()),
            _ => {}
        }
    }
    Ok(history.past(newer))
}

/// Returns the size of the objects that only the snapshots in `gone` use.
fn freed(store: &Store, history: &History, gone: &HashSet<SnapshotId>) -> Result<u64> {
    if gone.is_empty() {
        return Ok(0);
    }
    let sizes = store.packed_sizes()?;
    let mut walk = archive::Reach::new(store.reader());
    for snapshot in history.iter().filter(|snapshot| !gone.contains(&snapshot.id)) {
        walk.visit(snapshot.tree, &mut |_, _| {})?;
    }
    let mut bytes = 0;
    let size = |id: ObjectId| sizes.get(&id).copied().unwrap_or(0);
    for snapshot in history.iter().filter(|snapshot| gone.contains(&snapshot.id)) {
        bytes += size(snapshot.id.0);
        walk.visit(snapshot.tree, &mut |id, _| bytes += size(id))?;
    }
    Ok(bytes)
}
