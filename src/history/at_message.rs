//! A timeline as it was at an earlier message: its first messages, what the running recap knew then, and the lorebook of then.
//!
//! The lorebook comes from the best source there is: a snapshot that was taken at that point; else the entries that ST-Auto-Recap noted at the end of the newest scene up to
//! it; else it is not known, and that is said. Today's book is never passed off as that of then.

use std::collections::HashSet;

use super::origin::{Identities, without_blank_end};
use super::owner_of_snapshot::Owners;
use super::{Error, History, Result};
use crate::archive::message_identity::Identity;
use crate::archive::reconstruct::{EntryOrigin, Trimmed, rebuild_book, trim_metadata};
use crate::archive::{Kind, Role, Snapshot, SnapshotId, Tree};
use crate::rules::{Code, Finding, Level};
use crate::st::auto_recap::{Scene, scene, scene_breaks};
use crate::st::{
    self, BoundBook, Chat, FileAt, Raw, TimelineFiles, TimelineName, entries, entry_uid,
};
use crate::store::{ObjectId, Store, unless_lost};

/// What a timeline was.
pub(crate) enum Then {
    /// Just what this snapshot holds; the lorebook as this one of its own history has it, if it changed before the chat went on.
    Snapshot(Box<Snapshot>, Option<Box<Snapshot>>),
    /// What was put together.
    Made(Box<Made>),
}

/// A state that was put together.
pub(crate) struct Made {
    pub files: TimelineFiles,
    pub origin: Origin,
    pub findings: Vec<Finding>,
    /// When that was, in seconds since 1970, if anything tells.
    pub seconds: Option<i64>,
}

/// Where the parts of such a state come from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The last message.
    pub message: usize,
    /// The message whose notes the lorebook is from, and the name of the scene that it ends; none if the chat has no lorebook.
    pub scene: Option<(usize, Option<String>)>,
    /// The snapshot that has the lorebook of then as it was.
    pub book_of: Option<SnapshotId>,
    /// Whether a lorebook was asked for.
    pub with_book: bool,
    /// The books from which entries were completed, nearest first.
    pub books: Vec<BookSource>,
    /// Where each entry comes from.
    pub entries: Vec<EntryOrigin>,
    /// What was taken out of the metadata.
    pub trimmed: Trimmed,
}

/// A book that entries were completed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BookSource {
    /// The one in this snapshot.
    Snapshot(SnapshotId),
    /// The one beside the chat that was cut.
    Here,
}

/// What can tell of a timeline's past.
pub(crate) struct Past<'a> {
    store: &'a Store,
    history: &'a History,
    /// Its snapshots and what it forked from, newest first.
    line: Vec<Snapshot>,
}

