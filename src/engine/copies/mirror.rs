//! `backup FOLDER`: a bare repository kept as a copy, to which only what is new is copied. It is a
//! store like any other: `--store FOLDER` works on it.
//!
//! Order: the mirror's lock; what it lacks, in packs that are synced and read back; then its
//! branches and tags, in one operation of its own log. Killed anywhere, it is the mirror that it
//! was or the new one. What was removed for good goes last: the next update finds what is left of
//! it. No git runs, so nothing that stands in the folder's configuration or hooks does either.

use std::path::Path;

use super::chosen_refs::{self, Chosen, Refs};
use super::judge_outgoing::Judged;
use super::last_backups::{self, LastBackup};
use super::purge_erased::{is_erased_left, purge_erased};
pub use super::update_refs::Options;
use super::update_refs::{self, Update};
use crate::archive::{SnapshotId, new_versions, readable_beyond};
use crate::engine::copies::{CopyError, InTheWay};
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::store::{self, Copied, Effect, Format, Loss, Placed, Store};
use crate::{durable, real_path};

/// The result of a backup to a folder or server.
pub struct Report {
    pub backup: LastBackup,
    pub created: bool,
    pub timelines: usize,
    pub snapshots: usize,
    pub new_snapshots: usize,
    pub moved: usize,
    /// Branches with newer snapshots there than here.
    pub ahead: usize,
    /// The copied objects, if known.
    pub copied: Option<Copied>,
    /// The number of new snapshots that `import` will leave out.
    pub odd: usize,
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn of(
        backup: LastBackup,
        chosen: &Chosen,
        judged: Judged,
        update: &Update,
        was_there: impl Fn(SnapshotId) -> bool,
    ) -> Self {
        let all = chosen.snapshots();
        Self {
            backup,
            created: false,
            timelines: chosen.timelines.len(),
            snapshots: all.len(),
            new_snapshots: all.into_iter().filter(|id| !was_there(*id)).count(),
            moved: update.changes().len(),
            ahead: update.ahead,
            copied: None,
            odd: judged.odd,
            findings: judged.findings,
        }
    }
}

/// Updates the mirror in `folder`, or creates it.
pub fn to_folder(
    workspace: &Workspace,
    folder: &Path,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    let folder = std::path::absolute(folder)
        .map_err(|source| store::Error::Io { path: folder.to_owned(), source })?;
    monitor.begin("looking for what is new", None);
    let chosen = options.choose(workspace, &store)?;
    let (mirror, created) = open(&folder, &store)?;
    let (mirror, held) = workspace.hold(&mirror)?;
    let lock = &held.lock;
    let destination = folder.display().to_string();
    let there = refs_there(&mirror)?;
    let history = History::load(&mirror)?;
    let (reader, with_kept) = (mirror.reader(), History::load_with_kept(&mirror)?);
    let known = (&with_kept, &reader);
    let update = update_refs::plan(&chosen, &there, &store, known, options, &destination)?;
    let is_hurt = mirror.is_marked_damaged() || !history.broken.is_empty();
    let trusted = Some(&history).filter(|_| !is_hurt);
    let is_there = |id| trusted.is_some_and(|history| history.get(id).is_some());
    let judged = Judged::of(&store, &chosen, is_there, monitor)?;
    let mut wanted = lacking(&store, &mirror, &chosen.refs, trusted)?;
    wanted.retain(|object| !judged.unreadable.contains(&object.id));
    let mut copied = Copied::default();
    if !wanted.is_empty() {
        copied = mirror.copy_from(lock, &store, &wanted, monitor)?;
    }
    let mut erasures = mirror.erasures()?;
    erasures.join(&store.erasures()?);
    if erasures != mirror.erasures()? {
        mirror.set_erasures(lock, &erasures)?;
    }
    mirror.transact(lock, workspace.timestamp(), Effect::moves(update.changes()))?;
    let are_refs_gone = there.keys().any(|name| options.erased.contains(name));
    let purged = match is_erased_left(&mirror) {
        Ok(false) if !are_refs_gone => Ok(()),
        Ok(_) => purge_erased(workspace, &mirror, &held, monitor),
        Err(error) => Err(error),
    };
    let backup = LastBackup::of("folder", destination.clone(), workspace.timestamp(), &chosen);
    let was_there = |id| history.get(id).is_some();
    let mut report = Report::of(backup, &chosen, judged, &update, was_there);
    (report.created, report.copied) = (created, Some(copied));
    let findings = &mut report.findings;
    // Damage there does not prevent the backup; anything else can be tried again.
    if let Err(error) = purged {
        if !error.is_loss() {
            return Err(error);
        }
        let message = format!("what was erased could not be removed from it: {error}");
        let finding = Finding::new(Code::ErasedLeft, &*destination, message);
        findings.push(finding.remedy("the next backup or sync to it tries again"));
    }
    if let Err(error) = mirror.tidy(lock, &new_versions) {
        let message = format!("small packs and refs could not be joined: {error}");
        findings.push(Finding::new(Code::PacksNotJoined, &*destination, message));
    }
    drop(held);
    findings.extend(update.removed_finding(&destination, options.may));
    findings.extend(last_backups::note(workspace, &store, &report.backup));
    Ok(report)
}

