//! The record of the last backups, `stvc/backups.json`, with one entry for each destination. Also
//! counts the changes in the store after a backup.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::chosen_refs::{ChosenRefs, in_words};
use super::copy_place::CopyPlace;
use super::error::{CopyError, InTheWay};
use crate::archive::SnapshotId;
use crate::durable::{self, Existing};
use crate::engine::configuration::Configuration;
use crate::engine::remotes;
use crate::engine::{Result, Workspace};
use crate::history::History;
use crate::regular;
use crate::rules::{Code, Finding};
use crate::store::{self, ObjectId, Store};
use crate::words::count;

/// The age in days above which `status` mentions that the last backup is old.
const OLD_DAYS: i64 = 14;

/// The record of a backup in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastBackup {
    /// The kind of the backup: `file`, `folder`, `git` or `remote`.
    pub kind: String,
    /// The path or URL of the backup; `-` is standard output.
    pub destination: String,
    /// The time of the backup, as RFC 3339.
    pub taken: String,
    /// Whether the backup contains all timelines.
    pub whole: bool,
    /// Whether a passphrase is needed to read the backup.
    pub encrypted: bool,
    /// The length of the backup in bytes, if known.
    pub bytes: Option<u64>,
    /// Branches and tags in the backup, with their commit ids.
    pub refs: BTreeMap<String, String>,
    /// Refs of earlier backups to this destination that `refs` does not contain. A folder or server
    /// still has them, because nothing is deleted from it automatically.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<String, String>,
}

