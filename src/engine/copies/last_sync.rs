//! The record of the last sync, `stvc/sync.json`. `status` and SillyTavern's page show it, and the
//! watch decides with it when the next sync is due.

use std::path::PathBuf;
use std::time::Duration;

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::last_backups::{self, Purpose};
use super::{CopyError, CopyPlace};
use crate::durable::{self, Existing};
use crate::engine::configuration::Configuration;
use crate::engine::{Result, Workspace};
use crate::regular;
use crate::store::{self, Store};

/// The record of the last sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSync {
    /// The remote, folder or server.
    pub remote: String,
    /// The time of the last sync that succeeded, as RFC 3339; `None` if none has.
    pub succeeded: Option<String>,
    /// The failure of the last sync; `None` if it succeeded.
    pub failure: Option<SyncFailure>,
}

/// The reason why a sync failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFailure {
    /// The time of the sync, as RFC 3339.
    pub time: String,
    /// The code of the error.
    pub code: String,
    /// The message of the error.
    pub message: String,
}

impl LastSync {
    fn tried(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| &*failure.time).or(self.succeeded.as_deref())
    }
}

/// Returns the record of the last sync, if there is one.
pub fn last(workspace: &Workspace) -> Result<Option<LastSync>> {
    Ok(workspace.find_store()?.as_ref().and_then(load))
}

/// Returns the record of the last sync. A damaged file counts as missing, and the next sync
/// replaces it.
pub(crate) fn load(store: &Store) -> Option<LastSync> {
    serde_json::from_slice(&regular::read(&path(store)).ok()?).ok()
}

/// Records a sync, which failed with the code and message in `failure`, or succeeded.
pub(crate) fn note(
    workspace: &Workspace,
    place: &CopyPlace,
    failure: Option<(&str, String)>,
) -> Result<()> {
    let Some(store) = workspace.find_store()? else { return Ok(()) };
    let (remote, time) = (place.to_string(), workspace.timestamp());
    let before = load(&store).filter(|before| before.remote == remote);
    let succeeded = match failure {
        None => Some(time.clone()),
        Some(_) => before.and_then(|before| before.succeeded),
    };
    let failure =
        failure.map(|(code, message)| SyncFailure { time, code: code.to_owned(), message });
    let path = path(&store);
    let failed = |source| store::Error::Io { path: path.clone(), source };
    let text = serde_json::to_vec_pretty(&LastSync { remote, succeeded, failure })
        .map_err(|error| failed(error.into()))?;
    durable::write(&path, &text, Existing::Replace).map_err(failed)?;
    Ok(())
}

/// Returns the place with which the watch must sync now, if the last sync is older than the
/// interval that the user set.
pub(crate) fn due(workspace: &Workspace) -> Result<Option<CopyPlace>> {
    let Some(store) = workspace.find_store()? else { return Ok(None) };
    let Some(every) = Configuration::of(&store)?.sync.every else { return Ok(None) };
    let place = next_place(workspace)?;
    let last = load(&store).filter(|last| last.remote == place.to_string());
    let tried = last.as_ref().and_then(LastSync::tried);
    let tried = tried.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    // A time in the future, which a wrong clock recorded, does not count.
    let is_recent = tried.is_some_and(|tried| {
        let age = workspace.now.timestamp() - tried.timestamp();
        u64::try_from(age).is_ok_and(|age| Duration::from_secs(age) < every)
    });
    Ok((!is_recent).then_some(place))
}

/// Returns the place of a sync for which the user names none.
pub(crate) fn next_place(workspace: &Workspace) -> Result<CopyPlace> {
    match last_backups::remembered(workspace, Purpose::Sync)? {
        Some((place, _)) => workspace.copy_place(&place),
        None => Err(CopyError::NoSyncDestination.into()),
    }
}

fn path(store: &Store) -> PathBuf {
    store.private_dir().join("sync.json")
}
