//! Which lorebook or entry is meant.

use std::collections::{BTreeSet, HashSet};

use super::asked::Asked;
use super::faces::{Face, by_number, text_of};
use crate::archive::SnapshotId;
use crate::archive::entry_lives::{BookStates, Life};
use crate::history::book_history::{BookHistory, books, newest};
use crate::history::{self, name_lookup};
use crate::progress::Monitor;
use crate::st::{Key, Library, TimelineName};
use crate::store::unless_lost;
use crate::verbs::{Error, Result};

/// What was named.
pub(super) enum Found<'h> {
    Books(Vec<TimelineName>),
    Entry {
        book: TimelineName,
        /// Which of the book's.
        life: usize,
        told: Box<BookHistory<'h>>,
    },
}

/// An entry that may be meant.
struct Candidate {
    book: TimelineName,
    key: Key,
    face: Face,
}

pub(super) fn find<'h>(
    asked: &Asked<'h>,
    library: Option<&Library>,
    monitor: &mut dyn Monitor,
) -> Result<Found<'h>> {
    let all: BTreeSet<_> = books(asked.history).into_iter().collect();
    let book = |text: &str| name_lookup::timeline(text, library, &all);
    match asked.options.named.as_slice() {
        [] => Ok(Found::Books(all.into_iter().collect())),
        [one] => {
            let is_it = |name: &&TimelineName| {
                name.as_str() == one || name.chat().to_lowercase() == one.to_lowercase()
            };
            if let Some(name) = all.iter().find(is_it) {
                return Ok(Found::Books(vec![name.clone()]));
            }
            match entry(asked, one, &all, monitor) {
                Err(Error::NoSuchEntry { .. }) if book(one).is_ok() => {
                    Ok(Found::Books(vec![book(one)?]))
                }
                found => found,
            }
        }
        [name, text, ..] => entry(asked, text, &BTreeSet::from([book(name)?]), monitor),
    }
}

fn entry<'h>(
    asked: &Asked<'h>,
    text: &str,
    among: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<Found<'h>> {
    let candidates = present(asked, among)?;
    let meant = meant(text, candidates, among.len() == 1);
    if meant.is_empty() {
        return past(asked, text, among, monitor);
    }
    let chosen = single(asked, text, meant)?;
    let told = Box::new(BookHistory::read(asked.store, asked.history, &chosen.book)?);
    let is_it = |life: &Life| life.now().is_some_and(|(key, _)| *key == chosen.key);
    match told.lives.iter().position(is_it) {
        Some(life) => Ok(Found::Entry { book: chosen.book, life, told }),
        None => Err(no_such(text, among)),
    }
}

/// The entries that are there now.
fn present(asked: &Asked<'_>, among: &BTreeSet<TimelineName>) -> Result<Vec<Candidate>> {
    let reader = asked.store.reader();
    let mut states = BookStates::new(asked.store.reader());
    let mut candidates = Vec::new();
    for book in among {
        let Some(newest) = newest(asked.history, book) else { continue };
        let Some(state) = unless_lost(states.of(newest.tree))?.flatten() else { continue };
        for (key, version) in state.entries() {
            let face = Face::of(&text_of(&reader, &version)?.unwrap_or_default());
            candidates.push(Candidate { book: book.clone(), key, face });
        }
    }
    Ok(candidates)
}

/// From the narrowest meaning to the widest; the first that fits anything decides. A UID says little where there are several lorebooks.
fn meant(text: &str, candidates: Vec<Candidate>, is_one_book: bool) -> Vec<Candidate> {
    let text = text.to_lowercase();
    let lower = |word: &String| word.to_lowercase();
    let meanings: [&dyn Fn(&Candidate) -> bool; 5] = [
        &|one| is_one_book && one.key.to_string_lossy() == text,
        &|one| lower(&one.face.title) == text,
        &|one| one.face.keys.iter().any(|key| lower(key) == text),
        &|one| lower(&one.face.title).contains(&text),
        &|one| one.face.keys.iter().any(|key| lower(key).contains(&text)),
    ];
    let Some(meaning) = meanings.iter().find(|meaning| candidates.iter().any(meaning)) else {
        return Vec::new();
    };
    candidates.into_iter().filter(meaning).collect()
}

