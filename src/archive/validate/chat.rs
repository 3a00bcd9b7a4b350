//! Rebuilds and hashes chats. The messages of the last chat are cached, because the next chat
//! usually differs in one or two message folders. Memory is bounded by the length in the manifest:
//! a longer chat is invalid anyway.

use std::collections::HashMap;
use std::rc::Rc;

use super::needed::needed;
use crate::archive::layout::{self, Layout, LayoutNotes};
use crate::archive::part_names::PER_FOLDER;
use crate::archive::problem::Problem;
use crate::archive::{Blake3, Result};
use crate::st::{Category, Chat, is_blank};
use crate::store::{Kind, ObjectId, Reader};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChatTree {
    pub id: ObjectId,
    pub is_group: bool,
}

impl ChatTree {
    fn begins_with_header(self, bytes: &[u8]) -> bool {
        let category = if self.is_group { Category::GroupChat } else { Category::Chat };
        Chat::header_of(bytes, category).header.is_some()
    }
}

#[derive(Default)]
pub(super) struct ChatFacts {
    /// Length and hash of the chat; `None` if the chat is too long or could not be rebuilt.
    pub whole: Option<(u64, Blake3)>,
    /// Number of lines after the header that are not blank.
    pub messages: u64,
    pub noticed: LayoutNotes,
}

#[derive(Default)]
pub(super) struct Chats {
    known: HashMap<ChatTree, Rc<ChatFacts>>,
    /// Message folders of the last chat, by number and tree id.
    folders: HashMap<(usize, ObjectId), Folder>,
}

impl Chats {
    /// Rebuilds and hashes a chat, up to `longest` bytes.
    pub(super) fn read(
        &mut self,
        layout: &Layout<'_>,
        chat: ChatTree,
        longest: u64,
    ) -> Result<Rc<ChatFacts>> {
        if let Some(known) = self.known.get(&chat) {
            return Ok(Rc::clone(known));
        }
        let mut layout = Layout::new(layout.reader);
        let mut lines = Lines {
            chat,
            hasher: blake3::Hasher::new(),
            room: longest.saturating_add(1),
            is_too_long: false,
            is_empty: true,
            is_split: true,
            messages: 0,
        };
        let read = self.add_chat(&mut layout, &mut lines);
        let mut noticed = layout.notes;
        let is_read = needed(read, &mut noticed.problems)?.is_some() && !lines.is_too_long;
        if !lines.is_split || is_read && lines.is_empty {
            noticed.problems.push(Problem::NotSplit);
        }
        let hash = Blake3::from_bytes(*lines.hasher.finalize().as_bytes());
        let whole = is_read.then_some((lines.hasher.count(), hash));
        let facts = Rc::new(ChatFacts { whole, messages: lines.messages, noticed });
        // A chat that was too long is not cached, because another manifest may state a greater
        // length.
        if !lines.is_too_long {
            self.known.insert(chat, Rc::clone(&facts));
        }
        Ok(facts)
    }

    fn add_chat(&mut self, layout: &mut Layout<'_>, lines: &mut Lines) -> Result<()> {
        let reader = layout.reader;
        let found = layout.chat(lines.chat.id)?;
        let list = match found.folder {
            Some(folders) => layout.folders(folders)?,
            None => Vec::new(),
        };
        let mut before = std::mem::take(&mut self.folders);
        let mut folders = Vec::with_capacity(list.len());
        let add = || {
            for (number, id) in list {
                let folder = match before.remove(&(number, id)) {
                    Some(folder) => folder,
                    None => Folder::list(reader, number, id)?,
                };
                layout.notes.extend(&folder.noticed);
                folders.push(((number, id), folder));
            }
            if let Some(header) = found.file {
                lines.add_header(reader.blob(header)?);
            }
            if is_regular(&folders) {
                let mut folders = folders.iter_mut();
                return folders.try_for_each(|(_, folder)| lines.add_folder(reader, folder));
            }
            // stvc does not write irregular folders, so they are not cached.
            let all = std::mem::take(&mut folders).into_iter();
            let all = all.flat_map(|(_, folder)| folder.messages).collect();
            for id in layout::in_order(all, &mut layout.notes.problems) {
                lines.add_folder(reader, &mut Folder::of(vec![(0, id)], LayoutNotes::default()))?;
            }
            Ok(())
        };
        let added = add();
        // Cache the folders even if one could not be read, because the next snapshot shares most of
        // the others.
        self.folders = folders.into_iter().collect();
        added
    }
}

