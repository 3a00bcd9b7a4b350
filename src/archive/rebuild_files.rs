//! From a tree back to the files, byte for byte; and to their parts, for those who compare.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use super::card::{Filled, StoredCard};
use super::layout::{self, Noticed};
use super::manifest::{FileRecord, Manifest};
use super::part_names::entry_file;
use super::problem::Problem;
use super::{Attachment, Error, Result, Role, attachment_tree};
use crate::parallel::{cores, in_parts};
use crate::st::{self, BoundBook, FileAt, LibraryPath, TimelineFiles, TimelineName};
use crate::store::{Kind, Mode, ObjectId, Reader};

/// A snapshot's tree with its manifest: what is where, before any message is read.
pub struct Tree {
    pub id: ObjectId,
    pub manifest: Manifest,
    noticed: Noticed,
    header: Option<ObjectId>,
    messages: Vec<ObjectId>,
    book: Option<StoredBook>,
    group: Option<ObjectId>,
    card: Option<StoredCard>,
    file: Option<ObjectId>,
    attachments: Vec<Attachment>,
}

pub struct StoredBook {
    name: String,
    /// The file with its entries cut out.
    pub book: ObjectId,
    /// File name to entry; empty for a book that was stored whole.
    pub entries: HashMap<String, ObjectId>,
}

impl StoredBook {
    /// The entry with this (decoded) key.
    pub fn entry(&self, key: &[u8]) -> Option<ObjectId> {
        self.entries.get(&entry_file(key)).copied()
    }

    fn read(
        reader: &Reader,
        books: ObjectId,
        name: Option<&str>,
        noticed: &mut Noticed,
    ) -> Result<Option<Self>> {
        let Some((name, folder)) = layout::lorebook(reader, books, name, noticed)? else {
            return Ok(None);
        };
        let (Some(book), entries) = layout::book(reader, &name, folder, noticed)? else {
            return Ok(None);
        };
        let entries = match entries {
            Some(entries) => layout::entries(reader, &name, entries, noticed)?,
            None => HashMap::new(),
        };
        Ok(Some(Self { name, book, entries }))
    }

    /// Note the entries that the book does not name.
    fn note_unused(&self, reader: &Reader, noticed: &mut Noticed) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut used = HashSet::new();
        let name = |key: &[u8]| {
            used.insert(entry_file(key));
            Some([])
        };
        // A book that cannot be filled is no book; here it was.
        let _ = st::fill(&reader.blob(self.book)?, name);
        for (file, id) in self.entries.iter().filter(|(file, _)| !used.contains(*file)) {
            noticed.unused_entry(&self.name, file, *id);
        }
        Ok(())
    }
}

/// The objects of a chat's header and of the lines after it.
fn lines(
    reader: &Reader,
    chat: ObjectId,
    noticed: &mut Noticed,
) -> Result<(Option<ObjectId>, Vec<ObjectId>)> {
    let (header, folders) = layout::chat(reader, chat, noticed)?;
    let mut messages = Vec::new();
    if let Some(folders) = folders {
        for (number, folder) in layout::folders(reader, folders, noticed)? {
            messages.extend(layout::messages(reader, number, folder, noticed)?);
        }
    }
    Ok((header, layout::in_order(messages, &mut noticed.problems)))
}

/// What is hashed while a chat is rebuilt.
#[derive(Clone, Copy)]
enum Trust {
    /// Each message.
    Nothing,
    /// The caller hashes the whole.
    Whole,
}

#[derive(Clone)]
pub struct Contents {
    /// The manifest they were checked against.
    pub manifest: Manifest,
    pub files: TimelineFiles,
    /// The files that the chat names, not read yet.
    pub attachments: Vec<Attachment>,
}

impl Contents {
    pub fn bytes(&self, role: Role) -> Option<&[u8]> {
        match role {
            Role::Lorebook => self.files.book_bytes(),
            Role::Group => self.files.group_bytes(),
            Role::Chat | Role::Card | Role::File => {
                (role == self.manifest.main_role()).then_some(&self.files.main.bytes)
            }
        }
    }

    /// Every file that is there, the timeline's own first: what it is, its place and its bytes.
    pub fn parts(&self) -> impl Iterator<Item = (Role, &LibraryPath, &[u8])> {
        let files = &self.files;
        let book = files.book().filter(|book| *book.path != files.main.path);
        let book = book.map(|book| (Role::Lorebook, book.path, book.bytes));
        let group = files.group.as_ref();
        let group = group.map(|group| (Role::Group, &group.path, group.bytes.as_slice()));
        let main = (self.manifest.main_role(), &files.main.path, files.main.bytes.as_slice());
        [Some(main), book, group].into_iter().flatten()
    }
}

