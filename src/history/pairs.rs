//! The moments of a chat: pairs of a snapshot of the chat and a snapshot of its lorebook.
//!
//! A lorebook has its own timeline, so a change of the lorebook alone does not create snapshots of
//! the chats that use it. The history of a chat therefore consists of its own snapshots and those
//! of its lorebook. Both are ordered by [`Sequence`] and not by time, because two operations can
//! happen in one second, and clocks can be set back.

use std::collections::BTreeSet;

use super::book_history::bound_to;
use super::{History, Result};
use crate::archive::{
    Blake3, FileRecord, Kind, Manifest, Role, Snapshot, SnapshotId, read_manifest,
};
use crate::st::{Category, TimelineName};
use crate::store::{Reader, Sequence, Store, unless_lost};

/// A chat and its lorebook at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'h> {
    pub own: &'h Snapshot,
    /// The snapshot that contains the lorebook; `None` if `own` contains it.
    pub book: Option<&'h Snapshot>,
    /// Whether `own` belongs to the timeline itself and not to its parent.
    pub is_own: bool,
    /// Start of the moment, in seconds since 1970.
    pub seconds: i64,
}

impl<'h> Pair<'h> {
    /// Returns the snapshot with which this moment began.
    pub(crate) fn latest(&self) -> &'h Snapshot {
        self.book.filter(|book| book.sequence > self.own.sequence).unwrap_or(self.own)
    }

    pub(crate) fn book_source(&self) -> Option<&'h Snapshot> {
        self.book.or_else(|| self.own.lorebook.is_some().then_some(self.own))
    }

    /// Returns the permanent id of this moment.
    pub(crate) fn id(&self) -> String {
        pair_id(self.own.id, self.book.map(|book| book.id))
    }
}

/// Returns the permanent id of a moment: the id of the snapshot and, if another snapshot contains
/// the lorebook, the id of the other snapshot.
pub(crate) fn pair_id(own: SnapshotId, book: Option<SnapshotId>) -> String {
    match book {
        Some(book) => format!("{own}+{book}"),
        None => own.to_string(),
    }
}

/// The lorebook of the first moment in a list that goes back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartBook {
    /// The lorebook that the snapshot records.
    Recorded,
    /// The latest state of the lorebook to which the chat is bound.
    Latest,
}

/// The timelines of all lorebooks, to find the lorebook that had a name at some time.
pub(crate) struct Books<'h> {
    history: &'h History,
    /// The snapshots of each lorebook, oldest first, including snapshots with former names.
    chains: Vec<Vec<&'h Snapshot>>,
}

impl<'h> Books<'h> {
    pub(crate) fn of(history: &'h History) -> Self {
        let heads = history.heads().filter(|(name, _)| name.category() == Category::Lorebook);
        let chains =
            heads.map(|(_, head)| history.own(head).0.into_iter().rev().collect()).collect();
        Self { history, chains }
    }

    /// Returns the names of all lorebooks: those that have timelines, and those to which only chats
    /// are bound.
    pub(crate) fn names(&self) -> BTreeSet<TimelineName> {
        let own = self.chains.iter().filter_map(|chain| Some(chain.last()?.timeline.clone()));
        let of_chats = self.history.heads().filter_map(|(_, head)| self.of_chat_today(head));
        own.chain(of_chats).collect()
    }

    /// Returns the current name of the lorebook to which a chat's snapshot was bound.
    pub(crate) fn of_chat_today(&self, own: &Snapshot) -> Option<TimelineName> {
        let name = bound_to(own)?;
        let chain = self.called(&name, own.sequence).map(|chain| &self.chains[chain]);
        let last = chain.and_then(|chain| chain.last()).map(|last| last.timeline.clone());
        Some(last.unwrap_or(name))
    }

    /// Returns the current names of the lorebook of a chat's snapshot and of all lorebooks from
    /// which it was copied, directly or indirectly.
    pub(crate) fn line_of(&self, own: &Snapshot) -> Vec<TimelineName> {
        let mut line: Vec<_> = self.of_chat_today(own).into_iter().collect();
        let named = |name: &TimelineName| {
            let is_it =
                |chain: &&Vec<&Snapshot>| chain.last().is_some_and(|it| it.timeline == *name);
            self.chains.iter().find(is_it)
        };
        while let Some(first) = line.last().and_then(named).and_then(|chain| chain.first())
            && let Some(origin) = first.parents.first()
            && let Some(chain) =
                self.chains.iter().find(|chain| chain.iter().any(|it| it.id == *origin))
            && let Some(last) = chain.last().filter(|last| !line.contains(&last.timeline))
        {
            line.push(last.timeline.clone());
        }
        line
    }

