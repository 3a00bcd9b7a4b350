//! Lists the texts of many snapshots, each text once. Trees that were already read are skipped, so
//! the cost depends on the differences between snapshots.

use crate::store::{
    self, EntryBytes, Kind, Mode, ObjectId, ObjectIds, Reader, name_encoding, no_tree, tree_entries,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewText {
    pub id: ObjectId,
    pub place: TextPlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPlace {
    Message(usize),
    Entry(String),
    Book,
    Field(String),
    Card,
}

pub struct NewTexts {
    reader: Reader,
    seen: ObjectIds,
    wanted: TextKinds,
    /// Errors of trees that could not be read. Texts in these trees are left out.
    pub broken: Vec<store::Error>,
    buffers: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextKinds {
    pub chat: bool,
    pub lorebook: bool,
    pub card: bool,
}

impl NewTexts {
    pub fn new(reader: Reader, wanted: TextKinds) -> Self {
        let (seen, broken, buffers) = Default::default();
        Self { reader, seen, wanted, broken, buffers }
    }

    /// Returns the texts in a snapshot's tree that no earlier call returned: messages by number,
    /// then all other texts.
    pub fn of(&mut self, tree: ObjectId) -> Vec<NewText> {
        let mut new = Vec::new();
        self.each_folder(tree, &mut |texts, part| match part.name {
            b"chat" if texts.wanted.chat => texts.messages(part.id, &mut new),
            b"lorebooks" if texts.wanted.lorebook => texts.books(part.id, &mut new),
            b"card" if texts.wanted.card => texts.card(part.id, &mut new),
            _ => {}
        });
        // Trees are sorted by name, so folder 1000 comes before folder 101.
        new.sort_by_key(|found| match found.place {
            TextPlace::Message(number) => number,
            _ => usize::MAX,
        });
        new
    }

    fn messages(&mut self, chat: ObjectId, new: &mut Vec<NewText>) {
        // A new message changes the tree of folders, but most folders are known and are skipped.
        self.each_folder(chat, &mut |texts, folders| {
            texts.each_folder(folders.id, &mut |texts, folder| {
                texts.each(folder.id, &mut |texts, message| {
                    let number = || {
                        let number = message.name.strip_suffix(b".json")?;
                        std::str::from_utf8(number).ok()?.parse().ok()
                    };
                    if texts.seen.insert(message.id) {
                        let place = number().map(TextPlace::Message);
                        new.extend(place.map(|place| NewText { id: message.id, place }));
                    }
                });
            });
        });
    }

    fn books(&mut self, books: ObjectId, new: &mut Vec<NewText>) {
        self.each_folder(books, &mut |texts, book| {
            let mut parts = Vec::new();
            texts.each(book.id, &mut |_, part| parts.push((part.mode(), part.id)));
            match parts.iter().find(|(mode, _)| *mode == Mode::Folder) {
                Some((_, entries)) => texts.strings(*entries, new, TextPlace::Entry),
                None => {
                    for (_, id) in parts.into_iter().filter(|(_, id)| texts.seen.insert(*id)) {
                        new.push(NewText { id, place: TextPlace::Book });
                    }
                }
            }
        });
    }

    fn card(&mut self, card: ObjectId, new: &mut Vec<NewText>) {
        let mut folders = Vec::new();
        self.each_folder(card, &mut |_, folder| folders.push(folder.id));
        // The last text of a card has the newer format and is read first. A string that occurs in
        // both texts is returned only once.
        for text in folders.into_iter().rev() {
            self.each(text, &mut |texts, part| match part.mode() {
                Mode::Folder => texts.strings(part.id, new, TextPlace::Field),
                _ if texts.seen.insert(part.id) => {
                    new.push(NewText { id: part.id, place: TextPlace::Card });
                }
                _ => {}
            });
        }
    }

    fn strings(
        &mut self,
        folder: ObjectId,
        new: &mut Vec<NewText>,
        place: fn(String) -> TextPlace,
    ) {
        self.each(folder, &mut |texts, file| {
            if texts.seen.insert(file.id) {
                // A key may contain half of a surrogate pair, which is not valid UTF-8.
                let name = name_encoding::decode_bytes(&String::from_utf8_lossy(file.name));
                let name = String::from_utf8_lossy(&name);
                let name = name.strip_suffix(".json").unwrap_or(&name).to_owned();
                new.push(NewText { id: file.id, place: place(name) });
            }
        });
    }

    fn each_folder(&mut self, tree: ObjectId, visit: &mut dyn FnMut(&mut Self, EntryBytes<'_>)) {
        self.each(tree, &mut |texts, entry| {
            if entry.mode() == Mode::Folder {
                visit(texts, entry);
            }
        });
    }

    fn each(&mut self, tree: ObjectId, visit: &mut dyn FnMut(&mut Self, EntryBytes<'_>)) {
        if !self.seen.insert(tree) {
            return;
        }
        let mut buffer = self.buffers.pop().unwrap_or_default();
        match self.reader.read(tree, Kind::Tree, &mut buffer) {
            Ok(bytes) => {
                for entry in tree_entries(bytes) {
                    match entry {
                        Some(entry) => visit(self, entry),
                        None => self.broken.push(no_tree(tree)),
                    }
                }
            }
            Err(error) => self.broken.push(error),
        }
        self.buffers.push(buffer);
    }
}
