//! From a state to a tree. See `docs/format.md` for the layout.

use std::collections::HashSet;

use super::known::objects_below;
use super::{Result, State};
use crate::st::cut;
use crate::store::names::tree_segment;
use crate::store::{Kind, ObjectId, PackWriter, Reader, TreeEntry, tree};

/// Messages in one folder: small trees to rewrite when the last message changes, few of them to list.
pub(super) const PER_FOLDER: usize = 100;

/// A state that is in the pack now.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Its tree.
    pub tree: ObjectId,
    /// How many entries its lorebook has.
    pub entries: usize,
}

/// Add the objects of `state` to `pack`. `previous` is the tree of a stored snapshot that shares much with it.
pub fn write(
    state: &State<'_>,
    pack: &mut PackWriter,
    reader: &Reader,
    previous: Option<ObjectId>,
) -> Result<Written> {
    let known = match previous {
        Some(tree) => objects_below(reader, tree)?,
        None => HashSet::new(),
    };
    let mut root = vec![TreeEntry::tree("chat", add_chat(state, pack, &known)?)];
    let mut entries = 0;
    if let Some(book) = state.book {
        let cut = cut(book.file.bytes);
        entries = cut.entries.len();
        let mut folder = vec![TreeEntry::blob("book.json", pack.add(Kind::Blob, &cut.book)?)];
        if !cut.entries.is_empty() {
            let values: Vec<_> = cut.entries.iter().map(|(_, value)| *value).collect();
            let ids = pack.add_blobs(&values, &known)?;
            let named = cut
                .entries
                .iter()
                .zip(ids)
                .map(|((key, _), id)| TreeEntry::blob(entry_file(key.as_bytes()), id));
            folder.push(TreeEntry::tree("entries", add_tree(pack, &named.collect::<Vec<_>>())?));
        }
        let folder = add_tree(pack, &folder)?;
        let books = add_tree(pack, &[TreeEntry::tree(tree_segment(book.name.as_bytes()), folder)])?;
        root.push(TreeEntry::tree("lorebooks", books));
    }
    if let Some(group) = state.group {
        root.push(TreeEntry::blob("group.json", pack.add(Kind::Blob, group.bytes)?));
    }
    root.push(TreeEntry::blob("snapshot.json", pack.add(Kind::Blob, &state.manifest.encode())?));
    Ok(Written { tree: add_tree(pack, &root)?, entries })
}

/// Add the objects of the chat alone; its tree, which is the same for the same bytes.
pub fn write_chat(state: &State<'_>, pack: &mut PackWriter) -> Result<ObjectId> {
    add_chat(state, pack, &HashSet::new())
}

fn add_chat(
    state: &State<'_>,
    pack: &mut PackWriter,
    known: &HashSet<ObjectId>,
) -> Result<ObjectId> {
    let mut chat = Vec::new();
    if let Some(header) = state.chat.header {
        chat.push(TreeEntry::blob("header.json", pack.add(Kind::Blob, header)?));
    }
    let messages = pack.add_blobs(&state.chat.messages, known)?;
    let mut folders = Vec::with_capacity(messages.len().div_ceil(PER_FOLDER));
    for (folder, ids) in messages.chunks(PER_FOLDER).enumerate() {
        let first = folder * PER_FOLDER;
        let entries: Vec<_> = ids
            .iter()
            .enumerate()
            .map(|(n, id)| TreeEntry::blob(message_file(first + n), *id))
            .collect();
        folders.push(TreeEntry::tree(message_folder(folder), add_tree(pack, &entries)?));
    }
    if !folders.is_empty() {
        chat.push(TreeEntry::tree("messages", add_tree(pack, &folders)?));
    }
    add_tree(pack, &chat)
}

fn add_tree(pack: &mut PackWriter, entries: &[TreeEntry]) -> Result<ObjectId> {
    Ok(pack.add(Kind::Tree, &tree::encode(entries))?)
}

fn message_folder(folder: usize) -> String {
    format!("{folder:03}")
}

fn message_file(index: usize) -> String {
    format!("{index:05}.json")
}

/// The file that holds the entry with this (decoded) key.
pub(super) fn entry_file(key: &[u8]) -> String {
    // The ending is added first: it must not make an otherwise safe name unsafe or too long.
    tree_segment(&[key, b".json"].concat())
}