struct Folder {
    messages: Vec<(usize, ObjectId)>,
    noticed: LayoutNotes,
    joined: Option<JoinedMessages>,
}

/// Messages of a folder, joined by line feeds.
struct JoinedMessages {
    bytes: Vec<u8>,
    messages: u64,
    is_split: bool,
}

impl Folder {
    fn of(messages: Vec<(usize, ObjectId)>, noticed: LayoutNotes) -> Self {
        Self { messages, noticed, joined: None }
    }

    fn list(reader: &Reader, number: usize, id: ObjectId) -> Result<Self> {
        let mut layout = Layout::new(reader);
        Ok(Self::of(layout.messages(number, id)?, layout.notes))
    }

    /// Returns the joined messages of the folder, or `None` if they need more than `room` bytes.
    fn joined(&mut self, reader: &Reader, room: u64) -> Result<Option<&JoinedMessages>> {
        if self.joined.is_none() {
            let mut joined = JoinedMessages { bytes: Vec::new(), messages: 0, is_split: true };
            let mut buffer = Vec::new();
            for (n, (_, id)) in self.messages.iter().enumerate() {
                let line = reader.read(*id, Kind::Blob, &mut buffer)?;
                if (joined.bytes.len() + line.len()) as u64 >= room {
                    return Ok(None);
                }
                if n > 0 {
                    joined.bytes.push(b'\n');
                }
                joined.bytes.extend_from_slice(line);
                joined.messages += u64::from(!is_blank(line));
                joined.is_split &= is_one_line(line);
            }
            self.joined = Some(joined);
        }
        Ok(self.joined.as_ref())
    }
}

/// Returns whether the folders contain all message numbers from 0 without a gap, and 100 messages
/// in each folder except the last.
fn is_regular(folders: &[((usize, ObjectId), Folder)]) -> bool {
    let mut next = 0;
    for (n, ((number, _), folder)) in folders.iter().enumerate() {
        let full = n + 1 == folders.len() || folder.messages.len() == PER_FOLDER;
        let numbers = folder.messages.iter().map(|(number, _)| *number);
        let counted = numbers.eq(next..next + folder.messages.len());
        if n != *number || !full || !counted || folder.messages.is_empty() {
            return false;
        }
        next += folder.messages.len();
    }
    next <= folders.len() * PER_FOLDER
}

fn is_one_line(line: &[u8]) -> bool {
    memchr::memchr(b'\n', line).is_none()
}

/// Hashes a chat line by line.
struct Lines {
    chat: ChatTree,
    hasher: blake3::Hasher,
    /// Number of bytes that may still be added. Each line takes its length and one byte for a line
    /// feed. The last line has no line feed, so `room` starts at the maximum length plus 1.
    room: u64,
    /// Set when `room` is exceeded. No more folders are read after that.
    is_too_long: bool,
    is_empty: bool,
    is_split: bool,
    messages: u64,
}

impl Lines {
    fn add_header(&mut self, line: Vec<u8>) {
        self.is_split &= self.chat.begins_with_header(&line) && is_one_line(&line);
        self.add(&line);
    }

    fn add_folder(&mut self, reader: &Reader, folder: &mut Folder) -> Result<()> {
        if self.is_too_long {
            return Ok(());
        }
        let Some(joined) = folder.joined(reader, self.room)? else {
            self.is_too_long = true;
            return Ok(());
        };
        let begins_well = !self.is_empty || !self.chat.begins_with_header(&joined.bytes);
        self.is_split &= joined.is_split && begins_well;
        self.messages += joined.messages;
        self.add(&joined.bytes);
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        let Some(room) = self.room.checked_sub(bytes.len() as u64 + 1) else {
            self.is_too_long = true;
            return;
        };
        self.room = room;
        if !self.is_empty {
            self.hasher.update(b"\n");
        }
        self.is_empty = false;
        self.hasher.update(bytes);
    }
}
