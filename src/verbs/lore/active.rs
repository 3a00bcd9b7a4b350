//! Reports the entries that were in the prompt of a message, if the message records them.

use std::sync::Arc;

use super::find_entry::LoreQuery;
use super::report::{ActiveEntries, ActiveEntry};
use crate::archive::Snapshot;
use crate::archive::message_lives::MessageLists;
use crate::auto_recap::active_entries;
use crate::engine;
use crate::history::at_message::message_not_found;
use crate::history::book_history::{book_of, newest_chat};
use crate::history::name_lookup;
use crate::st::{self, Raw, TimelineName};
use crate::store::unless_lost;
use crate::verbs::{Error, Result};

/// Reads the entries that a message records. If `books` is not empty, only entries of these
/// lorebooks are returned.
pub(super) fn active(
    asked: &LoreQuery<'_>,
    books: &[TimelineName],
    message: usize,
) -> Result<ActiveEntries> {
    let chat = chat(asked, books.first())?;
    let reader = asked.store.reader();
    let list = MessageLists::new(asked.store.reader()).of(chat.tree)?;
    let Some(id) = list.get(message) else {
        let finding = message_not_found(&chat.timeline, list.len(), message);
        return Err(engine::Error::refused(finding).into());
    };
    let carries = |places: &mut dyn Iterator<Item = usize>| -> Result<Option<usize>> {
        for place in places {
            let line = unless_lost(reader.blob(list[place]))?;
            if line.is_some_and(|line| active_entries(&line).is_some()) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    };
    let line = reader.blob(*id)?;
    let entries = active_entries(&line);
    let (mut before, mut after) = (None, None);
    if entries.is_none() {
        before = carries(&mut (0..message).rev())?;
        after = carries(&mut (message + 1..list.len()))?;
    }
    let is_asked = |entry: &ActiveEntry| match &entry.lorebook {
        Some(book) if !books.is_empty() => books.iter().any(|name| name.chat() == book),
        _ => true,
    };
    let entries = entries.map(|list| list.into_iter().map(active_entry).filter(is_asked).collect());
    Ok(ActiveEntries { chat: chat.clone(), message, entries, before, after })
}

/// Returns the latest snapshot of the chat that contains the message: the named chat, or the latest
/// chat that uses the named lorebook, or the latest chat.
fn chat<'h>(asked: &LoreQuery<'h>, book: Option<&TimelineName>) -> Result<&'h Snapshot> {
    if let Some(chat) = &asked.options.chat {
        return Ok(name_lookup::stored(chat, asked.history, asked.library)?);
    }
    if let Some(book) = book {
        let none = || Error::NoChatWith { book: book.chat().to_owned() };
        return newest_chat(asked.history, book).ok_or_else(none);
    }
    let chats = asked.history.heads().map(|(_, head)| head).filter(|head| head.timeline.is_chat());
    // Chats with a lorebook are preferred.
    let newest = chats.max_by_key(|head| (book_of(head).is_some(), head.time.seconds));
    newest.ok_or(Error::NoChat)
}

fn active_entry(entry: Raw<'_>) -> ActiveEntry {
    ActiveEntry {
        lorebook: entry.get("world").and_then(|name| name.string()),
        uid: st::entry_uid(entry).map(|uid| uid.to_string()).unwrap_or_default(),
        title: st::entry_comment(entry).unwrap_or_default(),
        text: Arc::from(entry.as_str()),
    }
}
