//! The files of a timeline, which are read from the library or rebuilt from a snapshot. Single
//! values can be edited before the files are stored or written to the library.

use super::read_file::FileBytes;
use super::{
    BookRename, Category, Chat, LibraryPath, Raw, Rename, TimelineName, list_in_group, metadata,
    rename_in_group, rename_in_metadata, set_group_metadata,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineFiles {
    pub timeline: TimelineName,
    /// The timeline's main file: the chat, the lorebook or the card.
    pub main: FileAt,
    pub lorebook: Option<BoundBook>,
    pub group: Option<FileAt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAt {
    pub path: LibraryPath,
    pub bytes: FileBytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundBook {
    pub name: String,
    pub path: Option<LibraryPath>,
    /// `None` if the file is missing or cannot be read.
    pub bytes: Option<FileBytes>,
    /// Reason why the file cannot be read, although it exists.
    pub unread: Option<String>,
}

impl BoundBook {
    pub fn new(name: impl Into<String>, path: LibraryPath, bytes: impl Into<FileBytes>) -> Self {
        Self { name: name.into(), path: Some(path), bytes: Some(bytes.into()), unread: None }
    }
}

/// A lorebook whose file could be read.
#[derive(Clone, Copy, Debug)]
pub struct Book<'f> {
    pub name: &'f str,
    pub path: &'f LibraryPath,
    pub bytes: &'f [u8],
}

impl TimelineFiles {
    pub fn alone(timeline: &TimelineName, main: impl Into<FileBytes>) -> Self {
        let main = FileAt { path: timeline.file(), bytes: main.into() };
        Self { timeline: timeline.clone(), main, lorebook: None, group: None }
    }

    pub fn drop_bytes(&mut self) {
        let files = [Some(&mut self.main), self.group.as_mut()].into_iter().flatten();
        files.for_each(|file| file.bytes = Vec::new().into());
        self.lorebook.iter_mut().for_each(|book| book.bytes = None);
    }

    /// Splits the chat file into header and messages. The result is empty if the timeline is not a
    /// chat.
    pub fn split(&self) -> Chat<'_> {
        if self.timeline.is_chat() {
            Chat::split(&self.main.bytes, self.timeline.category())
        } else {
            Chat { header: None, messages: Vec::new() }
        }
    }

    pub fn header(&self) -> Option<&[u8]> {
        let is_chat = self.timeline.is_chat();
        is_chat.then(|| Chat::header_of(&self.main.bytes, self.timeline.category()).header)?
    }

    /// Returns the chat's metadata, from its header or the group's file. `chat` is the split chat
    /// file of this timeline; only its header is used.
    pub fn metadata<'a>(&'a self, chat: &Chat<'a>) -> Option<Raw<'a>> {
        metadata(chat, &self.timeline, self.group_bytes())
    }

    /// Returns the lorebook that the chat is bound to, or the main file if the timeline is a
    /// lorebook. `None` if the lorebook's file could not be read.
    pub fn book(&self) -> Option<Book<'_>> {
        if self.timeline.category() == Category::Lorebook {
            let FileAt { path, bytes } = &self.main;
            return Some(Book { name: self.timeline.chat(), path, bytes });
        }
        let bound = self.lorebook.as_ref()?;
        let (path, bytes) = (bound.path.as_ref()?, bound.bytes.as_ref()?);
        Some(Book { name: &bound.name, path, bytes })
    }

    pub fn unread_book(&self) -> Option<&str> {
        self.lorebook.as_ref()?.unread.as_deref()
    }

    /// Returns the lorebook's name, even if its file does not exist.
    pub fn bound_name(&self) -> Option<&str> {
        match self.timeline.category() {
            Category::Lorebook => Some(self.timeline.chat()),
            _ => self.lorebook.as_ref().map(|book| book.name.as_str()),
        }
    }

    pub fn book_bytes(&self) -> Option<&[u8]> {
        self.book().map(|book| book.bytes)
    }

    pub fn book_at(&self, path: &LibraryPath) -> Option<&[u8]> {
        self.book().filter(|book| book.path == path).map(|book| book.bytes)
    }

    /// Replaces the content of the lorebook's file. Does nothing if the file could not be read.
    pub fn set_book(&mut self, bytes: impl Into<FileBytes>) {
        let own = Some(&mut self.main.bytes);
        let bound = self.lorebook.as_mut().and_then(|bound| bound.bytes.as_mut());
        let is_own = self.timeline.category() == Category::Lorebook;
        if let Some(book) = if is_own { own } else { bound } {
            *book = bytes.into();
        }
    }

    pub fn group_bytes(&self) -> Option<&[u8]> {
        self.group.as_ref().map(|group| group.bytes.as_slice())
    }

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

    /// Returns the files with the chat renamed. The running recap in the metadata gets the new
    /// name, because ST-Auto-Recap deletes a running recap that names another chat.
    #[must_use]
    pub fn called(mut self, name: TimelineName) -> Self {
        let chat = name.chat().to_owned();
        self.edit(&name, &Rename { chat: Some(&chat), ..Rename::default() });
        self.main.path = name.file();
        self.timeline = name;
        self
    }

    /// Returns the files of a timeline that was renamed to `name`. Unlike [`called`](Self::called),
    /// also removes the former name from the group's list of chats.
    #[must_use]
    pub fn renamed(self, name: TimelineName) -> Self {
        let former = self.timeline.clone();
        let mut files = self.called(name);
        let group = files.group_bytes();
        let new = group.and_then(|group| rename_in_group(group, &former, &files.timeline));
        files.set_group(new);
        files
    }

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

    pub fn can_be_bound(&self) -> bool {
        self.metadata(&self.split()).is_some()
    }

    /// Returns the metadata that the group's file has for this chat; `None` if the chat has a
    /// header.
    pub fn own_group_metadata(&self) -> Option<Vec<u8>> {
        let chat = self.split();
        let metadata = self.metadata(&chat).filter(|_| chat.header.is_none())?;
        Some(metadata.as_bytes().to_vec())
    }

    /// Replaces this chat's metadata in the group's file with the group metadata of `other`.
    /// Returns whether the group's file changed.
    pub fn take_group_metadata(&mut self, other: &Self) -> bool {
        let new = self
            .group_bytes()
            .zip(other.own_group_metadata())
            .and_then(|(group, own)| set_group_metadata(group, &self.timeline, &own));
        self.set_group(new)
    }

    fn set_group(&mut self, new: Option<Vec<u8>>) -> bool {
        let (Some(new), Some(group)) = (new, &mut self.group) else { return false };
        group.bytes = new.into();
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
                let new = listed
                    .zip(edited)
                    .and_then(|(group, own)| set_group_metadata(&group, name, &own));
                self.set_group(new);
            }
        }
    }
}
