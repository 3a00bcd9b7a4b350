//! Taking in what a backup or a remote has, for `import` and `sync`: read and judge it, decide what becomes of each timeline (`plan`), and do that in one operation (`apply`).
//!
//! Both commands make the same pass; a dry run makes it on a copy of the store, and stops before anything is stored. They differ in what is decided (`plan::Policy`): an import
//! changes nothing that is here (`import_plan`), a sync makes both sides the same (`sync_plan`).

mod apply;
mod counterparts;
mod future_library;
mod import_plan;
mod incoming;
mod join_history;
mod joined_book;
mod lorebooks;
mod others;
mod outcome;
mod plan;
mod sides;
mod sync_plan;
mod tags;
mod unsent;

use std::path::{Path, PathBuf};

pub use incoming::{Received, look_at};
pub use outcome::{Conflict, Outcome, ReceivedTag, ReceivedTimeline};
use plan::Plan;
pub(crate) use plan::Policy;

use super::copies::chosen_refs::HEADS;
use super::copies::{CopyPlace, mirror};
use super::files::{Closed, FileAction};
use super::{Include, Result, Workspace};
use crate::archive::backup::Passphrase;
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::Finding;
use crate::store::Store;
use apply::{Applied, Receiving};
use incoming::{Incoming, Source, receive};
use sides::Sides;

/// What is taken in, and how.
pub(crate) struct Request<'r> {
    pub place: &'r CopyPlace,
    /// What opens it, if it is encrypted.
    pub passphrase: Option<&'r Passphrase>,
    /// Whether git may ask on the terminal.
    pub asks: bool,
    /// What has to be unpacked is unpacked into a folder in this one.
    pub beside: PathBuf,
    /// Whether SillyTavern has the chats closed.
    pub closed: Closed,
    pub policy: Policy,
    /// Only say what would be done. The workspace's store is a copy then.
    pub dry_run: bool,
}

/// What was taken in.
pub(crate) struct Reconciled {
    pub incoming: Incoming,
    pub entries: Vec<ReceivedTimeline>,
    /// Tags that came or moved.
    pub tags: Vec<ReceivedTag>,
    pub files: Vec<FileAction>,
    pub findings: Vec<Finding>,
    /// How many objects were written, and how long they are.
    pub objects: usize,
    pub bytes: u64,
    /// What must not be sent to the remote afterwards.
    pub unsent: mirror::Options,
}

/// Returns a folder near the store to unpack into: the store, or where there is none yet, the first folder above it that is there.
pub(crate) fn beside(workspace: &Workspace) -> Result<PathBuf> {
    let path = workspace.store_path()?;
    let above = usize::from(workspace.find_store()?.is_none());
    let folder = path.ancestors().skip(above).find(|dir| dir.is_dir());
    Ok(folder.unwrap_or(Path::new(".")).to_owned())
}

/// Returns whether a place that devices share is a folder with nothing in it yet.
pub(crate) fn has_nothing(place: &CopyPlace, store: &Store) -> Result<bool> {
    let CopyPlace::Folder(folder) = place else { return Ok(false) };
    let Some(mirror) = mirror::look(folder, Some(store))? else { return Ok(true) };
    Ok(mirror.refs(HEADS)?.refs.is_empty() && mirror.erasures()?.is_empty())
}

/// Takes in what a place has.
pub(crate) fn reconcile(
    workspace: &Workspace,
    request: &Request<'_>,
    monitor: &mut dyn Monitor,
) -> Result<Reconciled> {
    let Request { place, passphrase, asks, closed, policy, dry_run, .. } = *request;
    let source = Source { place, passphrase, asks, beside: &request.beside };
    let found = workspace.find_store()?;
    let mut incoming = receive(workspace, &source, found.as_ref(), policy, monitor)?;
    let store = workspace.find_or_create_store()?;
    let (store, held) = if dry_run {
        (store, None)
    } else {
        workspace.hold(&store).map(|(store, held)| (store, Some(held)))?
    };
    let library = match policy {
        // Branches that move without their files would make those look like something newer.
        Policy::Join if !dry_run => Some(workspace.library()?),
        _ => workspace.library().ok(),
    };
    let ours = History::load(&store)?;
    if !incoming.fits(&ours) {
        incoming = receive(workspace, &source, Some(&store), policy, monitor)?;
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
        Policy::Join => sync_plan::plan(workspace, &sides, &incoming, monitor)?,
    };
    plan.findings.extend(incoming.findings.iter().cloned());
    let receiving =
        Receiving { workspace, store: &store, library, incoming: &incoming, policy, closed };
    let applied = match &held {
        Some(held) => receiving.apply(held, &mut plan)?,
        None => receiving.preview(&mut plan)?,
    };
    let Plan { timelines: steps, tags, findings, .. } = plan;
    let (entries, unsent) = match policy {
        Policy::KeepLocal => {
            (steps.into_iter().map(|step| step.entry).collect(), mirror::Options::default())
        }
        Policy::Join => unsent::leave_out(&store, &incoming, steps)?,
    };
    let Applied { files, objects, bytes } = applied;
    Ok(Reconciled { incoming, entries, tags, files, findings, objects, bytes, unsent })
}
