//! A chat, put together only to be hashed. Snapshots share most of their messages, so what was read for one is kept for the next: a folder of messages is
//! read again only if it is another one. Memory is bounded by the length that the manifest says: what is longer is wrong anyway.

use std::collections::HashMap;
use std::rc::Rc;

use super::needed::needed;
use crate::archive::layout::{self, Noticed};
use crate::archive::part_names::PER_FOLDER;
use crate::archive::problem::{Problem, Problems};
use crate::archive::{Blake3, Result};
use crate::st::{Chat, is_blank};
use crate::store::{Kind, ObjectId, Reader};

#[derive(Default)]
pub(super) struct ChatFacts {
    /// Its length and hash; none if it could not be put together, or is longer than it may be.
    pub whole: Option<(u64, Blake3)>,
    /// How many lines after the header are not blank.
    pub messages: u64,
    pub noticed: Noticed,
}

/// Knows what the chats that it saw hold, and the messages of the last one.
#[derive(Default)]
pub(super) struct Chats {
    known: HashMap<(ObjectId, bool), Rc<ChatFacts>>,
    folders: HashMap<(usize, ObjectId), Folder>,
}

struct Folder {
    messages: Vec<(usize, ObjectId)>,
    noticed: Noticed,
    /// Its messages, joined, once they were read.
    joined: Option<Joined>,
}

struct Joined {
    bytes: Vec<u8>,
    messages: u64,
    is_split: bool,
}

impl Chats {
    /// What the chat with this tree holds, which may be no longer than `longest`.
    pub(super) fn read(
        &mut self,
        reader: &Reader,
        chat: ObjectId,
        is_group: bool,
        longest: u64,
    ) -> Result<Rc<ChatFacts>> {
        if let Some(known) = self.known.get(&(chat, is_group)) {
            return Ok(Rc::clone(known));
        }
        let mut facts = ChatFacts::default();
        let mut noticed = Noticed::default();
        let mut room = Room::of(longest);
        let read = self.put_together(reader, chat, is_group, &mut room, &mut facts, &mut noticed);
        needed(read, &mut noticed.problems)?;
        facts.noticed.extend(&noticed);
        let facts = Rc::new(facts);
        // Another manifest may allow more.
        if !room.was_too_small {
            self.known.insert((chat, is_group), Rc::clone(&facts));
        }
        Ok(facts)
    }

    fn put_together(
        &mut self,
        reader: &Reader,
        chat: ObjectId,
        is_group: bool,
        room: &mut Room,
        facts: &mut ChatFacts,
        noticed: &mut Noticed,
    ) -> Result<()> {
        let found = layout::chat(reader, chat, noticed)?;
        let list = match found.folder {
            Some(folders) => layout::folders(reader, folders, noticed)?,
            None => Vec::new(),
        };
        let mut before = std::mem::take(&mut self.folders);
        let mut folders = Vec::with_capacity(list.len());
        let hash = || {
            for (number, id) in list {
                let folder = match before.remove(&(number, id)) {
                    Some(folder) => folder,
                    None => Folder::list(reader, number, id)?,
                };
                facts.noticed.extend(&folder.noticed);
                folders.push(((number, id), folder));
            }
            facts.hash(reader, found.file, &mut folders, is_group, room)
        };
        let done = hash();
        // Also if one could not be read: the next snapshot has most of the others, too.
        self.folders = folders.into_iter().collect();
        done
    }
}