impl LastBackup {
    pub(crate) fn of(kind: &str, destination: String, taken: String, chosen: &ChosenRefs) -> Self {
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

    /// Returns whether the backup is a folder that exists now.
    pub fn is_folder_in_reach(&self) -> bool {
        self.kind == "folder" && Path::new(&self.destination).is_dir()
    }

    /// Returns whether the backup exists now; `None` if that is unknown without a network.
    pub fn is_in_reach(&self) -> Option<bool> {
        match self.kind.as_str() {
            "folder" | "file" if self.destination != "-" => {
                Some(Path::new(&self.destination).exists())
            }
            _ => None,
        }
    }

    fn all_refs(&self) -> impl Iterator<Item = (&String, &String)> {
        self.refs.iter().chain(&self.former)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Backups {
    backups: Vec<LastBackup>,
}

/// A backup, and the number of changes in the store since then.
pub struct BackupAge {
    /// The record of the latest backup to this destination.
    pub taken: LastBackup,
    /// The number of snapshots that the backup does not have.
    pub snapshots: usize,
    /// The number of timelines that are new or have changed since the backup.
    pub timelines: usize,
}

/// Records a backup. Replaces the record of the previous backup to that destination.
fn remember(workspace: &Workspace, store: &Store, mut taken: LastBackup) -> Result<()> {
    let (store, _held) = workspace.hold(store)?;
    let mut known = Backups { backups: load(&store)? };
    // A new backup file replaces the old file. A folder or server keeps earlier refs.
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

/// Records a finished backup. Returns a finding if that fails, and not an error, because the backup
/// itself is valid.
pub(crate) fn note(workspace: &Workspace, store: &Store, taken: &LastBackup) -> Option<Finding> {
    let error = remember(workspace, store, taken.clone()).err()?;
    let what = format!("the backup could not be recorded in the store: {error}");
    let finding = Finding::new(Code::BackupNotNoted, &*taken.destination, what);
    Some(finding.remedy(
        "no action is needed: the backup is valid, but `stvc backup --last` does not list it",
    ))
}

/// Returns the recorded backups, latest first, or only those to `destination`.
pub fn last(workspace: &Workspace, destination: Option<&str>) -> Result<Vec<BackupAge>> {
    let store = workspace.open_store()?;
    let history = History::load(&store)?;
    // A file is recorded with its absolute path.
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

/// The purpose for which a destination is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Backups, which only this store writes.
    Backup,
    /// Sync with other devices, which is not possible with a backup file.
    Sync,
}

/// Returns the configured destination, or else the last one, and whether the last backup to it was
/// encrypted. Never returns standard output. Never returns a URL that had a password, because
/// passwords are not recorded.
pub fn remembered(workspace: &Workspace, purpose: Purpose) -> Result<Option<(String, bool)>> {
    let Some(store) = workspace.find_store()? else { return Ok(None) };
    let settings = Configuration::of(&store)?;
    let set =
        if purpose == Purpose::Sync { settings.sync.remote } else { settings.backup.destination };
    let mut known = load(&store)?;
    let absolute = |text: &str| std::path::absolute(text).unwrap_or_else(|_| text.into());
    // Ignore the configuration of a store given by `--store`, which may come from somebody else.
    let place = if let Some(set) = set.filter(|_| workspace.store.is_none()) {
        let same = |taken: &&LastBackup| absolute(&taken.destination) == absolute(&set);
        let encrypted = known.iter().find(same).is_some_and(|taken| taken.encrypted);
        Some((set, encrypted))
    } else if purpose == Purpose::Sync
        && workspace.store.is_none()
        && let Some(first) = remotes::load(&store)?.into_iter().next()
    {
        Some((first.address, false))
    } else {
        let is_file = |taken: &LastBackup| purpose == Purpose::Sync && taken.kind == "file";
        known.retain(|taken| taken.destination != "-" && !is_file(taken));
        let last = known.into_iter().max_by_key(moment);
        last.map(|taken| (taken.destination, taken.encrypted))
    };
    Ok(place.filter(|(place, _)| !place.contains(":***@")))
}

/// Returns the place of the scheduled backup, if the last complete backup to it is older than the
/// schedule or does not exist. Fails if the place cannot be reached now.
pub(crate) fn due(workspace: &Workspace) -> Result<Option<CopyPlace>> {
    let Some(store) = workspace.find_store()? else { return Ok(None) };
    let Some(schedule) = Configuration::of(&store)?.backup.schedule else { return Ok(None) };
    let destination = Destination::of(workspace, &store)?;
    let age = |taken: &LastBackup| workspace.now.timestamp() - moment(taken);
    // A backup with a time in the future, which a wrong clock recorded, does not count.
    let is_recent =
        |age: i64| u64::try_from(age).is_ok_and(|age| Duration::from_secs(age) < schedule);
    if destination.known.iter().any(|taken| taken.whole && is_recent(age(taken))) {
        return Ok(None);
    }
    destination.in_reach().map(Some)
}

/// Returns the place of a backup for which the user names none. Fails if the place cannot be
/// reached now, or if it needs a passphrase.
pub(crate) fn next_place(workspace: &Workspace) -> Result<CopyPlace> {
    Destination::of(workspace, &workspace.open_store()?)?.in_reach()
}

/// The configured destination, or else that of the last backup.
struct Destination {
    place: CopyPlace,
    is_encrypted: bool,
    /// Recorded backups to it.
    known: Vec<LastBackup>,
}

impl Destination {
    fn of(workspace: &Workspace, store: &Store) -> Result<Self> {
        let Some((destination, is_encrypted)) = remembered(workspace, Purpose::Backup)? else {
            return Err(CopyError::NoDestination.into());
        };
        let place = workspace.copy_place(&destination)?;
        let absolute = |text: &str| std::path::absolute(text).unwrap_or_else(|_| text.into());
        let is_there = |taken: &LastBackup| absolute(&taken.destination) == absolute(&destination);
        let known = load(store)?.into_iter().filter(is_there).collect();
        Ok(Self { place, is_encrypted, known })
    }

    fn in_reach(self) -> Result<CopyPlace> {
        if let CopyPlace::Folder(path) | CopyPlace::File(path) = &self.place {
            if self.is_encrypted {
                let what = InTheWay::Encrypted;
                return Err(CopyError::InTheWay { path: path.clone(), what }.into());
            }
            // The folder of a drive that is not mounted may exist and be empty. Never write to the
            // wrong disk: an earlier backup must still be there.
            let must_exist = if self.known.is_empty() { durable::parent(path) } else { path };
            if !must_exist.exists() {
                return Err(CopyError::NoFolder { path: must_exist.to_owned() }.into());
            }
        }
        Ok(self.place)
    }
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

/// Returns whether a backup to this destination is recorded.
pub(crate) fn is_known(store: &Store, destination: &str) -> Result<bool> {
    Ok(load(store)?.iter().any(|taken| taken.destination == destination))
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

/// Removes these branches and commits from the records of all backups.
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

pub(crate) fn newest(store: &Store, history: &History) -> Option<BackupAge> {
    let newest = load(store).unwrap_or_default().into_iter().max_by_key(moment)?;
    Some(since(newest, history))
}

/// Returns a finding if the last backup is old and does not have all snapshots.
pub(crate) fn overdue(workspace: &Workspace, last: &BackupAge) -> Option<Finding> {
    let BackupAge { taken, snapshots, .. } = last;
    let days = (workspace.now.timestamp() - moment(taken)) / 86_400;
    if days <= OLD_DAYS || *snapshots == 0 {
        return None;
    }
    let new = count(*snapshots, "new snapshot");
    let message = format!("the last backup is {days} days old; {new} since then");
    let finding = Finding::new(Code::BackupOld, &taken.destination, message);
    Some(finding.remedy("run `stvc backup` to update it"))
}

/// Returns the time of the last complete backup, in seconds since 1970.
pub(crate) fn latest_time(store: &Store) -> Option<i64> {
    let known = load(store).ok()?;
    known.iter().filter(|taken| taken.whole).map(moment).max()
}

fn since(taken: LastBackup, history: &History) -> BackupAge {
    let ids = taken.refs.values().filter_map(|id| ObjectId::from_hex(id.as_bytes()).ok());
    let had = history.past(ids.map(SnapshotId));
    let snapshots = history.iter().filter(|snapshot| !had.contains(&snapshot.id)).count();
    let timelines = history.heads().filter(|(_, head)| !had.contains(&head.id)).count();
    BackupAge { taken, snapshots, timelines }
}

fn moment(taken: &LastBackup) -> i64 {
    DateTime::parse_from_rfc3339(&taken.taken).map_or(0, |time| time.timestamp())
}

/// Reads the records. A damaged file counts as empty, and the next backup replaces the file.
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
