//! Detects whether a repository has changed.

use std::collections::BTreeMap;
use std::fs;
use std::time::UNIX_EPOCH;

use super::files::{files_ending, is_file, unless_absent};
use super::loose::loose_objects;
use super::operation_log::LOG;
use super::{Result, Store};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

/// Length and modification time in nanoseconds of each pack and each loose object, by name.
pub type ObjectFileStamps = BTreeMap<Vec<u8>, (u64, u64)>;

impl Store {
    pub fn object_file_stamps(&self) -> Result<ObjectFileStamps> {
        let mut stamps = BTreeMap::new();
        let nanoseconds = |modified: std::time::SystemTime| {
            modified.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
        };
        for ending in ["pack", "idx"] {
            for path in files_ending(&self.pack_dir(), ending)? {
                // Another program may have joined the packs in the meantime.
                let Some(found) = unless_absent(fs::metadata(&path), &path)? else { continue };
                let name = path.file_name().unwrap_or_default().as_encoded_bytes().to_owned();
                let modified = found.modified().map_or(0, nanoseconds);
                stamps.insert(name, (found.len(), modified));
            }
        }
        for found in loose_objects(&self.objects_dir())? {
            let stamp = (found.bytes, nanoseconds(found.modified));
            stamps.insert(found.id.as_slice().to_owned(), stamp);
        }
        Ok(stamps)
    }

    /// Returns whether the store may read objects of other repositories.
    pub fn borrows_objects(&self) -> Result<bool> {
        is_file(&self.objects_dir().join("info").join("alternates"))
    }

    pub fn fingerprint(&self) -> Result<Fingerprint> {
        let objects = self.objects_dir();
        let mut hasher = blake3::Hasher::new();
        let mut note = |text: &[u8]| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        let dir = objects.join("pack");
        for ending in ["pack", "idx"] {
            for path in files_ending(&dir, ending)? {
                note(path.as_os_str().as_encoded_bytes());
            }
        }
        let mut loose: Vec<_> =
            loose_objects(&objects)?.into_iter().map(|found| found.id).collect();
        loose.sort();
        loose.iter().for_each(|id| note(id.as_slice()));
        for (name, id) in self.refs("refs/")?.refs {
            note(name.as_str().as_bytes());
            note(id.as_slice());
        }
        // A command appends to the operation log before it moves refs, and again when it has
        // finished. So the length of the log also changes while a command is running.
        let log = self.private(LOG);
        if let Some(found) = unless_absent(fs::metadata(&log), &log)? {
            note(&found.len().to_le_bytes());
        }
        Ok(Fingerprint(hasher.finalize()))
    }
}
