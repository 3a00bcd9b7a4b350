//! When the last backups were taken, and how far the store has moved since: `stvc/backups.json`,
//! one entry for each destination.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::chosen_refs::{Chosen, in_words};
use crate::archive::SnapshotId;
use crate::durable::{self, Existing};
use crate::engine::configuration::Configuration;
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::regular;
use crate::rules::{Code, Finding};
use crate::store::{self, ObjectId, Store};

/// The age in days from which `status` mentions a backup.
const OLD_DAYS: i64 = 14;

/// The note of a backup in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastBackup {
    /// `file`, `folder` or `git`.
    pub kind: String,
    /// The place; `-` is standard output.
    pub destination: String,
    /// The time, as RFC 3339.
    pub taken: String,
    /// It contains everything.
    pub whole: bool,
    pub encrypted: bool,
    /// Its length, if known.
    pub bytes: Option<u64>,
    pub refs: BTreeMap<String, String>,
    /// Refs of earlier backups there: nothing is deleted from a folder or server automatically.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<String, String>,
}

impl LastBackup {
    pub(super) fn of(kind: &str, destination: String, taken: String, chosen: &Chosen) -> Self {
        Self {
            kind: kind.to_owned(),
            destination,
            taken,
            whole: chosen.whole,
            encrypted: false,
            bytes: None,
            refs: in_words(&chosen.refs),
            former: BTreeMap::new(),
        }
    }

    /// Returns whether it is a folder that is in reach.
    pub fn is_folder_in_reach(&self) -> bool {
        self.kind == "folder" && Path::new(&self.destination).is_dir()
    }

