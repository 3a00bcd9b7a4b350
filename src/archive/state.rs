//! State of a timeline that is to be stored: its files, the chat split into messages, and the
//! manifest.

use super::manifest::{FileRecord, Manifest};
use super::part_names::PER_FOLDER;
use super::{Blake3, Role};
use crate::auto_recap::{CheckpointState, uses_auto_recap};
use crate::parallel::both;
use crate::st::{Chat, FileAt, LibraryPath, TimelineFiles, TimelineName};

pub struct State<'a> {
    pub files: &'a TimelineFiles,
    pub chat: Chat<'a>,
    pub(super) folders: Vec<Blake3>,
    pub manifest: Manifest,
}

impl<'a> State<'a> {
    pub fn of(files: &'a TimelineFiles) -> Self {
        Self::build(files, None, Notes::IfInUse)
    }

    /// Returns the state of a checkpoint. `files` contains the chat up to message `last`, and
    /// `whole` is the complete chat.
    pub fn cut(files: &'a TimelineFiles, last: usize, whole: &[u8]) -> Self {
        // If `last` is the last message, nothing was removed and `cut_at` is not set.
        let is_cut = files.main.bytes.trim_ascii_end().len() < whole.trim_ascii_end().len();
        Self::build(files, is_cut.then_some(last as u64), Notes::Always)
    }

    /// Returns a state that stvc assembled. `cut_at` is [`Manifest::cut_at`].
    pub fn assembled(files: &'a TimelineFiles, cut_at: Option<u64>) -> Self {
        Self::build(files, cut_at, Notes::Always)
    }

    /// Returns the state of a chat from a SillyTavern backup. The state of ST-Auto-Recap is not
    /// recorded, because it depends on the lorebook, which such a backup does not contain.
    pub fn chat_only(files: &'a TimelineFiles) -> Self {
        Self::build(files, None, Notes::Never)
    }

    pub fn timeline(&self) -> &'a TimelineName {
        &self.files.timeline
    }

    pub fn is_long(&self) -> bool {
        self.files.main.bytes.len() >= LONG
    }

    fn build(files: &'a TimelineFiles, cut_at: Option<u64>, notes: Notes) -> Self {
        let (timeline, bytes) = (&files.timeline, files.main.bytes.as_slice());
        if !timeline.is_chat() {
            return Self::of_other(files);
        }
        // A second thread hashes the file while this thread splits it and hashes its folders.
        let split = || {
            let chat = files.split();
            let folders = folder_hashes(&chat, bytes);
            (chat, folders)
        };
        let whole = || Blake3::of(bytes);
        let ((chat, folders), hash) =
            if bytes.len() >= LONG { both(split, whole) } else { (split(), whole()) };
        let mut records = vec![record(Role::Chat, &files.main.path, bytes, hash)];
        records.extend(files.book().map(|book| FileRecord {
            name: Some(book.name.to_owned()),
            ..record(Role::Lorebook, book.path, book.bytes, Blake3::of(book.bytes))
        }));
        let group = files.group.as_ref();
        records.extend(
            group.map(|FileAt { path, bytes }| record(Role::Group, path, bytes, Blake3::of(bytes))),
        );
        let mut manifest = Manifest::new(timeline, records, chat.message_count() as u64, cut_at);
        if notes != Notes::Never {
            let metadata = files.metadata(&chat);
            let book = files.book_bytes();
            if notes == Notes::Always || uses_auto_recap(&chat, metadata, book) {
                manifest.checkpoint = Some(CheckpointState::of(timeline, &chat, metadata, book));
            }
        }
        Self { files, chat, folders, manifest }
    }

    fn of_other(files: &'a TimelineFiles) -> Self {
        let FileAt { path, bytes } = &files.main;
        let role = Role::of_main(files.timeline.category());
        let name = (role == Role::Lorebook).then(|| files.timeline.chat().to_owned());
        let main = FileRecord { name, ..record(role, path, bytes, Blake3::of(bytes)) };
        let manifest = Manifest::new(&files.timeline, vec![main], 0, None);
        Self { files, chat: files.split(), folders: Vec::new(), manifest }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Notes {
    Never,
    IfInUse,
    Always,
}

/// Minimum length in bytes of a chat file for which a second thread is used.
const LONG: usize = 1 << 20;

/// Hashes the messages of each message folder, joined by line feeds.
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

fn record(role: Role, path: &LibraryPath, bytes: &[u8], blake3: Blake3) -> FileRecord {
    let path = path.as_str().to_owned();
    FileRecord { role, name: None, path, bytes: bytes.len() as u64, blake3 }
}
