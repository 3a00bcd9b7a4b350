//! Is a snapshot sound? The one judge of `check`, `backup`, `import`, `restore` and `show`: what it
//! calls sound can be restored, and what it lets pass can be backed up and taken in elsewhere.
//!
//! It holds the commit against the manifest, the manifest against the shape of the tree (names,
//! modes, order, nothing extra, messages in folders of a hundred), and every rebuilt file against
//! its length and BLAKE3. What could not be looked at (a file that could not be opened just now) is
//! an error and no verdict.

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
use super::layout::{self, Noticed};
use super::manifest::LONGEST_FILE;
use super::problem::{Problem, Problems, Weight};
use super::{
    AttachmentLoss, Blake3, ContentId, Contents, Error, FileRecord, LossCause, Manifest, Result,
    Role, Snapshot, Tree,
};
use crate::store::{Mode, ObjectId, Reader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Sound,
    /// Complete, but of a later format.
    Newer {
        format: u64,
    },
    /// Something is wrong with it; [`Problems::worst`] says how bad that is.
    Unsound(Problems),
}

impl Verdict {
    fn of(problems: Problems) -> Self {
        if problems.is_empty() { Verdict::Sound } else { Verdict::Unsound(problems) }
    }

    /// Returns the attachments that cannot be restored. They prevent nothing else.
    pub fn lost_attachments(&self) -> &[AttachmentLoss] {
        match self {
            Verdict::Unsound(problems) => problems.lost_attachments(),
            Verdict::Sound | Verdict::Newer { .. } => &[],
        }
    }

    /// Whether something is so wrong with it that its files cannot be brought back.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Verdict::Unsound(problems) if problems.is_fatal())
    }

    pub fn can_be_mended(&self) -> bool {
        let is_lost = |loss: &AttachmentLoss| loss.cause == LossCause::Lost;
        self.is_damaged() || self.lost_attachments().iter().any(is_lost)
    }

    pub fn can_be_restored(&self) -> bool {
        !self.is_damaged() && !matches!(self, Verdict::Newer { .. })
    }

    pub fn may_be_taken_in(&self) -> bool {
        match self {
            Verdict::Sound | Verdict::Newer { .. } => true,
            Verdict::Unsound(problems) => problems.worst() <= Some(Weight::Flaw),
        }
    }

    pub(super) fn and(self, problem: Option<Problem>) -> Self {
        let Some(problem) = problem else { return self };
        let mut problems = match self {
            Verdict::Unsound(problems) => problems,
            Verdict::Sound | Verdict::Newer { .. } => Problems::default(),
        };
        problems.push(problem);
        Verdict::of(problems)
    }
}

/// Judges snapshots. Shared parts are read once; memory is bounded by one file.
pub struct Validator {
    reader: Reader,
    trees: HashMap<ObjectId, Rc<Judged>>,
    chats: Chats,
    books: Books,
    attachments: Verified,
    wholes: Wholes,
}

enum Judged {
    Newer(u64),
    Known {
        /// `None` if the manifest cannot be read.
        says: Option<Says>,
        problems: Problems,
    },
}

struct Says {
    timeline: String,
    content: ContentId,
    lorebook: Option<String>,
    messages: u64,
}

