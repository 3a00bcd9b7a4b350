//! Which lorebook or entry is meant.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::asked::Asked;
use super::faces::{Face, by_number, last_face, text_of};
use super::uid_holders::{holders_of, read_uid_name, uid_name};
use crate::archive::SnapshotId;
use crate::archive::entry_lives::{BookStates, Life};
use crate::history::book_history::{BookHistory, newest};
use crate::history::pairs::Books;
use crate::history::{self, name_lookup};
use crate::progress::Monitor;
use crate::st::{Key, Library, TimelineName};
use crate::store::{Reader, unless_lost};
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
    /// Which of the book's; not known yet of one that was found in its newest state.
    life: Option<usize>,
    key: Key,
    title: String,
}

/// The histories of books that were read.
type Histories<'h> = BTreeMap<TimelineName, BookHistory<'h>>;

pub(super) fn find<'h>(
    asked: &Asked<'h>,
    library: Option<&Library>,
    monitor: &mut dyn Monitor,
) -> Result<Found<'h>> {
    let all = Books::of(asked.history).names();
    let book = |text: &str| name_lookup::timeline(text, library, &all);
    let of_moment = asked.moment.as_ref().and_then(|moment| asked.book_today(moment));
    if let (Some(moment), true) = (&asked.moment, asked.options.snapshot.is_some()) {
        let none = || Error::NoLorebookThen { snapshot: moment.snapshot.id };
        let book = of_moment.ok_or_else(none)?;
        return match asked.options.named().first() {
            Some(text) => entry(asked, text, &BTreeSet::from([book]), monitor),
            None => Ok(Found::Books(vec![book])),
        };
    }
    match asked.options.named().as_slice() {
        [] => match of_moment {
            Some(book) => Ok(Found::Books(vec![book])),
            None => match &asked.moment {
                Some(moment) => Err(Error::NoLorebookThen { snapshot: moment.snapshot.id }),
                None => Ok(Found::Books(all.into_iter().collect())),
            },
        },
        [one] => {
            let is_it = |name: &&TimelineName| {
                name.as_str() == *one || name.chat().to_lowercase() == one.to_lowercase()
            };
            if let Some(name) = all.iter().find(is_it) {
                return Ok(Found::Books(vec![name.clone()]));
            }
            // The moment that is asked of says which lorebook is meant, unless the entry is not in it.
            if let Some(book) = of_moment {
                match entry(asked, one, &BTreeSet::from([book]), monitor) {
                    Err(Error::NoSuchEntry { .. }) => {}
                    found => return found,
                }
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

/// Finds an entry by its UID, title or keywords. The first of these that fits anything decides:
/// the UID or the title of one that is there; the UID, then the title, of one that was deleted; a keyword; a title or keyword that it had; a part of a title
/// or keyword; a part of a title that it had. A UID says little where there are several lorebooks.
fn entry<'h>(
    asked: &Asked<'h>,
    text: &str,
    among: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<Found<'h>> {
    let wanted = text.to_lowercase();
    let mut histories = Histories::new();
    let mut meant = present(asked, &wanted, among)?;
    if meant.is_empty() {
        monitor.begin("looking through the past", Some(among.len() as u64));
        for book in among {
            histories.insert(book.clone(), BookHistory::read(asked.store, asked.history, book)?);
            monitor.advance(1);
        }
        meant = ever(asked, &wanted, &histories)?;
    }
    if meant.is_empty() {
        return Err(no_such(text, among));
    }
    let chosen = single(asked, text, meant, &histories)?;
    let told = match histories.remove(&chosen.book) {
        Some(told) => told,
        None => BookHistory::read(asked.store, asked.history, &chosen.book)?,
    };
    let is_it = |life: &Life| life.now().is_some_and(|(key, _)| *key == chosen.key);
    match chosen.life.or_else(|| told.lives.iter().position(is_it)) {
        Some(life) => Ok(Found::Entry { book: chosen.book, life, told: Box::new(told) }),
        None => Err(no_such(text, among)),
    }
}

/// Returns the entries that are there now and have this UID, or else this title. For that no history is read.
fn present(
    asked: &Asked<'_>,
    wanted: &str,
    among: &BTreeSet<TimelineName>,
) -> Result<Vec<Candidate>> {
    let reader = asked.store.reader();
    let mut states = BookStates::new(asked.store.reader());
    let mut candidates = Vec::new();
    for book in among {
        let Some(newest) = newest(asked.history, book) else { continue };
        let Some(state) = unless_lost(states.of(newest.tree))?.flatten() else { continue };
        for (key, version) in state.entries() {
            let title = Face::of(&text_of(&reader, &version)?.unwrap_or_default()).title;
            let is_called = title.to_lowercase() == wanted;
            let is_uid = among.len() == 1 && key.to_string_lossy() == wanted;
            if is_uid || is_called {
                let one = Candidate { book: book.clone(), life: None, key, title };
                candidates.push((is_uid, one));
            }
        }
    }
    let has_uid = candidates.iter().any(|(is_uid, _)| *is_uid);
    candidates.retain(|(is_uid, _)| *is_uid == has_uid);
    Ok(candidates.into_iter().map(|(_, one)| one).collect())
}

/// Returns the entries that are best described so, among all that the books ever had.
fn ever(asked: &Asked<'_>, wanted: &str, histories: &Histories<'_>) -> Result<Vec<Candidate>> {
    if let Some((book, told)) = histories.first_key_value().filter(|_| histories.len() == 1) {
        let (key, steps) = read_uid_name(wanted);
        if let Some(life) = holders_of(&told.lives, &key).get(steps) {
            let title = String::new();
            return Ok(vec![Candidate { book: book.clone(), life: Some(*life), key, title }]);
        }
    }
    let reader = asked.store.reader();
    let mut candidates = Vec::new();
    for (book, told) in histories {
        for (place, life) in told.lives.iter().enumerate() {
            let Some(last) = life.changes.last() else { continue };
            let Some(rank) = rank(&reader, life, wanted)? else { continue };
            let title = last_face(&reader, life)?.title;
            let key = last.key.clone();
            let one = Candidate { book: book.clone(), life: Some(place), key, title };
            candidates.push((rank, one));
        }
    }
    let best = candidates.iter().map(|(rank, _)| *rank).min();
    candidates.retain(|(rank, _)| Some(*rank) == best);
    Ok(candidates.into_iter().map(|(_, one)| one).collect())
}

/// How well a text describes an entry, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    TitleOfDeleted,
    Keyword,
    FormerTitle,
    FormerKeyword,
    InTitle,
    InKeyword,
    InFormerTitle,
}

fn rank(reader: &Reader, life: &Life, wanted: &str) -> Result<Option<Rank>> {
    let has_gone = life.now().is_none();
    let versions = life.changes.iter().filter_map(|change| change.version.as_ref());
    let last = versions.clone().count().saturating_sub(1);
    let mut best: Option<Rank> = None;
    for (n, version) in versions.enumerate() {
        let face = Face::of(&text_of(reader, version)?.unwrap_or_default());
        let (title, is_last) = (face.title.to_lowercase(), n == last);
        let is_now = is_last && !has_gone;
        let any_key =
            |is_it: &dyn Fn(&str) -> bool| face.keys.iter().any(|key| is_it(&key.to_lowercase()));
        let rank = match () {
            () if title == wanted && is_last && has_gone => Rank::TitleOfDeleted,
            () if is_now && any_key(&|key| key == wanted) => Rank::Keyword,
            () if title == wanted => Rank::FormerTitle,
            () if any_key(&|key| key == wanted) => Rank::FormerKeyword,
            () if is_now && title.contains(wanted) => Rank::InTitle,
            () if is_now && any_key(&|key| key.contains(wanted)) => Rank::InKeyword,
            () if title.contains(wanted) => Rank::InFormerTitle,
            () => continue,
        };
        best = Some(best.map_or(rank, |best| best.min(rank)));
    }
    Ok(best)
}

/// The only one; or, where forks have it each in a lorebook of its own, the one whose book changed last.
fn single(
    asked: &Asked<'_>,
    text: &str,
    mut meant: Vec<Candidate>,
    histories: &Histories<'_>,
) -> Result<Candidate> {
    let each_once: HashSet<_> = meant.iter().map(|one| &one.book).collect();
    if each_once.len() == meant.len() && are_related(asked, &each_once) {
        let changed = |one: &Candidate| newest(asked.history, &one.book).map(|it| it.time.seconds);
        meant.sort_by_key(|one| (std::cmp::Reverse(changed(one)), one.book.clone()));
        meant.truncate(1);
    }
    if meant.len() == 1 {
        return Ok(meant.remove(0));
    }
    // By the name with which each can be asked for.
    let uid = |one: &Candidate| {
        let told = histories.get(&one.book);
        let holders = told.map(|told| holders_of(&told.lives, &one.key)).unwrap_or_default();
        let steps = holders.iter().position(|holder| Some(*holder) == one.life).unwrap_or(0);
        uid_name(&one.key, steps)
    };
    let mut named: Vec<_> = meant.iter().map(|one| (one, uid(one))).collect();
    named.sort_by_cached_key(|(one, uid)| {
        (one.book.clone(), by_number(&one.key.to_string_lossy()), uid.clone())
    });
    let candidates =
        named.iter().map(|(one, uid)| format!("{}: UID {uid} {}", one.book.chat(), one.title));
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

fn no_such(text: &str, among: &BTreeSet<TimelineName>) -> Error {
    let book = among.first().filter(|_| among.len() == 1).map(|book| book.chat().to_owned());
    Error::NoSuchEntry { name: text.to_owned(), book }
}