impl<'a> Past<'a> {
    /// The past of `timeline`, as its branch tells, and of `snapshot`, which may be on no branch.
    pub(crate) fn of(
        store: &'a Store,
        history: &'a History,
        timeline: &TimelineName,
        snapshot: Option<&Snapshot>,
    ) -> Self {
        let owners = Owners::of(history);
        let name = snapshot.map_or(timeline, |snapshot| owners.of_snapshot(snapshot));
        let mut seen = HashSet::new();
        let mut line = Vec::new();
        let starts = history.head(name).into_iter().chain(snapshot);
        for start in starts {
            let ancestry = history.ancestry(start).filter(|found| seen.insert(found.id));
            line.extend(ancestry.cloned());
        }
        line.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.time.seconds));
        Self { store, history, line }
    }

    /// The state of `base` at message `at`. `with_book`: whether its lorebook is wanted.
    pub(crate) fn at(&self, base: &TimelineFiles, at: usize, with_book: bool) -> Result<Then> {
        let chat = base.split();
        let messages = without_blank_end(&chat.messages);
        if at >= messages.len() {
            return Err(Error::unknowable(message_not_found(&base.timeline, messages.len(), at)));
        }
        let cut = chat.upto(at);
        let bound = base.metadata(&cut).and_then(st::lorebook_name);
        // One that lacks the lorebook does not tell what it was.
        let taken = |found: &Snapshot| {
            found.kind != Kind::IMPORT
                && found.kind != Kind::RECONSTRUCTED
                && (!with_book || bound.is_none() || found.lorebook.is_some())
        };
        let exact = self.taken_at(&cut, taken)?;
        // What was edited since does not change what the lorebook was when this message was said.
        let alike = match exact {
            None if with_book && bound.is_some() => self.said_at(&cut, taken)?,
            _ => None,
        };
        let found = exact.as_ref().or(alike.as_ref());
        let later = found.filter(|_| with_book).and_then(|found| self.later_book(found));
        match exact {
            Some(snapshot) if snapshot.timeline == base.timeline => {
                Ok(Then::Snapshot(Box::new(snapshot), later.map(Box::new)))
            }
            // Another timeline's, or of before a rename or an edit: its lorebook is that of then, the rest is not this one's.
            _ => {
                let book_of = later.as_ref().or(exact.as_ref()).or(alike.as_ref());
                let made = self.make(base, &cut, at, with_book, book_of)?;
                Ok(Then::Made(Box::new(made)))
            }
        }
    }

    /// What became of a snapshot's lorebook before its chat went on, by the lorebook's own history.
    fn later_book(&self, snapshot: &Snapshot) -> Option<Snapshot> {
        let path = st::lorebook_path(snapshot.lorebook.as_deref()?)?;
        let book = self.history.head(&TimelineName::of_file(&path)?)?;
        let taken = snapshot.time.seconds;
        let after = self.line.iter().filter(|other| other.timeline == snapshot.timeline);
        let went_on =
            after.map(|other| other.time.seconds).filter(|seconds| *seconds > taken).min();
        let mut states = self.history.ancestry(book);
        let then = states.find(|state| went_on.is_none_or(|moment| state.time.seconds < moment))?;
        (then.time.seconds > taken).then(|| then.clone())
    }

    /// The newest snapshot that `is` likes and that was taken when the chat ended with just these messages.
    pub(crate) fn taken_at(
        &self,
        chat: &Chat<'_>,
        is: impl Fn(&Snapshot) -> bool,
    ) -> Result<Option<Snapshot>> {
        let messages = chat.message_count() as u64;
        // A scene is marked and noted after its last message was said: what was taken before that is not its end.
        let noted = chat.messages.last().is_some_and(|line| has_note(line));
        let mut wanted: Option<Vec<Identity>> = None;
        let mut identities = Identities::new(self.store.reader());
        let candidates = self.line.iter().filter(|found| found.messages == messages && is(found));
        for found in candidates {
            let Some(tree) = self.of_then(found)? else { continue };
            let wanted = wanted.get_or_insert_with(|| {
                without_blank_end(&chat.messages).iter().map(|line| Identity::of(line)).collect()
            });
            if noted && !self.is_noted(tree.messages().last())? {
                continue;
            }
            if identities.begin_with(tree.messages(), wanted)? {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// The newest snapshot that was taken when the same message was the last, though others may have been edited since.
    fn said_at(&self, chat: &Chat<'_>, is: impl Fn(&Snapshot) -> bool) -> Result<Option<Snapshot>> {
        let messages = without_blank_end(&chat.messages);
        let Some(last) = messages.last() else { return Ok(None) };
        let noted = has_note(last);
        let count = messages.len() as u64;
        for found in self.line.iter().filter(|found| found.messages == count && is(found)) {
            let Some(tree) = self.of_then(found)? else { continue };
            let Some(id) = tree.messages().get(messages.len() - 1) else { continue };
            let Some(line) = unless_lost(self.store.reader().blob(*id))? else { continue };
            if is_same_message(&line, last) && (!noted || has_note(&line)) {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// What a snapshot holds, if it is not lost and tells what was then: a checkpoint at an earlier message has the lorebook of when it was taken.
    fn of_then(&self, found: &Snapshot) -> Result<Option<Tree>> {
        let tree = unless_lost(Tree::open(&self.store.reader(), found.tree))?;
        let is_cut = |tree: &Tree| tree.manifest.cut_at.is_some();
        Ok(tree.filter(|tree| !is_cut(tree) || found.kind == Kind::RECONSTRUCTED))
    }

    /// Whether a stored message ends a scene and has a note of the lorebook.
    fn is_noted(&self, id: Option<&ObjectId>) -> Result<bool> {
        let Some(id) = id else { return Ok(false) };
        let line = unless_lost(self.store.reader().blob(*id))?;
        Ok(line.is_some_and(|line| has_note(&line)))
    }

    fn make(
        &self,
        base: &TimelineFiles,
        cut: &Chat<'_>,
        at: usize,
        with_book: bool,
        taken: Option<&Snapshot>,
    ) -> Result<Made> {
        let metadata = base.metadata(cut);
        let bound = metadata.and_then(st::lorebook_name);
        let breaks = scene_breaks(cut);
        let has_book =
            bound.is_some() || breaks.iter().any(|(_, scene)| scene.lorebook().is_some());
        let mut findings = Vec::new();
        let mut origin = Origin {
            message: at,
            scene: None,
            book_of: None,
            with_book,
            books: Vec::new(),
            entries: Vec::new(),
            trimmed: Trimmed::default(),
        };
        let mut book = None;
        let mut seconds = None;
        let noted = breaks.iter().rfind(|(_, scene)| !scene.all_entries().is_empty());
        let stored = match taken.filter(|_| with_book) {
            Some(taken) => self.book_of(taken)?,
            None => None,
        };
        match noted {
            _ if !with_book || !has_book => {}
            _ if stored.is_some() => {
                let name = bound.clone();
                if let (Some((id, bytes)), Some(name)) = (stored, name)
                    && let Some(path) = st::lorebook_path(&name)
                {
                    origin.book_of = Some(id);
                    book = Some(BoundBook::new(name, path, bytes));
                }
            }
            None => return Err(Error::unknowable(not_known(&base.timeline, at, &breaks))),
            Some((message, scene)) => {
                if let Some((later, _)) = breaks.last().filter(|(later, _)| later > message) {
                    findings.push(stale(&base.timeline, *later, *message));
                }
                seconds = scene.timestamp().map(|ms| ms.div_euclid(1000));
                origin.scene = Some((*message, scene.name()));
                let bound = bound.as_deref();
                book = self.book(base, cut, scene, bound, &mut origin, &mut findings)?;
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
                (Some(bind(header, bound.is_none(), book.as_ref())), None)
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
        Ok(Made { files, origin, findings, seconds: seconds.or_else(sent) })
    }

    /// The lorebook from a scene's notes, completed from the nearest snapshot's book and the one beside the chat.
    fn book(
        &self,
        base: &TimelineFiles,
        cut: &Chat<'_>,
        scene: &Scene<'_>,
        bound: Option<&str>,
        origin: &mut Origin,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<BoundBook>> {
        let name = bound.map(str::to_owned).or_else(|| scene.lorebook());
        let named = name.and_then(|name| st::lorebook_path(&name).map(|path| (name, path)));
        let Some((name, path)) = named else { return Ok(None) };
        let nearest = self.nearest_book(cut.message_count() as u64)?;
        let mut books: Vec<&[u8]> = Vec::new();
        if let Some((id, bytes)) = &nearest {
            books.push(bytes);
            origin.books.push(BookSource::Snapshot(*id));
        }
        if let Some(here) = base.book_bytes().filter(|here| !books.contains(here)) {
            books.push(here);
            origin.books.push(BookSource::Here);
        }
        // The queue's key is a moment in milliseconds; the scene's, so that the same state is made of the same notes.
        let queue = scene.timestamp().filter(|ms| *ms > 0).unwrap_or(SOME_MOMENT);
        let rebuilt = rebuild_book(&scene.all_entries(), &books, queue);
        if rebuilt.left_out > 0 {
            let message = format!(
                "{} of the noted lorebook entries cannot be read as entries and were left out",
                rebuilt.left_out
            );
            findings.push(Finding::new(
                Code::NoteUnreadable,
                Level::Warning,
                base.timeline.as_str(),
                message,
            ));
        }
        if let Some(finding) = gaps(&base.timeline, &rebuilt.entries) {
            findings.push(finding);
        }
        origin.entries = rebuilt.entries;
        Ok(Some(BoundBook::new(name, path, rebuilt.bytes)))
    }

    /// The lorebook of the snapshot whose length is nearest.
    fn nearest_book(&self, messages: u64) -> Result<Option<(SnapshotId, Vec<u8>)>> {
        let mut candidates: Vec<_> = self
            .line
            .iter()
            .filter(|found| found.lorebook.is_some() && found.kind != Kind::RECONSTRUCTED)
            .collect();
        candidates.sort_by_key(|found| found.messages.abs_diff(messages));
        for found in candidates {
            if let Some(book) = self.book_of(found)? {
                return Ok(Some(book));
            }
        }
        Ok(None)
    }

    /// The lorebook of a snapshot; `None` if it has none, or that is lost.
    fn book_of(&self, snapshot: &Snapshot) -> Result<Option<(SnapshotId, Vec<u8>)>> {
        let reader = self.store.reader();
        let Some(tree) = unless_lost(Tree::open(&reader, snapshot.tree))? else { return Ok(None) };
        let Some(record) = tree.manifest.file(Role::Lorebook) else { return Ok(None) };
        let book = unless_lost(tree.rebuild(&reader, record))?;
        Ok(book.map(|book| (snapshot.id, book)))
    }
}

/// Whether two lines are one message: it says the same, or it was said by the same one at the same moment, and edited.
fn is_same_message(a: &[u8], b: &[u8]) -> bool {
    let said = |line: &[u8]| {
        let message = st::Message::read(line)?;
        Some((message.name()?, st::send_millis(message.send_date()?)?))
    };
    Identity::of(a) == Identity::of(b) || said(a).is_some() && said(a) == said(b)
}

/// Whether a message ends a scene and has a note of the lorebook.
fn has_note(line: &[u8]) -> bool {
    scene(line).is_some_and(|scene| scene.is_break() && !scene.all_entries().is_empty())
}

/// Where a scene does not say when it was noted.
const SOME_MOMENT: i64 = 1_700_000_000_000;

/// The header bound to the book, if it was bound to none.
fn bind(header: Vec<u8>, unbound: bool, book: Option<&BoundBook>) -> Vec<u8> {
    let (Some(book), true) = (book, unbound) else { return header };
    let Some(metadata) = Raw::parse(&header).and_then(|header| header.get("chat_metadata")) else {
        return header;
    };
    let mut edits = st::Edits::new(&header);
    let name = serde_json::to_string(&book.name).unwrap_or_default();
    edits.set(metadata, "world_info", &name);
    edits.apply()
}

/// There is no such message.
pub(crate) fn message_not_found(timeline: &TimelineName, messages: usize, at: usize) -> Finding {
    let last = match messages.checked_sub(1) {
        Some(last) => format!("its last one is {last}"),
        None => "it has no messages".into(),
    };
    let message = format!("Message not found: {timeline} has no message {at}; {last}");
    Finding::new(Code::MessageNotFound, Level::Error, timeline.as_str(), message)
}

fn not_known(timeline: &TimelineName, at: usize, breaks: &[(usize, Scene<'_>)]) -> Finding {
    let scenes = match breaks {
        [] => "no message up to it ends a scene".to_owned(),
        [(only, _)] => {
            format!("message {only}, which ends a scene, has no note of the lorebook's entries")
        }
        [.., (last, _)] => format!(
            "none of the {} messages that end a scene, the last being {last}, has a note of the lorebook's entries",
            breaks.len()
        ),
    };
    let message = format!(
        "what its lorebook was like at message {at} is not known: no snapshot was taken there, and {scenes}"
    );
    Finding::new(Code::LorebookThenUnknown, Level::Error, timeline.as_str(), message).remedy(
        "`stvc restore … --at N --only chat` with `--to` or `--overwrite` brings the messages back without a lorebook; `stvc snapshot … --at N` takes them with the lorebook of now, and that can be restored with `--as`",
    )
}

fn stale(timeline: &TimelineName, later: usize, noted: usize) -> Finding {
    let message = format!(
        "the scene that ends at message {later} has no note of the lorebook; the note at message {noted} was taken, so entries made between them are missing"
    );
    Finding::new(Code::NoteMissing, Level::Warning, timeline.as_str(), message)
}

/// Gaps are no damage: entries were deleted. They are said because other tools would have renumbered them.
fn gaps(timeline: &TimelineName, entries: &[EntryOrigin]) -> Option<Finding> {
    let uids: Vec<i64> = entries.iter().filter_map(|entry| entry.uid.parse().ok()).collect();
    let last = *uids.iter().max()?;
    let missing = last.saturating_add(1).saturating_sub(uids.len() as i64);
    (missing > 0).then(|| {
        let message =
            format!("UIDs go up to {last} with {missing} not in use; they were kept as they are");
        Finding::new(Code::UidGaps, Level::Info, timeline.as_str(), message)
    })
}
