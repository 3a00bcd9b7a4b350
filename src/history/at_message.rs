//! Rebuilds a timeline at an earlier message: the messages up to that message, and the running
//! recap and the lorebook of that time.
//!
//! The lorebook is the last state before the chat continued after the message, from the best
//! available source: first, snapshots created at that message; second, the last snapshot before it
//! or the last scene record of ST-Auto-Recap (a copy of all entries in the message that ends a
//! scene), whichever is later. Without a source, the lorebook is unknown, and this is reported. The
//! current lorebook is never used instead.

use std::collections::HashSet;
use std::ops::Range;

use super::origin::{Identities, without_blank_end};
use super::pairs::{Books, Pair};
use super::{Error, Result};
use crate::archive::message_identity::Identity;
use crate::archive::{Kind, Role, Snapshot, SnapshotId, Tree};
use crate::auto_recap::{
    EntryOrigin, Scene, Trimmed, has_note, noted_book, scene_breaks, trim_metadata,
};
use crate::rules::{Code, Finding};
use crate::st::{
    self, BoundBook, Chat, FileAt, Raw, TimelineFiles, TimelineName, entries, entry_uid,
};
use crate::store::{ObjectId, Reader, Store, unless_lost};

#[derive(Clone, Debug)]
pub(crate) enum Book {
    /// The moment's own snapshot contains the lorebook, or the chat has no lorebook.
    Recorded,
    /// This snapshot of a lorebook or of a chat contains the lorebook.
    Snapshot(Box<Snapshot>),
    /// The lorebook at the moment is unknown; this snapshot contains the last known state before.
    Earlier(Box<Snapshot>),
    /// A scene record of ST-Auto-Recap has the entries. Missing fields are filled from the lorebook
    /// in this snapshot.
    Noted(Option<Box<Snapshot>>),
    Unknown(Box<Finding>),
}

pub(crate) enum StateAtMessage {
    /// A snapshot was created at the message. `book` is the snapshot with the lorebook, if the
    /// lorebook changed later at the same message.
    Taken { snapshot: Box<Snapshot>, book: Option<Box<Snapshot>> },
    /// No snapshot was created at the message, so a later chat is truncated. `book` is the source
    /// of the lorebook.
    Cut { book: Book },
}

pub(crate) struct RebuiltState {
    pub files: TimelineFiles,
    pub origin: Origin,
    pub findings: Vec<Finding>,
    /// Time of the state, in seconds since 1970; `None` if unknown.
    pub seconds: Option<i64>,
}

/// The sources of a state that was combined from several snapshots or records.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Number of the last message.
    pub message: usize,
    /// The message with the scene record from which the lorebook was rebuilt, and the name of the
    /// scene.
    pub scene: Option<(usize, Option<String>)>,
    /// The snapshot that contains the lorebook of that time.
    pub book_of: Option<SnapshotId>,
    /// Whether a lorebook was requested.
    pub with_book: bool,
    /// The lorebooks from which missing fields of entries were filled, nearest first.
    pub books: Vec<BookSource>,
    /// Sources of the lorebook's entries.
    pub entries: Vec<EntryOrigin>,
    /// Later data that was removed from the metadata.
    pub trimmed: Trimmed,
}

/// A lorebook from which missing fields of entries were filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BookSource {
    /// The lorebook of this snapshot.
    Snapshot(SnapshotId),
    /// The current lorebook file.
    Here,
}

pub(crate) struct PastPairs<'a> {
    store: &'a Store,
    books: &'a Books<'a>,
    /// Moments of the timeline, newest first, including those of the parent before the fork.
    pairs: &'a [Pair<'a>],
    /// Number of `pairs` that belong to the timeline itself and not to its parent.
    own: usize,
}

