//! The contents of a disk at one time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes, mode, and the modification time unless the file was written since.
type FileImage = (Arc<Vec<u8>>, u32, Option<SystemTime>);

#[derive(Default)]
pub struct Image {
    pub folders: BTreeMap<String, u32>,
    pub files: BTreeMap<String, FileImage>,
}

impl Image {
    /// Hashes names and bytes.
    pub fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for path in self.folders.keys() {
            hasher.update(path.as_bytes()).update(b"/\0");
        }
        for (path, (bytes, ..)) in &self.files {
            hasher.update(path.as_bytes()).update(&[0]);
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        }
        hasher.finalize()
    }

    /// Writes the image to a folder.
    pub fn write(&self, root: &Path) {
        for path in self.folders.keys() {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for (path, (bytes, mode, time)) in &self.files {
            let path = root.join(path);
            let mut file = File::create(&path).unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            if let Some(time) = time {
                file.set_modified(*time).unwrap();
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        for (path, mode) in &self.folders {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
    }

    /// Lists the files that differ from the real disk; empty if the recording is complete.
    pub fn differs_from(&self, other: &Self) -> Vec<String> {
        let paths = self.files.keys().chain(other.files.keys());
        let differs = |path: &&String| {
            self.files.get(*path).map(|file| &file.0) != other.files.get(*path).map(|file| &file.0)
        };
        let mut found: Vec<_> = paths.filter(differs).cloned().collect();
        found.dedup();
        found
    }
}
