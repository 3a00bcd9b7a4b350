//! The state of a timeline that is to be stored: borrowed bytes and where they lie.

use super::checkpoint::{CheckpointState, uses_auto_recap};
use super::manifest::{FileRecord, Manifest};
use super::materialise::{Contents, MaterialFile};
use super::part_names::PER_FOLDER;
use super::{Blake3, Role};
use crate::parallel::both;
use crate::st::{self, Captured, Chat, LibraryPath, TimelineName};

/// One file's path and bytes.
#[derive(Clone, Copy)]
pub struct FileState<'a> {
    /// Its path in the library.
    pub path: &'a LibraryPath,
    /// What it holds.
    pub bytes: &'a [u8],
}

/// The lorebook bound to the chat.
#[derive(Clone, Copy)]
pub struct BookState<'a> {
    /// Its name in the chat's metadata.
    pub name: &'a str,
    /// Its file.
    pub file: FileState<'a>,
}

/// A timeline's state.
pub struct State<'a> {
    /// Whose state it is.
    pub timeline: &'a TimelineName,
    /// The chat, split.
    pub chat: Chat<'a>,
    /// The hash of the bytes of each folder of messages.
    pub(super) folders: Vec<Blake3>,
    /// The lorebook, if the chat has one and its file is there.
    pub book: Option<BookState<'a>>,
    /// The group's file, for group chats.
    pub group: Option<FileState<'a>>,
    /// The manifest of all this.
    pub manifest: Manifest,
}

impl<'a> State<'a> {
    /// The state that was captured.
    pub fn of(captured: &'a Captured) -> Self {
        let parts = Parts::of(captured, &captured.chat.bytes);
        Self::build(parts, None, Notes::IfInUse)
    }

    /// The state that was captured as a checkpoint at message `last`; `joined` must be the chat up to it, joined.
    pub fn cut(captured: &'a Captured, last: usize, joined: &'a [u8]) -> Self {
        // Nothing is cut off at the last message, and then it is what was there.
        let whole = captured.chat.bytes.trim_ascii_end().len();
        let cut_at = (joined.trim_ascii_end().len() < whole).then_some(last as u64);
        Self::build(Parts::of(captured, joined), cut_at, Notes::Always)
    }

    /// A state that was put together; `cut_at` as in the manifest.
    pub fn made(parts: Parts<'a>, cut_at: Option<u64>) -> Self {
        Self::build(parts, cut_at, Notes::Always)
    }

    /// A chat's bytes alone, as a backup has them: what its lorebook was like is not known.
    pub fn chat_only(timeline: &'a TimelineName, path: &'a LibraryPath, bytes: &'a [u8]) -> Self {
        let chat = FileState { path, bytes };
        Self::build(Parts { timeline, chat, book: None, group: None }, None, Notes::Never)
    }

    /// The files, as they would be rebuilt.
    pub fn contents(&self) -> Contents {
        let chat = self.manifest.file(Role::Chat).map(|_| (self.timeline.file(), self.chat.join()));
        let book = self.book.map(|book| (book.file.path.clone(), book.file.bytes.to_vec()));
        let group = self.group.map(|group| (group.path.clone(), group.bytes.to_vec()));
        let parts = [(Role::Chat, chat), (Role::Lorebook, book), (Role::Group, group)];
        let file = |(role, part): (Role, Option<(LibraryPath, Vec<u8>)>)| {
            let (path, bytes) = part?;
            let blake3 = self.manifest.file(role)?.blake3;
            Some(MaterialFile { role, path, bytes, blake3 })
        };
        let files = parts.into_iter().filter_map(file).collect();
        Contents { manifest: self.manifest.clone(), files }
    }

    fn build(parts: Parts<'a>, cut_at: Option<u64>, notes: Notes) -> Self {
        let Parts { timeline, chat: FileState { path, bytes }, book, group } = parts;
        // The whole is hashed while it is split and its folders are.
        let split = || {
            let chat = Chat::split(bytes, timeline.is_group());
            let folders = folder_hashes(&chat, bytes);
            (chat, folders)
        };
        let whole = || Blake3::of(bytes);
        let ((chat, folders), hash) =
            if bytes.len() < LONG { (split(), whole()) } else { both(split, whole) };
        let mut files = vec![FileRecord {
            role: Role::Chat,
            name: None,
            path: path.as_str().to_owned(),
            bytes: bytes.len() as u64,
            blake3: hash,
        }];
        files.extend(
            book.map(|book| {
                record(Role::Lorebook, Some(book.name), book.file.path, book.file.bytes)
            }),
        );
        files.extend(group.map(|group| record(Role::Group, None, group.path, group.bytes)));
        let mut manifest = Manifest::new(timeline, files, chat.message_count() as u64, cut_at);
        if notes != Notes::Never {
            let metadata = st::metadata(&chat, timeline, group.map(|group| group.bytes));
            let book = book.map(|book| book.file.bytes);
            if notes == Notes::Always || uses_auto_recap(&chat, metadata, book) {
                manifest.checkpoint = Some(CheckpointState::of(timeline, &chat, metadata, book));
            }
        }
        Self { timeline, chat, folders, book, group, manifest }
    }
}

/// The files of a state.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Whose they are.
    pub timeline: &'a TimelineName,
    /// The chat.
    pub chat: FileState<'a>,
    /// The lorebook bound to it.
    pub book: Option<BookState<'a>>,
    /// The group's file.
    pub group: Option<FileState<'a>>,
}

impl<'a> Parts<'a> {
    fn of(captured: &'a Captured, chat: &'a [u8]) -> Self {
        let book = captured.lorebook.as_ref().and_then(|book| {
            let file = book.file.as_ref()?;
            Some(BookState {
                name: &book.name,
                file: FileState { path: &file.path, bytes: &file.bytes },
            })
        });
        let group = captured.group.as_ref();
        Self {
            timeline: &captured.name,
            chat: FileState { path: &captured.chat.path, bytes: chat },
            book,
            group: group.map(|file| FileState { path: &file.path, bytes: &file.bytes }),
        }
    }
}

/// Whether the manifest tells the state of ST-Auto-Recap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notes {
    Never,
    IfInUse,
    Always,
}

/// Shorter chats are not worth a second thread.
const LONG: usize = 1 << 20;

/// The hash of each folder's bytes as they stand in the file: its messages, with a line feed between.
fn folder_hashes(chat: &Chat<'_>, bytes: &[u8]) -> Vec<Blake3> {
    let mut begin = chat.header.map_or(0, |header| header.len() + 1);
    let hash = |messages: &[&[u8]]| {
        let end = begin + messages.iter().map(|line| line.len() + 1).sum::<usize>() - 1;
        let hash = Blake3::of(&bytes[begin..end]);
        begin = end + 1;
        hash
    };
    chat.messages.chunks(PER_FOLDER).map(hash).collect()
}

fn record(role: Role, name: Option<&str>, path: &LibraryPath, bytes: &[u8]) -> FileRecord {
    FileRecord {
        role,
        name: name.map(str::to_owned),
        path: path.as_str().to_owned(),
        bytes: bytes.len() as u64,
        blake3: Blake3::of(bytes),
    }
}
