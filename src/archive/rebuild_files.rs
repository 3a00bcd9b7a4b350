//! Rebuilds the files of a snapshot from its tree, byte for byte.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cut_file::{Filled, StoredCard};
use super::layout::{self, CutFile, Layout, LayoutNotes};
use super::manifest::{FileRecord, Manifest};
use super::problem::Problem;
use super::{Attachment, Error, Result, Role, Snapshot, attachment_tree};
use crate::parallel::{cores, in_parts};
use crate::st::{self, BoundBook, FileAt, LibraryPath, TimelineFiles, TimelineName};
use crate::store::{Kind, Mode, ObjectId, Reader};

/// Manifest of a snapshot, and the object ids in its tree. Messages and other contents are not read
/// yet.
pub struct Tree {
    pub id: ObjectId,
    pub manifest: Manifest,
    noticed: LayoutNotes,
    header: Option<ObjectId>,
    messages: Vec<ObjectId>,
    book: Option<CutFile>,
    pub group: Option<ObjectId>,
    card: Option<StoredCard>,
    file: Option<ObjectId>,
    pub attachments: Vec<Attachment>,
}

fn lines(layout: &mut Layout<'_>, chat: ObjectId) -> Result<(Option<ObjectId>, Vec<ObjectId>)> {
    let found = layout.chat(chat)?;
    let mut messages = Vec::new();
    if let Some(folders) = found.folder {
        for (number, folder) in layout.folders(folders)? {
            messages.extend(layout.messages(number, folder)?);
        }
    }
    Ok((found.file, layout::in_order(messages, &mut layout.notes.problems)))
}

/// Trust in the objects of a chat while the chat is rebuilt.
#[derive(Clone, Copy)]
enum HashCheck {
    /// Objects are not trusted: each message is hashed when it is read.
    Nothing,
    /// Messages are not hashed, because the caller checks the hash of the complete chat.
    Whole,
}

#[derive(Clone)]
pub struct Contents {
    pub manifest: Manifest,
    pub files: TimelineFiles,
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

    /// Returns role, path and bytes of every file, beginning with the timeline's own file.
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
    /// Reads the trees and the manifest, but no messages. Fails only if a problem prevents
    /// rebuilding; [`rebuild`](super::rebuild) reports all other problems.
    pub fn open(reader: &Reader, id: ObjectId) -> Result<Self> {
        let mut layout = Layout::new(reader);
        let root = layout.root(id)?;
        let incomplete =
            |problem: &Problem| Error::Incomplete { tree: id, why: problem.to_string() };
        let Some(manifest) = root.manifest else {
            return Err(incomplete(&Problem::NoManifest));
        };
        let manifest = Manifest::decode(id, &reader.blob(manifest)?)?;
        layout.notes.problems.extend(&manifest.problems());

        let record = |role| manifest.file(role);
        let (mut header, mut messages) = (None, Vec::new());
        let part = layout.notes.part("chat", Mode::Folder, record(Role::Chat), root.chat);
        if let Some((_, chat)) = part {
            (header, messages) = lines(&mut layout, chat)?;
        }
        let (mut card, mut file, mut book) = (None, None, None);
        let part = layout.notes.part("card", Mode::Folder, record(Role::Card), root.card);
        if let Some((_, folder)) = part {
            card = StoredCard::read(&mut layout, folder)?;
        }
        let part = layout.notes.part("file", Mode::Folder, record(Role::File), root.file);
        if let Some((record, folder)) = part {
            file = layout.plain_file(folder, &record.plain_file())?;
        }
        let part = layout.notes.part("lorebooks", Mode::Folder, record(Role::Lorebook), root.books);
        if let Some((record, books)) = part {
            match layout.lorebook(books, record.name.as_deref())? {
                Some((name, folder)) => {
                    book = layout.cut_file(folder, &format!("lorebooks/{name}/"), layout::BOOK)?;
                }
                None => layout.notes.missing("lorebooks"),
            }
        }
        let part = layout.notes.part("group.json", Mode::File, record(Role::Group), root.group);
        let group = part.map(|(_, group)| group);
        let record = manifest.attachments.as_ref();
        let attachments = attachment_tree::read(&mut layout, root.attachments, record)?;
        let problems = &layout.notes.problems;
        if let Some(worst) = problems.list().first().filter(|_| problems.is_fatal()) {
            return Err(incomplete(worst));
        }
        let noticed = layout.notes;
        Ok(Self { id, manifest, noticed, header, messages, book, group, card, file, attachments })
    }

    pub fn attachments_of(reader: &Reader, id: ObjectId) -> Result<Vec<Attachment>> {
        let mut layout = Layout::new(reader);
        let root = layout.root(id)?;
        let (Some(_), Some(manifest)) = (root.attachments, root.manifest) else {
            return Ok(Vec::new());
        };
        let record = Manifest::decode(id, &reader.blob(manifest)?)?.attachments;
        attachment_tree::read(&mut layout, root.attachments, record.as_ref())
    }

