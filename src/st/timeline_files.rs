//! All files of a timeline in one hand: read from the library or rebuilt from a snapshot, changed in a few values, stored or written again.

use super::read_file::FileBytes;
use super::{
    BookRename, Chat, LibraryPath, Raw, Rename, TimelineName, list_in_group, metadata,
    rename_in_metadata, set_group_metadata,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineFiles {
    /// Whose they are.
    pub timeline: TimelineName,
    pub chat: FileAt,
    pub lorebook: Option<BoundBook>,
    pub group: Option<FileAt>,
}

/// One file and its place in the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAt {
    pub path: LibraryPath,
    pub bytes: FileBytes,
}

/// A lorebook that a chat is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundBook {
    /// Its name, as the chat has it.
    pub name: String,
    /// Its file's place; none if the name gives no file name.
    pub path: Option<LibraryPath>,
    /// What its file holds; none if it is missing.
    pub bytes: Option<FileBytes>,
}

impl BoundBook {
    /// One whose file is there.
    pub fn new(name: impl Into<String>, path: LibraryPath, bytes: impl Into<FileBytes>) -> Self {
        Self { name: name.into(), path: Some(path), bytes: Some(bytes.into()) }
    }
}

/// A lorebook whose file is there.
#[derive(Clone, Copy, Debug)]
pub struct Book<'f> {
    /// Its name, as the chat has it.
    pub name: &'f str,
    pub path: &'f LibraryPath,
    pub bytes: &'f [u8],
}

impl TimelineFiles {
    pub fn chat_only(timeline: &TimelineName, chat: impl Into<FileBytes>) -> Self {
        let chat = FileAt { path: timeline.file(), bytes: chat.into() };
        Self { timeline: timeline.clone(), chat, lorebook: None, group: None }
    }

    pub fn split(&self) -> Chat<'_> {
        Chat::split(&self.chat.bytes, self.timeline.is_group())
    }

    /// The chat's metadata: in its header, or in the group's file. `chat` is this one, split; its messages are not needed.
    pub fn metadata<'a>(&'a self, chat: &Chat<'a>) -> Option<Raw<'a>> {
        metadata(chat, &self.timeline, self.group_bytes())
    }

    /// The lorebook, if its file is there.
    pub fn book(&self) -> Option<Book<'_>> {
        let bound = self.lorebook.as_ref()?;
        let (path, bytes) = (bound.path.as_ref()?, bound.bytes.as_ref()?);
        Some(Book { name: &bound.name, path, bytes })
    }

    pub fn book_bytes(&self) -> Option<&[u8]> {
        self.book().map(|book| book.bytes)
    }

    /// What the lorebook at this path holds, if it is the one.
    pub fn book_at(&self, path: &LibraryPath) -> Option<&[u8]> {
        self.book().filter(|book| book.path == path).map(|book| book.bytes)
    }

    /// Let the lorebook's file, if there is one, hold something else.
    pub fn set_book(&mut self, bytes: impl Into<FileBytes>) {
        if let Some(bound) = &mut self.lorebook
            && bound.bytes.is_some()
        {
            bound.bytes = Some(bytes.into());
        }
    }

    pub fn group_bytes(&self) -> Option<&[u8]> {
        self.group.as_ref().map(|group| group.bytes.as_slice())
    }

    /// The same up to message `last`.
    #[must_use]
    pub fn cut_after(&self, last: usize) -> Self {
        let bytes = self.split().upto(last).join().into();
        Self { chat: FileAt { path: self.chat.path.clone(), bytes }, ..self.clone() }
    }

    /// The same chat under another name. A running recap must say whose it is, or the extension wipes it.
    #[must_use]
    pub fn called(mut self, name: TimelineName) -> Self {
        let chat = name.chat().to_owned();
        self.edit(&name, &Rename { chat: Some(&chat), ..Rename::default() });
        self.chat.path = name.file();
        self.timeline = name;
        self
    }

    /// The same chat with its lorebook under another name.
    #[must_use]
    pub fn bound_to(mut self, new: &str, path: LibraryPath) -> Self {
        let Some(BoundBook { name: old, bytes: Some(bytes), .. }) = self.lorebook.take() else {
            return self;
        };
        let rename = BookRename { old: &old, new, bytes: &bytes };
        let name = self.timeline.clone();
        self.edit(&name, &Rename { book: Some(rename), ..Rename::default() });
        self.lorebook = Some(BoundBook::new(new, path, bytes));
        self
    }

    /// Whether the chat's metadata can be changed at all.
    pub fn can_be_bound(&self) -> bool {
        self.metadata(&self.split()).is_some()
    }

    /// What the group's file says of this chat, for chats without a header.
    pub fn own_group_metadata(&self) -> Option<Vec<u8>> {
        let chat = self.split();
        if chat.header.is_some() {
            return None;
        }
        Some(self.metadata(&chat)?.as_bytes().to_vec())
    }

    /// Have the metadata that the group's file of `other` has for this chat; whether that was possible.
    pub fn take_group_metadata(&mut self, other: &Self) -> bool {
        let new = self
            .group_bytes()
            .zip(other.own_group_metadata())
            .and_then(|(group, own)| set_group_metadata(group, &self.timeline, &own));
        match (new, &mut self.group) {
            (Some(new), Some(group)) => group.bytes = new.into(),
            _ => return false,
        }
        true
    }

    fn edit(&mut self, name: &TimelineName, rename: &Rename<'_>) {
        let chat = self.split();
        let Some(metadata) = self.metadata(&chat) else { return };
        match chat.header {
            Some(header) => {
                let header = rename_in_metadata(header, metadata, rename);
                let chat = Chat { header: Some(&header), messages: chat.messages.clone() };
                self.chat.bytes = chat.join().into();
            }
            None => {
                let own = metadata.as_bytes();
                let edited = Raw::parse(own).map(|raw| rename_in_metadata(own, raw, rename));
                let listed = self.group_bytes().and_then(|group| list_in_group(group, name));
                let group = listed
                    .zip(edited)
                    .and_then(|(group, own)| set_group_metadata(&group, name, &own));
                if let (Some(bytes), Some(group)) = (group, &mut self.group) {
                    group.bytes = bytes.into();
                }
            }
        }
    }
}
