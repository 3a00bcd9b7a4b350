//! Backups of the store. Folders and servers are updated by the engine; a file is written here.

pub mod file;

use crate::archive;
use crate::durable;
use crate::engine::changed_timelines::has_changed;
use crate::engine::take_first::{TakenFirst, take_what_is_ready};
use crate::engine::{self, Include, Workspace, left_out};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::verbs::Result;

/// Creates snapshots of what changed, so that it is in the backup; nothing without a library.
pub fn take_first(workspace: &Workspace, monitor: &mut dyn Monitor) -> Result<TakenFirst> {
    match workspace.library() {
        Ok(library) => {
            let mut first = match take_what_is_ready(workspace, monitor) {
                Err(error) if is_unwritable(&error) => not_stored(workspace, &error),
                taken => taken?,
            };
            let store = workspace.find_store()?;
            let include = Include::of(store.as_ref());
            first.findings.extend(left_out::finding(&library, &include, store.as_ref())?);
            Ok(first)
        }
        Err(_) => Ok(TakenFirst::default()),
    }
}

/// Returns whether the store's disk is full or read-only. That is when a backup elsewhere is needed
/// most.
fn is_unwritable(error: &engine::Error) -> bool {
    let error = match error {
        engine::Error::Store(error) | engine::Error::Archive(archive::Error::Store(error)) => error,
        _ => return false,
    };
    error.io_error().is_some_and(|error| durable::is_full(error) || durable::is_read_only(error))
}

/// Continues with what is stored. If nothing changed since, all of it is in the backup.
fn not_stored(workspace: &Workspace, error: &engine::Error) -> TakenFirst {
    if has_changed(workspace).is_ok_and(|changed| !changed) {
        return TakenFirst::default();
    }
    let message = format!("what changed since the latest snapshots is not in the backup: {error}");
    let subject =
        workspace.store_path().map_or_else(|_| String::new(), |path| path.display().to_string());
    let finding = Finding::new(Code::NotStored, subject, message)
        .remedy("make room or let stvc write to the store, then take another backup");
    TakenFirst { new: 0, not_taken: 1, findings: vec![finding] }
}
