//! A lorebook and its entries as they are now.

use super::faces::{Face, by_number, text_of};
use super::report::{Book, EntryNow};
use crate::history::History;
use crate::history::book_history::BookHistory;
use crate::st::TimelineName;
use crate::store::Store;
use crate::verbs::Result;

pub(super) fn book(store: &Store, history: &History, name: TimelineName) -> Result<Book> {
    let told = BookHistory::read(store, history, &name)?;
    let reader = store.reader();
    let mut entries = Vec::new();
    for life in &told.lives {
        let (Some((key, version)), Some(last)) = (life.now(), life.last_change()) else {
            continue;
        };
        let face = Face::of(&text_of(&reader, version)?.unwrap_or_default());
        let Some(changed) = told.states.get(last.state) else { continue };
        entries.push(EntryNow {
            uid: key.to_string_lossy(),
            title: face.title,
            keys: face.keys,
            is_off: face.is_off,
            changed: (*changed).clone(),
            changes: life.changes.iter().filter(|change| !change.is_rewritten).count(),
        });
    }
    entries.sort_by_cached_key(|entry| by_number(&entry.uid));
    let last = told.states.last().map(|last| (*last).clone());
    Ok(Book { name, entries, states: told.states.len(), last, broken: told.broken })
}
