//! What people know entries by, and the order in which they count them.

use std::sync::Arc;

use crate::archive::entry_lives::{BookState, Life, Version};
use crate::st::{self, Key, Raw};
use crate::store::{Loss, Reader};
use crate::verbs::Result;

/// What people know an entry by.
pub(super) struct Face {
    pub title: String,
    pub keys: Vec<String>,
    pub is_off: bool,
}

impl Face {
    pub fn of(text: &str) -> Self {
        let entry = Raw::parse_str(text);
        let keys = entry.and_then(|entry| entry.get("key")?.items()).unwrap_or_default();
        Self {
            title: entry.and_then(st::entry_comment).unwrap_or_default().trim().to_owned(),
            keys: keys.iter().filter_map(Raw::string).collect(),
            is_off: entry.and_then(|entry| entry.get("disable")).is_some_and(|it| it.truthy()),
        }
    }
}

/// What a version says; nothing if that is lost.
pub(super) fn text_of(reader: &Reader, version: &Version) -> Result<Option<Arc<str>>> {
    match version.read(reader) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_loss() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns what people know an entry by, or knew it by before it was deleted.
pub(super) fn last_face(reader: &Reader, life: &Life) -> Result<Face> {
    let last = life.changes.iter().rev().find_map(|change| change.version.as_ref());
    let text = last.map(|version| text_of(reader, version)).transpose()?.flatten();
    Ok(Face::of(&text.unwrap_or_default()))
}

/// Keys in the order in which people count.
pub(super) fn by_number(key: &str) -> (u64, String) {
    (key.parse().unwrap_or(u64::MAX), key.to_owned())
}

/// The entries of a state, as people count them.
pub(super) fn in_order(state: &BookState) -> Vec<(Key, Version)> {
    let mut entries = state.entries();
    entries.sort_by_cached_key(|(key, _)| by_number(&key.to_string_lossy()));
    entries
}
