//! Ids that commits had before they were written anew, in `stvc/former-ids`: one line `old new` each. What a user wrote down still names what it named, also when the old commit
//! is gone.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use super::{Error, Lock, ObjectId, Result, Store};

impl Store {
    /// Remember that these commits have new ids.
    pub fn remember_ids(&self, _lock: &Lock, ids: &[(ObjectId, ObjectId)]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let path = self.former_path();
        let text: String = ids.iter().map(|(old, new)| format!("{old} {new}\n")).collect();
        let append = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        append().map_err(Error::io(&path))
    }

    /// The present ids of commits whose former id begins with `prefix`.
    pub fn with_former_prefix(&self, prefix: &str) -> Vec<ObjectId> {
        let text = fs::read_to_string(self.former_path()).unwrap_or_default();
        let pairs = text.lines().filter_map(|line| {
            let (old, new) = line.split_once(' ')?;
            Some((old, ObjectId::from_hex(new.as_bytes()).ok()?))
        });
        let map: HashMap<&str, ObjectId> = pairs.collect();
        let mut found: Vec<_> = map
            .iter()
            .filter(|(old, _)| old.starts_with(prefix))
            .map(|(_, new)| {
                // It may have been written anew more than once.
                let mut id = *new;
                for _ in 0..map.len() {
                    match map.get(id.to_string().as_str()) {
                        Some(next) => id = *next,
                        None => break,
                    }
                }
                id
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    fn former_path(&self) -> PathBuf {
        self.private_dir().join("former-ids")
    }
}
