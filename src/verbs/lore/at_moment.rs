//! Reports a lorebook at an earlier moment, and the source of this state.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};

use super::entries::{by_number, text_of};
use super::find_entry::{LoreQuery, LoreTarget};
use super::report::{ChangeAfter, EntryThen, KnownFrom, LoreAtMoment, Options};
use crate::archive::entry_lives::{BookState, BookStates, EntryLife, Version, is_one_entry};
use crate::history::book_history::{BookHistory, newest_chat};
use crate::history::moment::{Moment, Names, Step};
use crate::history::state_then::{NeedBook, StateThen};
use crate::history::{self, dates};
use crate::st::{self, Key, TimelineName};
use crate::store::unless_lost;
use crate::verbs::{Error, Result};

pub(super) fn then(asked: &LoreQuery<'_>, found: LoreTarget<'_>, at: &str) -> Result<LoreAtMoment> {
    let (book, entry) = match found {
        LoreTarget::Entry { book, life, book_history } => (book, Some((life, book_history))),
        LoreTarget::Books(names) => match <[_; 1]>::try_from(names) {
            Ok([name]) => (name, None),
            Err(_) => return Err(Error::NeedsOneLorebook),
        },
    };
    let names = asked.workspace.names(asked.store, asked.library);
    let when = when(asked, names, &book, at)?;
    // If an entry was named, the history of its lorebook was read to find the entry. Otherwise the
    // history is needed only for a date or a number of changes.
    let (life, book_history) = match entry {
        Some((life, book_history)) => (Some(life), Some(*book_history)),
        None if !matches!(when, LoreMoment::Moment(_)) => {
            (None, Some(BookHistory::read(asked.store, asked.history, &book)?))
        }
        None => (None, None),
    };
    let (state, known_from) = state(asked, &book, book_history.as_ref(), &when)?;
    // The chat of the moment may have another lorebook than the lorebook in which the entry was
    // found.
    let book = match &when {
        LoreMoment::Moment(moment) => asked.book_today(moment).unwrap_or(book),
        _ => book,
    };
    let mut entries = state.entries();
    entries.sort_by_cached_key(|(key, _)| by_number(&key.to_string_lossy()));
    let mut title = None;
    if let (Some(life), Some(book_history)) = (life, &book_history) {
        // The entry may have had another key in this state, so it is identified by its versions.
        let life = &book_history.lives[life];
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
    let mut shown = Vec::new();
    for (key, version) in entries {
        let Some(text) = text_of(&reader, &version)? else { continue };
        let since = now.as_ref().map(|now| match now.get(&key) {
            Some(latest) if *latest == version => ChangeAfter::Same,
            Some(_) => ChangeAfter::Changed,
            None => ChangeAfter::Gone,
        });
        shown.push(EntryThen { key, text, since });
    }
    Ok(LoreAtMoment { book, entry: title, entries: shown, total, known_from })
}

/// Finds the entry in a state that is not part of the entry's history. The texts are compared,
/// because the UID alone does not identify an entry.
fn like(
    asked: &LoreQuery<'_>,
    life: &EntryLife,
    entries: &[(Key, Version)],
) -> Result<Option<Key>> {
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

/// Returns the latest entries of the lorebook of the requested moment. Returns `None` if
/// `Options::snapshot` is not set, if the timeline no longer has a branch, or if there is no
/// lorebook.
fn now(asked: &LoreQuery<'_>) -> Result<Option<HashMap<Key, Version>>> {
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

enum LoreMoment {
    /// The last state of the lorebook at or before this date.
    Date(DateTime<FixedOffset>),
    /// The state of the lorebook this many changes before its latest state.
    Back(usize),
    Moment(Box<Moment>),
}

/// Returns the moment that the options name: `snapshot`, or `at` together with `chat`. In `at`, a
/// number is a message number, and a text that is a valid date is a date. Returns `None` if `at`
/// refers to a chat and no chat is given.
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

/// Resolves `at` if the options name neither a chat nor a moment. A message number refers to the
/// latest chat that uses the lorebook. A date or a number of steps refers to the history of the
/// lorebook itself.
fn when(
    asked: &LoreQuery<'_>,
    names: Names<'_>,
    book: &TimelineName,
    at: &str,
) -> Result<LoreMoment> {
    if let Some(moment) = &asked.moment {
        return Ok(LoreMoment::Moment(Box::new(moment.clone())));
    }
    let message = match (message_number(at), dates::parse_end(at, names.now)) {
        (Some(message), _) => message,
        (None, Ok(date)) => return Ok(LoreMoment::Date(date)),
        (None, Err(_)) => match names.steps(at)?.as_slice() {
            [Step::Then(date)] => return Ok(LoreMoment::Date(*date)),
            [Step::Back(steps)] => return Ok(LoreMoment::Back(*steps)),
            [Step::Message(message)] => *message,
            _ => return Err(Error::OneStep { at: at.to_owned() }),
        },
    };
    let chat = newest_chat(asked.history, book)
        .ok_or_else(|| Error::NoChatWith { book: book.chat().to_owned() })?;
    Ok(LoreMoment::Moment(Box::new(names.moment_at(chat.timeline.as_str(), Some(message))?)))
}

fn state(
    asked: &LoreQuery<'_>,
    book: &TimelineName,
    book_history: Option<&BookHistory<'_>>,
    when: &LoreMoment,
) -> Result<(Arc<BookState>, KnownFrom)> {
    let name = || book.chat().to_owned();
    let states = book_history.map_or(&[][..], |book_history| &book_history.states);
    let snapshot = match when {
        LoreMoment::Date(date) => {
            let first = || states.first().and_then(|first| first.time.moment());
            let too_old =
                || history::Error::NotThatOld { name: name(), first: first().unwrap_or(*date) };
            let state =
                book_history.and_then(|book_history| book_history.state_at(date.timestamp()));
            states[state.ok_or_else(too_old)?]
        }
        LoreMoment::Back(steps) => {
            let last = states.len().saturating_sub(1);
            let too_old = || history::Error::NotSoFarBack { name: name(), steps: last };
            let state = last.checked_sub(*steps).and_then(|state| states.get(state));
            state.ok_or_else(too_old)?
        }
        LoreMoment::Moment(moment) => match moment.book_snapshot() {
            Some(snapshot) => snapshot,
            None => return rebuild_lorebook(asked, moment),
        },
    };
    let state = BookStates::new(asked.store.reader()).of(snapshot.tree)?;
    let state = state.ok_or(Error::NoLorebookThen { snapshot: snapshot.id })?;
    Ok((state, KnownFrom::Snapshot(Box::new(snapshot.clone()))))
}

/// Rebuilds the lorebook of a moment of which no snapshot was created.
fn rebuild_lorebook(asked: &LoreQuery<'_>, moment: &Moment) -> Result<(Arc<BookState>, KnownFrom)> {
    let then = StateThen::rebuild(asked.store, moment, NeedBook::Yes)?;
    let none = || Error::NoLorebookThen { snapshot: moment.snapshot.id };
    let (bytes, origin) = (then.contents.files.book_bytes(), then.origin);
    let (bytes, origin) = bytes.zip(origin).ok_or_else(none)?;
    let text = |(key, entry): (Key, st::Raw<'_>)| (key, Version::Text(entry.as_str().into()));
    let state = BookState::of_entries(st::entries(bytes).into_iter().map(text).collect());
    Ok((Arc::new(state), KnownFrom::Notes(Box::new(origin))))
}
