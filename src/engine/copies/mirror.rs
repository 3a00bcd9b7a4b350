//! `backup FOLDER`: a mirror of the store in a bare repository. Only new objects are copied. The
//! mirror is a store, so `--store FOLDER` works.
//!
//! An update takes the mirror's lock, copies the missing objects in packs that are synced and read
//! back, and then moves the mirror's branches and tags in one operation of the mirror's own log.
//! After an interruption, the mirror therefore has either all old or all new refs. Erased objects
//! are removed last. If their removal is interrupted, the next update completes it. No git process
//! runs, so the configuration and the hooks in the folder have no effect.

use std::path::Path;

use super::chosen_refs::{self, ChosenRefs, Refs};
use super::judge_outgoing::JudgedOutgoing;
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
use crate::store::{self, Copied, Effect, Format, Loss, PackSlot, Store};
use crate::{durable, real_path};

/// The result of a backup to a folder or server.
#[non_exhaustive]
pub struct Report {
    /// The record that the store keeps of this backup.
    pub backup: LastBackup,
    /// Whether the destination did not exist before.
    pub created: bool,
    /// Number of timelines in the backup.
    pub timelines: usize,
    /// Number of snapshots in the backup.
    pub snapshots: usize,
    /// Number of snapshots that the destination did not have before.
    pub new_snapshots: usize,
    /// Number of refs that were created, moved or deleted there.
    pub moved: usize,
    /// The number of branches that have newer snapshots in the backup than in this store.
    pub ahead: usize,
    /// The copied objects; `None` for a server, where they are not counted.
    pub copied: Option<Copied>,
    /// The number of new snapshots that `import` will omit.
    pub invalid: usize,
    /// Problems of the backed-up snapshots.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn of(
        backup: LastBackup,
        chosen: &ChosenRefs,
        judged: JudgedOutgoing,
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
            invalid: judged.invalid,
            findings: judged.findings,
        }
    }
}

/// Updates the mirror in `folder`, or creates a mirror there.
pub fn to_folder(
    workspace: &Workspace,
    folder: &Path,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Report> {
    let store = workspace.open_store()?;
    let folder = std::path::absolute(folder)
        .map_err(|source| store::Error::Io { path: folder.to_owned(), source })?;
    monitor.begin("looking for new snapshots", None);
    let chosen = options.choose(workspace, &store)?;
    let (mirror, created) = open(&folder, &store)?;
    let (mirror, held) = workspace.hold(&mirror)?;
    let lock = &held.lock;
    let destination = folder.display().to_string();
    let mut there = chosen_refs::ours(&mirror)?;
    there.extend(mirror.refs("refs/stvc/kept/")?.refs);
    let history = History::load(&mirror)?;
    let (reader, with_kept) = (mirror.reader(), History::load_with_kept(&mirror)?);
    let known = (&with_kept, &reader);
    let update = update_refs::plan(&chosen, &there, &store, known, options, &destination)?;
    let is_hurt = mirror.is_marked_damaged() || !history.broken.is_empty();
    let trusted = Some(&history).filter(|_| !is_hurt);
    let is_there = |id| trusted.is_some_and(|history| history.get(id).is_some());
    let judged = JudgedOutgoing::of(&store, &chosen, is_there, monitor)?;
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
    // Damage in the mirror does not make the backup fail. Other errors do, because the command can
    // be repeated.
    if let Err(error) = purged {
        if !error.is_loss() {
            return Err(error);
        }
        let message = format!("erased snapshots could not be removed from it: {error}");
        let finding = Finding::new(Code::ErasedLeft, &*destination, message);
        findings.push(finding.remedy("back up or sync to it again"));
    }
    if let Err(error) = mirror.tidy(lock, &new_versions) {
        let message = format!("small packs and refs could not be combined: {error}");
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
            // Do not create the parent folder: if it is missing, a drive may not be mounted.
            let around = durable::parent(folder);
            if !around.is_dir() {
                return Err(CopyError::NoFolder { path: around.to_owned() }.into());
            }
            Ok((Store::create_mirror(folder)?, true))
        }
    }
}

/// Opens the mirror in a folder. Returns `None` if the folder is empty or missing. Fails if the
/// folder contains anything else.
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
        // A valid store that is not marked as a mirror belongs to a library.
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

/// Returns the objects reachable from `refs` that the mirror does not have. `trusted` is the
/// history of the mirror; `None` if the mirror is damaged, and then unreadable objects of the
/// mirror count as missing.
fn lacking(
    store: &Store,
    mirror: &Store,
    refs: &Refs,
    trusted: Option<&History>,
) -> Result<Vec<PackSlot>> {
    let known = trusted.into_iter().flat_map(History::iter).map(|snapshot| snapshot.id.0);
    let reader = mirror.reader();
    let mut lacking = Vec::new();
    for object in readable_beyond(store, refs.values().copied().collect(), &known.collect())? {
        let has = match trusted {
            Some(_) => reader.has(object.id)?,
            None => reader.is_valid(object.id, object.kind)?,
        };
        if !has {
            lacking.push(object);
        }
    }
    Ok(lacking)
}
