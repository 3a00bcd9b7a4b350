//! From a state to a tree. See `docs/format.md` for the layout.

use std::collections::HashSet;
use std::ops::Range;
use std::slice;

use super::folder_trees::{Folders, Previous};
use super::part_names::{
    PER_FOLDER, book_folder, entry_file, message_file, message_folder, plain_file,
};
use super::{Attachment, Blake3, Manifest, Result, Role, State, attachments, card};
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

/// The files of a state, in the pack; the tree that holds them together is not. They are the same whatever the snapshot follows.
pub struct WrittenFiles {
    root: Vec<TreeEntry>,
    folders: Folders,
    new_messages: Vec<Range<usize>>,
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
    let files = write_files(state, pack, reader, previous, folders)?;
    files.complete(&state.manifest, attached, pack)
}

/// Add the files of `state`, as [`write()`] would.
pub fn write_files(
    state: &State<'_>,
    pack: &mut PackWriter,
    reader: &Reader,
    previous: Option<ObjectId>,
    folders: &Folders,
) -> Result<WrittenFiles> {
    let previous = previous.map(|tree| Previous::read(reader, tree)).unwrap_or_default();
    let chats = add_chats(slice::from_ref(state), pack, reader, &previous, folders)?;
    add_files(state, chats.into_iter().next().flatten(), pack, &previous)
}

/// Add the files of many states of which nothing is stored, on all cores.
pub fn write_many(
    states: &[State<'_>],
    pack: &mut PackWriter,
    reader: &Reader,
) -> Result<Vec<WrittenFiles>> {
    let previous = Previous::default();
    let chats = add_chats(states, pack, reader, &previous, &Folders::default())?;
    let states = states.iter().zip(chats);
    states.map(|(state, chat)| add_files(state, chat, pack, &previous)).collect()
}

impl WrittenFiles {
    /// Add the tree that holds them together.
    pub fn complete(
        self,
        manifest: &Manifest,
        attached: &[Attachment],
        pack: &mut PackWriter,
    ) -> Result<Written> {
        let Self { mut root, folders, new_messages } = self;
        if !attached.is_empty() {
            root.push(TreeEntry::tree("attachments", attachments::write(attached, pack)?));
        }
        let manifest = manifest.with(attached).encode();
        root.push(TreeEntry::blob("snapshot.json", pack.add(Kind::Blob, &manifest)?));
        Ok(Written { tree: add_tree(pack, &root)?, folders, new_messages })
    }
}

/// Add what is no chat, and put it together with the chat that there may be.
fn add_files(
    state: &State<'_>,
    chat: Option<Written>,
    pack: &mut PackWriter,
    previous: &Previous,
) -> Result<WrittenFiles> {
    let mut root = Vec::new();
    let main = &state.files.main;
    match state.manifest.main_role() {
        Role::Card => root.push(TreeEntry::tree("card", card::write(&main.bytes, pack)?)),
        Role::File | Role::Group => {
            let file = pack.add(Kind::Blob, &main.bytes)?;
            let folder = add_tree(pack, &[TreeEntry::blob(plain_file(&main.path), file)])?;
            root.push(TreeEntry::tree("file", folder));
        }
        // A lorebook is stored as in the snapshots of the chats that it is bound to, so that all share it.
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
            folder.push(TreeEntry::tree("entries", add_tree(pack, &named.collect::<Vec<_>>())?));
        }
        let folder = add_tree(pack, &folder)?;
        let books = add_tree(pack, &[TreeEntry::tree(book_folder(book.name), folder)])?;
        root.push(TreeEntry::tree("lorebooks", books));
    }
    if let Some(group) = state.files.group_bytes() {
        root.push(TreeEntry::blob("group.json", pack.add(Kind::Blob, group)?));
    }
    let (mut folders, mut new_messages) = Default::default();
    if let Some(chat) = chat {
        root.push(TreeEntry::tree("chat", chat.tree));
        (folders, new_messages) = (chat.folders, chat.new_messages);
    }
    Ok(WrittenFiles { root, folders, new_messages })
}

/// Add the objects of the chat alone; its tree, which is the same for the same bytes.
pub fn write_chat(state: &State<'_>, pack: &mut PackWriter, reader: &Reader) -> Result<ObjectId> {
    let mut list = folders_of(state);
    let (previous, known) = Default::default();
    let ids = add_messages(slice::from_mut(&mut list), pack, reader, &previous, &known)?;
    Ok(add_chat(state, list, &mut ids.into_iter(), pack)?.tree)
}

/// A folder of messages on its way into the store.
struct Folder<'m> {
    name: String,
    first: usize,
    messages: &'m [&'m [u8]],
    hash: Blake3,
    tree: Option<ObjectId>,
}

/// Add the chats of these states; none for one that is no chat's.
fn add_chats(
    states: &[State<'_>],
    pack: &mut PackWriter,
    reader: &Reader,
    previous: &Previous,
    known: &Folders,
) -> Result<Vec<Option<Written>>> {
    let mut lists: Vec<_> = states.iter().map(folders_of).collect();
    let mut ids = add_messages(&mut lists, pack, reader, previous, known)?.into_iter();
    let lists = states.iter().zip(lists);
    let chats = lists.map(|(state, list)| match state.manifest.main_role() {
        Role::Chat => add_chat(state, list, &mut ids, pack).map(Some),
        _ => Ok(None),
    });
    chats.collect()
}

/// Find out which folders are known, and add the messages of all others together, so that all cores have something to do also where each chat is short.
fn add_messages(
    lists: &mut [Vec<Folder<'_>>],
    pack: &mut PackWriter,
    reader: &Reader,
    previous: &Previous,
    known: &Folders,
) -> Result<Vec<ObjectId>> {
    if !pack.distrusts_store() {
        for folder in lists.iter_mut().flatten() {
            // Believed only in its own place: a tree has its messages' numbers in it, and the same bytes may stand elsewhere
            // under others. And in the snapshot before it is sure to be durable.
            let before = previous.folder(&folder.name);
            folder.tree = known.get(folder.hash).filter(|tree| before == Some(*tree));
        }
    }
    let unknown = lists.iter().flatten().filter(|folder| folder.tree.is_none());
    let stored: HashSet<_> =
        unknown.clone().flat_map(|folder| previous.messages(reader, &folder.name)).collect();
    let lines: Vec<&[u8]> = unknown.flat_map(|folder| folder.messages).copied().collect();
    Ok(pack.add_blobs(&lines, &stored)?)
}

/// Add the trees of a chat. `ids` are the messages of the folders that are not known.
fn add_chat(
    state: &State<'_>,
    list: Vec<Folder<'_>>,
    ids: &mut impl Iterator<Item = ObjectId>,
    pack: &mut PackWriter,
) -> Result<Written> {
    let mut chat = Vec::new();
    if let Some(header) = state.chat.header {
        chat.push(TreeEntry::blob("header.json", pack.add(Kind::Blob, header)?));
    }
    let (mut folders, mut new_messages) = (Folders::default(), Vec::new());
    let mut entries = Vec::with_capacity(list.len());
    for folder in list {
        let tree = match folder.tree {
            Some(tree) => tree,
            None => {
                let numbers = folder.first..folder.first + folder.messages.len();
                new_messages.push(numbers.clone());
                let messages = numbers.zip(ids.by_ref());
                let messages = messages.map(|(n, id)| TreeEntry::blob(message_file(n), id));
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