impl Says {
    /// `messages`: how many there are, if they could be counted.
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
        Self {
            reader,
            trees: HashMap::new(),
            chats: Chats::default(),
            books: Books::default(),
            attachments: Verified::default(),
            wholes: Wholes::default(),
        }
    }

    /// Judges a snapshot. An error means that it could not be read just now.
    pub fn judge(&mut self, snapshot: &Snapshot) -> Result<Verdict> {
        let judged = match self.trees.get(&snapshot.tree) {
            Some(judged) => Rc::clone(judged),
            None => {
                let judged = Rc::new(self.judge_tree(snapshot.tree)?);
                self.trees.insert(snapshot.tree, Rc::clone(&judged));
                judged
            }
        };
        Ok(match &*judged {
            Judged::Newer(format) => Verdict::Newer { format: *format },
            Judged::Known { says, problems } => {
                let mut problems = problems.clone();
                if let Some(says) = says {
                    says.compare(snapshot, &mut problems);
                }
                Verdict::of(problems)
            }
        })
    }

    fn judge_tree(&mut self, tree: ObjectId) -> Result<Judged> {
        let mut noticed = Noticed::default();
        let says = match self.read_tree(tree, &mut noticed) {
            Err(Error::NewerFormat { found, .. }) => {
                return Ok(match self.wholes.below(&self.reader, tree, Mode::Folder)? {
                    None => Judged::Newer(found),
                    Some(problem) => {
                        let mut problems = Problems::default();
                        problems.push(problem);
                        Judged::Known { says: None, problems }
                    }
                });
            }
            read => needed(read, &mut noticed.problems)?.flatten(),
        };
        self.wholes.look_at_extra(&self.reader, &mut noticed)?;
        Ok(Judged::Known { says, problems: noticed.problems })
    }

    /// Judges a tree by itself. None: it has no manifest that says anything.
    fn read_tree(&mut self, tree: ObjectId, noticed: &mut Noticed) -> Result<Option<Says>> {
        let root = layout::root(&self.reader, tree, noticed)?;
        let Some(manifest) = root.manifest else {
            noticed.problems.push(Problem::NoManifest);
            return Ok(None);
        };
        let manifest = match Manifest::decode(tree, &self.reader.blob(manifest)?) {
            Ok(manifest) => manifest,
            Err(Error::Incomplete { why, .. }) => {
                noticed.problems.push(Problem::Broken { why });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        noticed.problems.extend(&manifest.problems());
        let record = |role| manifest.file(role);
        let mut messages = None;
        let part = noticed.part("chat", Mode::Folder, record(Role::Chat), root.chat);
        if let Some((record, chat)) = part {
            messages = self.judge_chat(&manifest, record, chat, noticed)?;
        }
        let part = noticed.part("lorebooks", Mode::Folder, record(Role::Lorebook), root.books);
        if let Some((record, books)) = part {
            self.judge_book(record, books, noticed)?;
        }
        let part = noticed.part("group.json", Mode::File, record(Role::Group), root.group);
        if let Some((record, group)) = part {
            let read = self.judge_blob(record, group, noticed);
            needed(read, &mut noticed.problems)?;
        }
        let part = noticed.part("card", Mode::Folder, record(Role::Card), root.card);
        if let Some((record, card)) = part {
            let read = self.judge_card(record, card, noticed);
            needed(read, &mut noticed.problems)?;
        }
        let part = noticed.part("file", Mode::Folder, record(Role::File), root.file);
        if let Some((record, folder)) = part {
            let read = self.judge_file(record, folder, noticed);
            needed(read, &mut noticed.problems)?;
        }
        self.judge_attachments(&manifest, root.attachments, noticed)?;
        Ok(Some(Says::of(&manifest, messages)))
    }

    fn judge_chat(
        &mut self,
        manifest: &Manifest,
        record: &FileRecord,
        chat: ObjectId,
        noticed: &mut Noticed,
    ) -> Result<Option<u64>> {
        let chat = ChatTree { id: chat, is_group: manifest.is_group() };
        let facts = self.chats.read(&self.reader, chat, longest(record))?;
        noticed.extend(&facts.noticed);
        compare(record, facts.whole, &mut noticed.problems);
        if facts.whole.is_none() {
            return Ok(None);
        }
        count("manifest", manifest.messages, facts.messages, &mut noticed.problems);
        Ok(Some(facts.messages))
    }

    fn judge_book(
        &mut self,
        record: &FileRecord,
        books: ObjectId,
        noticed: &mut Noticed,
    ) -> Result<()> {
        let found = layout::lorebook(&self.reader, books, record.name.as_deref(), noticed);
        let Some((name, folder)) = needed(found, &mut noticed.problems)?.flatten() else {
            noticed.missing("lorebooks");
            return Ok(());
        };
        let facts = self.books.read(&self.reader, &name, folder, longest(record))?;
        noticed.extend(&facts.noticed);
        compare(record, facts.whole, &mut noticed.problems);
        Ok(())
    }

    fn judge_blob(&self, record: &FileRecord, blob: ObjectId, noticed: &mut Noticed) -> Result<()> {
        let bytes = self.reader.blob(blob)?;
        let whole = (bytes.len() as u64, Blake3::of(&bytes));
        compare(record, Some(whole), &mut noticed.problems);
        Ok(())
    }

    fn judge_card(&self, record: &FileRecord, card: ObjectId, noticed: &mut Noticed) -> Result<()> {
        let Some(stored) = StoredCard::read(&self.reader, card, noticed)? else { return Ok(()) };
        let whole = match stored.fill(&self.reader, longest(record), noticed)? {
            Filled::Bytes(bytes) => Some((bytes.len() as u64, Blake3::of(&bytes))),
            Filled::TooLong => None,
            Filled::Bad(why) => {
                noticed.problems.push(Problem::Broken { why });
                None
            }
        };
        compare(record, whole, &mut noticed.problems);
        Ok(())
    }

    fn judge_attachments(
        &mut self,
        manifest: &Manifest,
        folder: Option<ObjectId>,
        noticed: &mut Noticed,
    ) -> Result<()> {
        match (&manifest.attachments, folder) {
            (Some(record), Some(folder)) => {
                for attachment in attachment_tree::read(&self.reader, folder, record, noticed)? {
                    let loss = self.attachments.loss(&self.reader, &attachment)?;
                    loss.into_iter().for_each(|loss| noticed.problems.lose_attachment(loss));
                }
                self.judge_kinds(noticed)?;
            }
            (Some(_), None) => noticed.problems.lose_attachment(attachment_tree::no_folder()),
            (None, Some(folder)) => noticed.extra("attachments", folder, Mode::Folder),
            (None, None) => {}
        }
        Ok(())
    }

    /// Notes objects of another kind than the tree of attachments says: no copy could hold both, so
    /// no other store may accept it.
    fn judge_kinds(&self, noticed: &mut Noticed) -> Result<()> {
        let lost = noticed.problems.lost_attachments().iter().filter_map(|loss| loss.object);
        for (id, kind) in lost.collect::<Vec<_>>() {
            if let Some(found) = self.reader.kind(id)?.filter(|found| *found != kind) {
                let why = format!("object {id} is a {found} where a {kind} belongs");
                noticed.problems.push(Problem::Lacks { why });
            }
        }
        Ok(())
    }

    fn judge_file(
        &self,
        record: &FileRecord,
        folder: ObjectId,
        noticed: &mut Noticed,
    ) -> Result<()> {
        match layout::plain_file(&self.reader, folder, &record.plain_file(), noticed)? {
            Some(file) => self.judge_blob(record, file, noticed),
            None => Ok(()),
        }
    }
}

/// Returns how much of a file is read: a longer one is wrong anyway.
fn longest(record: &FileRecord) -> u64 {
    if record.bytes > LONGEST_FILE { 0 } else { record.bytes }
}

/// Compares a file with its record. One that could not be rebuilt without a noted reason is too
/// long.
fn compare(record: &FileRecord, whole: Option<(u64, Blake3)>, problems: &mut Problems) {
    let same = whole.is_some_and(|whole| whole == (record.bytes, record.blake3));
    let is_told = whole.is_none() && (problems.is_fatal() || record.bytes > LONGEST_FILE);
    if !same && !is_told {
        problems.push(Problem::Differs { path: record.path.clone() });
    }
}

pub struct Rebuilt {
    pub contents: Contents,
    /// None of them is fatal.
    pub problems: Problems,
}

/// Rebuilds a snapshot's files; fails if a [`Validator`] would say that they cannot be restored.
pub fn rebuild(reader: &Reader, snapshot: &Snapshot) -> Result<Rebuilt> {
    let tree = Tree::open(reader, snapshot.tree)?;
    let (contents, mut noticed) = tree.materialise_and_notice(reader)?;
    Wholes::default().look_at_extra(reader, &mut noticed)?;
    let mut problems = noticed.problems;
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
    Says::of(&contents.manifest, Some(messages)).compare(snapshot, &mut problems);
    if problems.is_fatal() {
        return Err(Error::Unsound { id: snapshot.id, problems: Box::new(problems) });
    }
    Ok(Rebuilt { contents, problems })
}
