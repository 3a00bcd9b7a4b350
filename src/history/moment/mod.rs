//! From what a user types, or a page sends back, to the moment that is meant. Every command and front end receives the [`Moment`] that is resolved here.
//!
//! A moment of a chat is one pair: the chat and its lorebook as they stood together.
//!
//! | named | chat | lorebook |
//! |---|---|---|
//! | an id, a content id, a tag | that snapshot | the one recorded in it |
//! | `CHAT` | the latest | the latest |
//! | `CHAT@DATE` | the latest not after DATE | the latest not after DATE |
//! | `CHAT~N` | N moments back, counting changes of either | the one of that moment |
//! | `CHAT:N` | messages 0 to N | the latest before the chat went past N |

pub mod dates;
pub(super) mod words;

use std::sync::Arc;

use chrono::{DateTime, FixedOffset};

pub(crate) use super::at_message::Book;
use super::at_message::{Found, Past};
use super::book_history::bound_to;
use super::name_lookup::{find, in_full, is_like_id, is_named, read, stored, timeline};
use super::owner_of_snapshot::Owners;
use super::pairs::{Begin, Books, Pair, Pairs, book_hash, pair_id};
use super::{Error, History, LoadedHistory, Result};
use crate::archive::{Kind as SnapshotKind, Snapshot, SnapshotId, Tree, branch};
use crate::st::{Category, Library, TimelineName};
use crate::store::{Kind, ObjectId, RefName, Store};
use words::Pinned;
pub(crate) use words::Step;

/// A chat and its lorebook as they stood together; of anything else that has a timeline, one of its
/// states.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// The present name of the timeline, to which anything written or derived belongs. The name in
    /// the snapshot may be that of another timeline by now.
    pub timeline: TimelineName,
    pub snapshot: Snapshot,
    pub book: Book,
    pub upto: Upto,
    pub named: Named,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upto {
    End,
    /// The snapshot was created when this message, by which the moment was named, was the last.
    Last(usize),
    /// The snapshot goes on after this message: none was created when it was the last.
    Cut(usize),
}