impl ChatFacts {
    fn hash(
        &mut self,
        reader: &Reader,
        header: Option<ObjectId>,
        folders: &mut Vec<((usize, ObjectId), Folder)>,
        is_group: bool,
        room: &mut Room,
    ) -> Result<()> {
        let mut hasher = Hasher::default();
        let mut buffer = Vec::new();
        let problems = &mut self.noticed.problems;
        if let Some(header) = header {
            let line = reader.read(header, Kind::Blob, &mut buffer)?;
            if !room.take(line.len()) {
                return Ok(());
            }
            hasher.line(line);
            problems.split(begins_with_header(line, is_group) && is_one_line(line));
        }
        let begins_well = |line: &[u8], n: usize| {
            n > 0 || header.is_some() || !begins_with_header(line, is_group)
        };
        if is_regular(folders) {
            for (n, (_, folder)) in folders.iter_mut().enumerate() {
                let Some(joined) = folder.joined(reader, room)? else { return Ok(()) };
                hasher.line(&joined.bytes);
                self.messages += joined.messages;
                problems.split(joined.is_split && begins_well(&joined.bytes, n));
            }
        } else {
            // Nobody writes such folders, so nothing is kept of them.
            let all = std::mem::take(folders).into_iter().flat_map(|(_, folder)| folder.messages);
            let all = layout::in_order(all.collect(), problems);
            for (n, id) in all.into_iter().enumerate() {
                let line = reader.read(id, Kind::Blob, &mut buffer)?;
                if !room.take(line.len()) {
                    return Ok(());
                }
                hasher.line(line);
                self.messages += u64::from(!is_blank(line));
                problems.split(is_one_line(line) && begins_well(line, n));
            }
        }
        problems.split(hasher.lines > 0);
        self.whole = Some((hasher.inner.count(), hasher.finish()));
        Ok(())
    }
}

impl Folder {
    fn list(reader: &Reader, number: usize, id: ObjectId) -> Result<Self> {
        let mut noticed = Noticed::default();
        let messages = layout::messages(reader, number, id, &mut noticed)?;
        Ok(Self { messages, noticed, joined: None })
    }

    /// Its messages; none if there is no room for them.
    fn joined(&mut self, reader: &Reader, room: &mut Room) -> Result<Option<&Joined>> {
        let joined = match self.joined.take() {
            Some(joined) if !room.take(joined.bytes.len()) => return Ok(None),
            Some(joined) => joined,
            None => {
                let mut joined = Joined { bytes: Vec::new(), messages: 0, is_split: true };
                let mut buffer = Vec::new();
                for (n, (_, id)) in self.messages.iter().enumerate() {
                    let line = reader.read(*id, Kind::Blob, &mut buffer)?;
                    if !room.take(line.len()) {
                        return Ok(None);
                    }
                    if n > 0 {
                        joined.bytes.push(b'\n');
                    }
                    joined.bytes.extend_from_slice(line);
                    joined.messages += u64::from(!is_blank(line));
                    joined.is_split &= is_one_line(line);
                }
                joined
            }
        };
        Ok(Some(self.joined.insert(joined)))
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

/// Whether the first line of a chat that begins so is a header.
fn begins_with_header(bytes: &[u8], is_group: bool) -> bool {
    Chat::header_of(bytes, is_group).header.is_some()
}

fn is_one_line(line: &[u8]) -> bool {
    memchr::memchr(b'\n', line).is_none()
}

impl Problems {
    /// Note that the chat is not split as it should be, if so.
    fn split(&mut self, is_split: bool) {
        if !is_split {
            self.push(Problem::NotSplit);
        }
    }
}

/// How much may still come: each line takes its length and a line feed, which the last one does not have.
struct Room {
    left: u64,
    was_too_small: bool,
}

impl Room {
    fn of(longest: u64) -> Self {
        Self { left: longest.saturating_add(1), was_too_small: false }
    }

    fn take(&mut self, length: usize) -> bool {
        let left = self.left.checked_sub(length as u64 + 1);
        self.was_too_small |= left.is_none();
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Hashes lines with a line feed between.
#[derive(Default)]
struct Hasher {
    inner: blake3::Hasher,
    lines: u64,
}

impl Hasher {
    fn line(&mut self, bytes: &[u8]) {
        if self.lines > 0 {
            self.inner.update(b"\n");
        }
        self.lines += 1;
        self.inner.update(bytes);
    }

    fn finish(&self) -> Blake3 {
        Blake3::from_bytes(*self.inner.finalize().as_bytes())
    }
}
