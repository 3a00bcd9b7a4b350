//! The state of a timeline that is to be stored: borrowed bytes and where they lie.

use super::Blake3;
use super::manifest::{FileRecord, Manifest, Role};
use crate::parallel::both;
use crate::st::{Captured, Chat, LibraryPath, TimelineName};

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
        Self::build(captured, &captured.chat.bytes, None)
    }

    /// The state that was captured with the chat cut after message `last`; `joined` must be that chat joined.
    pub fn cut(captured: &'a Captured, last: usize, joined: &'a [u8]) -> Self {
        Self::build(captured, joined, Some(last as u64))
    }

    /// A chat's bytes alone, as a backup has them: what its lorebook was like is not known.
    pub fn chat_only(timeline: &'a TimelineName, path: &LibraryPath, bytes: &'a [u8]) -> Self {
        let chat = Chat::split(bytes, timeline.is_group());
        let files = vec![record(Role::Chat, None, path, bytes)];
        let manifest = Manifest::new(timeline, files, chat.message_count() as u64, None);
        let folders = folder_hashes(&chat, bytes);
        Self { timeline, chat, folders, book: None, group: None, manifest }
    }

    fn build(captured: &'a Captured, chat_bytes: &'a [u8], cut_at: Option<u64>) -> Self {
        // The whole is hashed while it is split and its folders are.
        let parts = || {
            let chat = Chat::split(chat_bytes, captured.name.is_group());
            let folders = folder_hashes(&chat, chat_bytes);
            (chat, folders)
        };
        let whole = || Blake3::of(chat_bytes);
        let ((chat, folders), hash) =
            if chat_bytes.len() < LONG { (parts(), whole()) } else { both(parts, whole) };
        let book = captured.lorebook.as_ref().and_then(|book| {
            let file = book.file.as_ref()?;
            Some(BookState {
                name: &book.name,
                file: FileState { path: &file.path, bytes: &file.bytes },
            })
        });
        let group =
            captured.group.as_ref().map(|file| FileState { path: &file.path, bytes: &file.bytes });
        let mut files = vec![FileRecord {
            role: Role::Chat,
            name: None,
            path: captured.chat.path.as_str().to_owned(),
            bytes: chat_bytes.len() as u64,
            blake3: hash,
        }];
        files.extend(
            book.map(|book| {
                record(Role::Lorebook, Some(book.name), book.file.path, book.file.bytes)
            }),
        );
        files.extend(group.map(|group| record(Role::Group, None, group.path, group.bytes)));
        let manifest = Manifest::new(&captured.name, files, chat.message_count() as u64, cut_at);
        Self { timeline: &captured.name, chat, folders, book, group, manifest }
    }
}

/// Shorter chats are not worth a second thread.
const LONG: usize = 1 << 20;

/// Messages in one folder: small trees to rewrite when the last message changes, few of them to list.
pub(super) const PER_FOLDER: usize = 100;

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