impl Upto {
    pub(crate) fn message(self) -> Option<usize> {
        match self {
            Self::End => None,
            Self::Last(message) | Self::Cut(message) => Some(message),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A timeline by its name alone: its latest state.
    Timeline,
    State,
}

impl Moment {
    /// Returns the moment of a snapshot, which belongs to `timeline` today, with the lorebook that
    /// it records.
    pub(crate) fn recorded(snapshot: Snapshot, timeline: TimelineName) -> Self {
        Self { timeline, snapshot, book: Book::Recorded, upto: Upto::End, named: Named::State }
    }

    /// Returns the latest moment of the timeline that ends with `head`, with the lorebook that it
    /// records.
    pub(crate) fn latest(head: Snapshot) -> Self {
        let timeline = head.timeline.clone();
        Self { named: Named::Timeline, ..Self::recorded(head, timeline) }
    }

    fn of(pair: &Pair<'_>, timeline: TimelineName) -> Self {
        let book = match pair.book {
            Some(book) => Book::Snapshot(Box::new(book.clone())),
            None => Book::Recorded,
        };
        Self { book, ..Self::recorded(pair.own.clone(), timeline) }
    }

    /// Returns the name that always means this moment, whatever is stored later: `ID`, `ID+ID` with
    /// the snapshot that has the lorebook, and `:N` behind it if it is cut.
    pub(crate) fn id(&self) -> String {
        let book = match &self.book {
            Book::Snapshot(book) | Book::Earlier(book) => Some(book.id),
            _ => None,
        };
        let mut id = pair_id(self.snapshot.id, book);
        if let Upto::Cut(message) = self.upto {
            id.push_str(&format!(":{message}"));
        }
        id
    }

    /// Returns its snapshot, which must have been created at that moment.
    pub(crate) fn taken(&self) -> Result<&Snapshot> {
        match self.upto {
            Upto::End | Upto::Last(_) => Ok(&self.snapshot),
            Upto::Cut(message) => {
                let timeline = self.timeline.clone();
                Err(Error::NotTakenThen { timeline, message })
            }
        }
    }

    /// Returns the snapshot that has the lorebook, if one has it as it was.
    pub(crate) fn book_snapshot(&self) -> Option<&Snapshot> {
        match (&self.book, self.upto) {
            (Book::Snapshot(book) | Book::Earlier(book), _) => Some(book),
            (Book::Recorded, Upto::End | Upto::Last(_)) => Some(&self.snapshot),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub store: &'a Store,
    pub library: Option<&'a Library>,
    pub now: DateTime<FixedOffset>,
    pub loaded: &'a LoadedHistory,
}

impl Names<'_> {
    /// Returns the moment that `text` names: an id's beginning, `b3:` and a content id's beginning,
    /// a tag, or a timeline (its latest), with steps behind it.
    pub fn moment(&self, text: &str) -> Result<Moment> {
        self.moment_at(text, None)
    }

    /// Returns the moment that `text` names, at another message if one is given.
    pub fn moment_at(&self, text: &str, message: Option<usize>) -> Result<Moment> {
        if let Some(pinned) = words::pinned(text) {
            return self.pinned(text, pinned, message);
        }
        let mut unknown = None;
        for (name, rest) in words::splits(text) {
            // The sign of a content id is no step.
            if name == "b3" {
                break;
            }
            match (self.base(name), words::steps(rest, self.now)) {
                (Err(error @ Error::NoSuchSnapshot { .. }), _) => {
                    unknown.get_or_insert(error);
                }
                (found, Ok(mut steps)) => {
                    if let Some(message) = message {
                        steps.retain(|step| !matches!(step, Step::Message(_)));
                        steps.push(Step::Message(message));
                    }
                    return self.walk(found?, name, &steps);
                }
                // A name with a slip in it is likelier than a slip behind half of it.
                (Ok(_), Err(stop)) if !has_similar(&unknown) => {
                    let at = name.len() + stop.at;
                    return Err(Error::Unreadable {
                        text: text.into(),
                        at,
                        expected: stop.expected,
                    });
                }
                (_, Err(_)) => {}
            }
        }
        let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
        Err(unknown.unwrap_or_else(none))
    }

    /// Parses steps without a name.
    pub fn steps(&self, text: &str) -> Result<Vec<Step>> {
        words::steps(text, self.now).map_err(|stop| Error::Unreadable {
            text: text.into(),
            at: stop.at,
            expected: stop.expected,
        })
    }

    /// Returns the moment whose id was given out before.
    fn pinned(&self, text: &str, ids: Pinned<'_>, message: Option<usize>) -> Result<Moment> {
        let is_chat = |found: &Snapshot| found.timeline.is_chat();
        let is_book = |found: &Snapshot| found.timeline.category() == Category::Lorebook;
        let snapshot = self.by_id(ids.snapshot)?.filter(is_chat);
        let book = self.by_id(ids.book)?.filter(|found| is_chat(found) || is_book(found));
        let Some((snapshot, book)) = snapshot.zip(book) else {
            return Err(Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() });
        };
        let book = Book::Snapshot(Box::new(book));
        let upto = message.or(ids.message).map_or(Upto::End, Upto::Cut);
        Ok(Moment { book, upto, ..self.state(snapshot)? })
    }

    fn walk(&self, (from, named): (Snapshot, Named), name: &str, steps: &[Step]) -> Result<Moment> {
        if steps.is_empty() {
            return match named {
                Named::Timeline => self.latest(from),
                Named::State => self.state(from),
            };
        }
        let history = self.history_with(from.id)?;
        let Some(from) = history.get(from.id) else { return self.state(from) };
        let timeline = match named {
            Named::Timeline => from.timeline.clone(),
            Named::State => Owners::of(&history).target(&history, from).clone(),
        };
        let begin = if named == Named::Timeline { Begin::Latest } else { Begin::Recorded };
        let all = Pairs::new(self.store, &history);
        let pairs = all.back_from(from, begin)?;
        let mut at = 0;
        for step in steps {
            match step {
                Step::Back(steps) => at = back(&pairs, at, name, *steps)?,
                Step::Then(then) => at = as_of(&pairs, at, name, *then)?,
                Step::Message(number) => {
                    let moment = moment_of(&history, &pairs[at], timeline);
                    return self.at_message(&all.books, &pairs[at..], moment, *number);
                }
            }
        }
        Ok(moment_of(&history, &pairs[at], timeline))
    }

    fn state(&self, snapshot: Snapshot) -> Result<Moment> {
        let history = self.history_with(snapshot.id)?;
        let timeline = Owners::of(&history).target(&history, &snapshot).clone();
        Ok(Moment::recorded(snapshot, timeline))
    }

    /// Returns a moment and those before it in its timeline, newest first, and the one that the
    /// timeline was forked from.
    pub fn back_from(&self, moment: &Moment) -> Result<(Vec<Moment>, Option<Moment>)> {
        let history = self.history_with(moment.snapshot.id)?;
        let Some(own) = history.get(moment.snapshot.id) else {
            return Ok((vec![moment.clone()], None));
        };
        let mut pairs = Pairs::new(self.store, &history).back_from(own, Begin::Latest)?;
        let is_it = |pair: &Pair<'_>| match &moment.book {
            Book::Snapshot(book) => pair.book.is_some_and(|other| other.id == book.id),
            _ => pair.book.is_none(),
        };
        if let Some(at) = pairs.iter().position(is_it) {
            pairs.drain(..at);
        }
        let (own, others) = pairs.split_at(pairs.partition_point(|pair| pair.is_own));
        let of = |pair| moment_of(&history, pair, moment.timeline.clone());
        Ok((own.iter().map(of).collect(), others.first().map(of)))
    }

    /// Returns the latest moment of the timeline that ends with `head`: of a chat with the latest
    /// state of its lorebook.
    pub fn latest(&self, head: Snapshot) -> Result<Moment> {
        let moment = Moment::latest(head);
        let head = &moment.snapshot;
        let Some(name) = bound_to(head) else { return Ok(moment) };
        let id = self.store.ref_target(&branch(&name))?.map(SnapshotId);
        let is_recorded = head.kind != SnapshotKind::DELETED && head.unread.is_none();
        let book = match id.filter(|_| is_recorded) {
            Some(id) => find(self.store, id)?.filter(|found| found.timeline == name),
            None => None,
        };
        let book = match book {
            Some(book) => {
                let reader = self.store.reader();
                let is_later = book.sequence > head.sequence && book.kind != SnapshotKind::DELETED;
                let is_other =
                    || Ok::<_, Error>(book_hash(&reader, &book)? != book_hash(&reader, head)?);
                if is_later && is_other()? { Some(book) } else { None }
            }
            // It may have another name by now, have changed since the chat was deleted, or not have
            // been readable.
            None => {
                let history = self.history_with(head.id)?;
                let Some(head) = history.get(head.id) else { return Ok(moment) };
                Pairs::new(self.store, &history).latest(head)?.book.cloned()
            }
        };
        let book = book.map_or(Book::Recorded, |book| Book::Snapshot(Box::new(book)));
        Ok(Moment { book, ..moment })
    }

    /// Returns what a moment's chat was when an earlier message was the last, by the pairs that
    /// lead to it.
    fn at_message(
        &self,
        books: &Books<'_>,
        pairs: &[Pair<'_>],
        moment: Moment,
        message: usize,
    ) -> Result<Moment> {
        let reader = self.store.reader();
        let mut files = Tree::open(&reader, moment.snapshot.tree)?.materialise(&reader)?.files;
        files.timeline = moment.snapshot.timeline.clone();
        let past = Past::new(self.store, books, pairs);
        Ok(match past.find(&files, message)? {
            Found::Taken { snapshot, book } => Moment {
                book: book.map_or(Book::Recorded, Book::Snapshot),
                upto: Upto::Last(message),
                ..Moment::recorded(*snapshot, moment.timeline)
            },
            Found::Cut { book } => Moment { book, upto: Upto::Cut(message), ..moment },
        })
    }

    /// Returns the history of the store, with a snapshot that may be on no branch.
    fn history_with(&self, id: SnapshotId) -> Result<Arc<History>> {
        let history = self.loaded.of(self.store)?;
        if history.get(id).is_some() {
            return Ok(history);
        }
        let mut history = History::load(self.store)?;
        history.add(self.store, [id])?;
        Ok(Arc::new(history))
    }

    /// Returns the snapshot that a name alone stands for, and what kind of name it is.
    fn base(&self, text: &str) -> Result<(Snapshot, Named)> {
        if let Some(prefix) = text.strip_prefix("b3:") {
            return Ok((self.by_content(text, prefix)?, Named::State));
        }
        if let Some(tag) = RefName::tag(text)
            && let Some(id) = self.store.ref_target(&tag)?
        {
            return Ok((self.tagged(text, id)?, Named::State));
        }
        if is_like_id(text)
            && let Some(found) = self.by_id(text)?
        {
            return Ok((found, Named::State));
        }
        // Whoever gives the whole name need not wait until all are read.
        for name in in_full(text) {
            if let Some(id) = self.store.ref_target(&branch(&name))?
                && let Some(head) = find(self.store, SnapshotId(id))?
                && head.timeline == name
            {
                return Ok((head, Named::Timeline));
            }
        }
        let heads = super::heads(self.store)?;
        let names = heads.iter().map(|head| head.timeline.clone()).collect();
        match timeline(text, self.library, &names) {
            Ok(name) => {
                let head = heads.into_iter().find(|head| head.timeline == name);
                let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
                Ok((head.ok_or_else(none)?, Named::Timeline))
            }
            // Perhaps it was called that once.
            Err(Error::NoSuchTimeline { .. }) => {
                match stored(text, &*self.loaded.of(self.store)?, self.library) {
                    Err(Error::NoSuchTimeline { name, similar }) => {
                        Err(Error::NoSuchSnapshot { name, similar })
                    }
                    other => Ok((other?.clone(), Named::Timeline)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn tagged(&self, text: &str, id: ObjectId) -> Result<Snapshot> {
        let tagged = read(self.store, SnapshotId(id))?;
        // Git, or another device, may have given a tag the name of something else.
        match self.shadowed(text, &tagged)? {
            others if others.is_empty() => Ok(tagged),
            mut candidates => {
                candidates.insert(0, format!("{} {} (the tag)", tagged.id, tagged.subject));
                Err(Error::Ambiguous { name: text.into(), candidates })
            }
        }
    }

    /// Returns the other meanings of the name of a tag: ids and timelines.
    fn shadowed(&self, text: &str, tagged: &Snapshot) -> Result<Vec<String>> {
        let mut others = Vec::new();
        if is_like_id(text) {
            let ids = self.store.reader().with_prefix(&text.to_lowercase(), Kind::Commit)?;
            let found = self.readable(ids)?;
            let found = found.iter().filter(|found| found.id != tagged.id);
            others.extend(found.map(|found| format!("{} {}", found.id, found.subject)));
        }
        let heads = super::heads(self.store)?;
        let named =
            heads.iter().filter(|head| head.id != tagged.id && is_named(&head.timeline, text));
        others.extend(named.map(|head| head.timeline.to_string()));
        Ok(others)
    }

    fn by_id(&self, text: &str) -> Result<Option<Snapshot>> {
        let prefix = text.to_lowercase();
        let ids = self.store.reader().with_prefix(&prefix, Kind::Commit)?;
        if let Some(found) = single(text, self.readable(ids)?)? {
            return Ok(Some(found));
        }
        let ids = self.store.find_former(&prefix)?;
        single(text, self.readable(ids)?)
    }

    fn by_content(&self, text: &str, prefix: &str) -> Result<Snapshot> {
        let history = History::load(self.store)?;
        let prefix = prefix.to_lowercase();
        let mut found: Vec<&Snapshot> = Vec::new();
        if prefix.len() >= 4 {
            // The same content may have been there twice; the newest stands for it.
            for snapshot in history.newest_first() {
                let same = found.iter().any(|other| other.content == snapshot.content);
                if !same && snapshot.content.to_string().starts_with(&prefix) {
                    found.push(snapshot);
                }
            }
        }
        let found = found.into_iter().cloned().collect();
        let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
        single(text, found)?.ok_or_else(none)
    }

    fn readable(&self, ids: Vec<ObjectId>) -> Result<Vec<Snapshot>> {
        let mut found = Vec::new();
        for id in ids {
            found.extend(find(self.store, SnapshotId(id))?);
        }
        Ok(found)
    }
}

/// Returns the moment of a pair among those of `timeline`: one from before the fork point belongs
/// to another timeline.
fn moment_of(history: &History, pair: &Pair<'_>, timeline: TimelineName) -> Moment {
    let timeline =
        if pair.is_own { timeline } else { Owners::of(history).target(history, pair.own).clone() };
    Moment::of(pair, timeline)
}

fn back(pairs: &[Pair<'_>], at: usize, name: &str, steps: usize) -> Result<usize> {
    let before = pairs.len() - 1 - at;
    if steps <= before {
        Ok(at + steps)
    } else {
        Err(Error::NotSoFarBack { name: name.into(), steps: before })
    }
}

/// Returns the position of the latest moment not after `then`, from `at` on.
fn as_of(pairs: &[Pair<'_>], at: usize, name: &str, then: DateTime<FixedOffset>) -> Result<usize> {
    // The timeline that it was forked from is another chat.
    let own = || pairs[at..].iter().enumerate().take_while(|(n, pair)| *n == 0 || pair.is_own);
    let is_not_after = |pair: &Pair<'_>| pair.seconds <= then.timestamp();
    let found = own().find(|(_, pair)| is_not_after(pair)).map(|(n, _)| at + n);
    found.ok_or_else(|| {
        let first = own().last().and_then(|(_, pair)| pair.latest().time.moment());
        Error::NotThatOld { name: name.into(), first: first.unwrap_or(then) }
    })
}

fn has_similar(unknown: &Option<Error>) -> bool {
    matches!(unknown, Some(Error::NoSuchSnapshot { similar, .. }) if !similar.is_empty())
}

fn single(text: &str, found: Vec<Snapshot>) -> Result<Option<Snapshot>> {
    if found.len() > 1 {
        let candidates =
            found.iter().map(|snapshot| format!("{} {}", snapshot.id, snapshot.subject)).collect();
        return Err(Error::Ambiguous { name: text.into(), candidates });
    }
    Ok(found.into_iter().next())
}
