//! Caches objects of the last snapshot of a timeline, so that the cost of the next snapshot depends
//! only on the changes.

use std::collections::{HashMap, HashSet};

use super::Blake3;
use crate::store::{Mode, ObjectId, Reader, TreeEntry};

/// Trees of message folders, by the hash of the messages in the folder. If the hash is known, the
/// messages need not be stored again.
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

    /// Encodes the folders for a cache file: hash and tree id of each folder, then a checksum of
    /// all.
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

    /// Decodes a cache file. Returns an empty value if the bytes are damaged.
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

/// Objects of the last snapshot that the next snapshot is likely to share. Objects in an unreadable
/// tree are left out, so they are written again.
#[derive(Default)]
pub(super) struct PreviousObjects {
    folders: HashMap<Vec<u8>, ObjectId>,
    pub entries: HashSet<ObjectId>,
}

impl PreviousObjects {
    pub(super) fn read(reader: &Reader, tree: ObjectId) -> Self {
        let open = |entries: &[TreeEntry], name: &[u8]| {
            let found = |entry: &&TreeEntry| entry.name == name && entry.mode == Mode::Folder;
            entries.iter().find(found).map(|entry| entries_of(reader, entry.id)).unwrap_or_default()
        };
        let root = entries_of(reader, tree);
        let folders = open(&open(&root, b"chat"), b"messages");
        let books = open(&root, b"lorebooks");
        let book = books.first().map(|book| book.name.clone()).unwrap_or_default();
        let entries = open(&open(&books, &book), b"entries");
        Self {
            folders: folders.into_iter().map(|folder| (folder.name, folder.id)).collect(),
            entries: entries.into_iter().map(|entry| entry.id).collect(),
        }
    }

    pub(super) fn folder(&self, name: &str) -> Option<ObjectId> {
        self.folders.get(name.as_bytes()).copied()
    }

    pub(super) fn messages(&self, reader: &Reader, name: &str) -> Vec<ObjectId> {
        let entries = self.folder(name).map(|folder| entries_of(reader, folder));
        entries.unwrap_or_default().into_iter().map(|entry| entry.id).collect()
    }
}

fn entries_of(reader: &Reader, tree: ObjectId) -> Vec<TreeEntry> {
    reader.raw_tree(tree).map(|tree| tree.entries).unwrap_or_default()
}
