//! What is on a disk at a moment.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes, mode, and the time, where nobody has written since.
type Held = (Arc<Vec<u8>>, u32, Option<SystemTime>);

/// Folders with their modes, files with their bytes.
#[derive(Default)]
pub struct Image {
    pub folders: BTreeMap<String, u32>,
    pub files: BTreeMap<String, Held>,
}

impl Image {
    /// What two equal images have in common.
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

    /// Make it real.
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

    /// How it differs from what really is on a disk; the recording is complete if it does not.
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
