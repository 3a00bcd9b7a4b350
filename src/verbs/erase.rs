//! Remove timelines for good: out of the history, out of the operation log, off the disk.
//!
//! Everything else in this program keeps what was; this is for what its owner wants nobody to read again. Forks of such a timeline stay, with the messages that they share with it: those
//! are theirs as well. Order: the history is written anew without it, then the log and all that was kept for `undo` goes, then the objects.

use std::collections::HashSet;
use std::time::Duration;

use crate::archive::{SnapshotId, branch, former_branch};
use crate::engine::cache::{self, Cache};
use crate::engine::copies::last_backups::{self, LastBackup};
use crate::engine::operation::Operation;
use crate::engine::{self, Workspace, collect};
use crate::history::owner_of_snapshot::Owners;
use crate::history::{self, History, name_lookup, rewrite_history};
use crate::progress::Monitor;
use crate::st::TimelineName;
use crate::store::{Before, RefName};
use crate::verbs::{Error, Result};

/// What to remove.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timelines by name.
    pub timelines: Vec<String>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// One timeline that goes.
pub struct ErasedTimeline {
    /// Its name.
    pub name: TimelineName,
    /// How many snapshots it has, checkpoints included.
    pub snapshots: usize,
    /// The tags of these, which go with them.
    pub tags: Vec<String>,
}

/// What was removed.
pub struct Report {
    /// The timelines.
    pub timelines: Vec<ErasedTimeline>,
    /// Timelines that were forked from them: they stay, with the messages that they share.
    pub forks: Vec<TimelineName>,
    /// Backups that still hold them, as far as is known.
    pub backups: Vec<LastBackup>,
    /// What it freed.
    pub bytes: u64,
    /// Whether it was only a plan.
    pub dry_run: bool,
}

/// Remove timelines for good.
pub fn erase(
    workspace: &Workspace,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    // The log must not say who was removed.
    let mut workspace = workspace.clone();
    workspace.command.truncate(1);
    workspace.command.push("erase".into());
    let workspace = &workspace;
    let (store, held) = workspace.open(options.dry_run)?;
    let history = History::load(&store)?;
    if let Some(broken) = history.broken.first() {
        let (subject, why) = (broken.subject.clone(), broken.why.clone());
        return Err(engine::Error::BrokenHistory { subject, why }.into());
    }
    let interrupted = store.erased()?.into_iter().any(|id| store.reader().has(id).unwrap_or(true));
    let names = wanted(workspace, &options.timelines, &history, interrupted)?;
    let owners = Owners::of(&history);
    let gone: HashSet<SnapshotId> = history
        .iter()
        .filter(|snapshot| names.contains(owners.of_snapshot(snapshot)))
        .map(|snapshot| snapshot.id)
        .collect();
    let timelines: Vec<_> = names
        .iter()
        .map(|name| {
            let own: Vec<_> =
                history.iter().filter(|found| owners.of_snapshot(found) == name).collect();
            let tags = own.iter().flat_map(|snapshot| history.tags_of(snapshot.id)).collect();
            ErasedTimeline { name: name.clone(), snapshots: own.len(), tags }
        })
        .collect();
    let mut forks: Vec<_> = history
        .iter()
        .filter(|snapshot| !gone.contains(&snapshot.id))
        .filter(|snapshot| snapshot.parents.iter().any(|parent| gone.contains(parent)))
        .map(|snapshot| owners.of_snapshot(snapshot).clone())
        .collect();
    forks.sort();
    forks.dedup();
    let refs: HashSet<RefName> = gone_refs(&names, &gone, &history);
    let backups = last_backups::holding(&store, &refs)?;
    let mut report = Report { timelines, forks, backups, bytes: 0, dry_run: options.dry_run };
    let Some(held) = held else { return Ok(report) };

    let ids: Vec<_> = gone.iter().map(|id| id.0).collect();
    store.remember_erased(&held.lock, &ids)?;
    let mut operation = Operation::new(workspace, &store, None);
    let rewritten = rewrite_history::without(&mut operation.pack, &store, &history, &gone)?;
    operation.follow(&rewritten)?;
    for name in &refs {
        if store.ref_target(name)?.is_some() {
            operation.drop_ref(name.clone())?;
        }
    }
    operation.finish(&held)?;
    forget_names(&store, &names);
    last_backups::forget(&store, &refs)?;
    store.mend_head(&held.lock)?;
    // Everything: any operation may lead to it.
    let all = (Before::Everything, Duration::ZERO);
    let (collected, _) = collect::collect(workspace, &store, &held, all, false, monitor)?;
    report.bytes = collected.bytes_before.saturating_sub(collected.bytes_after);
    Ok(report)
}

/// The timelines that are meant. One whose chat is still there would be taken again by the next snapshot.
fn wanted(
    workspace: &Workspace,
    names: &[String],
    history: &History,
    interrupted: bool,
) -> Result<Vec<TimelineName>> {
    let library = workspace.library().ok();
    let mut found = Vec::new();
    for text in names {
        let name = match name_lookup::stored(text, history, library.as_ref()) {
            Ok(head) => head.timeline.clone(),
            // A checkpoint may be all there is of it.
            Err(history::Error::NoSuchTimeline { .. }) => {
                let ever = history.iter().map(|snapshot| snapshot.timeline.clone()).collect();
                match name_lookup::timeline(text, library.as_ref(), &ever) {
                    // It is out of the history, and what is left of it is yet to go.
                    Err(history::Error::NoSuchTimeline { .. }) if interrupted => continue,
                    other => other?,
                }
            }
            Err(error) => return Err(error.into()),
        };
        let file = library.as_ref().map(|library| name.file().under(library.root()));
        if let Some(path) = file.filter(|path| path.exists()) {
            return Err(Error::StillThere { timeline: name.to_string(), path });
        }
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

/// Branches and tags that lead to what goes.
fn gone_refs(
    names: &[TimelineName],
    gone: &HashSet<SnapshotId>,
    history: &History,
) -> HashSet<RefName> {
    let mut refs: HashSet<_> = names.iter().map(branch).collect();
    refs.extend(names.iter().filter_map(former_branch));
    let tags = history.tags().filter(|(_, id)| gone.contains(id));
    refs.extend(tags.filter_map(|(tag, _)| RefName::tag(tag)));
    refs
}

/// What is remembered of them beside the history.
fn forget_names(store: &crate::store::Store, names: &[TimelineName]) {
    let mut cache = Cache::load(store);
    for name in names {
        cache.forget(name);
        cache::forget_folders(store, name);
    }
    cache.save(store);
    history::origin::forget_index(store);
}