impl<'a> PastPairs<'a> {
    pub(crate) fn new(store: &'a Store, books: &'a Books<'a>, pairs: &'a [Pair<'a>]) -> Self {
        // The parent of a checkpoint at a message is a snapshot of the same timeline, although the
        // checkpoint has a `fork_at`.
        let is_first = |(pair, before): (&Pair<'_>, &Pair<'_>)| {
            pair.own.fork_at.is_some()
                && pair.own.id != before.own.id
                && pair.own.timeline != before.own.timeline
        };
        let own = pairs.iter().zip(pairs.iter().skip(1)).position(is_first);
        Self { store, books, pairs, own: own.map_or(pairs.len(), |first| first + 1) }
    }

    /// Returns whether a snapshot belongs to the timeline itself and not to its parent.
    fn is_own(&self, snapshot: &Snapshot) -> bool {
        self.pairs[..self.own].iter().any(|pair| pair.own.id == snapshot.id)
    }

    pub(crate) fn find(&self, base: &TimelineFiles, at: usize) -> Result<StateAtMessage> {
        let chat = base.split();
        let messages = without_blank_end(&chat.messages);
        if at >= messages.len() {
            return Err(Error::unknowable(message_not_found(&base.timeline, messages.len(), at)));
        }
        let cut = chat.upto(at);
        let bound = base.metadata(&cut).and_then(st::lorebook_name);
        let is_taken = |pair: &Pair<'_>| pair.own.kind != Kind::RECONSTRUCTED;
        // If a snapshot does not contain the lorebook to which the chat was bound, the state of the
        // lorebook is unknown.
        let is_complete = |pair: &Pair<'_>| {
            let is_alone = pair.own.bound.is_some() || pair.own.kind == Kind::IMPORT;
            pair.book_source().is_some() || bound.is_none() || !is_alone
        };
        let exact =
            self.latest_moment_with_messages(&cut, |pair| is_taken(pair) && is_complete(pair))?;
        if let Some(pair) = exact.filter(|pair| self.is_own(pair.own)) {
            let book = pair.book.map(|book| Box::new(book.clone()));
            return Ok(StateAtMessage::Taken { snapshot: Box::new(pair.own.clone()), book });
        }
        let breaks = scene_breaks(&cut);
        let has_book =
            bound.is_some() || breaks.iter().any(|(_, scene)| scene.lorebook().is_some());
        if !has_book {
            return Ok(StateAtMessage::Cut { book: Book::Recorded });
        }
        // The header names one lorebook. A lorebook to which the chat was bound earlier does not
        // count, unless the current lorebook was copied from it for a fork.
        let newest = self.pairs.first().filter(|_| bound.is_some());
        let line = newest.map(|pair| self.books.line_of(pair.own)).unwrap_or_default();
        let has_it = |pair: &Pair<'_>| {
            let of_then = self.books.of_chat_today(pair.own);
            is_taken(pair)
                && pair.book_source().is_some()
                && of_then.is_some_and(|of_then| line.contains(&of_then))
        };
        let length = without_blank_end(&cut.messages).len();
        // Later edits of other messages do not affect the lorebook at the time when this message
        // was the last.
        let known = match exact {
            None => self.with_same_end(&cut, length..length + 1, has_it)?,
            exact => exact,
        };
        if let Some(source) = known.and_then(|pair| pair.book_source()) {
            return Ok(StateAtMessage::Cut { book: Book::Snapshot(Box::new(source.clone())) });
        }
        let noted = breaks.iter().rfind(|(_, scene)| scene.has_note());
        let before = self.with_same_end(&cut, 1..length, has_it)?;
        let before = before.and_then(|pair| Some((pair.own.messages, pair.book_source()?)));
        let book = match (noted, before) {
            (Some((message, _)), Some((messages, source))) if (*message as u64) < messages => {
                Book::Earlier(Box::new(source.clone()))
            }
            (Some(_), _) => Book::Noted(self.nearest_book(cut.message_count() as u64)?),
            (None, Some((_, source))) => Book::Earlier(Box::new(source.clone())),
            (None, None) => Book::Unknown(Box::new(not_known(&base.timeline, at, &breaks))),
        };
        Ok(StateAtMessage::Cut { book })
    }

    /// Returns the newest moment that `is` accepts and in which the chat consisted of exactly these
    /// messages.
    pub(crate) fn latest_moment_with_messages(
        &self,
        chat: &Chat<'_>,
        is: impl Fn(&Pair<'_>) -> bool,
    ) -> Result<Option<Pair<'a>>> {
        let messages = chat.message_count() as u64;
        // ST-Auto-Recap writes the scene record after the last message of a scene. A snapshot
        // without the scene record was created before the scene ended.
        let noted = chat.messages.last().is_some_and(|line| has_note(line));
        let mut wanted: Option<Vec<Identity>> = None;
        let mut identities = Identities::new(self.store.reader());
        let fits = |pair: &Pair<'_>| pair.own.messages == messages && is(pair);
        for pair in self.by_own_snapshot(fits) {
            let Some(tree) = self.of_then(pair.own)? else { continue };
            let wanted = wanted.get_or_insert_with(|| {
                without_blank_end(&chat.messages).iter().map(|line| Identity::of(line)).collect()
            });
            if noted && !self.is_noted(tree.messages().last())? {
                continue;
            }
            if identities.begin_with(tree.messages(), wanted)?
                && let Some(pair) = self.with_valid_book(pair)?
            {
                return Ok(Some(pair));
            }
        }
        Ok(None)
    }

    /// Returns the newest moment that `is` accepts, with a number of messages in `lengths`, whose
    /// last message is also in `chat`. Other messages may have been edited since.
    fn with_same_end(
        &self,
        chat: &Chat<'_>,
        lengths: Range<usize>,
        is: impl Fn(&Pair<'_>) -> bool,
    ) -> Result<Option<Pair<'a>>> {
        let messages = without_blank_end(&chat.messages);
        let fits = |pair: &Pair<'_>| {
            usize::try_from(pair.own.messages).is_ok_and(|it| it > 0 && lengths.contains(&it))
                && is(pair)
        };
        for pair in self.by_own_snapshot(fits) {
            let last = pair.own.messages as usize - 1;
            let Some(line) = self.message(pair.own, last)? else { continue };
            // A snapshot without the scene record was created before the scene ended.
            let is_noted =
                last + 1 < messages.len() || !has_note(messages[last]) || has_note(&line);
            if is_same_message(&line, messages[last])
                && is_noted
                && let Some(pair) = self.with_valid_book(pair)?
            {
                return Ok(Some(pair));
            }
        }
        Ok(None)
    }

    /// Returns, for every snapshot of the chat, its newest moment if `is` accepts the moment. This
    /// is the moment with the last lorebook before the chat continued.
    fn by_own_snapshot(
        &self,
        is: impl Fn(&Pair<'_>) -> bool,
    ) -> impl Iterator<Item = &'a Pair<'a>> {
        let mut last = None;
        self.pairs.iter().filter(move |pair| {
            let is_newest = last.replace(pair.own.id) != Some(pair.own.id);
            is_newest && is(pair)
        })
    }

    /// Returns the newest moment with the same snapshot of the chat as `newest` and with a valid
    /// lorebook. A damaged lorebook does not show its state.
    fn with_valid_book(&self, newest: &'a Pair<'a>) -> Result<Option<Pair<'a>>> {
        let from = self.pairs.iter().skip_while(|pair| !std::ptr::eq(*pair, newest));
        for pair in from.take_while(|pair| pair.own.id == newest.own.id) {
            let book = match pair.book_source() {
                Some(source) => read_book(&self.store.reader(), source)?,
                None => None,
            };
            if book.as_deref().and_then(st::book_damage).is_none() {
                return Ok(Some(*pair));
            }
        }
        Ok(None)
    }

    /// Reads a message of a snapshot; `None` if the message is lost or [`of_then`](Self::of_then)
    /// does not accept the snapshot.
    fn message(&self, found: &Snapshot, at: usize) -> Result<Option<Vec<u8>>> {
        let Some(tree) = self.of_then(found)? else { return Ok(None) };
        let Some(id) = tree.messages().get(at) else { return Ok(None) };
        Ok(unless_lost(self.store.reader().blob(*id))?)
    }

    /// Opens a snapshot that shows the state when its last message was new; `None` for other
    /// snapshots and lost ones. A checkpoint at an earlier message does not show this state: it
    /// contains the lorebook of the time when the checkpoint was created.
    fn of_then(&self, found: &Snapshot) -> Result<Option<Tree>> {
        let tree = unless_lost(Tree::open(&self.store.reader(), found.tree))?;
        let is_cut = |tree: &Tree| tree.manifest.cut_at.is_some();
        Ok(tree.filter(|tree| !is_cut(tree) || found.kind == Kind::RECONSTRUCTED))
    }

    fn is_noted(&self, id: Option<&ObjectId>) -> Result<bool> {
        let Some(id) = id else { return Ok(false) };
        let line = unless_lost(self.store.reader().blob(*id))?;
        Ok(line.is_some_and(|line| has_note(&line)))
    }

    fn nearest_book(&self, messages: u64) -> Result<Option<Box<Snapshot>>> {
        let has_book =
            |found: &Snapshot| found.lorebook.is_some() && found.kind != Kind::RECONSTRUCTED;
        let own =
            self.pairs.iter().filter(|pair| pair.latest().id == pair.own.id).map(|pair| pair.own);
        let mut candidates: Vec<_> = own.filter(|own| has_book(own)).collect();
        candidates.sort_by_key(|found| found.messages.abs_diff(messages));
        for found in candidates {
            let book = read_book(&self.store.reader(), found)?;
            if book.is_some_and(|book| st::book_damage(&book).is_none()) {
                return Ok(Some(Box::new(found.clone())));
            }
        }
        Ok(None)
    }
}

