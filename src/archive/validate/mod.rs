//! Validates snapshots for `check`, `backup`, `import`, `restore` and `show`. A snapshot without
//! fatal problems can be restored. A snapshot with neither fatal nor unsafe problems can also be
//! imported into another store.
//!
//! The validator compares the commit with the manifest, the manifest with the tree (names, modes,
//! order, nothing extra, messages in folders of a hundred), and every rebuilt file with its length
//! and BLAKE3. If an object cannot be examined, for example because a pack could not be opened, the
//! validator returns an error and not a verdict.

mod book;
mod chat;
mod needed;
mod whole_objects;

use std::collections::HashMap;
use std::rc::Rc;

use book::Books;
use chat::{ChatTree, Chats};
use needed::needed;
pub(super) use whole_objects::{Wholes, hinders};

use super::attachment_tree::{self, Verified};
use super::cut_file::{Filled, StoredCard};
use super::layout::Layout;
use super::manifest::LONGEST_FILE;
use super::problem::{Problem, Problems, Severity};
use super::{
    AttachmentLoss, Blake3, ContentId, Contents, Error, FileRecord, LossCause, Manifest, Result,
    Role, Snapshot, Tree,
};
use crate::store::{Mode, ObjectId, Reader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    /// All objects exist and are safe, but this version of stvc does not support the format of the
    /// snapshot.
    Newer {
        format: u64,
    },
    /// The snapshot has problems or lost attachments. [`Problems::worst`] returns the severity of
    /// the problems.
    Invalid(Problems),
}

impl Verdict {
    fn of(problems: Problems) -> Self {
        if problems.is_empty() { Verdict::Valid } else { Verdict::Invalid(problems) }
    }

    /// Returns the attachments that cannot be restored. Lost attachments do not affect other files.
    pub fn lost_attachments(&self) -> &[AttachmentLoss] {
        match self {
            Verdict::Invalid(problems) => problems.lost_attachments(),
            Verdict::Valid | Verdict::Newer { .. } => &[],
        }
    }

    /// Returns whether the files of the snapshot cannot be restored.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Verdict::Invalid(problems) if problems.is_fatal())
    }

    pub fn is_repairable(&self) -> bool {
        let is_lost = |loss: &AttachmentLoss| loss.cause == LossCause::Lost;
        self.is_damaged() || self.lost_attachments().iter().any(is_lost)
    }

    pub fn can_be_restored(&self) -> bool {
        !self.is_damaged() && !matches!(self, Verdict::Newer { .. })
    }

    pub fn may_be_taken_in(&self) -> bool {
        match self {
            Verdict::Valid | Verdict::Newer { .. } => true,
            Verdict::Invalid(problems) => problems.worst() <= Some(Severity::Flaw),
        }
    }

    pub(super) fn and(self, problem: Option<Problem>) -> Self {
        let Some(problem) = problem else { return self };
        let mut problems = match self {
            Verdict::Invalid(problems) => problems,
            Verdict::Valid | Verdict::Newer { .. } => Problems::default(),
        };
        problems.push(problem);
        Verdict::of(problems)
    }
}

/// Validates snapshots. Parts that several snapshots share are read only once.
pub struct Validator {
    reader: Reader,
    trees: HashMap<ObjectId, Rc<JudgedSnapshot>>,
    parts: KnownParts,
}

#[derive(Default)]
struct KnownParts {
    chats: Chats,
    books: Books,
    attachments: Verified,
    wholes: Wholes,
}

enum JudgedSnapshot {
    Newer(u64),
    Known {
        /// Facts that the manifest states; `None` if the manifest cannot be read.
        says: Option<RecordedFacts>,
        problems: Problems,
    },
}

struct RecordedFacts {
    timeline: String,
    content: ContentId,
    lorebook: Option<String>,
    messages: u64,
}

impl RecordedFacts {
    /// `messages` is the counted number of messages; if it is `None`, the number in the manifest is
    /// used.
    fn of(manifest: &Manifest, messages: Option<u64>) -> Self {
        Self {
            timeline: manifest.timeline.clone(),
            content: manifest.content,
            lorebook: manifest.bound_book().map(str::to_owned),
            messages: messages.unwrap_or(manifest.messages),
        }
    }

    fn compare(&self, snapshot: &Snapshot, problems: &mut Problems) {
        if snapshot.timeline.as_str() != self.timeline {
            let (commit, manifest) = (snapshot.timeline.clone(), self.timeline.clone());
            problems.push(Problem::OtherTimeline { commit, manifest });
        }
        if self.content != snapshot.content {
            problems.push(Problem::OtherContent);
        }
        if self.lorebook != snapshot.lorebook {
            problems.push(Problem::OtherLorebook);
        }
        count("commit", snapshot.messages, self.messages, problems);
    }
}

