//! What is known of a timeline's last state, so that the next one costs what changed and not what there is.

use std::collections::{HashMap, HashSet};

use super::Blake3;
use crate::store::{EntryKind, ObjectId, Reader, TreeEntry};

/// Folders of messages by the hash of their bytes in the file: a folder with the same bytes has the same tree, and none of its messages
/// need be looked at.
#[derive(Clone, Debug, Default)]
pub struct Folders(HashMap<Blake3, ObjectId>);

const RECORD: usize = 32 + 20;

impl Folders {
    pub(super) fn insert(&mut self, hash: Blake3, tree: ObjectId) {
        self.0.insert(hash, tree);
    }

    pub(super) fn get(&self, hash: Blake3) -> Option<ObjectId> {
        self.0.get(&hash).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As bytes, to be kept in a cache: hash and tree of each, then a hash of all that.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * RECORD + 32);
        for (hash, tree) in &self.0 {
            out.extend_from_slice(hash.as_bytes());
            out.extend_from_slice(tree.as_slice());
        }
        let check = Blake3::of(&out);
        out.extend_from_slice(check.as_bytes());
        out
    }

    /// From bytes; nothing is known if they are damaged.
    pub fn decode(bytes: &[u8]) -> Self {
        let Some((records, check)) = bytes.split_last_chunk::<32>() else { return Self::default() };
        if Blake3::of(records).as_bytes() != check {
            return Self::default();
        }
        let record = |record: &[u8]| {
            let (hash, tree) = record.split_first_chunk::<32>()?;
            Some((Blake3::from_bytes(*hash), ObjectId::try_from(tree).ok()?))
        };
        Self(records.chunks(RECORD).filter_map(record).collect())
    }
}

/// The objects of a stored snapshot that the next one is likely to share. What cannot be read counts as not there: it is
/// written again.
#[derive(Default)]
pub(super) struct Previous {
    /// By name, the folders of messages.
    folders: HashMap<String, ObjectId>,
    /// The entries of the lorebook.
    pub entries: HashSet<ObjectId>,
}

impl Previous {
    pub(super) fn read(reader: &Reader, tree: ObjectId) -> Self {
        let open = |entries: &[TreeEntry], name: &str| -> Vec<TreeEntry> {
            let found =
                entries.iter().find(|entry| entry.name == name && entry.kind == EntryKind::Tree);
            found.and_then(|entry| reader.tree(entry.id).ok()).unwrap_or_default()
        };
        let root = reader.tree(tree).unwrap_or_default();
        let folders = open(&open(&root, "chat"), "messages");
        let books = open(&root, "lorebooks");
        let book = books.first().map(|book| book.name.clone()).unwrap_or_default();
        let entries = open(&open(&books, &book), "entries");
        Self {
            folders: folders.into_iter().map(|folder| (folder.name, folder.id)).collect(),
            entries: entries.into_iter().map(|entry| entry.id).collect(),
        }
    }

    pub(super) fn folder(&self, name: &str) -> Option<ObjectId> {
        self.folders.get(name).copied()
    }

    pub(super) fn messages(&self, reader: &Reader, name: &str) -> Vec<ObjectId> {
        let entries = self.folders.get(name).and_then(|folder| reader.tree(*folder).ok());
        entries.unwrap_or_default().into_iter().map(|entry| entry.id).collect()
    }
}
