//! When the last backups were taken, and how far the store has moved since: `stvc/backups.json`, one entry for each destination.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::chosen_refs::{Chosen, in_words};
use crate::archive::SnapshotId;
use crate::durable::{self, Existing};
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::regular;
use crate::rules::{Code, Finding};
use crate::store::{self, ObjectId, Store};

/// A backup this old is mentioned by `status`.
const OLD_DAYS: i64 = 14;

/// One backup that was taken, as the store notes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastBackup {
    /// What it is: `file`, `folder` or `git`.
    pub kind: String,
    /// Where it went; `-` is standard output.
    pub destination: String,
    /// When, as RFC 3339.
    pub taken: String,
    /// Whether it has all that there was.
    pub whole: bool,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// How long it is, where that is known.
    pub bytes: Option<u64>,
    /// The branches and tags in it.
    pub refs: BTreeMap<String, String>,
    /// Branches and tags that went there before and not this time: nothing is dropped there by itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<String, String>,
}

impl LastBackup {
    /// Returns the note of a backup to a folder or a server.
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

/// The file.
#[derive(Default, Serialize, Deserialize)]
struct Backups {
    backups: Vec<LastBackup>,
}

/// One backup, and what came after it.
pub struct Since {
    /// The backup.
    pub taken: LastBackup,
    /// Snapshots that it does not have.
    pub snapshots: usize,
    /// Timelines that are new or have moved on since.
    pub timelines: usize,
}

/// Remembers that a backup was taken. The last one to the same destination counts.
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

/// Notes a backup that is there already: a note that could not be written does not undo it.
pub(crate) fn note(workspace: &Workspace, store: &Store, taken: &LastBackup) -> Option<Finding> {
    let error = remember(workspace, store, taken.clone()).err()?;
    let what = format!("it could not be noted in the store: {error}");
    let finding = Finding::new(Code::BackupNotNoted, &*taken.destination, what);
    Some(finding.remedy("the backup is sound; only `stvc backup --last` does not know of it"))
}

/// The backups that were taken, newest first; of `destination` alone if it is given.
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

/// Where the last backup went, or the last one that devices can share; and whether it was encrypted. Not one that only came out of the program.
pub fn last_place(store: &Store, shared: bool) -> Result<Option<(String, bool)>> {
    let mut known = load(store)?;
    known.retain(|taken| taken.destination != "-" && !(shared && taken.kind == "file"));
    let last = known.into_iter().max_by_key(moment);
    Ok(last.map(|taken| (taken.destination, taken.encrypted)))
}

/// Whether the last backup to a destination was encrypted.
pub fn was_encrypted(store: &Store, destination: &str) -> Result<bool> {
    let absolute = |text: &str| std::path::absolute(text).unwrap_or_else(|_| text.into());
    let same = |taken: &&LastBackup| absolute(&taken.destination) == absolute(destination);
    Ok(load(store)?.iter().find(same).is_some_and(|taken| taken.encrypted))
}

/// Returns the backups that ever received one of these branches, or any of these commits, as far as is known.
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

/// Returns the folders to which backups went.
pub(crate) fn folders(store: &Store) -> Result<Vec<LastBackup>> {
    Ok(load(store)?.into_iter().filter(|taken| taken.kind == "folder").collect())
}

/// Returns what the branches and tags led to that went into backups.
pub(crate) fn sent(store: &Store) -> Result<HashSet<ObjectId>> {
    let known = load(store)?;
    let ids = known.iter().flat_map(|taken| taken.refs.values());
    Ok(ids.filter_map(|id| ObjectId::from_hex(id.as_bytes()).ok()).collect())
}

fn is_of(id: &str, ids: &HashSet<ObjectId>) -> bool {
    ObjectId::from_hex(id.as_bytes()).is_ok_and(|id| ids.contains(&id))
}

/// Names these branches, and refs that lead to these commits, no longer.
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

/// The last backup.
pub(crate) fn newest(store: &Store, history: &History) -> Option<Since> {
    let newest = load(store).unwrap_or_default().into_iter().max_by_key(moment)?;
    Some(since(newest, history))
}

/// The note of `status`: there is a backup, it is old, and the store has moved on. Who never made one is not told.
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

/// A file that is damaged says nothing: it is a note, and the next backup writes it anew.
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
