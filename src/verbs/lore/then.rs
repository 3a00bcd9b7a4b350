//! What was known at an earlier moment, and where that is known from.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};

use super::asked::Asked;
use super::faces::{in_order, text_of};
use super::find_entry::Found;
use super::report::{EntryThen, KnownFrom, Since, Then};
use crate::archive::entry_lives::{BookState, BookStates, Life, Version, is_one_entry};
use crate::archive::{Snapshot, Tree};
use crate::history::at_message::{Past, Then as Earlier};
use crate::history::book_history::{BookHistory, book_of, names_of, newest_chat};
use crate::history::moment::{Moment, Names, Step};
use crate::history::{self, dates, name_lookup};
use crate::st::{self, Category, Key, Library, TimelineName};
use crate::store::unless_lost;
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
    let names = asked.workspace.names(asked.store, library);
    let when = when(asked, names, at)?;
    // Who names an entry has read the history of its book already; else it is read if it is asked of.
    let (life, told) = match entry {
        Some((life, told)) => (Some(life), Some(*told)),
        None if when.is_of_the_book() => {
            (None, Some(BookHistory::read(asked.store, asked.history, &book)?))
        }
        None => (None, None),
    };
    let (state, known_from, bound) = state(asked, names, &book, told.as_ref(), when)?;
    // The chat that was asked of may have another book than the one in which the entry was found.
    let shown = bound.filter(|bound| !names_of(asked.history, &book).contains(bound));
    let book = shown.unwrap_or(book);
    let mut entries = in_order(&state);
    let mut title = None;
    if let (Some(life), Some(told)) = (life, &told) {
        // In that state it may have had another key, and it is told by what it said.
        let life = &told.lives[life];
        let ever: Vec<_> =
            life.changes.iter().filter_map(|change| change.version.as_ref()).collect();
        let is_it = |(_, version): &&(Key, Version)| ever.contains(&version);
        let key = entries.iter().find(is_it).map(|(key, _)| key.clone());
        let key = match key {
            Some(key) => Some(key),
            None => like(asked, life, &entries)?,
        };
        entries.retain(|(other, _)| Some(other) == key.as_ref());
        title = Some(key.map(|key| key.to_string_lossy()).unwrap_or_default());
    }
    let total = entries.len();
    if let Some(wanted) = &asked.options.entries {
        entries.truncate(wanted.end);
        entries.drain(..wanted.start.min(entries.len()));
    }
    let now = now(asked)?;
    let reader = asked.store.reader();
    let mut told = Vec::new();
    for (key, version) in entries {
        let Some(text) = text_of(&reader, &version)? else { continue };
        let since = now.as_ref().map(|now| match now.get(&key) {
            Some(latest) if *latest == version => Since::Same,
            Some(_) => Since::Changed,
            None => Since::Gone,
        });
        told.push(EntryThen { key, text, since });
    }
    Ok(Then { book, entry: title, entries: told, total, known_from })
}

/// Returns the key of the entry that is this one in a state that its history does not have. One that has its UID and nothing else of it is another.
fn like(asked: &Asked<'_>, life: &Life, entries: &[(Key, Version)]) -> Result<Option<Key>> {
    let reader = asked.store.reader();
    let mut ever = Vec::new();
    for change in &life.changes {
        let text = change.version.as_ref().map(|version| text_of(&reader, version)).transpose()?;
        ever.extend(text.flatten().map(|text| (&change.key, text)));
    }
    for (key, version) in entries {
        let Some(text) = text_of(&reader, version)? else { continue };
        if ever.iter().any(|(then, known)| is_one_entry((then, known), (key, &text))) {
            return Ok(Some(key.clone()));
        }
    }
    Ok(None)
}

/// What the lorebook of the snapshot that is asked of says in the newest snapshot of the same timeline.
fn now(asked: &Asked<'_>) -> Result<Option<HashMap<Key, Version>>> {
    let Some(moment) = &asked.in_snapshot else { return Ok(None) };
    let Some(head) = asked.history.head(&moment.snapshot.timeline) else { return Ok(None) };
    let state = unless_lost(BookStates::new(asked.store.reader()).of(head.tree))?;
    let entries = state.flatten().map(|state| state.entries()).unwrap_or_default();
    Ok(Some(entries.into_iter().collect()))
}

/// When, as it was said.
enum When {
    /// At a message of the chat that is asked of.
    Message(usize),
    /// The last state until then.
    Date(DateTime<FixedOffset>),
    /// So many states ago.
    Back(usize),
    Moment(Box<Moment>),
}