impl Tree {
    /// Read the trees and the manifest of a snapshot; no message yet. Only what its files need must be there and in its place; what else is odd
    /// about it, [`rebuild`](super::rebuild) tells.
    pub fn open(reader: &Reader, id: ObjectId) -> Result<Self> {
        let mut noticed = Noticed::default();
        let root = layout::root(reader, id, &mut noticed)?;
        let incomplete =
            |problem: &Problem| Error::Incomplete { tree: id, why: problem.to_string() };
        let Some(manifest) = root.manifest else {
            return Err(incomplete(&Problem::NoManifest));
        };
        let manifest = Manifest::decode(id, &reader.blob(manifest)?)?;
        noticed.problems.extend(&manifest.problems());

        let (mut header, mut messages) = (None, Vec::new());
        let main = manifest.main_role();
        match (root.chat, main) {
            (Some(chat), Role::Chat) => (header, messages) = lines(reader, chat, &mut noticed)?,
            (None, Role::Chat) => noticed.problems.push(Problem::NoPart { path: "chat".into() }),
            (Some(chat), _) => noticed.extra("chat", chat, Mode::Folder),
            (None, _) => {}
        }
        let mut card = None;
        match (root.card, main) {
            (Some(folder), Role::Card) => card = StoredCard::read(reader, folder, &mut noticed)?,
            (None, Role::Card) => noticed.problems.push(Problem::NoPart { path: "card".into() }),
            (Some(folder), _) => noticed.extra("card", folder, Mode::Folder),
            (None, _) => {}
        }
        let mut file = None;
        match (root.file, manifest.file(Role::File)) {
            (Some(folder), Some(record)) => {
                file = layout::plain_file(reader, folder, &record.plain_file(), &mut noticed)?;
                if file.is_none() {
                    noticed.problems.push(Problem::NoPart { path: "file".into() });
                }
            }
            (None, Some(_)) => noticed.problems.push(Problem::NoPart { path: "file".into() }),
            (Some(folder), None) => noticed.extra("file", folder, Mode::Folder),
            (None, None) => {}
        }
        let record = manifest.file(Role::Lorebook);
        let book = match (record, root.books) {
            (Some(record), Some(books)) => {
                StoredBook::read(reader, books, record.name.as_deref(), &mut noticed)?
            }
            (None, Some(books)) => {
                noticed.extra("lorebooks", books, Mode::Folder);
                None
            }
            (_, None) => None,
        };
        if record.is_some() && book.is_none() {
            noticed.problems.push(Problem::NoPart { path: "lorebooks".into() });
        }
        match (manifest.file(Role::Group), root.group) {
            (Some(_), None) => {
                noticed.problems.push(Problem::NoPart { path: "group.json".into() });
            }
            (None, Some(group)) => noticed.extra("group.json", group, Mode::File),
            _ => {}
        }
        let mut attached = Vec::new();
        match (root.attachments, &manifest.attachments) {
            (Some(folder), Some(record)) => {
                attached = attachment_tree::read(reader, folder, record, &mut noticed)?;
            }
            (None, Some(_)) => noticed.problems.lose_attachment(attachment_tree::no_folder()),
            (Some(folder), None) => noticed.extra("attachments", folder, Mode::Folder),
            (None, None) => {}
        }
        if let Some(worst) = noticed.problems.list().first().filter(|_| noticed.problems.is_fatal())
        {
            return Err(incomplete(worst));
        }
        let (group, attachments) = (root.group, attached);
        Ok(Self { id, manifest, noticed, header, messages, book, group, card, file, attachments })
    }

    /// The attachments of a snapshot, and nothing else of it read.
    pub fn attachments_of(reader: &Reader, id: ObjectId) -> Result<Vec<Attachment>> {
        let mut noticed = Noticed::default();
        let root = layout::root(reader, id, &mut noticed)?;
        let (Some(folder), Some(manifest)) = (root.attachments, root.manifest) else {
            return Ok(Vec::new());
        };
        match Manifest::decode(id, &reader.blob(manifest)?)?.attachments {
            Some(record) => attachment_tree::read(reader, folder, &record, &mut noticed),
            None => Ok(Vec::new()),
        }
    }

