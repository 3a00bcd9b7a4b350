//! Which entries the model was told at a message, where the message carries that.

use std::sync::Arc;

use super::asked::Asked;
use super::find_entry::Found;
use super::report::{Active, ActiveEntry};
use crate::archive::Snapshot;
use crate::archive::message_lives::MessageLists;
use crate::auto_recap;
use crate::engine;
use crate::history::at_message::message_not_found;
use crate::history::book_history::{book_of, newest_chat};
use crate::history::name_lookup;
use crate::st::{self, Library, Message, Raw};
use crate::store::{Reader, unless_lost};
use crate::verbs::{Error, Result};

/// What ST-Auto-Recap calls them on a message.
const ACTIVE: &str = "activeLorebookEntries";

pub(super) fn active(
    asked: &Asked<'_>,
    library: Option<&Library>,
    found: Option<Found<'_>>,
    message: usize,
) -> Result<Active> {
    let chat = chat(asked, library, &found)?;
    let reader = asked.store.reader();
    let list = MessageLists::new(asked.store.reader()).of(chat.tree)?;
    let Some(id) = list.get(message) else {
        let finding = message_not_found(&chat.timeline, list.len(), message);
        return Err(engine::Error::refused(finding).into());
    };
    let entries = entries(&reader.blob(*id)?);
    let carries = |places: &mut dyn Iterator<Item = usize>| -> Result<Option<usize>> {
        for place in places {
            if carries(&reader, list[place])? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    };
    let (mut before, mut after) = (None, None);
    if entries.is_none() {
        before = carries(&mut (0..message).rev())?;
        after = carries(&mut (message + 1..list.len()))?;
    }
    // One lorebook may have been asked for.
    let only = match &found {
        Some(Found::Books(names)) => Some(names.as_slice()),
        Some(Found::Entry { book, .. }) => Some(std::slice::from_ref(book)),
        None => None,
    };
    let is_asked = |entry: &ActiveEntry| {
        let book = entry.lorebook.as_deref();
        only.is_none_or(|only| book.is_none_or(|book| only.iter().any(|name| name.chat() == book)))
    };
    let entries = entries.map(|entries| entries.into_iter().filter(is_asked).collect::<Vec<_>>());
    Ok(Active { chat: chat.clone(), message, entries, before, after })
}

/// The chat whose messages are counted.
fn chat<'h>(
    asked: &Asked<'h>,
    library: Option<&Library>,
    found: &Option<Found<'_>>,
) -> Result<&'h Snapshot> {
    if let Some(chat) = &asked.options.chat {
        return Ok(name_lookup::stored(chat, asked.history, library)?);
    }
    let book = match found {
        Some(Found::Books(names)) => names.first(),
        Some(Found::Entry { book, .. }) => Some(book),
        None => None,
    };
    match book {
        Some(book) => newest_chat(asked.history, book)
            .ok_or_else(|| Error::NoChatWith { book: book.chat().to_owned() }),
        None => {
            let chats = asked.history.heads().map(|(_, head)| head);
            let chats = chats.filter(|head| head.timeline.is_chat());
            // One with a lorebook is rather meant than one without.
            let newest = chats.max_by_key(|head| (book_of(head).is_some(), head.time.seconds));
            newest.ok_or(Error::NoChat)
        }
    }
}

/// The entries that a message carries; `None` if it carries no list of them.
fn entries(line: &[u8]) -> Option<Vec<ActiveEntry>> {
    let list = Message::read(line)?.extra()?.get(ACTIVE)?.items()?;
    let entry = |entry: &Raw<'_>| ActiveEntry {
        lorebook: entry.get("world").and_then(|name| name.string()),
        uid: st::entry_uid(*entry).map(|uid| uid.to_string()).unwrap_or_default(),
        title: st::entry_comment(*entry).unwrap_or_default(),
        text: Arc::from(entry.as_str()),
    };
    // The queue of the extension's work is no lore.
    Some(list.iter().filter(|entry| !auto_recap::is_queue(**entry)).map(entry).collect())
}

fn carries(reader: &Reader, id: crate::store::ObjectId) -> Result<bool> {
    let line = unless_lost(reader.blob(id))?;
    let has = |line: &[u8]| memchr::memmem::find(line, ACTIVE.as_bytes()).is_some();
    Ok(line.is_some_and(|line| has(&line) && entries(&line).is_some()))
}
