//! What was known at an earlier moment, and where that is known from.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};

use super::asked::Asked;
use super::faces::{in_order, text_of};
use super::find_entry::Found;
use super::report::{EntryThen, KnownFrom, Since, Then};
use crate::archive::entry_lives::{BookState, BookStates, Version};
use crate::history::book_history::{BookHistory, newest_chat};
use crate::history::moment::{Moment, Names, Step};
use crate::history::pairs::Pairs;
use crate::history::state_then::{NeedBook, StateThen};
use crate::history::{self, dates};
use crate::st::{self, Key, Library, TimelineName};
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
    let when = when(asked, names, &book, at)?;
    // Who names an entry has read the history of its book already; else it is read if it is asked of.
    let (life, told) = match entry {
        Some((life, told)) => (Some(life), Some(*told)),
        None if !matches!(when, When::Moment(_)) => {
            (None, Some(BookHistory::read(asked.store, asked.history, &book)?))
        }
        None => (None, None),
    };
    let (state, known_from) = state(asked, &book, told.as_ref(), &when)?;
    // The chat that was named may have another lorebook than the one whose history tells of the entry.
    let book = match &when {
        When::Moment(moment) => {
            let pairs = Pairs::new(asked.store, asked.history);
            pairs.book_today(&moment.snapshot).unwrap_or(book)
        }
        _ => book,
    };
    let mut entries = in_order(&state);
    let mut title = None;
    if let (Some(life), Some(told)) = (life, &told) {
        // In that state it may have had another key, and it is told by what it said.
        let life = &told.lives[life];
        let ever: Vec<_> =
            life.changes.iter().filter_map(|change| change.version.as_ref()).collect();
        let is_it = |(_, version): &&(Key, Version)| ever.contains(&version);
        let key = entries.iter().find(is_it).map(|(key, _)| key.clone());
        let key = key.or_else(|| life.changes.last().map(|change| change.key.clone()));
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

/// Returns what the lorebook of the moment that is asked of says in the latest moment of its timeline.
fn now(asked: &Asked<'_>) -> Result<Option<HashMap<Key, Version>>> {
    let Some(moment) = &asked.in_snapshot else { return Ok(None) };
    if asked.history.head(&moment.snapshot.timeline).is_none() {
        return Ok(None);
    }
    let latest = asked.workspace.moment(moment.snapshot.timeline.as_str(), asked.store)?;
    let Some(latest) = latest.book_snapshot() else { return Ok(None) };
    let state = unless_lost(BookStates::new(asked.store.reader()).of(latest.tree))?;
    let entries = state.flatten().map(|state| state.entries()).unwrap_or_default();
    Ok(Some(entries.into_iter().collect()))
}

/// When, as it was asked.
enum When {
    /// The last state of the lorebook until then.
    Date(DateTime<FixedOffset>),
    /// So many states of the lorebook ago.
    Back(usize),
    Moment(Box<Moment>),
}

/// A number is a message's, and what can be a date is one; else it is a moment, or one without a name. Without a name, messages are those of the chat that is asked of, or of
/// the newest that has the lorebook; dates and steps are those of that chat, or of the lorebook itself.
fn when(asked: &Asked<'_>, names: Names<'_>, book: &TimelineName, at: &str) -> Result<When> {
    if let Some(moment) = &asked.in_snapshot {
        return Ok(When::Moment(Box::new(moment.clone())));
    }
    let chat = asked.options.chat.as_deref();
    let of_chat = |steps: &str| -> Result<When> {
        let moment = match chat {
            Some(chat) => names.moment(&format!("{chat}{steps}"))?,
            None => {
                let chat = newest_chat(asked.history, book)
                    .ok_or_else(|| Error::NoChatWith { book: book.chat().to_owned() })?;
                names.moment(&format!("{}{steps}", chat.timeline))?
            }
        };
        Ok(When::Moment(Box::new(moment)))
    };
    if let Ok(message) = at.trim_start_matches('#').parse::<usize>() {
        return of_chat(&format!(":{message}"));
    }
    if let Ok(date) = dates::parse_end(at, names.now) {
        return match chat {
            Some(_) => of_chat(&format!("@{{{at}}}")),
            None => Ok(When::Date(date)),
        };
    }
    if !at.starts_with(['~', '@', ':']) {
        return Ok(When::Moment(Box::new(names.moment(at)?)));
    }
    let steps = names.steps(at)?;
    match steps.as_slice() {
        [Step::Then(date)] if chat.is_none() => Ok(When::Date(*date)),
        [Step::Back(steps)] if chat.is_none() => Ok(When::Back(*steps)),
        [_] => of_chat(at),
        _ => Err(Error::OneStep { at: at.to_owned() }),
    }
}

/// The state that is meant.
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

/// The lorebook of a moment that no snapshot has.
fn put_together(asked: &Asked<'_>, moment: &Moment) -> Result<(Arc<BookState>, KnownFrom)> {
    let then = StateThen::rebuild(asked.store, moment, NeedBook::Yes)?;
    let none = || Error::NoLorebookThen { snapshot: moment.snapshot.id };
    let (bytes, origin) = (then.contents.files.book_bytes(), then.origin);
    let (bytes, origin) = bytes.zip(origin).ok_or_else(none)?;
    let text = |(key, entry): (Key, st::Raw<'_>)| (key, Version::Text(entry.as_str().into()));
    let state = BookState::of_entries(st::entries(bytes).into_iter().map(text).collect());
    Ok((Arc::new(state), KnownFrom::Notes(Box::new(origin))))
}