    /// What is odd about the manifest and the tree, none of which keeps the files from being rebuilt.
    pub(super) fn noticed(&self, reader: &Reader) -> Result<Noticed> {
        let mut noticed = self.noticed.clone();
        if let Some(book) = &self.book {
            book.note_unused(reader, &mut noticed)?;
        }
        if let Some(card) = &self.card {
            card.fill(reader, u64::MAX, &mut noticed)?;
        }
        Ok(noticed)
    }

    /// The objects of the chat's lines after the header, in order.
    pub fn messages(&self) -> &[ObjectId] {
        &self.messages
    }

    /// The object of the header, if the chat has one.
    pub fn header(&self) -> Option<ObjectId> {
        self.header
    }

    /// The files that the chat names.
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    pub fn group(&self) -> Option<ObjectId> {
        self.group
    }

    pub fn book(&self) -> Option<&StoredBook> {
        self.book.as_ref()
    }

    /// Rebuild every file and hold it against the manifest.
    pub fn materialise(&self, reader: &Reader) -> Result<Contents> {
        let timeline = TimelineName::parse(&self.manifest.timeline);
        let timeline = timeline.map_err(|error| self.incomplete(&error.to_string()))?;
        let mut files = TimelineFiles::alone(&timeline, Vec::new());
        for record in &self.manifest.files {
            let bytes = self.rebuild(reader, record)?;
            let path = record.library_path(&self.manifest.timeline);
            let path = path.map_err(|problem| self.incomplete(&problem.to_string()))?;
            match record.role {
                role if role == self.manifest.main_role() => {
                    files.main = FileAt { path, bytes: bytes.into() }
                }
                Role::Chat | Role::Card | Role::File => {}
                Role::Lorebook => {
                    let name = record.name.clone().unwrap_or_default();
                    files.lorebook = Some(BoundBook::new(name, path, bytes));
                }
                Role::Group => files.group = Some(FileAt { path, bytes: bytes.into() }),
            }
        }
        if files.lorebook.is_none() && timeline.is_chat() {
            // Stored without the book that it names.
            let bound = st::bound_lorebook(&files.split(), &timeline, files.group_bytes());
            files.lorebook = bound.map(|name| {
                let path = st::lorebook_path(&name);
                BoundBook { name, path, bytes: None, unread: None }
            });
        }
        let attachments = self.attachments.clone();
        Ok(Contents { manifest: self.manifest.clone(), files, attachments })
    }

    /// Rebuild one file and hold it against the manifest.
    pub fn rebuild(&self, reader: &Reader, record: &FileRecord) -> Result<Vec<u8>> {
        if record.role == Role::Chat {
            // The hash of the whole covers every message. Only if it is wrong is each one hashed, to name the damaged one.
            let quick = self.rebuild_chat(reader, record, Trust::Whole);
            if let Some(bytes) = quick.ok().filter(|bytes| record.is_of(bytes)) {
                return Ok(bytes);
            }
        }
        let bytes = match record.role {
            Role::Chat => self.rebuild_chat(reader, record, Trust::Nothing)?,
            Role::Lorebook => self.rebuild_book(reader, record)?,
            Role::Group => {
                reader.blob(self.group.ok_or_else(|| self.incomplete("it has no group.json"))?)?
            }
            Role::Card => self.rebuild_card(reader, record)?,
            Role::File => {
                reader.blob(self.file.ok_or_else(|| self.incomplete("it has no file"))?)?
            }
        };
        if record.is_of(&bytes) { Ok(bytes) } else { Err(self.differs(record)) }
    }