/// The only one; or, where forks have it each in a lorebook of its own, the one whose book changed last.
fn single(asked: &Asked<'_>, text: &str, mut meant: Vec<Candidate>) -> Result<Candidate> {
    let each_once: HashSet<_> = meant.iter().map(|one| &one.book).collect();
    if each_once.len() == meant.len() && are_related(asked, &each_once) {
        let changed = |one: &Candidate| newest(asked.history, &one.book).map(|it| it.time.seconds);
        meant.sort_by_key(|one| (std::cmp::Reverse(changed(one)), one.book.clone()));
        meant.truncate(1);
    }
    if meant.len() == 1 {
        return Ok(meant.remove(0));
    }
    meant.sort_by_cached_key(|one| (one.book.clone(), by_number(&one.key.to_string_lossy())));
    let candidates = meant.iter().map(|one| {
        format!("{}: UID {} {}", one.book.chat(), one.key.to_string_lossy(), one.face.title)
    });
    Err(history::Error::Ambiguous { name: text.into(), candidates: candidates.collect() }.into())
}

/// Whether lorebooks come from one.
fn are_related(asked: &Asked<'_>, books: &HashSet<&TimelineName>) -> bool {
    let first = |book: &&TimelineName| -> Option<SnapshotId> {
        let head = asked.history.head(book)?;
        asked.history.ancestry(head).last().map(|snapshot| snapshot.id)
    };
    let firsts: HashSet<_> = books.iter().map(first).collect();
    books.len() == 1 || firsts.len() == 1 && !firsts.contains(&None)
}

/// What was once called so, or is gone.
fn past<'h>(
    asked: &Asked<'h>,
    text: &str,
    among: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<Found<'h>> {
    let reader = asked.store.reader();
    let wanted = text.to_lowercase();
    let mut found = Vec::new();
    monitor.begin("looking through the past", Some(among.len() as u64));
    for book in among {
        let told = BookHistory::read(asked.store, asked.history, book)?;
        for (life, it) in told.lives.iter().enumerate() {
            let mut best = None;
            for version in it.changes.iter().filter_map(|change| change.version.as_ref()) {
                let face = Face::of(&text_of(&reader, version)?.unwrap_or_default());
                let title = face.title.to_lowercase();
                let is_key = || face.keys.iter().any(|key| key.to_lowercase() == wanted);
                let rank = match () {
                    () if title == wanted => 0,
                    () if is_key() => 1,
                    () if title.contains(&wanted) => 2,
                    () => continue,
                };
                best = Some(best.map_or(rank, |best: u8| best.min(rank)));
            }
            found.extend(best.map(|rank| (rank, book.clone(), life)));
        }
        monitor.advance(1);
    }
    found.sort();
    let best = found.first().map(|(rank, ..)| *rank);
    found.retain(|(rank, ..)| Some(*rank) == best);
    match found.as_slice() {
        [] => Err(no_such(text, among)),
        [(_, book, life)] => {
            let told = Box::new(BookHistory::read(asked.store, asked.history, book)?);
            Ok(Found::Entry { book: book.clone(), life: *life, told })
        }
        many => {
            let candidates = many.iter().map(|(_, book, _)| format!("{}: {text}", book.chat()));
            let candidates = candidates.collect();
            Err(history::Error::Ambiguous { name: text.into(), candidates }.into())
        }
    }
}

fn no_such(text: &str, among: &BTreeSet<TimelineName>) -> Error {
    let book = among.first().filter(|_| among.len() == 1).map(|book| book.chat().to_owned());
    Error::NoSuchEntry { name: text.to_owned(), book }
}
