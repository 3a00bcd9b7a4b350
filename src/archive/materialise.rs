//! From a tree back to the files, byte for byte; and to their parts, for those who compare.

use std::collections::HashMap;

use super::manifest::{FileRecord, Manifest, Role};
use super::write::{entry_file, former_entry_file};
use super::{Blake3, Error, Result};
use crate::parallel::in_parts;
use crate::st::{self, Chat, LibraryPath};
use crate::store::{EntryKind, Kind, ObjectId, Reader, TreeEntry};

/// A snapshot's tree with its manifest: what is where, before any message is read.
pub struct Tree {
    /// The tree's id.
    pub id: ObjectId,
    /// The manifest.
    pub manifest: Manifest,
    header: Option<ObjectId>,
    /// The folders of messages, in order.
    folders: Vec<ObjectId>,
    messages: Vec<ObjectId>,
    book: Option<StoredBook>,
    group: Option<ObjectId>,
}

/// A stored lorebook's objects.
pub struct StoredBook {
    /// The file with its entries cut out.
    pub book: ObjectId,
    /// File name to entry; empty for a book that was stored whole.
    pub entries: HashMap<String, ObjectId>,
}

impl StoredBook {
    /// The entry with this (decoded) key.
    pub fn entry(&self, key: &[u8]) -> Option<ObjectId> {
        let former = || self.entries.get(&former_entry_file(key)?);
        self.entries.get(&entry_file(key)).or_else(former).copied()
    }
}

/// What is hashed while a chat is rebuilt.
#[derive(Clone, Copy)]
enum Trust {
    /// Each message.
    Nothing,
    /// The caller hashes the whole.
    Whole,
}

/// One rebuilt file.
pub struct MaterialFile {
    /// What it is.
    pub role: Role,
    /// Where it belongs.
    pub path: LibraryPath,
    /// Its bytes, equal to what was stored.
    pub bytes: Vec<u8>,
    /// Their hash.
    pub blake3: Blake3,
}

/// All files of a snapshot.
pub struct Contents {
    /// The manifest they were checked against.
    pub manifest: Manifest,
    /// The files, the chat first.
    pub files: Vec<MaterialFile>,
}

impl Contents {
    /// The bytes of the file of that role.
    pub fn bytes(&self, role: Role) -> Option<&[u8]> {
        self.files.iter().find(|file| file.role == role).map(|file| file.bytes.as_slice())
    }

    /// Whether this is a group chat.
    pub fn is_group(&self) -> bool {
        self.manifest.timeline.starts_with("group chats/")
    }

    /// The chat, split.
    pub fn chat(&self) -> Chat<'_> {
        Chat::split(self.bytes(Role::Chat).unwrap_or_default(), self.is_group())
    }
}

impl Tree {
    /// Read the trees and the manifest of a snapshot; no message yet.
    pub fn open(reader: &Reader, id: ObjectId) -> Result<Self> {
        let incomplete = |why: String| Error::Incomplete { tree: id, why };
        let root = reader.tree(id)?;
        let manifest = find(&root, "snapshot.json")
            .ok_or_else(|| incomplete("it has no snapshot.json".into()))?;
        let manifest = Manifest::decode(id, &reader.blob(manifest.id)?)?;

        let chat = find(&root, "chat").ok_or_else(|| incomplete("it has no chat".into()))?;
        let chat = reader.tree(chat.id)?;
        let header = find(&chat, "header.json").map(|entry| entry.id);
        let mut messages = Vec::new();
        let mut numbered_folders = Vec::new();
        if let Some(folders) = find(&chat, "messages") {
            for folder in
                reader.tree(folders.id)?.iter().filter(|entry| entry.kind == EntryKind::Tree)
            {
                let number = folder.name.parse::<usize>();
                let number = number
                    .map_err(|_| incomplete(format!("{} is no folder of messages", folder.name)))?;
                numbered_folders.push((number, folder.id));
                for message in reader.tree(folder.id)? {
                    let number = message
                        .name
                        .strip_suffix(".json")
                        .and_then(|name| name.parse::<usize>().ok());
                    let number = number
                        .ok_or_else(|| incomplete(format!("{} is no message", message.name)))?;
                    messages.push((number, message.id));
                }
            }
        }
        messages.sort_unstable();
        if let Some(gap) = messages.iter().enumerate().position(|(n, (number, _))| n != *number) {
            return Err(incomplete(format!("message {gap} is not there")));
        }
        let messages = messages.into_iter().map(|(_, id)| id).collect();
        numbered_folders.sort_unstable();
        let folders = numbered_folders.into_iter().map(|(_, id)| id).collect();

        let book = match (manifest.file(Role::Lorebook), find(&root, "lorebooks")) {
            (Some(_), Some(books)) => {
                let books = reader.tree(books.id)?;
                let folder =
                    books.first().ok_or_else(|| incomplete("lorebooks is empty".into()))?;
                let folder = reader.tree(folder.id)?;
                let book = find(&folder, "book.json")
                    .ok_or_else(|| incomplete("a lorebook has no book.json".into()))?;
                let entries = match find(&folder, "entries") {
                    Some(entries) => {
                        reader.tree(entries.id)?.into_iter().map(|e| (e.name, e.id)).collect()
                    }
                    None => HashMap::new(),
                };
                Some(StoredBook { book: book.id, entries })
            }
            (None, None) => None,
            _ => {
                return Err(incomplete("manifest and tree disagree about a lorebook".into()));
            }
        };
        let group = find(&root, "group.json").map(|entry| entry.id);
        Ok(Self { id, manifest, header, folders, messages, book, group })
    }

