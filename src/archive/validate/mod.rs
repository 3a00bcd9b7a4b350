//! Is a snapshot sound? The one judge of `check`, `backup`, `import`, `restore` and `show`: what it calls sound can be restored, and what it lets pass can be
//! backed up and taken in elsewhere.
//!
//! It holds the commit against the manifest, the manifest against the shape of the tree (names, modes, order, nothing extra, messages in folders of a hundred),
//! and every rebuilt file against its length and BLAKE3. What could not be looked at (a file that could not be opened just now) is an error and no
//! verdict.

mod book;
mod chat;
mod needed;
mod rebuilt;
mod whole_objects;

use std::collections::HashMap;
use std::rc::Rc;

use book::Books;
use chat::Chats;
pub use rebuilt::{Rebuilt, rebuild};
pub(super) use whole_objects::{Wholes, hinders};

use super::attachment_tree::{self, Verified};
use super::card::StoredCard;
use super::cut_file::Filled;
use super::layout::{self, Noticed};
use super::manifest::LONGEST_FILE;
use super::problem::{Problem, Problems, Weight};
use super::{
    AttachmentLoss, Blake3, ContentId, Error, FileRecord, LossCause, Manifest, Result, Role,
    Snapshot,
};
use crate::store::{Mode, ObjectId, Reader};
use needed::needed;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of it is as it should be, and its files come back byte for byte.
    Sound,
    /// Its manifest is of a later format than this program knows. All of it is there; what it means, a later program knows.
    Newer { format: u64 },
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

    /// Whether something of it is lost that its files, if they are still what they were, have.
    pub fn can_be_mended(&self) -> bool {
        let is_lost = |loss: &AttachmentLoss| loss.cause == LossCause::Lost;
        self.is_damaged() || self.lost_attachments().iter().any(is_lost)
    }

    /// Whether its files can be brought back by this program.
    pub fn can_be_restored(&self) -> bool {
        !self.is_damaged() && !matches!(self, Verdict::Newer { .. })
    }

    /// Whether another store may take it in.
    pub fn may_be_taken_in(&self) -> bool {
        match self {
            Verdict::Sound | Verdict::Newer { .. } => true,
            Verdict::Unsound(problems) => problems.worst() <= Some(Weight::Flaw),
        }
    }

    /// The same, and this is wrong, too.
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

/// Judges snapshots, one after the other. What they share is read once, and memory is bounded by one file.
pub struct Validator {
    reader: Reader,
    /// Several snapshots may have one tree.
    trees: HashMap<ObjectId, Rc<Judged>>,
    chats: Chats,
    books: Books,
    attachments: Verified,
    wholes: Wholes,
}

enum Judged {
    Newer(u64),
    Known {
        /// What the manifest says; none if it cannot be read.
        says: Option<Says>,
        problems: Problems,
    },
}

/// What a manifest says that its commit repeats.
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

    /// Hold it against the commit.
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

    /// Judge a snapshot. An error says that it could not be looked at, not that anything is wrong with it.
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

    /// Judge a tree by itself. None: it has no manifest that says anything.
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

    /// How many messages there are, if they could be counted.
    fn judge_chat(
        &mut self,
        manifest: &Manifest,
        record: &FileRecord,
        chat: ObjectId,
        noticed: &mut Noticed,
    ) -> Result<Option<u64>> {
        let facts = self.chats.read(&self.reader, chat, manifest.is_group(), longest(record))?;
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

    /// Holds a file that is stored as it is against its record.
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

    /// Notes objects that the tree of attachments takes for a file or folder and that are something else: no copy could hold
    /// both, so no other store may take that in.
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

/// As much as is read of a file: what is longer than its record says is wrong anyway, and one that may not be so long is not looked at.
fn longest(record: &FileRecord) -> u64 {
    if record.bytes > LONGEST_FILE { 0 } else { record.bytes }
}

/// Hold a rebuilt file against its record. One that could not be rebuilt, and of which nothing is said yet, is longer than it should be.
fn compare(record: &FileRecord, whole: Option<(u64, Blake3)>, problems: &mut Problems) {
    let same = whole.is_some_and(|whole| whole == (record.bytes, record.blake3));
    let is_told = whole.is_none() && (problems.is_fatal() || record.bytes > LONGEST_FILE);
    if !same && !is_told {
        problems.push(Problem::Differs { path: record.path.clone() });
    }
}