/// Reads the lorebook in a snapshot of a chat or of a lorebook; `None` if the snapshot has no
/// lorebook, or the lorebook is lost.
pub(crate) fn read_book(reader: &Reader, snapshot: &Snapshot) -> Result<Option<Vec<u8>>> {
    let Some(tree) = unless_lost(Tree::open(reader, snapshot.tree))? else { return Ok(None) };
    let role = if snapshot.timeline.is_chat() { Role::Lorebook } else { tree.manifest.main_role() };
    let Some(record) = tree.manifest.file(role) else { return Ok(None) };
    Ok(unless_lost(tree.rebuild(reader, record))?)
}

/// Rebuilds the state of `base` when message `at` was the last. `source` is the source of the
/// lorebook; `None` to rebuild the state without a lorebook.
pub(crate) fn make(
    reader: &Reader,
    base: &TimelineFiles,
    at: usize,
    source: Option<&Book>,
) -> Result<RebuiltState> {
    let chat = base.split();
    let messages = without_blank_end(&chat.messages).len();
    if at >= messages {
        return Err(Error::unknowable(message_not_found(&base.timeline, messages, at)));
    }
    let cut = chat.upto(at);
    let metadata = base.metadata(&cut);
    let bound = metadata.and_then(st::lorebook_name);
    let mut findings = Vec::new();
    let mut origin = Origin {
        message: at,
        scene: None,
        book_of: None,
        with_book: source.is_some(),
        books: Vec::new(),
        entries: Vec::new(),
        trimmed: Trimmed::default(),
    };
    let mut book = None;
    let mut seconds = None;
    match source {
        None | Some(Book::Recorded) => {}
        Some(Book::Unknown(finding)) => return Err(Error::unknowable((**finding).clone())),
        Some(Book::Snapshot(from) | Book::Earlier(from)) => {
            let Some(bytes) = read_book(reader, from)? else {
                return Err(Error::unknowable(lost_book(&base.timeline, at, from)));
            };
            if let Some(name) = bound.clone()
                && let Some(path) = st::lorebook_path(&name)
            {
                origin.book_of = Some(from.id);
                book = Some(BoundBook::new(name, path, bytes));
            }
            if let Some(Book::Earlier(_)) = source {
                findings.push(earlier_book(&base.timeline, at, from));
            }
        }
        Some(Book::Noted(nearest)) => {
            let nearest = match nearest {
                Some(nearest) => read_book(reader, nearest)?.map(|book| (nearest.id, book)),
                None => None,
            };
            let mut books: Vec<&[u8]> = Vec::new();
            if let Some((id, bytes)) = &nearest {
                books.push(bytes);
                origin.books.push(BookSource::Snapshot(*id));
            }
            if let Some(here) = base.book_bytes().filter(|here| !books.contains(here)) {
                books.push(here);
                origin.books.push(BookSource::Here);
            }
            if let Some(noted) = noted_book(&base.timeline, &cut, bound.as_deref(), &books) {
                seconds = noted.milliseconds.map(|ms| ms.div_euclid(1000));
                origin.scene = Some((noted.message, noted.scene));
                origin.entries = noted.entries;
                findings.extend(noted.findings);
                book = noted.book;
            }
        }
    }
    let uids = book.as_ref().and_then(|book: &BoundBook| book.bytes.as_ref()).map(|bytes| {
        let uids = entries(bytes).into_iter().filter_map(|(_, entry)| entry_uid(entry));
        uids.map(|uid| uid.to_string()).collect::<HashSet<_>>()
    });
    let (header, group) = match (metadata, cut.header) {
        (None, header) => (header.map(<[u8]>::to_vec), None),
        (Some(metadata), Some(header)) => {
            let (header, trimmed) = trim_metadata(header, metadata, at, uids.as_ref());
            origin.trimmed = trimmed;
            let new_book = book.as_ref().filter(|_| bound.is_none());
            let header = new_book.map(|book| bind(&header, book)).unwrap_or(header);
            (Some(header), None)
        }
        (Some(metadata), None) => {
            let group = base.group_bytes().unwrap_or_default();
            let (group, trimmed) = trim_metadata(group, metadata, at, uids.as_ref());
            origin.trimmed = trimmed;
            (None, Some(group))
        }
    };
    let chat = Chat { header: header.as_deref(), messages: cut.messages.clone() }.join();
    let sent = || {
        let last = st::Message::read(cut.messages.last()?)?;
        Some(st::send_millis(last.send_date()?)?.div_euclid(1000))
    };
    let group = match (group, &base.group) {
        (Some(bytes), Some(group)) => {
            Some(FileAt { path: group.path.clone(), bytes: bytes.into() })
        }
        (_, group) => group.clone(),
    };
    let files = TimelineFiles {
        timeline: base.timeline.clone(),
        main: FileAt { path: base.main.path.clone(), bytes: chat.into() },
        lorebook: book,
        group,
    };
    Ok(RebuiltState { files, origin, findings, seconds: seconds.or_else(sent) })
}

