//! `backup FOLDER`: a bare repository kept as a copy, to which only what is new is copied. It is a store like any other: `--store FOLDER` works on it.
//!
//! Order: the mirror's lock; what it lacks, in packs that are synced and read back; then its branches and tags, in one operation of its own log. Killed anywhere, it is the mirror
//! that it was or the new one. What was removed for good goes last: the next update finds what is left of it. No git runs, so nothing that stands in the folder's configuration or hooks does either.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::chosen_refs::{self, Chosen, Refs, in_words};
use super::judge_outgoing::{self, Judged};
use super::last_backups::{self, LastBackup};
use super::purge_erased::purge_erased;
use super::update_refs::{self, May};
use crate::archive::{SnapshotId, new_versions, readable_beyond};
use crate::engine::copies::{CopyError, InTheWay};
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::store::{self, Copied, Effect, Format, Loss, Placed, RefName, Store};
use crate::{durable, real_path};

/// What to back up, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these timelines; none: everything.
    pub timelines: Vec<String>,
    /// What may be done to what is there.
    pub may: May,
    /// Branches and tags that stay there as they are.
    pub except: BTreeSet<RefName>,
    /// Branches and tags that are removed there, because what they lead to was removed for good.
    pub erased: BTreeSet<RefName>,
}

/// What was backed up, to a folder or a git server.
pub struct Report {
    /// `folder` or `git`.
    pub kind: &'static str,
    /// The file, folder or server it went to.
    pub destination: String,
    /// When it was taken, as RFC 3339.
    pub taken: String,
    /// Whether it was made now.
    pub created: bool,
    /// Whether all branches and tags went there.
    pub whole: bool,
    /// The timelines that did.
    pub timelines: usize,
    /// The snapshots that these have.
    pub snapshots: usize,
    /// How many of them are new there.
    pub new_snapshots: usize,
    /// Branches and tags that moved.
    pub moved: usize,
    /// Branches that are further there than here.
    pub ahead: usize,
    /// What was copied, where that is known.
    pub copied: Option<Copied>,
    /// How many of the new snapshots `import` will leave out, because something is wrong with them.
    pub odd: usize,
    /// What was noticed.
    pub findings: Vec<Finding>,
}

/// Bring the mirror in `folder` up to date; make it if nothing is there.
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
    let chosen = Chosen::of(workspace, &store, &options.timelines)?.without(&options.except);
    if options.may.prune {
        judge_outgoing::must_be_whole(&chosen)?;
    }
    let (mirror, created) = open(&folder, &store)?;
    let (mirror, held) = workspace.hold(&mirror)?;
    let lock = &held.lock;
    let destination = folder.display().to_string();
    let there = refs_there(&mirror)?;
    let history = History::load(&mirror)?;
    let wanted = update_refs::without(&there, &options.erased);
    let (reader, with_kept) = (mirror.reader(), History::load_with_kept(&mirror)?);
    let known = (&with_kept, &reader);
    let mut update = update_refs::plan(&chosen, &wanted, &store, known, options.may, &destination)?;
    update.remove(&there, &options.erased);
    let is_hurt = mirror.is_marked_damaged() || !history.broken.is_empty();
    let is_there = |id: SnapshotId| !is_hurt && history.get(id).is_some();
    let judged = Judged::of(&store, &chosen, is_there, monitor)?;
    let mut wanted = lacking(&store, &mirror, &history, &chosen.refs, is_hurt)?;
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
    let changes = update.changes();
    let moved = changes.len();
    mirror.transact(lock, workspace.timestamp(), Effect::moves(changes))?;
    let are_refs_gone = there.keys().any(|name| options.erased.contains(name));
    let purged = purge_erased(workspace, &mirror, &held, are_refs_gone, monitor);
    let Judged { mut findings, odd, .. } = judged;
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
    let taken = workspace.timestamp();
    findings.extend(last_backups::note(
        workspace,
        &store,
        note("folder", &destination, &taken, &chosen),
    ));
    let all = chosen.snapshots();
    Ok(Report {
        kind: "folder",
        destination,
        taken,
        created,
        whole: chosen.whole,
        timelines: chosen.timelines.len(),
        new_snapshots: all.iter().filter(|id| history.get(**id).is_none()).count(),
        snapshots: all.len(),
        moved,
        ahead: update.ahead,
        copied: Some(copied),
        odd,
        findings,
    })
}

/// The note that `--last` reads.
pub(crate) fn note(kind: &str, destination: &str, taken: &str, chosen: &Chosen) -> LastBackup {
    LastBackup {
        former: Default::default(),
        kind: kind.to_owned(),
        destination: destination.to_owned(),
        taken: taken.to_owned(),
        whole: chosen.whole,
        encrypted: false,
        bytes: None,
        refs: in_words(&chosen.refs),
    }
}

/// The mirror, and whether it was made now.
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

/// The mirror in a folder; `None` if there is nothing. Whatever else is in it is refused, and not touched.
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

/// Branches, tags, and what is kept out of sight.
fn refs_there(mirror: &Store) -> Result<Refs> {
    let mut refs = chosen_refs::ours(mirror)?;
    refs.extend(mirror.refs("refs/stvc/kept/")?.refs);
    Ok(refs)
}

/// The objects that the mirror does not have. Where it is known to be damaged, only what can be read counts.
fn lacking(
    store: &Store,
    mirror: &Store,
    history: &History,
    refs: &Refs,
    is_hurt: bool,
) -> Result<Vec<Placed>> {
    let known = if is_hurt {
        HashSet::new()
    } else {
        history.iter().map(|snapshot| snapshot.id.0).collect()
    };
    let reader = mirror.reader();
    let has = |object: &Placed| {
        if is_hurt { reader.is_sound(object.id, object.kind) } else { reader.has(object.id) }
    };
    let mut lacking = Vec::new();
    for object in readable_beyond(store, refs.values().copied().collect(), &known)? {
        if !has(&object)? {
            lacking.push(object);
        }
    }
    Ok(lacking)
}
