//! The texts of many snapshots, each once. Snapshots share most of their trees: what was met before is not even listed again, so
//! going through all of them costs what differs between them.

use std::collections::HashSet;

use crate::store::{self, EntryKind, ObjectId, Reader, TreeEntry, name_encoding};

/// A blob that no snapshot had so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewText {
    pub id: ObjectId,
    pub place: TextPlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// A line of the chat after the header, with its number.
    Message(usize),
    /// An entry of the lorebook, with its key.
    Entry(String),
    Book,
    /// A long string of a card, with its place, such as `data.description`.
    Field(String),
    /// A card's text, with the long strings cut out.
    Card,
}

/// Goes through snapshots and tells what is new in each.
pub struct NewTexts {
    reader: Reader,
    seen: HashSet<ObjectId>,
    wanted: Wanted,
    /// The trees that could not be read, each once; what hangs on them is left out.
    pub broken: Vec<store::Error>,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub chat: bool,
    pub lorebook: bool,
    pub card: bool,
}

impl NewTexts {
    pub fn new(reader: Reader, wanted: Wanted) -> Self {
        Self { reader, seen: HashSet::new(), wanted, broken: Vec::new() }
    }

    /// The blobs of the snapshot with this tree that none before had: messages in order, then entries by their keys' names in
    /// the tree.
    pub fn of(&mut self, tree: ObjectId) -> Vec<NewText> {
        let mut new = Vec::new();
        for part in self.folders(tree) {
            match part.name.as_str() {
                "chat" if self.wanted.chat => self.messages(part.id, &mut new),
                "lorebooks" if self.wanted.lorebook => self.books(part.id, &mut new),
                "card" if self.wanted.card => self.card(part.id, &mut new),
                _ => {}
            }
        }
        // Folder 1000 stands before folder 101 in a tree.
        new.sort_by_key(|found| match found.place {
            TextPlace::Message(number) => number,
            _ => usize::MAX,
        });
        new
    }

    fn messages(&mut self, chat: ObjectId, new: &mut Vec<NewText>) {
        // Every message makes a new tree of folders; below that, most is old.
        for folders in self.folders(chat) {
            for folder in self.folders(folders.id) {
                for message in self.tree(folder.id) {
                    let number = message.name.strip_suffix(".json").and_then(|n| n.parse().ok());
                    if let Some(number) = number {
                        self.take(message.id, TextPlace::Message(number), new);
                    }
                }
            }
        }
    }

    fn books(&mut self, books: ObjectId, new: &mut Vec<NewText>) {
        for book in self.folders(books) {
            let parts = self.tree(book.id);
            match parts.iter().find(|part| part.kind == EntryKind::Tree) {
                Some(entries) => {
                    for entry in self.tree(entries.id) {
                        // A key may hold half of a character, and then it is no text.
                        let file = name_encoding::decode_bytes(&entry.name);
                        let file = String::from_utf8_lossy(&file);
                        let key = file.strip_suffix(".json").unwrap_or(&file).to_owned();
                        self.take(entry.id, TextPlace::Entry(key), new);
                    }
                }
                None => {
                    for part in parts {
                        self.take(part.id, TextPlace::Book, new);
                    }
                }
            }
        }
    }

    fn card(&mut self, card: ObjectId, new: &mut Vec<NewText>) {
        // The newer text comes first; what the other says as well is not told again.
        for text in self.folders(card).into_iter().rev() {
            for part in self.tree(text.id) {
                match part.kind {
                    EntryKind::Tree => {
                        for string in self.tree(part.id) {
                            let file = name_encoding::decode_bytes(&string.name);
                            let file = String::from_utf8_lossy(&file);
                            let place = file.strip_suffix(".json").unwrap_or(&file).to_owned();
                            self.take(string.id, TextPlace::Field(place), new);
                        }
                    }
                    _ => self.take(part.id, TextPlace::Card, new),
                }
            }
        }
    }

    fn folders(&mut self, tree: ObjectId) -> Vec<TreeEntry> {
        let mut entries = self.tree(tree);
        entries.retain(|entry| entry.kind == EntryKind::Tree);
        entries
    }

    /// A tree's entries, the first time it is asked for.
    fn tree(&mut self, id: ObjectId) -> Vec<TreeEntry> {
        if !self.seen.insert(id) {
            return Vec::new();
        }
        self.reader.tree(id).unwrap_or_else(|error| {
            self.broken.push(error);
            Vec::new()
        })
    }

    fn take(&mut self, id: ObjectId, place: TextPlace, new: &mut Vec<NewText>) {
        if self.seen.insert(id) {
            new.push(NewText { id, place });
        }
    }
}
