//! What was known at an earlier moment, and where that is known from.

use std::sync::Arc;

use super::asked::Asked;
use super::faces::entries_of;
use super::find_entry::Found;
use super::report::{KnownFrom, Then};
use crate::archive::Tree;
use crate::archive::entry_lives::{BookState, BookStates, Version};
use crate::history::at_message::{Past, Then as Earlier};
use crate::history::book_history::{BookHistory, newest_chat};
use crate::history::{self, dates, name_lookup};
use crate::st::{self, Key, Library, TimelineName};
use crate::verbs::{Error, Result};

pub(super) fn then(
    asked: &Asked<'_>,
    library: Option<&Library>,
    found: Found<'_>,
    at: &str,
) -> Result<Then> {
    let (book, entry) = match found {
        Found::Entry { book, life, told } => (book, Some((life, told))),
        Found::Books(names) => match <[_; 1]>::try_from(names) {
            Ok([name]) => (name, None),
            Err(_) => return Err(Error::NeedsOneLorebook),
        },
    };
    let (life, told) = match entry {
        Some((life, told)) => (Some(life), *told),
        None => (None, BookHistory::read(asked.store, asked.history, &book)?),
    };
    let life = life.map(|life| &told.lives[life]);
    let (state, known_from) = moment(asked, library, &book, &told, at)?;
    let reader = asked.store.reader();
    let mut entries = entries_of(&reader, &state)?;
    let mut title = None;
    if let Some(life) = life {
        // In that state it may have had another key, and it is told by what it said.
        let ever: Vec<_> =
            life.changes.iter().filter_map(|change| change.version.as_ref()).collect();
        let is_it = |(_, version): &&(Key, Version)| ever.contains(&version);
        let keys: Vec<_> = life.changes.iter().map(|change| &change.key).collect();
        let key = state.entries.iter().find(is_it).map(|(key, _)| key.clone());
        let key = key.or_else(|| keys.last().map(|key| (*key).clone()));
        entries.retain(|(other, _)| Some(other) == key.as_ref());
        title = Some(key.map(|key| key.to_string_lossy()).unwrap_or_default());
    }
    Ok(Then { book, entry: title, entries, known_from })
}

/// The state that is meant: of a message's number, a date, or a snapshot.
fn moment(
    asked: &Asked<'_>,
    library: Option<&Library>,
    book: &TimelineName,
    told: &BookHistory<'_>,
    at: &str,
) -> Result<(Arc<BookState>, KnownFrom)> {
    if let Ok(message) = at.parse::<usize>() {
        return at_message(asked, library, book, message);
    }
    let now = asked.workspace.now;
    let snapshot = match name_lookup::snapshot(at, asked.store, library, now) {
        Ok(snapshot) => snapshot,
        Err(unknown @ history::Error::NoSuchSnapshot { .. }) => {
            let Ok(moment) = dates::parse_end(at, now) else { return Err(unknown.into()) };
            let Some(state) = told.state_at(moment.timestamp()) else {
                let first = told.states.first().and_then(|first| first.time.moment());
                let first = first.unwrap_or(moment);
                let name = book.chat().to_owned();
                return Err(history::Error::NotThatOld { name, first }.into());
            };
            told.states[state].clone()
        }
        Err(error) => return Err(error.into()),
    };
    let state = BookStates::new(asked.store.reader()).of(snapshot.tree)?;
    let state = state.ok_or(Error::NoLorebookThen { snapshot: snapshot.id })?;
    Ok((state, KnownFrom::Snapshot(Box::new(snapshot))))
}

/// What a chat with this lorebook knew at a message.
fn at_message(
    asked: &Asked<'_>,
    library: Option<&Library>,
    book: &TimelineName,
    message: usize,
) -> Result<(Arc<BookState>, KnownFrom)> {
    let chat = match &asked.options.chat {
        Some(chat) => name_lookup::stored(chat, asked.history, library)?,
        None => match newest_chat(asked.history, book) {
            Some(chat) => chat,
            None => return Err(Error::NoChatWith { book: book.chat().to_owned() }),
        },
    };
    let reader = asked.store.reader();
    let files = Tree::open(&reader, chat.tree)?.materialise(&reader)?.files;
    let past = Past::of(asked.store, asked.history, &chat.timeline, None);
    let mut states = BookStates::new(asked.store.reader());
    let snapshot = match past.at(&files, message, true)? {
        Earlier::Snapshot(taken, later) => *later.unwrap_or(taken),
        Earlier::Made(made) => {
            let bytes = made.files.book_bytes().unwrap_or_default();
            let text =
                |(key, entry): (Key, st::Raw<'_>)| (key, Version::Text(entry.as_str().into()));
            let entries = st::entries(bytes).into_iter().map(text).collect();
            let state = BookState { entries, is_odd: false };
            return Ok((Arc::new(state), KnownFrom::Notes(Box::new(made.origin))));
        }
    };
    let state = states.of(snapshot.tree)?;
    let state = state.ok_or(Error::NoLorebookThen { snapshot: snapshot.id })?;
    Ok((state, KnownFrom::Snapshot(Box::new(snapshot))))
}
