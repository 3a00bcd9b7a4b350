//! Hashes chats. Messages of the last one are kept: the next differs in a folder or two. Memory is
//! bounded by the length in the manifest: a longer chat is wrong anyway.

use std::collections::HashMap;
use std::rc::Rc;

use super::needed::needed;
use crate::archive::layout::{self, Noticed};
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
    /// Its length and hash; `None` if it could not be put together, or is too long.
    pub whole: Option<(u64, Blake3)>,
    /// Lines after the header that are not blank.
    pub messages: u64,
    pub noticed: Noticed,
}

#[derive(Default)]
pub(super) struct Chats {
    known: HashMap<ChatTree, Rc<ChatFacts>>,
    /// Of the last chat.
    folders: HashMap<(usize, ObjectId), Folder>,
}

impl Chats {
    /// Reads a chat of at most `longest` bytes.
    pub(super) fn read(
        &mut self,
        reader: &Reader,
        chat: ChatTree,
        longest: u64,
    ) -> Result<Rc<ChatFacts>> {
        if let Some(known) = self.known.get(&chat) {
            return Ok(Rc::clone(known));
        }
        let mut noticed = Noticed::default();
        let mut lines = Lines {
            chat,
            hasher: blake3::Hasher::new(),
            room: longest.saturating_add(1),
            is_too_long: false,
            is_empty: true,
            is_split: true,
            messages: 0,
        };
        let read = self.add_chat(reader, &mut lines, &mut noticed);
        let is_read = needed(read, &mut noticed.problems)?.is_some() && !lines.is_too_long;
        if !lines.is_split || is_read && lines.is_empty {
            noticed.problems.push(Problem::NotSplit);
        }
        let hash = Blake3::from_bytes(*lines.hasher.finalize().as_bytes());
        let whole = is_read.then_some((lines.hasher.count(), hash));
        let facts = Rc::new(ChatFacts { whole, messages: lines.messages, noticed });
        // Another manifest may allow more.
        if !lines.is_too_long {
            self.known.insert(chat, Rc::clone(&facts));
        }
        Ok(facts)
    }

    fn add_chat(
        &mut self,
        reader: &Reader,
        lines: &mut Lines,
        noticed: &mut Noticed,
    ) -> Result<()> {
        let found = layout::chat(reader, lines.chat.id, noticed)?;
        let list = match found.folder {
            Some(folders) => layout::folders(reader, folders, noticed)?,
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
                noticed.extend(&folder.noticed);
                folders.push(((number, id), folder));
            }
            if let Some(header) = found.file {
                lines.add_header(reader.blob(header)?);
            }
            if is_regular(&folders) {
                let mut folders = folders.iter_mut();
                return folders.try_for_each(|(_, folder)| lines.add_folder(reader, folder));
            }
            // Nobody writes such folders, so nothing is kept of them.
            let all = std::mem::take(&mut folders).into_iter();
            let all = all.flat_map(|(_, folder)| folder.messages).collect();
            for id in layout::in_order(all, &mut noticed.problems) {
                lines.add_folder(reader, &mut Folder::of(vec![(0, id)], Noticed::default()))?;
            }
            Ok(())
        };
        let added = add();
        // Also if one could not be read: the next snapshot has most of the others, too.
        self.folders = folders.into_iter().collect();
        added
    }
}

struct Folder {
    messages: Vec<(usize, ObjectId)>,
    noticed: Noticed,
    joined: Option<Joined>,
}

/// The messages of a folder, once they were read.
struct Joined {
    bytes: Vec<u8>,
    messages: u64,
    is_split: bool,
}

impl Folder {
    fn of(messages: Vec<(usize, ObjectId)>, noticed: Noticed) -> Self {
        Self { messages, noticed, joined: None }
    }

    fn list(reader: &Reader, number: usize, id: ObjectId) -> Result<Self> {
        let mut noticed = Noticed::default();
        let messages = layout::messages(reader, number, id, &mut noticed)?;
        Ok(Self::of(messages, noticed))
    }

    /// Returns its messages; `None` if they take more than `room`.
    fn joined(&mut self, reader: &Reader, room: u64) -> Result<Option<&Joined>> {
        if self.joined.is_none() {
            let mut joined = Joined { bytes: Vec::new(), messages: 0, is_split: true };
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

/// Whether the folders hold what they should: all numbers from 0, a hundred in each but the last.
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

/// The lines of a chat while they are hashed.
struct Lines {
    chat: ChatTree,
    hasher: blake3::Hasher,
    /// Bytes that are left: each line takes its length and a line feed, which the last one does not
    /// have.
    room: u64,
    /// Nothing is added any more.
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
