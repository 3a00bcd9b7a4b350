//! Ids that commits had before they were written anew, in `stvc/former-ids`: one line `old new` each. What a user wrote down still names what it named, also when the old commit
//! is gone.

use std::collections::HashMap;
use std::path::PathBuf;

use super::operation_log::{Sync, append};
use super::{Error, Lock, ObjectId, Result, Store, files};

impl Store {
    /// Remember that these commits have new ids.
    pub fn remember_ids(&self, _lock: &Lock, ids: &[(ObjectId, ObjectId)]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let path = self.former_path();
        // The same command, interrupted and given again, remembers the same.
        let known = self.former_map()?;
        let new = ids.iter().filter(|(old, new)| known.get(old) != Some(new));
        let text: String = new.map(|(old, new)| format!("{old} {new}\n")).collect();
        append(&path, text.as_bytes(), Sync::Now).map_err(Error::io(&path))
    }

    /// The present ids of commits whose former id begins with `prefix`.
    pub fn find_former(&self, prefix: &str) -> Result<Vec<ObjectId>> {
        let map = self.former_map()?;
        let named = map.iter().filter(|(old, _)| old.to_string().starts_with(prefix));
        let mut found: Vec<_> = named.map(|(_, new)| present(&map, *new)).collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// All former ids, each with the present one.
    pub fn former_ids(&self) -> Result<HashMap<ObjectId, ObjectId>> {
        let map = self.former_map()?;
        Ok(map.iter().map(|(old, new)| (*old, present(&map, *new))).collect())
    }

    fn former_map(&self) -> Result<HashMap<ObjectId, ObjectId>> {
        let text = files::read(&self.former_path())?.unwrap_or_default();
        let id = |hex: &str| ObjectId::from_hex(hex.as_bytes()).ok();
        let pair = |line: &str| {
            let (old, new) = line.split_once(' ')?;
            Some((id(old)?, id(new)?))
        };
        Ok(String::from_utf8_lossy(&text).lines().filter_map(pair).collect())
    }

    fn former_path(&self) -> PathBuf {
        self.private_dir().join("former-ids")
    }
}

/// What a commit is now; it may have been written anew more than once.
fn present(map: &HashMap<ObjectId, ObjectId>, mut id: ObjectId) -> ObjectId {
    for _ in 0..map.len() {
        match map.get(&id) {
            Some(next) => id = *next,
            None => break,
        }
    }
    id
}
