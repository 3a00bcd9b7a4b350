//! Recognises folders that a program such as Syncthing or Dropbox synchronises. A git repository in
//! such a folder breaks if two devices write at the same time; a remote on plain storage does not.

use std::path::Path;

use crate::real_path;
use crate::rules::{Code, Finding};

/// Files that a program keeps in the folders that it synchronises.
const MARKERS: [(&str, &str); 7] = [
    (".stfolder", "Syncthing"),
    (".dropbox", "Dropbox"),
    (".dropbox.cache", "Dropbox"),
    (".nextcloudsync.log", "Nextcloud"),
    (".owncloudsync.log", "ownCloud"),
    (".tmp.driveupload", "Google Drive"),
    (".SynologyWorkingDirectory", "Synology Drive"),
];

/// Beginnings of the names that programs give to their folders.
const NAMES: [(&str, &str); 9] = [
    ("Dropbox", "Dropbox"),
    ("OneDrive", "OneDrive"),
    ("Google Drive", "Google Drive"),
    ("GoogleDrive-", "Google Drive"),
    ("Nextcloud", "Nextcloud"),
    ("iCloudDrive", "iCloud"),
    ("com~apple~CloudDocs", "iCloud"),
    ("Nutstore", "坚果云"),
    ("我的坚果云", "坚果云"),
];

/// Returns a finding if a program synchronises the folder.
pub(crate) fn finding(folder: &Path) -> Option<Finding> {
    let folder = real_path::of(folder);
    let program = folder.ancestors().find_map(program)?;
    let subject = folder.display().to_string();
    let message = format!(
        "{program} synchronises this folder, and the git repository in it breaks if two devices write at the same time"
    );
    Some(Finding::new(Code::SynchronisedFolder, subject, message).usual_remedy())
}

fn program(folder: &Path) -> Option<&'static str> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let named = NAMES.iter().find(|(begin, _)| name.starts_with(begin));
    let marked = || MARKERS.iter().find(|(marker, _)| folder.join(marker).exists());
    named.or_else(marked).map(|(_, program)| *program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn folder_is_recognised_by_a_marker_or_name_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("Sync/stories/chats");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(finding(&folder), None);
        fs::create_dir(dir.path().join("Sync/.stfolder")).unwrap();
        assert!(finding(&folder).unwrap().message.starts_with("Syncthing "));
        let named = dir.path().join("OneDrive - Company/chats");
        fs::create_dir_all(&named).unwrap();
        assert!(finding(&named).unwrap().message.starts_with("OneDrive "));
        // The folder need not exist yet.
        assert!(finding(&dir.path().join("我的坚果云/新的")).is_some());
    }
}