/// Returns whether two lines are versions of one message: they have the same content, or the same
/// speaker and send time.
fn is_same_message(a: &[u8], b: &[u8]) -> bool {
    let said = |line: &[u8]| {
        let message = st::Message::read(line)?;
        Some((message.name()?, st::send_millis(message.send_date()?)?))
    };
    Identity::of(a) == Identity::of(b) || said(a).is_some() && said(a) == said(b)
}

fn bind(header: &[u8], book: &BoundBook) -> Vec<u8> {
    let Some(metadata) = Raw::parse(header).and_then(|header| header.get("chat_metadata")) else {
        return header.to_vec();
    };
    let mut edits = st::Edits::new(header);
    let name = serde_json::to_string(&book.name).unwrap_or_default();
    edits.set(metadata, "world_info", &name);
    edits.apply()
}

pub(crate) fn message_not_found(timeline: &TimelineName, messages: usize, at: usize) -> Finding {
    let last = match messages.checked_sub(1) {
        Some(last) => format!("its last one is {last}"),
        None => "it has no messages".into(),
    };
    let message = format!("Message not found: {timeline} has no message {at}; {last}");
    Finding::new(Code::MessageNotFound, timeline.as_str(), message)
}

fn not_known(timeline: &TimelineName, at: usize, breaks: &[(usize, Scene<'_>)]) -> Finding {
    let scenes = match breaks {
        [] => "no message up to it ends a scene".to_owned(),
        [(only, _)] => {
            format!("message {only}, which ends a scene, does not record the lorebook's entries")
        }
        [.., (last, _)] => format!(
            "none of the {} messages that end a scene (the last is {last}) records the lorebook's entries",
            breaks.len()
        ),
    };
    let message = format!(
        "the lorebook at message {at} is unknown: there is no snapshot at that message, and {scenes}"
    );
    Finding::new(Code::LorebookThenUnknown, timeline.as_str(), message).remedy(
        "run `stvc restore … --at N --only chat` with `--to` or `--overwrite` to restore the messages without a lorebook; run `stvc snapshot … --at N` to create a snapshot with the current lorebook, which you can restore with `--as`",
    )
}

fn lost_book(timeline: &TimelineName, at: usize, from: &Snapshot) -> Finding {
    let message = format!(
        "the lorebook at message {at} cannot be read: snapshot {}, which contains it, is damaged",
        from.id
    );
    Finding::new(Code::LorebookThenUnknown, timeline.as_str(), message)
        .remedy("run `stvc check` to list all damage; run `stvc restore … --only chat` to restore the chat without a lorebook")
}

pub(crate) fn earlier_book(timeline: &TimelineName, at: usize, from: &Snapshot) -> Finding {
    let when = from.time.moment().map(|time| time.format(" of %Y-%m-%d %H:%M").to_string());
    let message = format!(
        "no snapshot at message {at} has a valid lorebook; the latest valid one before it is used, from snapshot {}{}",
        &from.id.to_string()[..10],
        when.unwrap_or_default()
    );
    Finding::new(Code::LorebookFromElsewhere, timeline.as_str(), message)
        .remedy("check the entries: changes between that snapshot and this message are missing")
}
