//! A lorebook at an earlier moment, and where that is known from.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};

use super::asked::Asked;
use super::entries::{by_number, text_of};
use super::find_entry::Found;
use super::report::{EntryThen, KnownFrom, Options, Since, Then};
use crate::archive::entry_lives::{BookState, BookStates, Life, Version, is_one_entry};
use crate::history::book_history::{BookHistory, newest_chat};
use crate::history::moment::{Moment, Names, Step};
use crate::history::state_then::{NeedBook, StateThen};
use crate::history::{self, dates};
use crate::st::{self, Key, TimelineName};
use crate::store::unless_lost;
use crate::verbs::{Error, Result};

pub(super) fn then(asked: &Asked<'_>, found: Found<'_>, at: &str) -> Result<Then> {
    let (book, entry) = match found {
        Found::Entry { book, life, told } => (book, Some((life, told))),
        Found::Books(names) => match <[_; 1]>::try_from(names) {
            Ok([name]) => (name, None),
            Err(_) => return Err(Error::NeedsOneLorebook),
        },
    };
    let names = asked.workspace.names(asked.store, asked.library);
    let when = when(asked, names, &book, at)?;
    // The history of a named entry's book is already read; otherwise it is read if needed.
    let (life, told) = match entry {
        Some((life, told)) => (Some(life), Some(*told)),
        None if !matches!(when, When::Moment(_)) => {
            (None, Some(BookHistory::read(asked.store, asked.history, &book)?))
        }
        None => (None, None),
    };
    let (state, known_from) = state(asked, &book, told.as_ref(), &when)?;
    // The named chat may have another lorebook than the one with the entry's history.
    let book = match &when {
        When::Moment(moment) => asked.book_today(moment).unwrap_or(book),
        _ => book,
    };
    let mut entries = state.entries();
    entries.sort_by_cached_key(|(key, _)| by_number(&key.to_string_lossy()));
    let mut title = None;
    if let (Some(life), Some(told)) = (life, &told) {
        // The entry may have had another key in that state, and is found by its versions.
        let life = &told.lives[life];
        let ever: Vec<_> =
            life.changes.iter().filter_map(|change| change.version.as_ref()).collect();
        let is_it = |(_, version): &&(Key, Version)| ever.contains(&version);
        let key = match entries.iter().find(is_it) {
            Some((key, _)) => Some(key.clone()),
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

/// Finds the entry in a state that its history does not have. The UID alone does not identify it.
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

/// Returns the latest state of the lorebook of the named moment.
fn now(asked: &Asked<'_>) -> Result<Option<HashMap<Key, Version>>> {
    let Some(moment) = asked.moment.as_ref().filter(|_| asked.options.snapshot.is_some()) else {
        return Ok(None);
    };
    if asked.history.head(&moment.timeline).is_none() {
        return Ok(None);
    }
    let latest = asked.workspace.moment(moment.timeline.as_str(), asked.store)?;
    let Some(latest) = latest.book_snapshot() else { return Ok(None) };
    let state = unless_lost(BookStates::new(asked.store.reader()).of(latest.tree))?;
    let entries = state.flatten().map(|state| state.entries()).unwrap_or_default();
    Ok(Some(entries.into_iter().collect()))
}

enum When {
    /// The last state of the lorebook until then.
    Date(DateTime<FixedOffset>),
    /// So many states of the lorebook ago.
    Back(usize),
    Moment(Box<Moment>),
}

/// Returns the moment that `--at` names by itself, or together with the chat of `--in`. A number is
/// a message's; a possible date is a date.
pub(super) fn named(names: Names<'_>, options: &Options) -> Result<Option<Moment>> {
    let (chat, at) = match (&options.snapshot, &options.chat, &options.at) {
        (Some(moment), ..) => return Ok(Some(names.moment(moment)?)),
        (None, chat, Some(at)) => (chat.as_deref(), at.as_str()),
        (None, _, None) => return Ok(None),
    };
    let steps = match () {
        () if at.starts_with(['~', '@', ':']) => {
            if names.steps(at)?.len() != 1 {
                return Err(Error::OneStep { at: at.to_owned() });
            }
            at.to_owned()
        }
        () if message_number(at).is_some() => format!(":{at}"),
        () if dates::parse_end(at, names.now).is_ok() => format!("@{{{at}}}"),
        () => return Ok(Some(names.moment(at)?)),
    };
    Ok(match chat {
        Some(chat) => Some(names.moment(&format!("{chat}{steps}"))?),
        None => None,
    })
}

fn message_number(at: &str) -> Option<usize> {
    at.trim_start_matches('#').parse().ok()
}

/// Without a chat or moment: messages are those of the latest chat with the lorebook, dates and
/// steps are the lorebook's own.
fn when(asked: &Asked<'_>, names: Names<'_>, book: &TimelineName, at: &str) -> Result<When> {
    if let Some(moment) = &asked.moment {
        return Ok(When::Moment(Box::new(moment.clone())));
    }
    let message = match (message_number(at), dates::parse_end(at, names.now)) {
        (Some(message), _) => message,
        (None, Ok(date)) => return Ok(When::Date(date)),
        (None, Err(_)) => match names.steps(at)?.as_slice() {
            [Step::Then(date)] => return Ok(When::Date(*date)),
            [Step::Back(steps)] => return Ok(When::Back(*steps)),
            [Step::Message(message)] => *message,
            _ => return Err(Error::OneStep { at: at.to_owned() }),
        },
    };
    let chat = newest_chat(asked.history, book)
        .ok_or_else(|| Error::NoChatWith { book: book.chat().to_owned() })?;
    Ok(When::Moment(Box::new(names.moment_at(chat.timeline.as_str(), Some(message))?)))
}

fn state(
    asked: &Asked<'_>,
    book: &TimelineName,
    told: Option<&BookHistory<'_>>,
    when: &When,
) -> Result<(Arc<BookState>, KnownFrom)> {
    let name = || book.chat().to_owned();
    let states = told.map_or(&[][..], |told| &told.states);
    let snapshot = match when {
        When::Date(date) => {
            let first = || states.first().and_then(|first| first.time.moment());
            let too_old =
                || history::Error::NotThatOld { name: name(), first: first().unwrap_or(*date) };
            let state = told.and_then(|told| told.state_at(date.timestamp()));
            states[state.ok_or_else(too_old)?]
        }
        When::Back(steps) => {
            let last = states.len().saturating_sub(1);
            let too_old = || history::Error::NotSoFarBack { name: name(), steps: last };
            let state = last.checked_sub(*steps).and_then(|state| states.get(state));
            state.ok_or_else(too_old)?
        }
        When::Moment(moment) => match moment.book_snapshot() {
            Some(snapshot) => snapshot,
            None => return put_together(asked, moment),
        },
    };
    let state = BookStates::new(asked.store.reader()).of(snapshot.tree)?;
    let state = state.ok_or(Error::NoLorebookThen { snapshot: snapshot.id })?;
    Ok((state, KnownFrom::Snapshot(Box::new(snapshot.clone()))))
}

/// Rebuilds the lorebook of a moment that no snapshot has.
fn put_together(asked: &Asked<'_>, moment: &Moment) -> Result<(Arc<BookState>, KnownFrom)> {
    let then = StateThen::rebuild(asked.store, moment, NeedBook::Yes)?;
    let none = || Error::NoLorebookThen { snapshot: moment.snapshot.id };
    let (bytes, origin) = (then.contents.files.book_bytes(), then.origin);
    let (bytes, origin) = bytes.zip(origin).ok_or_else(none)?;
    let text = |(key, entry): (Key, st::Raw<'_>)| (key, Version::Text(entry.as_str().into()));
    let state = BookState::of_entries(st::entries(bytes).into_iter().map(text).collect());
    Ok((Arc::new(state), KnownFrom::Notes(Box::new(origin))))
}
