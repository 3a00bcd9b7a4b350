//! Ensures that only one watch runs for a library. The operating system releases the lock when the
//! process ends.

use std::fs::{self, File};
use std::time::SystemTime;

use crate::engine::Workspace;
use crate::store::{self, Store};
use crate::watch::error::{Error, Result};
use crate::{durable, file_lock, regular};

pub(super) struct WatchLock(File);

impl WatchLock {
    pub(super) fn take(store: &Store) -> Result<Self> {
        store.refuse_links()?;
        let dir = store.private_dir();
        let path = dir.join("watch.lock");
        let words = dir.join("watch.pid");
        let io = |source| store::Error::Io { path: path.clone(), source };
        durable::create_dir_all(&dir).map_err(io)?;
        let file = durable::open_to_lock(&path).map_err(io)?;
        if !file_lock::try_lock(&file).map_err(io)? {
            let process = regular::read(&words).ok();
            let process = process.and_then(|words| String::from_utf8(words).ok());
            return Err(Error::Watched { process });
        }
        // The process id is only used in the error message of a second watch.
        let _ = durable::overwrite(&words, std::process::id().to_string().as_bytes());
        Ok(Self(file))
    }
}

/// Returns whether the library is being watched. Does not wait or write.
pub fn is_running(workspace: &Workspace) -> bool {
    workspace.find_store().ok().flatten().is_some_and(|store| is_held(&store))
}

/// Returns the process id of the running watch.
pub(super) fn process(workspace: &Workspace) -> Option<String> {
    let store = workspace.find_store().ok()?.filter(is_held)?;
    let words = regular::read(&store.private_dir().join("watch.pid")).ok()?;
    Some(String::from_utf8(words).ok()?.trim().to_owned())
}

fn is_held(store: &Store) -> bool {
    let file = regular::open(&store.private_dir().join("watch.lock"));
    file.and_then(|file| file_lock::is_held(&file)).unwrap_or(false)
}

/// Returns when the running watch was started.
pub fn started(workspace: &Workspace) -> Option<SystemTime> {
    let store = workspace.find_store().ok()?.filter(is_held)?;
    fs::metadata(store.private_dir().join("watch.pid")).ok()?.modified().ok()
}

impl Drop for WatchLock {
    fn drop(&mut self) {
        file_lock::unlock(&self.0);
    }
}