    /// Returns the index of the lorebook that had this name at `then`. If no lorebook had the name,
    /// returns the last one that had it before.
    fn called(&self, name: &TimelineName, then: Sequence) -> Option<usize> {
        let rank = |chain: &Vec<&Snapshot>| {
            let until = chain.partition_point(|event| event.sequence <= then);
            let called = chain[..until].iter().rposition(|event| event.timeline == *name)?;
            Some((called + 1 == until, chain[called].sequence))
        };
        let ranked = self.chains.iter().enumerate();
        let ranked = ranked.filter_map(|(n, chain)| Some((rank(chain)?, n)));
        ranked.max().map(|(_, n)| n)
    }
}

struct KnownBook {
    hash: Option<Blake3>,
    is_recorded: bool,
}

pub(crate) struct Pairs<'h> {
    pub books: Books<'h>,
    reader: Reader,
    /// The snapshots of all lorebooks, oldest first, each with the index of its lorebook in
    /// `books`.
    events: Vec<(usize, &'h Snapshot)>,
}

impl<'h> Pairs<'h> {
    pub(crate) fn new(store: &Store, history: &'h History) -> Self {
        let books = Books::of(history);
        let all = books.chains.iter().enumerate();
        let all = all.flat_map(|(chain, own)| own.iter().map(move |snapshot| (chain, *snapshot)));
        let mut events: Vec<_> = all.collect();
        // The sort is stable, so the snapshots of one lorebook keep the order of their commits.
        events.sort_by_key(|(_, snapshot)| snapshot.sequence);
        Self { books, reader: store.reader(), events }
    }