    fn all_refs(&self) -> impl Iterator<Item = (&String, &String)> {
        self.refs.iter().chain(&self.former)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Backups {
    backups: Vec<LastBackup>,
}

/// A backup and the changes after it.
pub struct Since {
    pub taken: LastBackup,
    /// Snapshots that it lacks.
    pub snapshots: usize,
    /// Timelines that are new or have changed since.
    pub timelines: usize,
}

/// Records a backup. Replaces the note of the previous one to that destination.
fn remember(workspace: &Workspace, store: &Store, mut taken: LastBackup) -> Result<()> {
    let (store, _held) = workspace.hold(store)?;
    let mut known = Backups { backups: load(&store)? };
    // A file is replaced by the next one; a folder or server only gets more.
    let before = known.backups.iter().find(|other| other.destination == taken.destination);
    if let Some(before) = before.filter(|_| taken.kind != "file") {
        let gone = before.all_refs().filter(|(name, _)| !taken.refs.contains_key(*name));
        taken.former = gone.map(|(name, id)| (name.clone(), id.clone())).collect();
    }
    known.backups.retain(|other| other.destination != taken.destination);
    known.backups.push(taken);
    save(&store, &known)
}

fn save(store: &Store, known: &Backups) -> Result<()> {
    let path = path(store);
    let text = serde_json::to_vec_pretty(known)
        .map_err(|error| store::Error::Io { path: path.clone(), source: error.into() })?;
    durable::write(&path, &text, Existing::Replace)
        .map_err(|source| store::Error::Io { path, source })?;
    Ok(())
}

/// Records a finished backup. A failure to do so is a finding, because the backup itself is valid.
pub(crate) fn note(workspace: &Workspace, store: &Store, taken: &LastBackup) -> Option<Finding> {
    let error = remember(workspace, store, taken.clone()).err()?;
    let what = format!("it could not be noted in the store: {error}");
    let finding = Finding::new(Code::BackupNotNoted, &*taken.destination, what);
    Some(finding.remedy("the backup is sound; only `stvc backup --last` does not know of it"))
}

/// Returns the recorded backups, latest first, or only those to `destination`.
pub fn last(workspace: &Workspace, destination: Option<&str>) -> Result<Vec<Since>> {
    let store = workspace.open_store()?;
    let history = History::load(&store)?;
    // A file is remembered by its whole path.
    let absolute = destination
        .and_then(|text| std::path::absolute(text).ok().map(|path| path.display().to_string()));
    let wanted = |taken: &LastBackup| {
        let is = |text: &str| taken.destination == text;
        destination.is_none_or(|text| is(text) || absolute.as_deref().is_some_and(is))
    };
    let mut found = load(&store)?;
    found.retain(wanted);
    found.sort_by_key(|taken| std::cmp::Reverse(moment(taken)));
    Ok(found.into_iter().map(|taken| since(taken, &history)).collect())
}

/// The purpose of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Backup,
    /// Exchange with other devices; not a file.
    Sync,
}

/// Returns the configured place, else the last one, and whether the last backup there was
/// encrypted. Never standard output or a place that needs a password, since passwords are not
/// stored.
pub fn remembered(workspace: &Workspace, purpose: Purpose) -> Result<Option<(String, bool)>> {
    let Some(store) = workspace.find_store()? else { return Ok(None) };
    let settings = Configuration::of(&store)?;
    let set = if purpose == Purpose::Sync { settings.sync } else { settings.backup };
    let mut known = load(&store)?;
    let absolute = |text: &str| std::path::absolute(text).unwrap_or_else(|_| text.into());
    // A store that is named may be somebody else's.
    let place = if let Some(set) = set.filter(|_| workspace.store.is_none()) {
        let same = |taken: &&LastBackup| absolute(&taken.destination) == absolute(&set);
        let encrypted = known.iter().find(same).is_some_and(|taken| taken.encrypted);
        Some((set, encrypted))
    } else {
        let is_file = |taken: &LastBackup| purpose == Purpose::Sync && taken.kind == "file";
        known.retain(|taken| taken.destination != "-" && !is_file(taken));
        let last = known.into_iter().max_by_key(moment);
        last.map(|taken| (taken.destination, taken.encrypted))
    };
    Ok(place.filter(|(place, _)| !place.contains(":***@")))
}

/// Returns the backups known to have received one of these branches or commits.
pub(crate) fn holding(
    store: &Store,
    branches: &HashSet<String>,
    gone: &HashSet<ObjectId>,
) -> Result<Vec<LastBackup>> {
    let has_it = |taken: &LastBackup| {
        taken.all_refs().any(|(name, id)| branches.contains(name) || is_of(id, gone))
    };
    Ok(load(store)?.into_iter().filter(has_it).collect())
}

pub(crate) fn folders(store: &Store) -> Result<Vec<LastBackup>> {
    Ok(load(store)?.into_iter().filter(|taken| taken.kind == "folder").collect())
}

pub(crate) fn sent(store: &Store) -> Result<HashSet<ObjectId>> {
    let known = load(store)?;
    let ids = known.iter().flat_map(|taken| taken.refs.values());
    Ok(ids.filter_map(|id| ObjectId::from_hex(id.as_bytes()).ok()).collect())
}

fn is_of(id: &str, ids: &HashSet<ObjectId>) -> bool {
    ObjectId::from_hex(id.as_bytes()).is_ok_and(|id| ids.contains(&id))
}

/// Removes these branches and commits from the notes.
pub(crate) fn forget(
    store: &Store,
    branches: &HashSet<String>,
    gone: &HashSet<ObjectId>,
) -> Result<()> {
    let mut known = Backups { backups: load(store)? };
    let stays = |name: &String, id: &mut String| !branches.contains(name) && !is_of(id, gone);
    for taken in &mut known.backups {
        taken.refs.retain(stays);
        taken.former.retain(stays);
    }
    if known.backups.is_empty() { Ok(()) } else { save(store, &known) }
}

pub(crate) fn newest(store: &Store, history: &History) -> Option<Since> {
    let newest = load(store).unwrap_or_default().into_iter().max_by_key(moment)?;
    Some(since(newest, history))
}

/// Returns the finding that the last backup is old. Says nothing to users who never made one.
pub(crate) fn overdue(workspace: &Workspace, last: &Since) -> Option<Finding> {
    let Since { taken, snapshots, .. } = last;
    let days = (workspace.now.timestamp() - moment(taken)) / 86_400;
    if days <= OLD_DAYS || *snapshots == 0 {
        return None;
    }
    let plural = if *snapshots == 1 { "snapshot" } else { "snapshots" };
    let message = format!("the last backup is {days} days old; {snapshots} {plural} since");
    let finding = Finding::new(Code::BackupOld, &taken.destination, message);
    Some(finding.remedy("`stvc backup` takes another one there"))
}

fn since(taken: LastBackup, history: &History) -> Since {
    let ids = taken.refs.values().filter_map(|id| ObjectId::from_hex(id.as_bytes()).ok());
    let had = history.past(ids.map(SnapshotId));
    let snapshots = history.iter().filter(|snapshot| !had.contains(&snapshot.id)).count();
    let timelines = history.heads().filter(|(_, head)| !had.contains(&head.id)).count();
    Since { taken, snapshots, timelines }
}

fn moment(taken: &LastBackup) -> i64 {
    DateTime::parse_from_rfc3339(&taken.taken).map_or(0, |time| time.timestamp())
}

/// Reads the notes. A damaged file counts as empty; the next backup replaces it.
fn load(store: &Store) -> Result<Vec<LastBackup>> {
    let path = path(store);
    match regular::read(&path) {
        Ok(text) => Ok(serde_json::from_slice::<Backups>(&text).unwrap_or_default().backups),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(store::Error::Io { path, source }.into()),
    }
}

fn path(store: &Store) -> PathBuf {
    store.private_dir().join("backups.json")
}