    /// The objects of the chat's lines after the header, in order.
    pub fn messages(&self) -> &[ObjectId] {
        &self.messages
    }

    /// The object of the header, if the chat has one.
    pub fn header(&self) -> Option<ObjectId> {
        self.header
    }

    /// The trees that hold the messages, in order.
    pub(super) fn folders(&self) -> &[ObjectId] {
        &self.folders
    }

    /// The object of the group's file.
    pub fn group(&self) -> Option<ObjectId> {
        self.group
    }

    /// The lorebook's objects.
    pub fn book(&self) -> Option<&StoredBook> {
        self.book.as_ref()
    }

    /// Rebuild every file and hold it against the manifest.
    pub fn materialise(&self, reader: &Reader) -> Result<Contents> {
        let files: Result<_> =
            self.manifest.files.iter().map(|record| self.rebuild(reader, record)).collect();
        Ok(Contents { manifest: self.manifest.clone(), files: files? })
    }

    /// Rebuild one file and hold it against the manifest.
    pub fn rebuild(&self, reader: &Reader, record: &FileRecord) -> Result<MaterialFile> {
        if record.role == Role::Chat {
            // The hash of the whole covers every message. Only if it is wrong is each one hashed, to name the damaged one.
            let quick = self.rebuild_chat(reader, record.bytes, Trust::Whole);
            if let Some(file) = quick.ok().and_then(|bytes| self.checked(record, bytes).ok()) {
                return Ok(file);
            }
        }
        let bytes = match record.role {
            Role::Chat => self.rebuild_chat(reader, record.bytes, Trust::Nothing)?,
            Role::Lorebook => self.rebuild_book(reader, record.bytes)?,
            Role::Group => {
                reader.blob(self.group.ok_or_else(|| self.incomplete("it has no group.json"))?)?
            }
        };
        self.checked(record, bytes)
    }

    fn checked(&self, record: &FileRecord, bytes: Vec<u8>) -> Result<MaterialFile> {
        let blake3 = Blake3::of(&bytes);
        if bytes.len() as u64 != record.bytes || blake3 != record.blake3 {
            return Err(Error::Differs { tree: self.id, path: record.path.clone() });
        }
        Ok(MaterialFile {
            role: record.role,
            path: record.library_path(self.id, &self.manifest.timeline)?,
            bytes,
            blake3,
        })
    }

    fn rebuild_chat(&self, reader: &Reader, length: u64, trust: Trust) -> Result<Vec<u8>> {
        let lines: Vec<ObjectId> = self.header.iter().chain(&self.messages).copied().collect();
        // The manifest's word is checked before memory is reserved on it.
        let mut chat = Vec::with_capacity(length.min(1 << 30) as usize);
        let parts = read_lines(reader, &lines, trust)?;
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                chat.push(b'\n');
            }
            chat.extend_from_slice(part);
        }
        Ok(chat)
    }

    fn rebuild_book(&self, reader: &Reader, length: u64) -> Result<Vec<u8>> {
        let stored = self.book.as_ref().ok_or_else(|| self.incomplete("it has no lorebook"))?;
        let book = reader.blob(stored.book)?;
        if stored.entries.is_empty() {
            return Ok(book);
        }
        let mut failed = None;
        // A book that names one large entry very often must not take all memory.
        let mut room = length;
        let filled = st::fill(&book, |key| {
            let id = stored.entry(key)?;
            let entry = reader.blob(id).map_err(|error| failed = Some(error)).ok()?;
            room = room.checked_sub(entry.len() as u64)?;
            Some(entry)
        });
        match (filled, failed) {
            (_, Some(error)) => Err(error.into()),
            (Err(error), None) => Err(self.incomplete(&error.to_string())),
            (Ok(bytes), None) => Ok(bytes),
        }
    }

    fn incomplete(&self, why: &str) -> Error {
        Error::Incomplete { tree: self.id, why: why.into() }
    }
}

/// The manifest alone: two objects, however long the chat is.
pub fn read_manifest(reader: &Reader, tree: ObjectId) -> Result<Manifest> {
    let root = reader.tree(tree)?;
    let incomplete = || Error::Incomplete { tree, why: "it has no snapshot.json".into() };
    Manifest::decode(tree, &reader.blob(find(&root, "snapshot.json").ok_or_else(incomplete)?.id)?)
}

/// The first message alone.
pub fn first_message(reader: &Reader, tree: ObjectId) -> Option<ObjectId> {
    let mut at = tree;
    for name in ["chat", "messages", "000"] {
        at = find(&reader.tree(at).ok()?, name)?.id;
    }
    Some(reader.tree(at).ok()?.first()?.id)
}

/// The parts of a chat, each core's stretch of lines joined.
fn read_lines(reader: &Reader, ids: &[ObjectId], trust: Trust) -> Result<Vec<Vec<u8>>> {
    let readers = reader.shared();
    let read = |ids: &[ObjectId]| -> Result<Vec<u8>> {
        let reader = readers.reader();
        let mut joined = Vec::new();
        let mut buffer = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            if n > 0 {
                joined.push(b'\n');
            }
            joined.extend_from_slice(match trust {
                Trust::Whole => reader.read_unchecked(*id, &mut buffer)?,
                Trust::Nothing => reader.read(*id, Kind::Blob, &mut buffer)?,
            });
        }
        Ok(joined)
    };
    in_parts(ids, 256, read).into_iter().collect()
}

fn find<'t>(entries: &'t [TreeEntry], name: &str) -> Option<&'t TreeEntry> {
    entries.iter().find(|entry| entry.name == name)
}