fn count(by: &'static str, says: u64, is: u64, problems: &mut Problems) {
    if says != is {
        problems.push(Problem::Count { by, says, is });
    }
}

impl Validator {
    pub fn new(reader: Reader) -> Self {
        Self { reader, trees: HashMap::new(), parts: KnownParts::default() }
    }

    /// Validates a snapshot. Returns an error if the snapshot could not be examined, for example
    /// because a pack could not be opened.
    pub fn judge(&mut self, snapshot: &Snapshot) -> Result<Verdict> {
        let judged = match self.trees.get(&snapshot.tree) {
            Some(judged) => Rc::clone(judged),
            None => {
                let judged = Rc::new(self.parts.judge_tree(&self.reader, snapshot.tree)?);
                self.trees.insert(snapshot.tree, Rc::clone(&judged));
                judged
            }
        };
        Ok(match &*judged {
            JudgedSnapshot::Newer(format) => Verdict::Newer { format: *format },
            JudgedSnapshot::Known { says, problems } => {
                let mut problems = problems.clone();
                if let Some(says) = says {
                    says.compare(snapshot, &mut problems);
                }
                Verdict::of(problems)
            }
        })
    }
}

impl KnownParts {
    fn judge_tree(&mut self, reader: &Reader, tree: ObjectId) -> Result<JudgedSnapshot> {
        let mut layout = Layout::new(reader);
        let says = match self.read_tree(&mut layout, tree) {
            Err(Error::NewerFormat { found, .. }) => {
                return Ok(match self.wholes.below(reader, tree, Mode::Folder)? {
                    None => JudgedSnapshot::Newer(found),
                    Some(problem) => {
                        let mut problems = Problems::default();
                        problems.push(problem);
                        JudgedSnapshot::Known { says: None, problems }
                    }
                });
            }
            read => needed(read, &mut layout.notes.problems)?.flatten(),
        };
        self.wholes.look_at_extra(&mut layout)?;
        Ok(JudgedSnapshot::Known { says, problems: layout.notes.problems })
    }

