//! Resolves the text that a user types, or the viewer sends back, to a [`Moment`]. Every command
//! and front end uses this module.
//!
//! A moment of a chat is a pair: the state of the chat and the state of its lorebook at one time.
//!
//! | text | state of the chat | state of the lorebook |
//! |---|---|---|
//! | an id, a content id, a tag | the named snapshot | recorded in the named snapshot |
//! | `CHAT` | the latest | the latest |
//! | `CHAT@DATE` | the latest not after DATE | the latest not after DATE |
//! | `CHAT~N` | N moments back, counting changes of either | the same moment |
//! | `CHAT:N` | messages 0 to N | the last before the chat continued after message N |

pub mod dates;
pub(super) mod words;

use std::sync::Arc;

use chrono::{DateTime, FixedOffset};

pub(crate) use super::at_message::Book;
use super::at_message::{PastPairs, StateAtMessage};
use super::book_history::bound_to;
use super::name_lookup::{find, in_full, is_like_id, is_named, read, stored, timeline};
use super::pairs::{Books, Pair, Pairs, StartBook, book_hash, pair_id};
use super::{Error, History, LoadedHistory, Result};
use crate::archive::{Kind as SnapshotKind, Snapshot, SnapshotId, Tree, branch};
use crate::st::{Category, Library, TimelineName};
use crate::store::{Kind, ObjectId, RefName, Store};
use words::PinnedPair;
pub(crate) use words::Step;

/// A chat and its lorebook at one time; for other timelines, one state of the timeline.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// Current name of the timeline, under which commands write files and snapshots. The name in
    /// `snapshot` may belong to another timeline by now.
    pub timeline: TimelineName,
    pub snapshot: Snapshot,
    pub book: Book,
    pub upto: MessageLimit,
    pub named: NameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageLimit {
    End,
    /// The user named this message, and the snapshot was created when it was the last message.
    Last(usize),
    /// The user named this message, but no snapshot was created when it was the last message:
    /// `snapshot` has later messages.
    Cut(usize),
}

