//! From a state to a tree. See `docs/format.md` for the layout.

use std::collections::HashSet;
use std::ops::Range;

use super::folder_trees::{Folders, Previous};
use super::part_names::{
    PER_FOLDER, book_folder, entry_file, message_file, message_folder, plain_file,
};
use super::{Attachment, Blake3, Result, Role, State, attachments, card};
use crate::st::cut;
use crate::store::{Kind, ObjectId, PackWriter, Reader, TreeEntry, tree};

/// A state that is in the pack now.
pub struct Written {
    pub tree: ObjectId,
    /// Its folders of messages, to be known next time.
    pub folders: Folders,
    /// The messages of folders that were not known: all that can be new.
    pub new_messages: Vec<Range<usize>>,
}

/// Add the objects of `state` to `pack`. `previous` is the tree of a stored snapshot that shares much with it, `folders` what is known
/// of that snapshot's folders.
pub fn write(
    state: &State<'_>,
    pack: &mut PackWriter,
    reader: &Reader,
    previous: Option<ObjectId>,
    folders: &Folders,
    attached: &[Attachment],
) -> Result<Written> {
    let previous = previous.map(|tree| Previous::read(reader, tree)).unwrap_or_default();
    let mut root = Vec::new();
    let main = &state.files.main;
    let mut chat = None;
    match state.manifest.main_role() {
        Role::Chat => {
            let written = add_chat(state, pack, reader, &previous, folders)?;
            root.push(TreeEntry::tree("chat", written.tree));
            chat = Some(written);
        }
        Role::Card => root.push(TreeEntry::tree("card", card::write(&main.bytes, pack)?)),
        Role::File | Role::Group => {
            let file = pack.add(Kind::Blob, &main.bytes)?;
            let folder = add_tree(pack, &[TreeEntry::blob(plain_file(&main.path), file)])?;
            root.push(TreeEntry::tree("file", folder));
        }
        // As in the snapshots of the chats that it is bound to, so that all share it.
        Role::Lorebook => {}
    }
    if let Some(book) = state.files.book() {
        let cut = cut(book.bytes);
        let mut folder = vec![TreeEntry::blob("book.json", pack.add(Kind::Blob, &cut.book)?)];
        if !cut.entries.is_empty() {
            let values: Vec<_> = cut.entries.iter().map(|(_, value)| *value).collect();
            let ids = pack.add_blobs(&values, &previous.entries)?;
            let named = cut.entries.iter().zip(ids);
            let named = named.map(|((key, _), id)| TreeEntry::blob(entry_file(key.as_bytes()), id));
            folder.push(TreeEntry::tree("entries", add_tree(pack, &named.collect::<Vec<_>>())?));
        }
        let folder = add_tree(pack, &folder)?;
        let books = add_tree(pack, &[TreeEntry::tree(book_folder(book.name), folder)])?;
        root.push(TreeEntry::tree("lorebooks", books));
    }
    if let Some(group) = state.files.group_bytes() {
        root.push(TreeEntry::blob("group.json", pack.add(Kind::Blob, group)?));
    }
    if !attached.is_empty() {
        root.push(TreeEntry::tree("attachments", attachments::write(attached, pack)?));
    }
    let manifest = state.manifest.with(attached).encode();
    root.push(TreeEntry::blob("snapshot.json", pack.add(Kind::Blob, &manifest)?));
    let tree = add_tree(pack, &root)?;
    let (folders, new_messages) = match chat {
        Some(chat) => (chat.folders, chat.new_messages),
        None => Default::default(),
    };
    Ok(Written { tree, folders, new_messages })
}

/// Add the objects of the chat alone; its tree, which is the same for the same bytes.
pub fn write_chat(state: &State<'_>, pack: &mut PackWriter, reader: &Reader) -> Result<ObjectId> {
    Ok(add_chat(state, pack, reader, &Previous::default(), &Folders::default())?.tree)
}

/// A folder of messages on its way into the store.
struct Folder<'m> {
    name: String,
    first: usize,
    messages: &'m [&'m [u8]],
    hash: Blake3,
    tree: Option<ObjectId>,
}

fn add_chat(
    state: &State<'_>,
    pack: &mut PackWriter,
    reader: &Reader,
    previous: &Previous,
    known: &Folders,
) -> Result<Written> {
    let mut chat = Vec::new();
    if let Some(header) = state.chat.header {
        chat.push(TreeEntry::blob("header.json", pack.add(Kind::Blob, header)?));
    }
    let mut list = folders_of(state);
    if !pack.distrusts_store() {
        for folder in &mut list {
            // Believed only in its own place: a tree has its messages' numbers in it, and the same bytes may stand elsewhere
            // under others. And in the snapshot before it is sure to be durable.
            let before = previous.folder(&folder.name);
            folder.tree = known.get(folder.hash).filter(|tree| before == Some(*tree));
        }
    }
    let unknown = list.iter().filter(|folder| folder.tree.is_none());
    let stored: HashSet<_> =
        unknown.clone().flat_map(|folder| previous.messages(reader, &folder.name)).collect();
    let new_messages: Vec<_> =
        unknown.clone().map(|folder| folder.first..folder.first + folder.messages.len()).collect();
    let lines: Vec<&[u8]> = unknown.flat_map(|folder| folder.messages).copied().collect();
    let mut ids = pack.add_blobs(&lines, &stored)?.into_iter();

    let mut folders = Folders::default();
    let mut entries = Vec::with_capacity(list.len());
    for folder in list {
        let tree = match folder.tree {
            Some(tree) => tree,
            None => {
                let numbers = folder.first..folder.first + folder.messages.len();
                let messages =
                    numbers.zip(ids.by_ref()).map(|(n, id)| TreeEntry::blob(message_file(n), id));
                add_tree(pack, &messages.collect::<Vec<_>>())?
            }
        };
        folders.insert(folder.hash, tree);
        entries.push(TreeEntry::tree(folder.name, tree));
    }
    if !entries.is_empty() {
        chat.push(TreeEntry::tree("messages", add_tree(pack, &entries)?));
    }
    Ok(Written { tree: add_tree(pack, &chat)?, folders, new_messages })
}

/// The folders of a chat with the hashes of their bytes.
fn folders_of<'m>(state: &'m State<'_>) -> Vec<Folder<'m>> {
    let folders = state.chat.messages.chunks(PER_FOLDER).zip(&state.folders).enumerate();
    let folder = |(n, (messages, hash)): (usize, (&'m [&'m [u8]], &Blake3))| Folder {
        name: message_folder(n),
        first: n * PER_FOLDER,
        messages,
        hash: *hash,
        tree: None,
    };
    folders.map(folder).collect()
}

fn add_tree(pack: &mut PackWriter, entries: &[TreeEntry]) -> Result<ObjectId> {
    Ok(pack.add(Kind::Tree, &tree::encode(entries))?)
}
