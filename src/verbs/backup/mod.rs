//! Creates backups of the store. The engine updates backups in folders and on servers; this module
//! writes backup files.

pub mod file;

use crate::archive;
use crate::durable;
use crate::engine::changed_timelines::has_changed;
use crate::engine::copies::last_backups::LastBackup;
use crate::engine::copies::{self, CopyError, CopyPlace, mirror, server};
use crate::engine::remotes::Session;
use crate::engine::safety_snapshots::{SafetySnapshots, take_what_is_ready};
use crate::engine::{self, Include, Workspace, left_out};
use crate::progress::Monitor;
use crate::rules::{Code, Finding};
use crate::verbs::Result;

/// Backs up all timelines to a place, without encryption. Returns the record of the backup, and
/// findings about it.
pub fn to_place(
    workspace: &Workspace,
    place: &CopyPlace,
    monitor: &mut dyn Monitor,
) -> Result<(LastBackup, Vec<Finding>)> {
    let options = mirror::Options::default();
    let same_disk = same_disk(workspace, place)?;
    let mut report = match place {
        CopyPlace::File(path) => {
            let mut report = file::to_file(workspace, path, &file::Options::default(), monitor)?;
            report.findings.extend(same_disk);
            return Ok((report.backup, report.findings));
        }
        CopyPlace::Folder(folder) => mirror::to_folder(workspace, folder, &options, monitor)?,
        CopyPlace::Remote(url) => server::to_server(workspace, url, &options, monitor)?,
        CopyPlace::Storage(address) => to_storage(workspace, address, &options, monitor)?,
        CopyPlace::Output => {
            let (destination, why) = ("-".to_owned(), "standard output is not a place to keep it");
            return Err(CopyError::UnknownDestination { destination, why }.into());
        }
    };
    report.findings.extend(same_disk);
    Ok((report.backup, report.findings))
}

/// Backs up all timelines to the configured destination, or else to that of the last backup.
/// Creates snapshots of changed timelines first.
pub fn again(
    workspace: &Workspace,
    monitor: &mut dyn Monitor,
) -> Result<(LastBackup, Vec<Finding>)> {
    let place = copies::last_backups::next_place(workspace)?;
    let first = take_first(workspace, monitor)?;
    let (backup, mut findings) = to_place(workspace, &place, monitor)?;
    findings.extend(first.findings);
    Ok((backup, findings))
}

/// Announces the local snapshots on a remote on plain storage, without receiving anything. The next
/// sync joins them with those of other devices.
pub fn to_storage(
    workspace: &Workspace,
    address: &str,
    options: &mirror::Options,
    monitor: &mut dyn Monitor,
) -> Result<mirror::Report> {
    let store = workspace.open_store()?;
    let mut session = Session::open(workspace, &store, address)?;
    session.refresh(monitor)?;
    Ok(session.send(workspace, options, monitor)?)
}

/// Returns a finding for the first backup to a place that would be lost together with the chats.
/// Must be called before the backup.
pub fn same_disk(workspace: &Workspace, place: &CopyPlace) -> Result<Option<Finding>> {
    Ok(copies::same_disk::finding(workspace, place)?)
}

/// Creates snapshots of changed timelines, so that the backup contains the changes. Does nothing if
/// there is no library.
pub fn take_first(workspace: &Workspace, monitor: &mut dyn Monitor) -> Result<SafetySnapshots> {
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
        Err(_) => Ok(SafetySnapshots::default()),
    }
}

/// Returns whether the store's disk is full or read-only. The backup is made nevertheless, because
/// it is most needed in this situation.
fn is_unwritable(error: &engine::Error) -> bool {
    let error = match error {
        engine::Error::Store(error) | engine::Error::Archive(archive::Error::Store(error)) => error,
        _ => return false,
    };
    error.io_error().is_some_and(|error| durable::is_full(error) || durable::is_read_only(error))
}

/// Returns a result without new snapshots. If nothing changed since the latest snapshots, the
/// backup is complete. Otherwise the result contains a finding.
fn not_stored(workspace: &Workspace, error: &engine::Error) -> SafetySnapshots {
    if has_changed(workspace).is_ok_and(|changed| !changed) {
        return SafetySnapshots::default();
    }
    let message = format!("changes since the latest snapshots are not in the backup: {error}");
    let subject =
        workspace.store_path().map_or_else(|_| String::new(), |path| path.display().to_string());
    let finding = Finding::new(Code::NotStored, subject, message)
        .remedy("free disk space or make the store writable, then run `stvc backup` again");
    SafetySnapshots { new: 0, not_taken: 1, findings: vec![finding] }
}