impl When {
    /// Whether it is counted in states of the book.
    fn is_of_the_book(&self) -> bool {
        matches!(self, Self::Date(_) | Self::Back(_))
    }
}

/// A number is a message's, and what can be a date is one; else it is a moment, or one without a name.
fn when(asked: &Asked<'_>, names: Names<'_>, at: &str) -> Result<When> {
    if let Some(moment) = &asked.in_snapshot {
        return Ok(When::Moment(Box::new(moment.clone())));
    }
    if let Ok(message) = at.trim_start_matches('#').parse() {
        return Ok(When::Message(message));
    }
    if let Ok(date) = dates::parse_end(at, names.now) {
        return Ok(When::Date(date));
    }
    if !at.starts_with(['~', '@', ':']) {
        return Ok(When::Moment(Box::new(names.moment(at)?)));
    }
    let steps = names.steps(at)?;
    match steps.as_slice() {
        [Step::Message(message)] => Ok(When::Message(*message)),
        [Step::Then(date)] => Ok(When::Date(*date)),
        [Step::Back(steps)] => Ok(When::Back(*steps)),
        _ => Err(Error::OneStep { at: at.to_owned() }),
    }
}

/// A state, where it is known from, and the name that its lorebook had then.
type Known = (Arc<BookState>, KnownFrom, Option<TimelineName>);

/// The state that is meant.
fn state(
    asked: &Asked<'_>,
    names: Names<'_>,
    book: &TimelineName,
    told: Option<&BookHistory<'_>>,
    when: When,
) -> Result<Known> {
    let name = || book.chat().to_owned();
    let states = told.map_or(&[][..], |told| &told.states);
    let snapshot = match when {
        When::Message(message) => {
            let chat = match &asked.options.chat {
                Some(chat) => name_lookup::stored(chat, asked.history, names.library)?,
                None => newest_chat(asked.history, book)
                    .ok_or_else(|| Error::NoChatWith { book: name() })?,
            };
            return at_message(asked, chat, message);
        }
        When::Date(date) => {
            let first = || states.first().and_then(|first| first.time.moment());
            let too_old =
                || history::Error::NotThatOld { name: name(), first: first().unwrap_or(date) };
            let state = told.and_then(|told| told.state_at(date.timestamp()));
            states[state.ok_or_else(too_old)?].clone()
        }
        When::Back(steps) => {
            let last = states.len().saturating_sub(1);
            let too_old = || history::Error::NotSoFarBack { name: name(), steps: last };
            let state = last.checked_sub(steps).and_then(|state| states.get(state));
            (*state.ok_or_else(too_old)?).clone()
        }
        When::Moment(moment) => match moment.message {
            Some(message) => return at_message(asked, &moment.snapshot, message),
            None => moment.snapshot,
        },
    };
    known(&mut BookStates::new(asked.store.reader()), snapshot)
}

/// The lorebook of a snapshot.
fn known(states: &mut BookStates, snapshot: Snapshot) -> Result<Known> {
    let state = states.of(snapshot.tree)?;
    let state = state.ok_or(Error::NoLorebookThen { snapshot: snapshot.id })?;
    let is_book = snapshot.timeline.category() == Category::Lorebook;
    let book = is_book.then(|| snapshot.timeline.clone()).or_else(|| book_of(&snapshot));
    Ok((state, KnownFrom::Snapshot(Box::new(snapshot)), book))
}

/// What a chat knew at a message.
fn at_message(asked: &Asked<'_>, chat: &Snapshot, message: usize) -> Result<Known> {
    let reader = asked.store.reader();
    let files = Tree::open(&reader, chat.tree)?.materialise(&reader)?.files;
    let past = Past::of(asked.store, asked.history, &chat.timeline, Some(chat));
    let mut states = BookStates::new(asked.store.reader());
    let snapshot = match past.at(&files, message, true)? {
        Earlier::Snapshot(taken, later) => *later.unwrap_or(taken),
        Earlier::Made(made) => {
            let bytes = made.files.book_bytes().unwrap_or_default();
            let text =
                |(key, entry): (Key, st::Raw<'_>)| (key, Version::Text(entry.as_str().into()));
            let entries = st::entries(bytes).into_iter().map(text).collect();
            let state = BookState::of_entries(entries);
            let book = made.files.bound_name();
            let book = book.and_then(|name| TimelineName::of_file(&st::lorebook_path(name)?));
            return Ok((Arc::new(state), KnownFrom::Notes(Box::new(made.origin)), book));
        }
    };
    known(&mut states, snapshot)
}
