//! Writes a state as a tree. See `docs/format.md` for the layout.

use std::collections::HashSet;
use std::ops::Range;
use std::slice;

use super::folder_trees::{Folders, PreviousObjects};
use super::part_names::{
    PER_FOLDER, book_folder, entry_file, message_file, message_folder, plain_file,
};
use super::{Attachment, Blake3, Manifest, Result, Role, State, attachment_tree, cut_file};
use crate::st::cut;
use crate::store::{Kind, ObjectId, PackWriter, TreeEntry};

pub struct WrittenTree {
    pub tree: ObjectId,
    pub folders: Folders,
}

/// Files of a state after their objects were added to the pack. [`complete`](Self::complete) adds
/// the manifest and the root tree.
pub struct WrittenFiles {
    root: Vec<TreeEntry>,
    folders: Folders,
}

/// Adds the objects of `state` to `pack`.
pub fn write(
    state: &State<'_>,
    attached: &[Attachment],
    pack: &mut PackWriter,
) -> Result<WrittenTree> {
    FilesToWrite::whole(state).write(pack)?.complete(&state.manifest, attached, pack)
}

pub fn write_many(states: &[State<'_>], pack: &mut PackWriter) -> Result<Vec<WrittenFiles>> {
    let states: Vec<_> = states.iter().map(FilesToWrite::whole).collect();
    let mut ids = add_messages(&states, pack)?.into_iter();
    states.into_iter().map(|state| state.write_rest(&mut ids, pack)).collect()
}

/// Adds only the objects of the chat, and returns the tree of `chat/`. Equal chat files have the
/// same tree.
pub fn write_chat(state: &State<'_>, pack: &mut PackWriter) -> Result<ObjectId> {
    let chat = FilesToWrite::whole(state);
    let mut ids = add_messages(slice::from_ref(&chat), pack)?.into_iter();
    Ok(chat.write_chat(&mut ids, pack)?.tree)
}

pub struct FilesToWrite<'s> {
    state: &'s State<'s>,
    previous: PreviousObjects,
    folders: Vec<Folder<'s>>,
}

struct Folder<'m> {
    name: String,
    first: usize,
    messages: &'m [&'m [u8]],
    hash: Blake3,
    tree: Option<ObjectId>,
}

impl<'s> FilesToWrite<'s> {
    /// Prepares the files of `state` for writing to `pack`. `previous` is the tree of a similar
    /// snapshot, whose objects are reused; `known` has the trees of its message folders.
    pub fn of(
        state: &'s State<'_>,
        pack: &PackWriter,
        previous: Option<ObjectId>,
        known: &Folders,
    ) -> Self {
        let mut whole = Self::whole(state);
        let previous = previous.map(|tree| PreviousObjects::read(pack.reader(), tree));
        whole.previous = previous.unwrap_or_default();
        if !pack.distrusts_store() {
            for folder in &mut whole.folders {
                // The tree of a folder contains the numbers of its messages, so it is reused only
                // at the same position. The tree must also be in the previous snapshot, whose
                // objects are durable.
                let before = whole.previous.folder(&folder.name);
                folder.tree = known.get(folder.hash).filter(|tree| before == Some(*tree));
            }
        }
        whole
    }

    fn whole(state: &'s State<'_>) -> Self {
        let folders = state.chat.messages.chunks(PER_FOLDER).zip(&state.folders).enumerate();
        let folder = |(n, (messages, hash)): (usize, (&'s [&'s [u8]], &Blake3))| Folder {
            name: message_folder(n),
            first: n * PER_FOLDER,
            messages,
            hash: *hash,
            tree: None,
        };
        Self { state, previous: PreviousObjects::default(), folders: folders.map(folder).collect() }
    }

    /// Returns the message numbers of all folders that are not reused. Only these messages can be
    /// new.
    pub fn new_messages(&self) -> Vec<Range<usize>> {
        self.unknown().map(Folder::numbers).collect()
    }

    pub fn write(self, pack: &mut PackWriter) -> Result<WrittenFiles> {
        let mut ids = add_messages(slice::from_ref(&self), pack)?.into_iter();
        self.write_rest(&mut ids, pack)
    }

    /// Adds all objects except the messages, which were already added and have these `ids`.
    fn write_rest(
        self,
        ids: &mut impl Iterator<Item = ObjectId>,
        pack: &mut PackWriter,
    ) -> Result<WrittenFiles> {
        let mut files = add_files(self.state, &self.previous, pack)?;
        if self.state.manifest.main_role() == Role::Chat {
            let chat = self.write_chat(ids, pack)?;
            files.root.push(TreeEntry::tree("chat", chat.tree));
            files.folders = chat.folders;
        }
        Ok(files)
    }

    fn write_chat(
        self,
        ids: &mut impl Iterator<Item = ObjectId>,
        pack: &mut PackWriter,
    ) -> Result<WrittenTree> {
        let mut chat = Vec::new();
        if let Some(header) = self.state.chat.header {
            chat.push(TreeEntry::blob("header.json", pack.add(Kind::Blob, header)?));
        }
        let mut folders = Folders::default();
        let mut entries = Vec::with_capacity(self.folders.len());
        for folder in self.folders {
            let tree = match folder.tree {
                Some(tree) => tree,
                None => {
                    let messages = folder.numbers().zip(ids.by_ref());
                    let messages = messages.map(|(n, id)| TreeEntry::blob(message_file(n), id));
                    pack.add_tree(&messages.collect::<Vec<_>>())?
                }
            };
            folders.insert(folder.hash, tree);
            entries.push(TreeEntry::tree(folder.name, tree));
        }
        if !entries.is_empty() {
            chat.push(TreeEntry::tree("messages", pack.add_tree(&entries)?));
        }
        Ok(WrittenTree { tree: pack.add_tree(&chat)?, folders })
    }

    fn unknown(&self) -> impl Iterator<Item = &Folder<'s>> {
        self.folders.iter().filter(|folder| folder.tree.is_none())
    }
}

