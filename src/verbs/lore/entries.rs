//! Reads lorebook entries: titles, keywords and UIDs.
//!
//! SillyTavern gives the UID of a deleted entry to the next new entry, so several entries may have
//! had the same UID.

use std::sync::Arc;

use super::report::{Book, EntryNow};
use crate::archive::entry_lives::{EntryLife, Version};
use crate::history::History;
use crate::history::book_history::BookHistory;
use crate::st::{self, Key, Raw, TimelineName};
use crate::store::{Reader, Store, unless_lost};
use crate::verbs::Result;

pub(super) struct EntrySummary {
    pub title: String,
    pub keys: Vec<String>,
    pub is_off: bool,
}

impl EntrySummary {
    pub fn of(text: &str) -> Self {
        let entry = Raw::parse_str(text);
        let keys = entry.and_then(|entry| entry.get("key")?.items()).unwrap_or_default();
        Self {
            title: entry.and_then(st::entry_comment).unwrap_or_default().trim().to_owned(),
            keys: keys.iter().filter_map(Raw::string).collect(),
            is_off: entry.and_then(|entry| entry.get("disable")).is_some_and(|it| it.truthy()),
        }
    }

    /// Reads a version of an entry. The summary is empty if the store has lost the version.
    pub fn read(reader: &Reader, version: &Version) -> Result<Self> {
        Ok(Self::of(&text_of(reader, version)?.unwrap_or_default()))
    }

    /// Reads the last version of an entry, even if the entry was deleted.
    pub fn last(reader: &Reader, life: &EntryLife) -> Result<Self> {
        let last = life.changes.iter().rev().find_map(|change| change.version.as_ref());
        last.map_or_else(|| Ok(Self::of("")), |version| Self::read(reader, version))
    }
}

/// Returns the JSON of a version, or `None` if the store has lost it.
pub(super) fn text_of(reader: &Reader, version: &Version) -> Result<Option<Arc<str>>> {
    Ok(unless_lost(version.read(reader))?)
}

/// Returns a sort key by which numeric keys are sorted as numbers.
pub(super) fn by_number(key: &str) -> (u64, String) {
    (key.parse().unwrap_or(u64::MAX), key.to_owned())
}

/// Returns the indices of the entries that had this key at any time, most recent first.
pub(super) fn holders_of(lives: &[EntryLife], key: &Key) -> Vec<usize> {
    let lives = lives.iter().enumerate();
    let mut holders: Vec<_> =
        lives.filter_map(|(index, life)| Some((life.last_state_under(key)?, index))).collect();
    holders.sort_unstable_by(|a, b| b.cmp(a));
    holders.into_iter().map(|(_, index)| index).collect()
}

/// Returns the name of an entry by its key. `5` is the latest entry with the key 5, `5~1` is the
/// entry that had this key before, and so on.
pub(super) fn uid_name(key: &Key, steps: usize) -> String {
    match steps {
        0 => key.to_string_lossy(),
        _ => format!("{}~{steps}", key.to_string_lossy()),
    }
}

/// Parses a name from [`uid_name`]. A key may itself look like `5~1`, so this function must be
/// called only if no current entry has the key `text`.
pub(super) fn read_uid_name(text: &str) -> (Key, usize) {
    let steps = text.rsplit_once('~').and_then(|(uid, steps)| Some((uid, steps.parse().ok()?)));
    let (uid, steps) = steps.unwrap_or((text, 0));
    (Key::of_bytes(uid.as_bytes().to_vec()), steps)
}

/// Lists the current entries of a lorebook.
pub(super) fn book(store: &Store, history: &History, name: TimelineName) -> Result<Book> {
    let BookHistory { states, lives, broken, .. } = BookHistory::read(store, history, &name)?;
    let reader = store.reader();
    let mut entries = Vec::new();
    for life in &lives {
        if let (Some((key, version)), Some(last)) = (life.now(), life.last_change())
            && let Some(changed) = states.get(last.state)
        {
            let EntrySummary { title, keys, is_off } = EntrySummary::read(&reader, version)?;
            let changes = life.changes.iter().filter(|change| !change.is_rewritten).count();
            let (uid, changed) = (key.to_string_lossy(), (*changed).clone());
            entries.push(EntryNow { uid, title, keys, is_off, changed, changes });
        }
    }
    entries.sort_by_cached_key(|entry| by_number(&entry.uid));
    let last = states.last().map(|last| (*last).clone());
    Ok(Book { name, entries, states: states.len(), last, broken })
}
