//! Finds the lorebooks or the entry that the options name.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::entries::{EntrySummary, by_number, holders_of, read_uid_name, uid_name};
use super::report::Options;
use crate::archive::entry_lives::{BookStates, EntryLife};
use crate::engine::Workspace;
use crate::history::book_history::{BookHistory, newest};
use crate::history::moment::Moment;
use crate::history::pairs::Books;
use crate::history::{self, History, name_lookup};
use crate::progress::Monitor;
use crate::similar::similar;
use crate::st::{Category, Key, Library, TimelineName};
use crate::store::{Reader, Store, unless_lost};
use crate::verbs::{Error, Result};

/// A query about lorebooks, and the data that is needed to answer it.
pub(super) struct LoreQuery<'a> {
    pub workspace: &'a Workspace,
    pub store: &'a Store,
    pub library: Option<&'a Library>,
    pub history: &'a History,
    pub options: &'a Options,
    /// The moment that the options name. It may belong to a chat or to a lorebook.
    pub moment: Option<Moment>,
}

impl LoreQuery<'_> {
    /// Returns the current name of the lorebook of a moment.
    pub fn book_today(&self, moment: &Moment) -> Option<TimelineName> {
        let snapshot = moment.book_snapshot().unwrap_or(&moment.snapshot);
        match snapshot.timeline.category() {
            Category::Lorebook => Some(self.history.owners().target(snapshot).clone()),
            _ => Books::of(self.history).of_chat_today(snapshot),
        }
    }
}

/// The lorebooks or the entry that the options name.
pub(super) enum LoreTarget<'h> {
    Books(Vec<TimelineName>),
    Entry { book: TimelineName, life: usize, book_history: Box<BookHistory<'h>> },
}

struct Candidate {
    book: TimelineName,
    /// Index of the entry in `BookHistory::lives`. `None` if the entry was found in the current
    /// lorebook without reading the history.
    life: Option<usize>,
    key: Key,
    title: String,
}

type Histories<'h> = BTreeMap<TimelineName, BookHistory<'h>>;

impl LoreTarget<'_> {
    pub(super) fn books(&self) -> &[TimelineName] {
        match self {
            Self::Books(names) => names,
            Self::Entry { book, .. } => std::slice::from_ref(book),
        }
    }
}

pub(super) fn find<'h>(asked: &LoreQuery<'h>, monitor: &mut dyn Monitor) -> Result<LoreTarget<'h>> {
    let all = Books::of(asked.history).names();
    let history = || Ok(Some(asked.history));
    let book = |text: &str| name_lookup::timeline(text, asked.library, &all, history);
    let named = asked.options.named();
    let of_moment = asked.moment.as_ref().and_then(|moment| asked.book_today(moment));
    if let Some(moment) = &asked.moment
        && (asked.options.snapshot.is_some() || named.is_empty())
    {
        let none = || Error::NoLorebookThen { snapshot: moment.snapshot.id };
        let book = of_moment.ok_or_else(none)?;
        return match named.first() {
            Some(text) => entry(asked, text, &BTreeSet::from([book]), monitor),
            None => Ok(LoreTarget::Books(vec![book])),
        };
    }
    match named.as_slice() {
        [] => Ok(LoreTarget::Books(all.into_iter().collect())),
        [one] => {
            let is_it = |name: &&TimelineName| {
                name.as_str() == *one || name.chat().to_lowercase() == one.to_lowercase()
            };
            if let Some(name) = all.iter().find(is_it) {
                return Ok(LoreTarget::Books(vec![name.clone()]));
            }
            // Search the lorebook of the moment first. If it does not contain the entry, search all
            // lorebooks.
            if let Some(book) = of_moment {
                match entry(asked, one, &BTreeSet::from([book]), monitor) {
                    Err(Error::NoSuchEntry { .. }) => {}
                    found => return found,
                }
            }
            match entry(asked, one, &all, monitor) {
                Err(Error::NoSuchEntry { .. }) if book(one).is_ok() => {
                    Ok(LoreTarget::Books(vec![book(one)?]))
                }
                found => found,
            }
        }
        [name, text, ..] => entry(asked, text, &BTreeSet::from([book(name)?]), monitor),
    }
}

/// Finds an entry by its UID, title or keywords. The first of these rules with a match decides:
///
/// 1. UID or title of a current entry
/// 2. UID of a deleted entry
/// 3. Title of a deleted entry
/// 4. Keyword
/// 5. Former title
/// 6. Former keyword
/// 7. Part of a title
/// 8. Part of a keyword
/// 9. Part of a former title
///
/// If `among` contains several lorebooks, UIDs are ignored.
fn entry<'h>(
    asked: &LoreQuery<'h>,
    text: &str,
    among: &BTreeSet<TimelineName>,
    monitor: &mut dyn Monitor,
) -> Result<LoreTarget<'h>> {
    let wanted = text.to_lowercase();
    let mut histories = Histories::new();
    let mut meant = present(asked, &wanted, among)?;
    if meant.is_empty() {
        monitor.begin("searching the history", Some(among.len() as u64));
        for book in among {
            histories.insert(book.clone(), BookHistory::read(asked.store, asked.history, book)?);
            monitor.advance(1);
        }
        meant = ever(asked, &wanted, &histories)?;
    }
    if meant.is_empty() {
        return no_such(asked, text, among);
    }
    let chosen = single(asked, text, meant, &histories)?;
    let book_history = match histories.remove(&chosen.book) {
        Some(book_history) => book_history,
        None => BookHistory::read(asked.store, asked.history, &chosen.book)?,
    };
    let is_it = |life: &EntryLife| life.now().is_some_and(|(key, _)| *key == chosen.key);
    match chosen.life.or_else(|| book_history.lives.iter().position(is_it)) {
        Some(life) => {
            Ok(LoreTarget::Entry { book: chosen.book, life, book_history: Box::new(book_history) })
        }
        None => no_such(asked, text, among),
    }
}

