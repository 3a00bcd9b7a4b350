//! Reports a backup that would be lost together with the chats.

use std::path::Path;

use super::{CopyPlace, last_backups};
use crate::engine::{Result, Workspace};
use crate::real_path;
use crate::rules::{Code, Finding};

/// Returns a finding if the first backup to this file or folder is in SillyTavern's data folder or
/// on the disk of the store. Later backups to the same place do not repeat it, so this must be
/// called before the backup is recorded.
pub(crate) fn finding(workspace: &Workspace, place: &CopyPlace) -> Result<Option<Finding>> {
    let (CopyPlace::File(path) | CopyPlace::Folder(path)) = place else { return Ok(None) };
    let Some(why) = lost_together(workspace, path)? else { return Ok(None) };
    let subject = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let subject = subject.display().to_string();
    if let Some(store) = workspace.find_store()?
        && last_backups::is_known(&store, &subject)?
    {
        return Ok(None);
    }
    Ok(Some(Finding::new(Code::BackupSameDisk, subject, why).usual_remedy()))
}

fn lost_together(workspace: &Workspace, path: &Path) -> Result<Option<&'static str>> {
    let real = real_path::of(path);
    if let Ok(library) = workspace.library() {
        let root = real_path::of(library.root());
        // SillyTavern keeps the folders of all users in `data`.
        let data = root.parent().filter(|parent| parent.ends_with("data")).unwrap_or(&root);
        if real.starts_with(data) {
            return Ok(Some(
                "the backup is inside SillyTavern's data folder, so it is deleted together with that folder",
            ));
        }
    }
    let disk = real_path::disk(&real);
    let is_same = disk.is_some() && disk == real_path::disk(&workspace.store_path()?);
    Ok(is_same.then_some(
        "the backup is on the same disk as the store, so both are lost if that disk fails",
    ))
}