impl Folder<'_> {
    fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.messages.len()
    }
}

impl WrittenFiles {
    pub fn complete(
        self,
        manifest: &Manifest,
        attached: &[Attachment],
        pack: &mut PackWriter,
    ) -> Result<WrittenTree> {
        let Self { mut root, folders } = self;
        if !attached.is_empty() {
            root.push(TreeEntry::tree("attachments", attachment_tree::write(attached, pack)?));
        }
        let manifest = manifest.with(attached).encode();
        root.push(TreeEntry::blob("snapshot.json", pack.add(Kind::Blob, &manifest)?));
        Ok(WrittenTree { tree: pack.add_tree(&root)?, folders })
    }
}

/// Adds the messages of all folders that are not reused. The messages of all states are added
/// together, so that short chats use all cores too.
fn add_messages(states: &[FilesToWrite<'_>], pack: &mut PackWriter) -> Result<Vec<ObjectId>> {
    let unknown =
        || states.iter().flat_map(|state| state.unknown().map(move |folder| (state, folder)));
    let before = |(state, folder): (&FilesToWrite<'_>, &Folder<'_>)| {
        state.previous.messages(pack.reader(), &folder.name)
    };
    let stored: HashSet<_> = unknown().flat_map(before).collect();
    let lines: Vec<&[u8]> = unknown().flat_map(|(_, folder)| folder.messages).copied().collect();
    Ok(pack.add_blobs(&lines, &stored)?)
}

fn add_files(
    state: &State<'_>,
    previous: &PreviousObjects,
    pack: &mut PackWriter,
) -> Result<WrittenFiles> {
    let mut root = Vec::new();
    let main = &state.files.main;
    match state.manifest.main_role() {
        Role::Card => root.push(TreeEntry::tree("card", cut_file::write_card(&main.bytes, pack)?)),
        Role::File | Role::Group => {
            let file = pack.add(Kind::Blob, &main.bytes)?;
            let folder = pack.add_tree(&[TreeEntry::blob(plain_file(&main.path), file)])?;
            root.push(TreeEntry::tree("file", folder));
        }
        // A lorebook is stored below, in the same way as in a chat's snapshot, so that both share
        // its objects.
        Role::Chat | Role::Lorebook => {}
    }
    if let Some(book) = state.files.book() {
        let cut = cut(book.bytes);
        let mut folder = vec![TreeEntry::blob("book.json", pack.add(Kind::Blob, &cut.book)?)];
        if !cut.entries.is_empty() {
            let values: Vec<_> = cut.entries.iter().map(|(_, value)| *value).collect();
            let ids = pack.add_blobs(&values, &previous.entries)?;
            let named = cut.entries.iter().zip(ids);
            let named = named.map(|((key, _), id)| TreeEntry::blob(entry_file(key.as_bytes()), id));
            folder.push(TreeEntry::tree("entries", pack.add_tree(&named.collect::<Vec<_>>())?));
        }
        let folder = pack.add_tree(&folder)?;
        let books = pack.add_tree(&[TreeEntry::tree(book_folder(book.name), folder)])?;
        root.push(TreeEntry::tree("lorebooks", books));
    }
    if let Some(group) = state.files.group_bytes() {
        root.push(TreeEntry::blob("group.json", pack.add(Kind::Blob, group)?));
    }
    Ok(WrittenFiles { root, folders: Folders::default() })
}
