//! All files of a timeline in one hand: read from the library or rebuilt from a snapshot, changed in a few values, stored or written again.

use super::read_file::FileBytes;
use super::{
    BookRename, Category, Chat, LibraryPath, Raw, Rename, TimelineName, list_in_group, metadata,
    rename_in_group, rename_in_metadata, set_group_metadata,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineFiles {
    /// Whose they are.
    pub timeline: TimelineName,
    /// The timeline's own file: the chat, the lorebook, the card.
    pub main: FileAt,
    /// The lorebook that a chat is bound to.
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
    /// The content of its file; none if it is missing or cannot be read.
    pub bytes: Option<FileBytes>,
    /// Why its file, which is there, cannot be read.
    pub unread: Option<String>,
}

impl BoundBook {
    /// One whose file is there.
    pub fn new(name: impl Into<String>, path: LibraryPath, bytes: impl Into<FileBytes>) -> Self {
        Self { name: name.into(), path: Some(path), bytes: Some(bytes.into()), unread: None }
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
    /// A timeline's own file and no other.
    pub fn alone(timeline: &TimelineName, main: impl Into<FileBytes>) -> Self {
        let main = FileAt { path: timeline.file(), bytes: main.into() };
        Self { timeline: timeline.clone(), main, lorebook: None, group: None }
    }

    /// Keep what they are called and free the rest.
    pub fn let_go_of_bytes(&mut self) {
        let files = [Some(&mut self.main), self.group.as_mut()].into_iter().flatten();
        files.for_each(|file| file.bytes = Vec::new().into());
        self.lorebook.iter_mut().for_each(|book| book.bytes = None);
    }

    /// The chat; none of it if it is no chat's timeline.
    pub fn split(&self) -> Chat<'_> {
        if self.timeline.is_chat() {
            Chat::split(&self.main.bytes, self.timeline.is_group())
        } else {
            Chat { header: None, messages: Vec::new() }
        }
    }

    /// The first line of the chat, if it is a header.
    pub fn header(&self) -> Option<&[u8]> {
        let is_chat = self.timeline.is_chat();
        is_chat.then(|| Chat::header_of(&self.main.bytes, self.timeline.is_group()).header)?
    }

    /// The chat's metadata: in its header, or in the group's file. `chat` is this one, split; its messages are not needed.
    pub fn metadata<'a>(&'a self, chat: &Chat<'a>) -> Option<Raw<'a>> {
        metadata(chat, &self.timeline, self.group_bytes())
    }

    /// The lorebook, if its file is there: the chat's, or the timeline's own.
    pub fn book(&self) -> Option<Book<'_>> {
        if self.timeline.category() == Category::Lorebook {
            let FileAt { path, bytes } = &self.main;
            return Some(Book { name: self.timeline.chat(), path, bytes });
        }
        let bound = self.lorebook.as_ref()?;
        let (path, bytes) = (bound.path.as_ref()?, bound.bytes.as_ref()?);
        Some(Book { name: &bound.name, path, bytes })
    }

    /// Returns why the lorebook's file, which is there, cannot be read.
    pub fn unread_book(&self) -> Option<&str> {
        self.lorebook.as_ref()?.unread.as_deref()
    }

    /// What the lorebook is called, also if its file is not there.
    pub fn bound_name(&self) -> Option<&str> {
        match self.timeline.category() {
            Category::Lorebook => Some(self.timeline.chat()),
            _ => self.lorebook.as_ref().map(|book| book.name.as_str()),
        }
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
        if self.timeline.category() == Category::Lorebook {
            self.main.bytes = bytes.into();
            return;
        }
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
        let bytes = self.main.bytes[..self.split().length_upto(last)].to_vec().into();
        Self {
            timeline: self.timeline.clone(),
            main: FileAt { path: self.main.path.clone(), bytes },
            lorebook: self.lorebook.clone(),
            group: self.group.clone(),
        }
    }

    /// The same chat under another name. A running recap must say whose it is, or the extension wipes it.
    #[must_use]
    pub fn called(mut self, name: TimelineName) -> Self {
        let chat = name.chat().to_owned();
        self.edit(&name, &Rename { chat: Some(&chat), ..Rename::default() });
        self.main.path = name.file();
        self.timeline = name;
        self
    }

    /// Returns the files of a timeline that was renamed to `name`: its group lists it by that name only.
    #[must_use]
    pub fn renamed(self, name: TimelineName) -> Self {
        let former = self.timeline.clone();
        let mut files = self.called(name);
        if let Some(group) = &mut files.group
            && let Some(bytes) = rename_in_group(&group.bytes, &former, &files.timeline)
        {
            group.bytes = bytes.into();
        }
        files
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
                self.main.bytes = chat.join().into();
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
