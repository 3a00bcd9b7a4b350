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

/// The kind of a [`TextPlace`], which determines how the text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    Message,
    Entry,
    Book,
    Field,
    Card,
}

/// The position of a tree in a snapshot's tree, which determines how its entries are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeRole {
    Root,
    Chat,
    MessageFolders,
    Messages,
    Books,
    Book,
    Entries,
    Card,
    CardText,
    Fields,
}

/// An entry of a tree that is searched.
pub enum TreePart<'b> {
    Tree(TreeRole, ObjectId),
    /// A text, and the name of its file.
    Text(TextKind, ObjectId, &'b [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextKinds {
    pub chat: bool,
    pub lorebook: bool,
    pub card: bool,
}

impl TextKinds {
    /// Returns whether a tree may contain such texts.
    pub fn are_in(self, role: TreeRole) -> bool {
        match role {
            TreeRole::Chat => self.chat,
            TreeRole::Books => self.lorebook,
            TreeRole::Card => self.card,
            _ => true,
        }
    }
}

impl TextKind {
    /// Returns the place of a text in a file of this name; `None` if it is not searched.
    pub fn place(self, file: &[u8]) -> Option<TextPlace> {
        let name = || {
            // A key may contain half of a surrogate pair, which is not valid UTF-8.
            let name = name_encoding::decode_bytes(&String::from_utf8_lossy(file));
            let name = String::from_utf8_lossy(&name);
            name.strip_suffix(".json").unwrap_or(&name).to_owned()
        };
        Some(match self {
            Self::Message => {
                let number = file.strip_suffix(b".json")?;
                TextPlace::Message(std::str::from_utf8(number).ok()?.parse().ok()?)
            }
            Self::Entry => TextPlace::Entry(name()),
            Self::Field => TextPlace::Field(name()),
            Self::Book => TextPlace::Book,
            Self::Card => TextPlace::Card,
        })
    }
}

/// Passes the entries of a tree that are searched to `visit`, in the order in which they are
/// searched. Returns whether the tree could be parsed to its end.
pub fn tree_parts<'b>(role: TreeRole, tree: &'b [u8], visit: &mut dyn FnMut(TreePart<'b>)) -> bool {
    let entries = || tree_entries(tree).flatten();
    let is_folder = |entry: &EntryBytes<'_>| entry.mode() == Mode::Folder;
    let mut each = |part: &dyn Fn(EntryBytes<'b>) -> Option<TreePart<'b>>| {
        entries().filter_map(part).for_each(&mut *visit);
    };
    let text = |kind| move |entry: EntryBytes<'b>| TreePart::Text(kind, entry.id, entry.name);
    let folder = |role| move |entry| is_folder(&entry).then_some(TreePart::Tree(role, entry.id));
    match role {
        TreeRole::Root => each(&|entry| {
            let role = match entry.name {
                b"chat" => TreeRole::Chat,
                b"lorebooks" => TreeRole::Books,
                b"card" => TreeRole::Card,
                _ => return None,
            };
            folder(role)(entry)
        }),
        TreeRole::Chat => each(&folder(TreeRole::MessageFolders)),
        TreeRole::MessageFolders => each(&folder(TreeRole::Messages)),
        TreeRole::Messages => each(&|entry| Some(text(TextKind::Message)(entry))),
        TreeRole::Books => each(&folder(TreeRole::Book)),
        TreeRole::Book => match entries().find(is_folder) {
            Some(entries) => visit(TreePart::Tree(TreeRole::Entries, entries.id)),
            None => each(&|entry| Some(text(TextKind::Book)(entry))),
        },
        TreeRole::Entries => each(&|entry| Some(text(TextKind::Entry)(entry))),
        TreeRole::Card => {
            // The last text of a card has the newer format and is read first. A string that occurs
            // in both texts is returned only once.
            let texts: Vec<_> = entries().filter_map(folder(TreeRole::CardText)).collect();
            texts.into_iter().rev().for_each(visit);
        }
        TreeRole::CardText => each(&|entry| {
            folder(TreeRole::Fields)(entry).or_else(|| Some(text(TextKind::Card)(entry)))
        }),
        TreeRole::Fields => each(&|entry| Some(text(TextKind::Field)(entry))),
    }
    tree_entries(tree).all(|entry| entry.is_some())
}

pub struct NewTexts {
    reader: Reader,
    seen: ObjectIds,
    wanted: TextKinds,
    /// Errors of trees that could not be read. Texts in these trees are left out.
    pub broken: Vec<store::Error>,
    buffers: Vec<Vec<u8>>,
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
        self.visit(TreeRole::Root, tree, &mut new);
        sort_texts(&mut new);
        new
    }

    fn visit(&mut self, role: TreeRole, tree: ObjectId, new: &mut Vec<NewText>) {
        // A new message changes the tree of folders, but most folders are known and are skipped.
        if !self.seen.insert(tree) {
            return;
        }
        let mut buffer = self.buffers.pop().unwrap_or_default();
        match self.reader.read(tree, Kind::Tree, &mut buffer) {
            Ok(bytes) => {
                let is_complete = tree_parts(role, bytes, &mut |part| match part {
                    TreePart::Tree(role, id) if self.wanted.are_in(role) => {
                        self.visit(role, id, new);
                    }
                    TreePart::Text(kind, id, name) if self.seen.insert(id) => {
                        new.extend(kind.place(name).map(|place| NewText { id, place }));
                    }
                    _ => {}
                });
                if !is_complete {
                    self.broken.push(no_tree(tree));
                }
            }
            Err(error) => self.broken.push(error),
        }
        self.buffers.push(buffer);
    }
}

/// Sorts the texts of a snapshot: messages by number, then all other texts.
pub fn sort_texts(texts: &mut [NewText]) {
    // Trees are sorted by name, so folder 1000 comes before folder 101.
    texts.sort_by_key(|found| match found.place {
        TextPlace::Message(number) => number,
        _ => usize::MAX,
    });
}