    fn rebuild_chat(&self, reader: &Reader, record: &FileRecord, trust: Trust) -> Result<Vec<u8>> {
        // Whoever promises more than the machine has is told so before anything is read.
        let promised = usize::try_from(record.bytes).unwrap_or(usize::MAX);
        if Vec::<u8>::new().try_reserve_exact(promised).is_err() {
            return Err(self.incomplete("there is not so much memory as its chat is long"));
        }
        let lines: Vec<ObjectId> = self.header.iter().chain(&self.messages).copied().collect();
        // Every line takes its length and a line feed, which the last one does not have. A chat that is made of one large message very often
        // must not take all memory.
        let room = AtomicU64::new(record.bytes.saturating_add(1));
        let take = |line: &[u8]| {
            let took = line.len() as u64 + 1;
            let left = |room: u64| room.checked_sub(took);
            match room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
                Ok(_) => Ok(()),
                Err(_) => Err(self.differs(record)),
            }
        };
        let mut parts = read_lines(reader, &lines, promised, trust, &take)?.into_iter();
        let mut chat = parts.next().unwrap_or_default();
        for part in parts {
            chat.push(b'\n');
            chat.extend_from_slice(&part);
        }
        Ok(chat)
    }

    fn rebuild_card(&self, reader: &Reader, record: &FileRecord) -> Result<Vec<u8>> {
        let stored = self.card.as_ref().ok_or_else(|| self.incomplete("it has no card"))?;
        match stored.fill(reader, record.bytes, &mut Noticed::default())? {
            Filled::Bytes(bytes) => Ok(bytes),
            Filled::TooLong => Err(self.differs(record)),
            Filled::Bad(problem) => Err(self.incomplete(&problem.to_string())),
        }
    }

    fn rebuild_book(&self, reader: &Reader, record: &FileRecord) -> Result<Vec<u8>> {
        let stored = self.book.as_ref().ok_or_else(|| self.incomplete("it has no lorebook"))?;
        let book = reader.blob(stored.book)?;
        if stored.entries.is_empty() {
            return Ok(book);
        }
        let mut failed = None;
        // A book that names one large entry very often must not take all memory.
        let mut room = record.bytes;
        let filled = st::fill(&book, |key| {
            let id = stored.entry(key)?;
            let entry = reader.blob(id).map_err(|error| failed = Some(error.into())).ok()?;
            let Some(left) = room.checked_sub(entry.len() as u64) else {
                failed = Some(self.differs(record));
                return None;
            };
            room = left;
            Some(entry)
        });
        match (filled, failed) {
            (_, Some(error)) => Err(error),
            (Err(error), None) => Err(self.incomplete(&error.to_string())),
            (Ok(bytes), None) => Ok(bytes),
        }
    }

    fn differs(&self, record: &FileRecord) -> Error {
        Error::Differs { tree: self.id, path: record.path.clone() }
    }

    fn incomplete(&self, why: &str) -> Error {
        Error::Incomplete { tree: self.id, why: why.into() }
    }
}

/// The manifest alone: two objects, however long the chat is.
pub fn read_manifest(reader: &Reader, tree: ObjectId) -> Result<Manifest> {
    let root = layout::root(reader, tree, &mut Noticed::default())?;
    let incomplete = || Error::Incomplete { tree, why: Problem::NoManifest.to_string() };
    Manifest::decode(tree, &reader.blob(root.manifest.ok_or_else(incomplete)?)?)
}

pub fn first_message(reader: &Reader, tree: ObjectId) -> Result<Option<ObjectId>> {
    let mut at = tree;
    for name in ["chat", "messages", "000"] {
        match reader.tree(at)?.iter().find(|entry| entry.name == name) {
            Some(entry) => at = entry.id,
            None => return Ok(None),
        }
    }
    Ok(reader.tree(at)?.first().map(|entry| entry.id))
}

/// The parts of a chat of so many bytes, each core's stretch of lines joined; the first has room for the others. `take` is asked before a line is put to the others.
fn read_lines(
    reader: &Reader,
    ids: &[ObjectId],
    bytes: usize,
    trust: Trust,
    take: &(dyn Fn(&[u8]) -> Result<()> + Sync),
) -> Result<Vec<Vec<u8>>> {
    let readers = reader.shared();
    let is_first = |part: &[ObjectId]| part.as_ptr() == ids.as_ptr();
    let read = |part: &[ObjectId]| -> Result<Vec<u8>> {
        let reader = readers.reader();
        let room = if is_first(part) { bytes } else { bytes / cores() };
        let mut joined = Vec::with_capacity(room);
        let mut buffer = Vec::new();
        for (n, id) in part.iter().enumerate() {
            if n > 0 {
                joined.push(b'\n');
            }
            let line = match trust {
                Trust::Whole => reader.read_unchecked(*id, &mut buffer)?,
                Trust::Nothing => reader.read(*id, Kind::Blob, &mut buffer)?,
            };
            take(line)?;
            joined.extend_from_slice(line);
        }
        Ok(joined)
    };
    // Few lines are worth a second thread if they are long.
    let least = if bytes > LONG { 2 } else { 256 };
    in_parts(ids, least, read).into_iter().collect()
}

/// A chat that is longer is read by all cores.
const LONG: usize = 256 << 10;