    pub fn messages(&self) -> &[ObjectId] {
        &self.messages
    }

    pub fn header(&self) -> Option<ObjectId> {
        self.header
    }

    pub fn materialise(&self, reader: &Reader) -> Result<Contents> {
        Ok(self.materialise_and_notice(reader)?.0)
    }

    /// Rebuilds the files. Also returns the problems that do not prevent rebuilding.
    pub(super) fn materialise_and_notice(
        &self,
        reader: &Reader,
    ) -> Result<(Contents, LayoutNotes)> {
        self.materialise_part(reader, 0..self.messages.len())
    }

    /// Rebuilds the files, but of the messages reads only those in `read`. In place of each other
    /// message, the chat has the id of the message's object.
    pub(super) fn materialise_part(
        &self,
        reader: &Reader,
        read: Range<usize>,
    ) -> Result<(Contents, LayoutNotes)> {
        let mut layout = Layout { reader, notes: self.noticed.clone() };
        let timeline = TimelineName::parse(&self.manifest.timeline);
        let timeline = timeline.map_err(|error| self.incomplete(&error.to_string()))?;
        let mut files = TimelineFiles::alone(&timeline, Vec::new());
        for record in &self.manifest.files {
            let bytes = match record.role {
                Role::Chat if read != (0..self.messages.len()) => {
                    self.rebuild_part_of_chat(reader, record, read.clone())?
                }
                _ => self.rebuild_and_notice(&mut layout, record)?,
            };
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
            // The snapshot does not contain the lorebook, but the chat may name one.
            let bound = st::bound_lorebook(&files.split(), &timeline, files.group_bytes());
            files.lorebook = bound.map(|name| {
                let path = st::lorebook_path(&name);
                BoundBook { name, path, bytes: None, unread: None }
            });
        }
        let attachments = self.attachments.clone();
        Ok((Contents { manifest: self.manifest.clone(), files, attachments }, layout.notes))
    }

    pub fn rebuild(&self, reader: &Reader, record: &FileRecord) -> Result<Vec<u8>> {
        self.rebuild_and_notice(&mut Layout::new(reader), record)
    }

    fn rebuild_and_notice(&self, layout: &mut Layout<'_>, record: &FileRecord) -> Result<Vec<u8>> {
        let reader = layout.reader;
        if record.role == Role::Chat {
            // The hash of the file covers all messages. Each message is hashed only if the file is
            // wrong, to find the damaged message.
            let quick = self.rebuild_chat(reader, record, HashCheck::Whole);
            if let Some(bytes) = quick.ok().filter(|bytes| record.is_of(bytes)) {
                return Ok(bytes);
            }
        }
        let blob = |id: Option<ObjectId>, part: &str| -> Result<Filled> {
            Ok(Filled::Bytes(reader.blob(id.ok_or_else(|| self.incomplete(part))?)?))
        };
        let filled = match record.role {
            Role::Chat => Filled::Bytes(self.rebuild_chat(reader, record, HashCheck::Nothing)?),
            Role::Lorebook => {
                let book = self.book.as_ref();
                let book = book.ok_or_else(|| self.incomplete("it has no lorebook"))?;
                book.fill_book(layout, record.bytes, |id| reader.blob(id))?
            }
            Role::Card => {
                let card = self.card.as_ref().ok_or_else(|| self.incomplete("it has no card"))?;
                card.fill(layout, record.bytes)?
            }
            Role::Group => blob(self.group, "it has no group.json")?,
            Role::File => blob(self.file, "it has no file")?,
        };
        match filled {
            Filled::Bytes(bytes) if record.is_of(&bytes) => Ok(bytes),
            Filled::Bytes(_) | Filled::TooLong => Err(self.differs(record)),
            Filled::Bad(why) => Err(self.incomplete(&why)),
        }
    }

    fn rebuild_chat(
        &self,
        reader: &Reader,
        record: &FileRecord,
        trust: HashCheck,
    ) -> Result<Vec<u8>> {
        // If the length in the manifest exceeds the available memory, fail before anything is read.
        let promised = usize::try_from(record.bytes).unwrap_or(usize::MAX);
        if Vec::<u8>::new().try_reserve_exact(promised).is_err() {
            return Err(self.incomplete("its chat is larger than the available memory"));
        }
        let lines: Vec<ObjectId> = self.header.iter().chain(&self.messages).copied().collect();
        // Each line takes its length and one byte for a line feed; 1 is added because the last line
        // has no line feed. The limit prevents a forged chat that repeats one large message from
        // exhausting memory.
        let room = AtomicU64::new(record.bytes.saturating_add(1));
        let take = |line: &[u8]| self.take_room(&room, line, record);
        let mut parts = read_lines(reader, &lines, promised, trust, &take)?.into_iter();
        let mut chat = parts.next().unwrap_or_default();
        for part in parts {
            chat.push(b'\n');
            chat.extend_from_slice(&part);
        }
        Ok(chat)
    }

