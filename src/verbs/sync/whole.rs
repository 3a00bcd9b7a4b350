//! A timeline's files in one hand: read from a snapshot, changed in a few values, stored again.

use crate::archive::{BookState, FileState, Parts, Role, Snapshot, State, Tree};
use crate::engine::Result;
use crate::st::{self, BookRename, Chat, LibraryPath, Raw, Rename, TimelineName};
use crate::store::Reader;

/// The state of a timeline.
#[derive(Clone)]
pub(super) struct Whole {
    pub timeline: TimelineName,
    pub path: LibraryPath,
    pub chat: Vec<u8>,
    pub book: Option<Book>,
    pub group: Option<(LibraryPath, Vec<u8>)>,
}

/// Its lorebook.
#[derive(Clone)]
pub(super) struct Book {
    pub name: String,
    pub path: LibraryPath,
    pub bytes: Vec<u8>,
}

impl Whole {
    pub(super) fn read(reader: &Reader, snapshot: &Snapshot) -> Result<Self> {
        let contents = Tree::open(reader, snapshot.tree)?.materialise(reader)?;
        let name = contents.manifest.file(Role::Lorebook).and_then(|book| book.name.clone());
        let mut whole = Self {
            timeline: snapshot.timeline.clone(),
            path: snapshot.timeline.file(),
            chat: Vec::new(),
            book: None,
            group: None,
        };
        for file in contents.files {
            match file.role {
                Role::Chat => whole.chat = file.bytes,
                Role::Lorebook => {
                    let name = name.clone().unwrap_or_default();
                    whole.book = Some(Book { name, path: file.path, bytes: file.bytes });
                }
                Role::Group => whole.group = Some((file.path, file.bytes)),
            }
        }
        Ok(whole)
    }

    pub(super) fn state(&self) -> State<'_> {
        let book = self.book.as_ref().map(|book| BookState {
            name: &book.name,
            file: FileState { path: &book.path, bytes: &book.bytes },
        });
        let group = self.group.as_ref().map(|(path, bytes)| FileState { path, bytes });
        let chat = FileState { path: &self.path, bytes: &self.chat };
        State::made(Parts { timeline: &self.timeline, chat, book, group }, None)
    }

    /// The book at this path, if it is the one.
    pub(super) fn book_at(&self, path: &LibraryPath) -> Option<&[u8]> {
        self.book.as_ref().filter(|book| book.path == *path).map(|book| book.bytes.as_slice())
    }

    /// The same chat under another name. A running recap must say whose it is, or the extension wipes it.
    pub(super) fn called(mut self, name: TimelineName) -> Self {
        let chat = name.chat().to_owned();
        self.edit(&name, &Rename { chat: Some(&chat), ..Rename::default() });
        self.path = name.file();
        self.timeline = name;
        self
    }

    /// The same chat with its lorebook under another name.
    pub(super) fn bound_to(mut self, new: &str, path: LibraryPath) -> Self {
        let Some(book) = self.book.take() else { return self };
        let rename = BookRename { old: &book.name, new, bytes: &book.bytes };
        let name = self.timeline.clone();
        self.edit(&name, &Rename { book: Some(rename), ..Rename::default() });
        self.book = Some(Book { name: new.to_owned(), path, bytes: book.bytes });
        self
    }

    /// Whether the chat's metadata can be changed at all.
    pub(super) fn can_be_bound(&self) -> bool {
        let chat = Chat::split(&self.chat, self.timeline.is_group());
        st::metadata(&chat, &self.timeline, self.group_bytes()).is_some()
    }

    /// What the group's file says of this chat, for chats without a header.
    pub(super) fn own_group_metadata(&self) -> Option<Vec<u8>> {
        let chat = Chat::split(&self.chat, self.timeline.is_group());
        if chat.header.is_some() {
            return None;
        }
        Some(st::metadata(&chat, &self.timeline, self.group_bytes())?.as_bytes().to_vec())
    }

    /// Have the metadata that the group's file of `other` has for this chat; whether that was possible.
    pub(super) fn take_group_metadata(&mut self, other: &Self) -> bool {
        let own = other.own_group_metadata();
        let group = self.group_bytes();
        let new = group
            .zip(own)
            .and_then(|(group, own)| st::set_group_metadata(group, &self.timeline, &own));
        match (new, &mut self.group) {
            (Some(new), Some((_, bytes))) => *bytes = new,
            _ => return false,
        }
        true
    }

    fn group_bytes(&self) -> Option<&[u8]> {
        self.group.as_ref().map(|(_, bytes)| bytes.as_slice())
    }

    fn edit(&mut self, name: &TimelineName, rename: &Rename<'_>) {
        let chat = Chat::split(&self.chat, self.timeline.is_group());
        let Some(metadata) = st::metadata(&chat, &self.timeline, self.group_bytes()) else {
            return;
        };
        match chat.header {
            Some(header) => {
                let header = st::rename_in_metadata(header, metadata, rename);
                let chat = Chat { header: Some(&header), messages: chat.messages.clone() };
                self.chat = chat.join();
            }
            None => {
                let own = metadata.as_bytes();
                let edited = Raw::parse(own).map(|raw| st::rename_in_metadata(own, raw, rename));
                let listed = self.group_bytes().and_then(|group| st::list_in_group(group, name));
                let group = listed
                    .zip(edited)
                    .and_then(|(group, own)| st::set_group_metadata(&group, name, &own));
                if let (Some(bytes), Some((_, old))) = (group, &mut self.group) {
                    *old = bytes;
                }
            }
        }
    }
}
