//! The header: what a backup says of itself, in one line of JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{BackupError, Result};
use crate::store::{ObjectId, RefName};

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The program that wrote it, for people.
    pub program: String,
    /// When it was taken, as RFC 3339.
    pub taken: String,
    /// Whether it has all branches and tags that there were.
    pub whole: bool,
    /// The timelines whose branches are in it.
    pub timelines: Vec<String>,
    /// How many snapshots it has, those included that its timelines come from.
    pub snapshots: u64,
    /// How many objects follow.
    pub objects: u64,
    /// The branches and tags.
    pub refs: BTreeMap<String, String>,
}

impl Header {
    /// The branches and tags, checked: nothing else may be led anywhere by a backup.
    pub fn refs(&self) -> Result<BTreeMap<RefName, ObjectId>> {
        let check = |(name, id): (&String, &String)| {
            let ours = name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
            let parsed = RefName::try_from(name.clone()).ok().filter(|_| ours);
            let parsed = parsed.zip(ObjectId::from_hex(id.as_bytes()).ok());
            parsed.ok_or_else(|| BackupError::hostile(format!("the ref {name} at {id}")))
        };
        self.refs.iter().map(check).collect()
    }

    /// The day on which it was taken, `2026-11-15`.
    pub fn day(&self) -> &str {
        let day = self.taken.split('T').next().unwrap_or_default();
        let plain = day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if plain && day.len() == 10 { day } else { "unknown day" }
    }
}