    fn rebuild_part_of_chat(
        &self,
        reader: &Reader,
        record: &FileRecord,
        read: Range<usize>,
    ) -> Result<Vec<u8>> {
        let room = AtomicU64::new(record.bytes.saturating_add(1));
        let mut chat = Vec::new();
        let mut buffer = Vec::new();
        if let Some(header) = self.header {
            let line = reader.read(header, Kind::Blob, &mut buffer)?;
            self.take_room(&room, line, record)?;
            chat.extend_from_slice(line);
        }
        for (n, id) in self.messages.iter().enumerate() {
            if self.header.is_some() || n > 0 {
                chat.push(b'\n');
            }
            if read.contains(&n) {
                let line = reader.read(*id, Kind::Blob, &mut buffer)?;
                self.take_room(&room, line, record)?;
                chat.extend_from_slice(line);
            } else {
                chat.extend_from_slice(id.to_string().as_bytes());
            }
        }
        Ok(chat)
    }

    /// Subtracts the length of a line from the rest of the chat's length.
    fn take_room(&self, room: &AtomicU64, line: &[u8], record: &FileRecord) -> Result<()> {
        let took = line.len() as u64 + 1;
        let left = |room: u64| room.checked_sub(took);
        let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        taken.map(drop).map_err(|_| self.differs(record))
    }

    fn differs(&self, record: &FileRecord) -> Error {
        Error::Differs { tree: self.id, path: record.path.clone() }
    }

    fn incomplete(&self, why: &str) -> Error {
        Error::Incomplete { tree: self.id, why: why.into() }
    }
}

/// Rebuilds two snapshots for a comparison. Messages that both chats have at the start and at the
/// end are not read: in place of such a message, both chats have the id of its object.
pub fn rebuild_pair(reader: &Reader, before: &Snapshot, after: &Snapshot) -> Result<[Contents; 2]> {
    let [old, new] = [Tree::open(reader, before.tree)?, Tree::open(reader, after.tree)?];
    let is_equal = |(a, b): &(&ObjectId, &ObjectId)| a == b;
    let has_headers = old.header.is_some() && new.header.is_some();
    let (mut head, mut tail) = (0, 0);
    // Without a header, the first line of the chat decides whether it is one.
    if has_headers {
        head = old.messages.iter().zip(&new.messages).take_while(is_equal).count();
        let (before, after) = (old.messages[head..].iter(), new.messages[head..].iter());
        tail = before.rev().zip(after.rev()).take_while(is_equal).count();
    }
    let part = |tree: &Tree| -> Result<Contents> {
        Ok(tree.materialise_part(reader, head..tree.messages.len() - tail)?.0)
    };
    Ok([part(&old)?, part(&new)?])
}

/// Reads only the manifest. Two objects are read, however long the chat is.
pub fn read_manifest(reader: &Reader, tree: ObjectId) -> Result<Manifest> {
    let root = Layout::new(reader).root(tree)?;
    let incomplete = || Error::Incomplete { tree, why: Problem::NoManifest.to_string() };
    Manifest::decode(tree, &reader.blob(root.manifest.ok_or_else(incomplete)?)?)
}

pub fn first_message(reader: &Reader, tree: ObjectId) -> Result<Option<ObjectId>> {
    let mut at = tree;
    for name in ["chat", "messages", "000"] {
        match reader.raw_tree(at)?.entries.iter().find(|entry| entry.name == name.as_bytes()) {
            Some(entry) => at = entry.id,
            None => return Ok(None),
        }
    }
    Ok(reader.raw_tree(at)?.entries.first().map(|entry| entry.id))
}

/// Reads a range of lines on each core, and returns the joined lines of each range. The first
/// buffer has capacity for the complete chat, so that the others can be appended without
/// reallocation. Calls `take` for each line, and fails if `take` fails.
fn read_lines(
    reader: &Reader,
    ids: &[ObjectId],
    bytes: usize,
    trust: HashCheck,
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
                HashCheck::Whole => reader.read_unchecked(*id, &mut buffer)?,
                HashCheck::Nothing => reader.read(*id, Kind::Blob, &mut buffer)?,
            };
            take(line)?;
            joined.extend_from_slice(line);
        }
        Ok(joined)
    };
    // Several threads are useful even for few lines, if the lines are long.
    let least = if bytes > LONG { 2 } else { 256 };
    in_parts(ids, least, read).into_iter().collect()
}

/// Chats longer than this number of bytes are read on several cores even if they have few lines.
const LONG: usize = 256 << 10;