    /// Validates a tree without its commit. Returns `None` if the tree has no readable manifest.
    fn read_tree(
        &mut self,
        layout: &mut Layout<'_>,
        tree: ObjectId,
    ) -> Result<Option<RecordedFacts>> {
        let root = layout.root(tree)?;
        let Some(manifest) = root.manifest else {
            layout.notes.problems.push(Problem::NoManifest);
            return Ok(None);
        };
        let manifest = match Manifest::decode(tree, &layout.reader.blob(manifest)?) {
            Ok(manifest) => manifest,
            Err(Error::Incomplete { why, .. }) => {
                layout.notes.problems.push(Problem::Broken { why });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        layout.notes.problems.extend(&manifest.problems());
        let record = |role| manifest.file(role);
        let mut messages = None;
        let part = layout.notes.part("chat", Mode::Folder, record(Role::Chat), root.chat);
        if let Some((record, chat)) = part {
            messages = self.judge_chat(layout, &manifest, record, chat)?;
        }
        let part = layout.notes.part("lorebooks", Mode::Folder, record(Role::Lorebook), root.books);
        if let Some((record, books)) = part {
            self.judge_book(layout, record, books)?;
        }
        let part = layout.notes.part("group.json", Mode::File, record(Role::Group), root.group);
        if let Some((record, group)) = part {
            let read = judge_blob(layout, record, group);
            needed(read, &mut layout.notes.problems)?;
        }
        let part = layout.notes.part("card", Mode::Folder, record(Role::Card), root.card);
        if let Some((record, card)) = part {
            let read = judge_card(layout, record, card);
            needed(read, &mut layout.notes.problems)?;
        }
        let part = layout.notes.part("file", Mode::Folder, record(Role::File), root.file);
        if let Some((record, folder)) = part {
            let file = layout.plain_file(folder, &record.plain_file()).map_err(Error::from);
            let read = file.and_then(|file| match file {
                Some(file) => judge_blob(layout, record, file),
                None => Ok(()),
            });
            needed(read, &mut layout.notes.problems)?;
        }
        let record = manifest.attachments.as_ref();
        for attachment in attachment_tree::read(layout, root.attachments, record)? {
            let loss = self.attachments.loss(layout.reader, &attachment)?;
            loss.into_iter().for_each(|loss| layout.notes.problems.lose_attachment(loss));
        }
        judge_kinds(layout)?;
        Ok(Some(RecordedFacts::of(&manifest, messages)))
    }

    fn judge_chat(
        &mut self,
        layout: &mut Layout<'_>,
        manifest: &Manifest,
        record: &FileRecord,
        chat: ObjectId,
    ) -> Result<Option<u64>> {
        let chat = ChatTree { id: chat, is_group: manifest.is_group() };
        let facts = self.chats.read(layout, chat, longest(record))?;
        layout.notes.extend(&facts.noticed);
        compare(record, facts.whole, &mut layout.notes.problems);
        if facts.whole.is_none() {
            return Ok(None);
        }
        count("manifest", manifest.messages, facts.messages, &mut layout.notes.problems);
        Ok(Some(facts.messages))
    }

    fn judge_book(
        &mut self,
        layout: &mut Layout<'_>,
        record: &FileRecord,
        books: ObjectId,
    ) -> Result<()> {
        let found = layout.lorebook(books, record.name.as_deref());
        let Some((name, folder)) = needed(found, &mut layout.notes.problems)?.flatten() else {
            layout.notes.missing("lorebooks");
            return Ok(());
        };
        let facts = self.books.read(layout, &name, folder, longest(record))?;
        layout.notes.extend(&facts.noticed);
        compare(record, facts.whole, &mut layout.notes.problems);
        Ok(())
    }
}

fn judge_blob(layout: &mut Layout<'_>, record: &FileRecord, blob: ObjectId) -> Result<()> {
    let bytes = layout.reader.blob(blob)?;
    let whole = (bytes.len() as u64, Blake3::of(&bytes));
    compare(record, Some(whole), &mut layout.notes.problems);
    Ok(())
}

fn judge_card(layout: &mut Layout<'_>, record: &FileRecord, card: ObjectId) -> Result<()> {
    let Some(stored) = StoredCard::read(layout, card)? else { return Ok(()) };
    let whole = match stored.fill(layout, longest(record))? {
        Filled::Bytes(bytes) => Some((bytes.len() as u64, Blake3::of(&bytes))),
        Filled::TooLong => None,
        Filled::Bad(why) => {
            layout.notes.problems.push(Problem::Broken { why });
            None
        }
    };
    compare(record, whole, &mut layout.notes.problems);
    Ok(())
}

/// Adds an unsafe problem for each lost attachment object that exists as another kind of object
/// than its tree entry states. Every copy of the snapshot would have the same error, so no other
/// store may accept the snapshot.
fn judge_kinds(layout: &mut Layout<'_>) -> Result<()> {
    let lost = layout.notes.problems.lost_attachments().iter().filter_map(|loss| loss.object);
    for (id, kind) in lost.collect::<Vec<_>>() {
        if let Some(found) = layout.reader.kind(id)?.filter(|found| *found != kind) {
            let why = format!("object {id} is a {found} instead of a {kind}");
            layout.notes.problems.push(Problem::Lacks { why });
        }
    }
    Ok(())
}

/// Returns the maximum length to which a file is rebuilt: the length in its record, because a
/// longer file is invalid anyway. Returns 0 if the record exceeds the limit for all files.
fn longest(record: &FileRecord) -> u64 {
    if record.bytes > LONGEST_FILE { 0 } else { record.bytes }
}

/// Compares length and hash of a rebuilt file with its record. `whole` is `None` if the file could
/// not be rebuilt. If no other problem was reported in this case, the file is longer than its
/// record states.
fn compare(record: &FileRecord, whole: Option<(u64, Blake3)>, problems: &mut Problems) {
    let same = whole.is_some_and(|whole| whole == (record.bytes, record.blake3));
    let is_told = whole.is_none() && (problems.is_fatal() || record.bytes > LONGEST_FILE);
    if !same && !is_told {
        problems.push(Problem::Differs { path: record.path.clone() });
    }
}

pub struct Rebuilt {
    pub contents: Contents,
    /// Problems of the snapshot, none of which is fatal.
    pub problems: Problems,
}

/// Rebuilds the files of a snapshot. Fails if a [`Validator`] would report that the files cannot be
/// restored.
pub fn rebuild(reader: &Reader, snapshot: &Snapshot) -> Result<Rebuilt> {
    let tree = Tree::open(reader, snapshot.tree)?;
    let (contents, notes) = tree.materialise_and_notice(reader)?;
    let mut layout = Layout { reader, notes };
    Wholes::default().look_at_extra(&mut layout)?;
    let mut problems = layout.notes.problems;
    let chat = contents.files.split();
    let is_chat = contents.files.timeline.is_chat();
    let split = !is_chat
        || chat.header.is_some() == tree.header().is_some()
            && chat.messages.len() == tree.messages().len();
    if !split {
        problems.push(Problem::NotSplit);
    }
    let messages = chat.message_count() as u64;
    count("manifest", contents.manifest.messages, messages, &mut problems);
    RecordedFacts::of(&contents.manifest, Some(messages)).compare(snapshot, &mut problems);
    if problems.is_fatal() {
        return Err(Error::Invalid { id: snapshot.id, problems: Box::new(problems) });
    }
    Ok(Rebuilt { contents, problems })
}