impl MessageLimit {
    pub(crate) fn message(self) -> Option<usize> {
        match self {
            Self::End => None,
            Self::Last(message) | Self::Cut(message) => Some(message),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// The user typed only the name of a timeline, which means its latest moment.
    Timeline,
    State,
}

impl Moment {
    /// Returns the moment of a snapshot with the lorebook that the snapshot records. `timeline` is
    /// the current name of the snapshot's timeline.
    pub(crate) fn recorded(snapshot: Snapshot, timeline: TimelineName) -> Self {
        Self {
            timeline,
            snapshot,
            book: Book::Recorded,
            upto: MessageLimit::End,
            named: NameKind::State,
        }
    }

    /// Returns the latest moment of the timeline that ends with `head`, with the lorebook that
    /// `head` records.
    pub(crate) fn latest(head: Snapshot) -> Self {
        let timeline = head.timeline.clone();
        Self { named: NameKind::Timeline, ..Self::recorded(head, timeline) }
    }

    fn of(pair: &Pair<'_>, timeline: TimelineName) -> Self {
        let book = match pair.book {
            Some(book) => Book::Snapshot(Box::new(book.clone())),
            None => Book::Recorded,
        };
        Self { book, ..Self::recorded(pair.own.clone(), timeline) }
    }

    /// Returns the permanent id of this moment: `ID`, or `ID+ID` if another snapshot contains the
    /// lorebook; followed by `:N` if the chat is truncated after message N.
    pub(crate) fn id(&self) -> String {
        let book = match &self.book {
            Book::Snapshot(book) | Book::Earlier(book) => Some(book.id),
            _ => None,
        };
        let mut id = pair_id(self.snapshot.id, book);
        if let MessageLimit::Cut(message) = self.upto {
            id.push_str(&format!(":{message}"));
        }
        id
    }

    /// Returns the snapshot. Fails if no snapshot was created at that moment.
    pub(crate) fn taken(&self) -> Result<&Snapshot> {
        match self.upto {
            MessageLimit::End | MessageLimit::Last(_) => Ok(&self.snapshot),
            MessageLimit::Cut(message) => {
                let timeline = self.timeline.clone();
                Err(Error::NotTakenThen { timeline, message })
            }
        }
    }

    /// Returns the snapshot that contains the lorebook of this moment; `None` if the lorebook is
    /// unknown or has to be rebuilt.
    pub(crate) fn book_snapshot(&self) -> Option<&Snapshot> {
        match (&self.book, self.upto) {
            (Book::Snapshot(book) | Book::Earlier(book), _) => Some(book),
            (Book::Recorded, MessageLimit::End | MessageLimit::Last(_)) => Some(&self.snapshot),
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
    /// Returns the moment that `text` names: the beginning of an id, `b3:` and the beginning of a
    /// content id, a tag, or the name of a timeline (its latest moment); each may be followed by
    /// steps.
    pub fn moment(&self, text: &str) -> Result<Moment> {
        self.moment_at(text, None)
    }

    /// Returns the moment that `text` names. If `message` is given, it replaces the message in
    /// `text`.
    pub fn moment_at(&self, text: &str, message: Option<usize>) -> Result<Moment> {
        if let Some(pinned) = words::pinned(text) {
            return self.pinned(text, pinned, message);
        }
        let mut unknown = None;
        for (name, rest) in words::splits(text) {
            // The colon in `b3:`, the prefix of content ids, does not begin a step.
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
                // A mistyped name is more likely than a wrong step after the beginning of a name.
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

    /// Parses steps that do not follow a name.
    pub fn steps(&self, text: &str) -> Result<Vec<Step>> {
        words::steps(text, self.now).map_err(|stop| Error::Unreadable {
            text: text.into(),
            at: stop.at,
            expected: stop.expected,
        })
    }

    /// Returns the moment with an id that [`Moment::id`] created.
    fn pinned(&self, text: &str, ids: PinnedPair<'_>, message: Option<usize>) -> Result<Moment> {
        let is_chat = |found: &Snapshot| found.timeline.is_chat();
        let is_book = |found: &Snapshot| found.timeline.category() == Category::Lorebook;
        let snapshot = self.by_id(ids.snapshot)?.filter(is_chat);
        let book = self.by_id(ids.book)?.filter(|found| is_chat(found) || is_book(found));
        let Some((snapshot, book)) = snapshot.zip(book) else {
            return Err(Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() });
        };
        let book = Book::Snapshot(Box::new(book));
        let upto = message.or(ids.message).map_or(MessageLimit::End, MessageLimit::Cut);
        Ok(Moment { book, upto, ..self.state(snapshot)? })
    }

    fn walk(
        &self,
        (from, named): (Snapshot, NameKind),
        name: &str,
        steps: &[Step],
    ) -> Result<Moment> {
        if steps.is_empty() {
            return match named {
                NameKind::Timeline => self.latest(from),
                NameKind::State => self.state(from),
            };
        }
        let history = self.history_with(from.id)?;
        let Some(from) = history.get(from.id) else { return self.state(from) };
        let timeline = match named {
            NameKind::Timeline => from.timeline.clone(),
            NameKind::State => history.owners().target(from).clone(),
        };
        let begin =
            if named == NameKind::Timeline { StartBook::Latest } else { StartBook::Recorded };
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
        let timeline = history.owners().target(&snapshot).clone();
        Ok(Moment::recorded(snapshot, timeline))
    }

    /// Returns `moment` and the earlier moments of its timeline, newest first, and the parent's
    /// moment from which the timeline was forked.
    pub fn back_from(&self, moment: &Moment) -> Result<(Vec<Moment>, Option<Moment>)> {
        let history = self.history_with(moment.snapshot.id)?;
        let Some(own) = history.get(moment.snapshot.id) else {
            return Ok((vec![moment.clone()], None));
        };
        let mut pairs = Pairs::new(self.store, &history).back_from(own, StartBook::Latest)?;
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

    /// Returns the latest moment of the timeline that ends with `head`. The moment of a chat has
    /// the latest state of its lorebook.
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
            // The head of the lorebook's branch cannot be used: the lorebook may have another name
            // by now, may have changed after the chat was deleted, or may have been unreadable.
            None => {
                let history = self.history_with(head.id)?;
                let Some(head) = history.get(head.id) else { return Ok(moment) };
                Pairs::new(self.store, &history).latest(head)?.book.cloned()
            }
        };
        let book = book.map_or(Book::Recorded, |book| Book::Snapshot(Box::new(book)));
        Ok(Moment { book, ..moment })
    }

    /// Returns the state of a moment's chat when `message` was the last message. `pairs` are the
    /// moments up to `moment`, newest first.
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
        let past = PastPairs::new(self.store, books, pairs);
        Ok(match past.find(&files, message)? {
            StateAtMessage::Taken { snapshot, book } => Moment {
                book: book.map_or(Book::Recorded, Book::Snapshot),
                upto: MessageLimit::Last(message),
                ..Moment::recorded(*snapshot, moment.timeline)
            },
            StateAtMessage::Cut { book } => {
                Moment { book, upto: MessageLimit::Cut(message), ..moment }
            }
        })
    }

    /// Returns the history of the store, including a snapshot that may be on no branch.
    fn history_with(&self, id: SnapshotId) -> Result<Arc<History>> {
        let history = self.loaded.of(self.store)?;
        if history.get(id).is_some() {
            return Ok(history);
        }
        let mut history = History::load(self.store)?;
        history.add(self.store, [id])?;
        Ok(Arc::new(history))
    }

    /// Returns the snapshot to which a name without steps refers, and the kind of the name.
    fn base(&self, text: &str) -> Result<(Snapshot, NameKind)> {
        if let Some(prefix) = text.strip_prefix("b3:") {
            return Ok((self.by_content(text, prefix)?, NameKind::State));
        }
        if let Some(tag) = RefName::tag(text)
            && let Some(id) = self.store.ref_target(&tag)?
        {
            return Ok((self.tagged(text, id)?, NameKind::State));
        }
        if is_like_id(text)
            && let Some(found) = self.by_id(text)?
        {
            return Ok((found, NameKind::State));
        }
        // A full name can be resolved without reading all timelines.
        for name in in_full(text) {
            if let Some(id) = self.store.ref_target(&branch(&name))?
                && let Some(head) = find(self.store, SnapshotId(id))?
                && head.timeline == name
            {
                return Ok((head, NameKind::Timeline));
            }
        }
        let heads = super::heads(self.store)?;
        let names = heads.iter().map(|head| head.timeline.clone()).collect();
        match timeline(text, self.library, &names, || Ok(Some(self.loaded.of(self.store)?))) {
            Ok(name) => {
                let head = heads.into_iter().find(|head| head.timeline == name);
                let none = || Error::NoSuchSnapshot { name: text.into(), similar: Vec::new() };
                Ok((head.ok_or_else(none)?, NameKind::Timeline))
            }
            // The text may be a former name.
            Err(Error::NoSuchTimeline { .. }) => {
                match stored(text, &*self.loaded.of(self.store)?, self.library) {
                    Err(Error::NoSuchTimeline { name, similar }) => {
                        Err(Error::NoSuchSnapshot { name, similar })
                    }
                    other => Ok((other?.clone(), NameKind::Timeline)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn tagged(&self, text: &str, id: ObjectId) -> Result<Snapshot> {
        let tagged = read(self.store, SnapshotId(id))?;
        // A tag that git or another device created may have the name of a timeline, or look like an
        // id.
        match self.shadowed(text, &tagged)? {
            others if others.is_empty() => Ok(tagged),
            mut candidates => {
                candidates.insert(0, format!("{} {} (the tag)", tagged.id, tagged.subject));
                Err(Error::Ambiguous { name: text.into(), candidates })
            }
        }
    }

    /// Returns the snapshots and timelines that the name of a tag could also mean.
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
            // Several snapshots may have the same content; the newest counts.
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

/// Returns the moment of a pair from the history of `timeline`. A pair from before the fork belongs
/// to another timeline.
fn moment_of(history: &History, pair: &Pair<'_>, timeline: TimelineName) -> Moment {
    let timeline = if pair.is_own { timeline } else { history.owners().target(pair.own).clone() };
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

/// Returns the index of the latest moment that is not later than `then`, starting at `at`.
fn as_of(pairs: &[Pair<'_>], at: usize, name: &str, then: DateTime<FixedOffset>) -> Result<usize> {
    // The moments of the parent do not count, because the parent is another chat.
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
