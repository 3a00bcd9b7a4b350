//! Lists of object ids in the private folder, one entry per line: former ids of commits with their
//! new ids (`stvc/former-ids`), commits that `check` found damaged (`stvc/damaged`), and blobs of
//! attachments that the library had itself (`stvc/own-attachments`).

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::operation_log::{Sync, append};
use super::{Error, Lock, ObjectId, Result, Store, files};
use crate::{durable, regular};

const FORMER_IDS: &str = "former-ids";
const DAMAGED: &str = "damaged";
const OWN_ATTACHMENTS: &str = "own-attachments";

/// Returns the ids in a file; `None` if the file does not exist. Lines that are not an id are
/// ignored.
pub(super) fn read(path: &Path) -> Result<Option<HashSet<ObjectId>>> {
    let text = files::read(path)?;
    let id = |line: &[u8]| ObjectId::from_hex(line).ok();
    Ok(text.map(|text| text.split(|byte| *byte == b'\n').filter_map(id).collect()))
}

impl Store {
    /// Records pairs of an old and a new commit id, because users may have written down the old
    /// ids.
    pub fn remember_ids(&self, _lock: &Lock, ids: &[(ObjectId, ObjectId)]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        // A command that is repeated after an interruption must not record a pair twice.
        let known = self.former_map()?;
        let new = ids.iter().filter(|(old, new)| known.get(old) != Some(new));
        let text: String = new.map(|(old, new)| format!("{old} {new}\n")).collect();
        self.append_to(FORMER_IDS, &text)
    }

    fn append_to(&self, name: &str, text: &str) -> Result<()> {
        let path = self.private(name);
        if text.is_empty() {
            return Ok(());
        }
        append(&path, text.as_bytes(), Sync::Now).map_err(Error::io(path))
    }

    pub fn find_former(&self, prefix: &str) -> Result<Vec<ObjectId>> {
        let former = self.former_ids()?.into_iter();
        let named = former.filter(|(old, _)| old.to_string().starts_with(prefix));
        let mut found: Vec<_> = named.map(|(_, new)| new).collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Maps every former id to the current id of its commit. A commit may have been rewritten
    /// several times.
    pub fn former_ids(&self) -> Result<HashMap<ObjectId, ObjectId>> {
        let map = self.former_map()?;
        let present = |old: &ObjectId| {
            let newer = std::iter::successors(Some(*old), |id| map.get(id).copied());
            newer.take(map.len() + 1).last().unwrap_or(*old)
        };
        Ok(map.keys().map(|old| (*old, present(old))).collect())
    }

    fn former_map(&self) -> Result<HashMap<ObjectId, ObjectId>> {
        let text = files::read(&self.private(FORMER_IDS))?.unwrap_or_default();
        let id = |hex: &str| ObjectId::from_hex(hex.as_bytes()).ok();
        let pair = |line: &str| {
            let (old, new) = line.split_once(' ')?;
            Some((id(old)?, id(new)?))
        };
        Ok(String::from_utf8_lossy(&text).lines().filter_map(pair).collect())
    }

    /// Whether the last `check` found damage that is not repaired yet. If so, a snapshot also
    /// writes objects that are stored but cannot be read.
    pub fn is_marked_damaged(&self) -> bool {
        self.private(DAMAGED).exists()
    }

    pub fn known_damaged(&self) -> HashSet<ObjectId> {
        read(&self.private(DAMAGED)).ok().flatten().unwrap_or_default()
    }

    pub fn mark_damaged(&self, commits: &[ObjectId]) -> Result<()> {
        let path = self.private(DAMAGED);
        let mut text = String::from("see `stvc check`\n");
        commits.iter().for_each(|id| text.push_str(&format!("{id}\n")));
        if regular::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        self.make_private_dir()?;
        durable::overwrite(&path, text.as_bytes()).map_err(Error::io(path))
    }

    pub fn mark_valid(&self) -> Result<()> {
        let path = self.private(DAMAGED);
        if regular::read(&path).is_err() {
            return Ok(());
        }
        self.refuse_links()?;
        files::remove(&path)
    }

    /// Returns the blobs of attachments of uncommon file types that the library itself contained.
    /// Other attachments of such types are not written to the library without permission.
    pub fn own_attachments(&self) -> Result<HashSet<ObjectId>> {
        Ok(read(&self.private(OWN_ATTACHMENTS))?.unwrap_or_default())
    }

    pub fn remember_own_attachments(&self, _lock: &Lock, ids: &HashSet<ObjectId>) -> Result<()> {
        let known = self.own_attachments()?;
        let text: String = ids.difference(&known).map(|id| format!("{id}\n")).collect();
        self.append_to(OWN_ATTACHMENTS, &text)
    }
}
