//! Detects whether a repository has changed.

use std::fs;

use super::files::{files_ending, unless_absent};
use super::loose::loose_objects;
use super::operation_log::LOG;
use super::{Result, Store};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

impl Store {
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