fn open(folder: &Path, store: &Store) -> Result<(Store, bool)> {
    match look(folder, Some(store))? {
        Some(mirror) => {
            mirror.become_mirror()?;
            Ok((mirror, false))
        }
        None => {
            // A stick that is not plugged in must not become a folder of that name.
            let around = durable::parent(folder);
            if !around.is_dir() {
                return Err(CopyError::NoFolder { path: around.to_owned() }.into());
            }
            Ok((Store::create_mirror(folder)?, true))
        }
    }
}

/// Opens the mirror in a folder; `None` if the folder is empty or absent. Refuses anything else.
pub(crate) fn look(folder: &Path, store: Option<&Store>) -> Result<Option<Store>> {
    let refused = |what| CopyError::InTheWay { path: folder.to_owned(), what }.into();
    let inside = |store: &Store| real_path::of(folder).starts_with(real_path::of(store.path()));
    if store.is_some_and(inside) {
        return Err(refused(InTheWay::TheStore));
    }
    if folder.is_file() {
        return Err(refused(InTheWay::File));
    }
    match Store::open_bare(folder) {
        // A store that is in use by a library has a log of its own, and no mark.
        Ok(Some(mirror)) if !mirror.is_mirror() && mirror.format()? == Format::Known => {
            Err(refused(InTheWay::AnotherStore))
        }
        Ok(Some(mirror)) => Ok(Some(mirror)),
        Ok(None) => {
            let occupied = std::fs::read_dir(folder).is_ok_and(|mut found| found.next().is_some());
            if occupied { Err(refused(InTheWay::OtherFolder)) } else { Ok(None) }
        }
        Err(store::Error::Foreign { .. }) => Err(refused(InTheWay::OtherRepository)),
        Err(error) => Err(error.into()),
    }
}

fn refs_there(mirror: &Store) -> Result<Refs> {
    let mut refs = chosen_refs::ours(mirror)?;
    refs.extend(mirror.refs("refs/stvc/kept/")?.refs);
    Ok(refs)
}

/// Returns the objects that the mirror lacks. Without a trusted history, unreadable objects count
/// as lacking.
fn lacking(
    store: &Store,
    mirror: &Store,
    refs: &Refs,
    trusted: Option<&History>,
) -> Result<Vec<Placed>> {
    let known = trusted.into_iter().flat_map(History::iter).map(|snapshot| snapshot.id.0);
    let reader = mirror.reader();
    let mut lacking = Vec::new();
    for object in readable_beyond(store, refs.values().copied().collect(), &known.collect())? {
        let has = match trusted {
            Some(_) => reader.has(object.id)?,
            None => reader.is_sound(object.id, object.kind)?,
        };
        if !has {
            lacking.push(object);
        }
    }
    Ok(lacking)
}
