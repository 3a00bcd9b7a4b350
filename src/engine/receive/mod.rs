//! Imports the snapshots of a backup or a remote, for `import` and `sync`: reads and validates the
//! snapshots, decides about each timeline (`plan`), and applies the decisions in one operation
//! (`apply`).
//!
//! Both commands use the same steps, but decide differently (`plan::Policy`). An import overwrites
//! no local changes (`import_plan`). A sync makes both sides equal (`sync_plan`). A dry run works
//! on a copy of the store and writes nothing else.

mod apply;
mod counterparts;
mod future_library;
mod import_plan;
mod incoming;
mod join_history;
mod plan;
mod sides;
mod sync_other_files;
mod sync_plan;
mod unsent;

use std::path::{Path, PathBuf};

pub use incoming::look_at;
pub(crate) use incoming::{Source, SourcePlace};
pub(crate) use plan::Policy;
pub use plan::{Conflict, Outcome, ReceivedTag, ReceivedTimeline};

use super::copies::chosen_refs::HEADS;
use super::copies::{CopyPlace, mirror};
use super::files::{ChatOpenState, FileAction};
use super::{Include, Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::store::Store;
use apply::{Applied, Receiving};
use incoming::{Incoming, receive};
use plan::Plan;
use sides::Sides;

pub(crate) struct Request<'r> {
    pub source: Source<'r>,
    pub closed: ChatOpenState,
    pub policy: Policy,
    /// Whether to only plan. The store of the workspace must then be a temporary copy.
    pub dry_run: bool,
}

pub(crate) struct Reconciled {
    pub incoming: Incoming,
    pub entries: Vec<ReceivedTimeline>,
    pub tags: Vec<ReceivedTag>,
    pub files: Vec<FileAction>,
    pub findings: Vec<Finding>,
    /// Number of branches of the remote that the next call joins.
    pub postponed: usize,
    pub objects: usize,
    pub bytes: u64,
    /// The refs that a sync must not send to the remote afterwards.
    pub unsent: mirror::Options,
}

/// Returns the folder in which a backup is unpacked: the store, or the first existing folder above
/// its path if there is no store.
pub(crate) fn beside(workspace: &Workspace) -> Result<PathBuf> {
    let path = workspace.store_path()?;
    let above = usize::from(workspace.find_store()?.is_none());
    let folder = path.ancestors().skip(above).find(|dir| dir.is_dir());
    Ok(folder.unwrap_or(Path::new(".")).to_owned())
}

/// Returns whether the remote is a folder that is missing or has neither snapshots nor erasures.
pub(crate) fn has_nothing(place: &CopyPlace, store: &Store) -> Result<bool> {
    let CopyPlace::Folder(folder) = place else { return Ok(false) };
    let Some(mirror) = mirror::look(folder, Some(store))? else { return Ok(true) };
    Ok(mirror.refs(HEADS)?.refs.is_empty() && mirror.erasures()?.is_empty())
}

pub(crate) fn reconcile(
    workspace: &Workspace,
    request: &Request<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Reconciled> {
    let Request { ref source, closed, policy, dry_run } = *request;
    let found = workspace.find_store()?;
    let mut incoming = receive(workspace, source, found.as_ref(), policy, monitor)?;
    let store = workspace.find_or_create_store()?;
    let (store, held) = if dry_run {
        (store, None)
    } else {
        workspace.hold(&store).map(|(store, held)| (store, Some(held)))?
    };
    let library = match policy {
        // A sync needs the library: if a branch moved and the files did not change, the files would
        // look newer than the branch.
        Policy::Join | Policy::JoinByTime if !dry_run => Some(workspace.library()?),
        _ => workspace.library().ok(),
    };
    let ours = History::load(&store)?;
    if !incoming.fits(&ours) {
        incoming = receive(workspace, source, Some(&store), policy, monitor)?;
    }
    let library = library.as_ref();
    let sides = Sides {
        ours: &ours,
        theirs: &incoming.history,
        store: &store,
        here: store.reader(),
        there: incoming.store.reader(),
        library,
        groups: library.map(|library| library.scan()).transpose()?.unwrap_or_default().groups,
        include: Include::of(Some(&store)),
    };
    let mut plan = match policy {
        Policy::KeepLocal => import_plan::plan(&sides, &incoming)?,
        Policy::Join | Policy::JoinByTime => {
            sync_plan::plan(workspace, &sides, &incoming, policy, monitor)?
        }
    };
    plan.findings.extend(incoming.findings.iter().cloned());
    let receiving = Receiving { workspace, sides: &sides, incoming: &incoming, policy, closed };
    let Applied { files, objects, bytes } = match &held {
        Some(held) => receiving.apply(held, &mut plan)?,
        None => receiving.preview(&mut plan)?,
    };
    let Plan { timelines, tags, findings, postponed, .. } = plan;
    let (entries, unsent) = match policy {
        Policy::KeepLocal => {
            (timelines.into_iter().map(|step| step.entry).collect(), mirror::Options::default())
        }
        Policy::Join | Policy::JoinByTime => unsent::leave_out(&store, &incoming, timelines)?,
    };
    Ok(Reconciled { incoming, entries, tags, files, findings, postponed, objects, bytes, unsent })
}