    pub(crate) fn latest(&self, head: &'h Snapshot) -> Result<Pair<'h>> {
        let book = match self.books_after(head, None)?.pop() {
            Some(book) => Some(book),
            None => self.beside(head)?,
        };
        Ok(Pair { own: head, book, is_own: true, seconds: book.unwrap_or(head).time.seconds })
    }

    /// Returns the moments up to `from`, newest first, including those of the parent before the
    /// fork.
    pub(crate) fn back_from(&self, from: &'h Snapshot, begin: StartBook) -> Result<Vec<Pair<'h>>> {
        let mut pairs: Vec<Pair<'h>> = Vec::new();
        let mut is_own = true;
        // The end of the period in which changes of the lorebook are moments with `own`.
        // `Some(None)` means that the period has no end; `None` means that only the lorebook
        // recorded in `own` counts.
        let mut until = (begin == StartBook::Latest).then_some(None);
        for own in self.books.history.ancestry(from) {
            if let Some(until) = until {
                let mut books = self.books_after(own, until)?;
                // A change of the lorebook and the next snapshot of the chat are one moment, if
                // that snapshot only recorded the change.
                if let (Some(next), Some(book)) = (pairs.last_mut(), books.last())
                    && self.is_recorded(own, book, next)?
                {
                    next.seconds = book.time.seconds;
                    books.pop();
                }
                pairs.extend(books.into_iter().rev().map(|book| Pair {
                    own,
                    book: Some(book),
                    is_own,
                    seconds: book.time.seconds,
                }));
            }
            let book = if pairs.is_empty() && begin == StartBook::Recorded {
                None
            } else {
                self.beside(own)?
            };
            pairs.push(Pair { own, book, is_own, seconds: own.time.seconds });
            until = match own.fork_at {
                None => {
                    Some(Some(own.parent_until.map_or(own.sequence, |it| it.min(own.sequence))))
                }
                Some(_) => None,
            };
            is_own &= own.fork_at.is_none();
        }
        Ok(pairs)
    }

    /// Returns the snapshots that contain a state of the lorebook of `own`, latest first: later
    /// states, the state at that time, earlier states.
    pub(crate) fn books_of(&self, own: &'h Snapshot) -> Result<Vec<&'h Snapshot>> {
        let Some(name) = bound_to(own) else { return Ok(Vec::new()) };
        let mut found: Vec<_> = self.books_after(own, None)?.into_iter().rev().collect();
        found.extend(self.beside(own)?);
        let today = self.books.of_chat_today(own);
        for pair in self.back_from(own, StartBook::Recorded)? {
            if self.books.of_chat_today(pair.own) == today {
                found.extend(pair.book_source());
            }
        }
        let chain = self.books.called(&name, own.sequence);
        let until = |event: &&&'h Snapshot| event.sequence <= own.sequence;
        let chain = chain.map(|chain| self.books.chains[chain].iter().rev().filter(until));
        found.extend(chain.into_iter().flatten().copied());
        let mut seen = BTreeSet::new();
        found.retain(|snapshot| seen.insert(snapshot.id));
        Ok(found)
    }

    fn is_recorded(&self, own: &Snapshot, book: &Snapshot, next: &Pair<'_>) -> Result<bool> {
        let chat = |snapshot: &Snapshot| -> Result<_> {
            let manifest = unless_lost(read_manifest(&self.reader, snapshot.tree))?;
            Ok(manifest.and_then(|manifest| manifest.file(Role::Chat).cloned()))
        };
        let hash = self.book_hash(book)?;
        Ok(next.own.messages == own.messages
            && hash.is_some()
            && hash == self.book_hash(next.own)?
            && chat(own)? == chat(next.own)?)
    }

    /// Returns the changes of a chat's lorebook after `own` and before `until`, oldest first.
    fn books_after(&self, own: &Snapshot, until: Option<Sequence>) -> Result<Vec<&'h Snapshot>> {
        // Changes of a lorebook are not moments of a chat that was deleted before.
        let name = bound_to(own).filter(|_| own.kind != Kind::DELETED);
        let Some(name) = name else { return Ok(Vec::new()) };
        let from = own.sequence;
        let start = self.events.partition_point(|(_, event)| event.sequence <= from);
        let later = &self.events[start..];
        let is_later = |(_, event): &(usize, &Snapshot)| until.is_none_or(|it| event.sequence < it);
        // After most snapshots no lorebook changed, so that nothing has to be read.
        let Some(later) =
            Some(&later[..later.partition_point(is_later)]).filter(|it| !it.is_empty())
        else {
            return Ok(Vec::new());
        };
        let mut chain = self.books.called(&name, from);
        let mut changes = Vec::new();
        let mut known: Option<KnownBook> = None;
        for (of, event) in later {
            if chain != Some(*of) {
                // From this event on, the chat is bound to the lorebook that took over the name.
                if event.timeline != name {
                    continue;
                }
                chain = Some(*of);
            }
            let known = match &mut known {
                Some(known) => known,
                None => known.insert(self.known_at(own, &name)?),
            };
            if event.kind == Kind::DELETED {
                // A deletion does not change the content of the lorebook. If the chat has no
                // recorded lorebook yet, recreating the file counts as a change.
                known.hash = known.hash.filter(|_| known.is_recorded || !changes.is_empty());
                continue;
            }
            let hash = self.book_hash(event)?;
            if hash.is_none() || hash != known.hash {
                changes.push(*event);
            }
            known.hash = hash;
        }
        Ok(changes)
    }

    /// Returns the state of a chat's lorebook when `own` was created. The hash is `None` if the
    /// lorebook's file did not exist, so that the first write counts as a change.
    fn known_at(&self, own: &Snapshot, name: &TimelineName) -> Result<KnownBook> {
        let recorded = self.book_hash(self.beside(own)?.unwrap_or(own))?;
        let hash = match (recorded, self.books.called(name, own.sequence)) {
            (None, Some(chain)) => {
                let chain = &self.books.chains[chain];
                let until = chain.partition_point(|event| event.sequence <= own.sequence);
                let last = chain[..until].last().filter(|last| last.kind != Kind::DELETED);
                last.map_or(Ok(None), |last| self.book_hash(last))?
            }
            (recorded, _) => recorded,
        };
        Ok(KnownBook { hash, is_recorded: recorded.is_some() })
    }

    /// Returns the snapshot that contains the lorebook at the time of `own`, if `own` does not
    /// contain this state itself. This applies to an imported backup of SillyTavern, which is only
    /// the chat; to a chat whose lorebook could not be read; and to a deleted chat, which is stored
    /// in its last state with the lorebook of that earlier time.
    fn beside(&self, own: &Snapshot) -> Result<Option<&'h Snapshot>> {
        let is_beside = [Kind::IMPORT, Kind::DELETED].contains(&own.kind) || own.unread.is_some();
        let name = bound_to(own).filter(|_| is_beside);
        let chain = name.and_then(|name| self.books.called(&name, own.sequence));
        let Some(chain) = chain.map(|chain| &self.books.chains[chain]) else { return Ok(None) };
        // A lorebook snapshot of the same operation may have been created after the deletion.
        let is_then = |event: &&Snapshot| {
            if own.kind == Kind::DELETED {
                event.sequence < own.sequence
            } else {
                event.sequence <= own.sequence
            }
        };
        let until = chain.partition_point(is_then);
        let Some(last) = chain[..until].last() else { return Ok(None) };
        let is_other = self.book_hash(last)? != self.book_hash(own)?;
        Ok(is_other.then_some(*last))
    }

    fn book_hash(&self, snapshot: &Snapshot) -> Result<Option<Blake3>> {
        book_hash(&self.reader, snapshot)
    }
}

/// Returns the hash of the lorebook in a snapshot of a chat or of a lorebook. `None` if the
/// snapshot has no lorebook, or its manifest is lost.
pub(crate) fn book_hash(reader: &Reader, snapshot: &Snapshot) -> Result<Option<Blake3>> {
    Ok(book_record(reader, snapshot)?.map(|record| record.blake3))
}

/// Returns the record of the lorebook in a snapshot of a chat or of a lorebook. `None` if the
/// snapshot has no lorebook, or its manifest is lost.
pub(crate) fn book_record(reader: &Reader, snapshot: &Snapshot) -> Result<Option<FileRecord>> {
    let manifest = unless_lost(read_manifest(reader, snapshot.tree))?;
    let record = |manifest: Manifest| {
        let role = if snapshot.timeline.is_chat() { Role::Lorebook } else { manifest.main_role() };
        manifest.file(role).cloned()
    };
    Ok(manifest.and_then(record))
}