/// Searches the current entries by UID. If no entry has this UID, searches by title. No history is
/// read.
fn present(
    asked: &LoreQuery<'_>,
    wanted: &str,
    among: &BTreeSet<TimelineName>,
) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for_each_present(asked, among, |book, key, title| {
        let is_called = title.to_lowercase() == wanted;
        let is_uid = among.len() == 1 && key.to_string_lossy() == wanted;
        if is_uid || is_called {
            candidates.push((is_uid, Candidate { book: book.clone(), life: None, key, title }));
        }
    })?;
    let has_uid = candidates.iter().any(|(is_uid, _)| *is_uid);
    candidates.retain(|(is_uid, _)| *is_uid == has_uid);
    Ok(candidates.into_iter().map(|(_, one)| one).collect())
}

/// Passes the lorebook, the key and the title of every current entry to `each`.
fn for_each_present(
    asked: &LoreQuery<'_>,
    among: &BTreeSet<TimelineName>,
    mut each: impl FnMut(&TimelineName, Key, String),
) -> Result<()> {
    let reader = asked.store.reader();
    let mut states = BookStates::new(asked.store.reader());
    for book in among {
        let Some(newest) = newest(asked.history, book) else { continue };
        let Some(state) = unless_lost(states.of(newest.tree))?.flatten() else { continue };
        for (key, version) in state.entries() {
            each(book, key, EntrySummary::read(&reader, &version)?.title);
        }
    }
    Ok(())
}

/// Searches all entries that the lorebooks ever contained, and returns the best matches.
fn ever(asked: &LoreQuery<'_>, wanted: &str, histories: &Histories<'_>) -> Result<Vec<Candidate>> {
    if let Some((book, book_history)) = histories.first_key_value().filter(|_| histories.len() == 1)
    {
        let (key, steps) = read_uid_name(wanted);
        if let Some(life) = holders_of(&book_history.lives, &key).get(steps) {
            let title = String::new();
            return Ok(vec![Candidate { book: book.clone(), life: Some(*life), key, title }]);
        }
    }
    let reader = asked.store.reader();
    let mut candidates = Vec::new();
    for (book, book_history) in histories {
        for (place, life) in book_history.lives.iter().enumerate() {
            let Some(last) = life.changes.last() else { continue };
            let Some(rank) = rank(&reader, life, wanted)? else { continue };
            let (key, title) = (last.key.clone(), EntrySummary::last(&reader, life)?.title);
            let one = Candidate { book: book.clone(), life: Some(place), key, title };
            candidates.push((rank, one));
        }
    }
    let best = candidates.iter().map(|(rank, _)| *rank).min();
    candidates.retain(|(rank, _)| Some(*rank) == best);
    Ok(candidates.into_iter().map(|(_, one)| one).collect())
}

/// The kind of match between a text and an entry, best kind first.
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

fn rank(reader: &Reader, life: &EntryLife, wanted: &str) -> Result<Option<Rank>> {
    let has_gone = life.now().is_none();
    let versions = life.changes.iter().filter_map(|change| change.version.as_ref());
    let last = versions.clone().count().saturating_sub(1);
    let mut best: Option<Rank> = None;
    for (n, version) in versions.enumerate() {
        let face = EntrySummary::read(reader, version)?;
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

/// Returns the only match. If related lorebooks have one match each, returns the match in the
/// lorebook that changed last. Otherwise fails and lists all matches.
fn single(
    asked: &LoreQuery<'_>,
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
    let uid = |one: &Candidate| {
        let book_history = histories.get(&one.book);
        let holders = book_history
            .map(|book_history| holders_of(&book_history.lives, &one.key))
            .unwrap_or_default();
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

fn are_related(asked: &LoreQuery<'_>, books: &HashSet<&TimelineName>) -> bool {
    let first = |book: &&TimelineName| {
        let head = asked.history.head(book)?;
        asked.history.ancestry(head).last().map(|snapshot| snapshot.id)
    };
    let firsts: HashSet<_> = books.iter().map(first).collect();
    books.len() == 1 || firsts.len() == 1 && !firsts.contains(&None)
}

fn no_such<T>(asked: &LoreQuery<'_>, text: &str, among: &BTreeSet<TimelineName>) -> Result<T> {
    let mut titles = BTreeSet::new();
    for_each_present(asked, among, |_, _, title| titles.extend([title]))?;
    let names = among.iter().map(|book| book.chat());
    let known = titles.iter().map(String::as_str).chain(names);
    let similar = similar(text, known.map(|name| (name, name.to_owned())));
    let book = among.first().filter(|_| among.len() == 1).map(|book| book.chat().to_owned());
    Err(Error::NoSuchEntry { name: text.to_owned(), book, similar })
}
