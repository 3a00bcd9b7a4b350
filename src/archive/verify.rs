//! Hold many snapshots against their manifests, one after the other. Snapshots share most of their messages, so what was
//! read for one is kept for the next: a folder of messages is read again only if it is another one.

use std::collections::HashMap;

use super::{Error, Result, Role, Tree};
use crate::store::{EntryKind, Kind, ObjectId, Reader};

/// Checks trees; keeps the messages of the last one.
pub struct Verifier {
    reader: Reader,
    /// By the folder's tree: its messages, joined.
    folders: HashMap<ObjectId, Vec<u8>>,
}

impl Verifier {
    /// Check trees that `reader` reads.
    pub fn new(reader: Reader) -> Self {
        Self { reader, folders: HashMap::new() }
    }

    /// Rebuild every file of the snapshot with this tree and compare its hash.
    pub fn verify(&mut self, id: ObjectId) -> Result<()> {
        let tree = Tree::open(&self.reader, id)?;
        for record in &tree.manifest.files {
            match record.role {
                Role::Chat => {
                    let (length, hash) = self.hash_chat(&tree)?;
                    if length != record.bytes || hash.to_hex().as_str() != record.blake3.to_string()
                    {
                        return Err(Error::Differs { tree: id, path: record.path.clone() });
                    }
                }
                Role::Lorebook | Role::Group => {
                    tree.rebuild(&self.reader, record)?;
                }
            }
        }
        Ok(())
    }

    fn hash_chat(&mut self, tree: &Tree) -> Result<(u64, blake3::Hash)> {
        let mut hasher = blake3::Hasher::new();
        let mut first = true;
        if let Some(header) = tree.header() {
            hasher.update(&self.reader.blob(header)?);
            first = false;
        }
        let mut used = HashMap::new();
        for folder in tree.folders() {
            let joined = match self.folders.remove(folder).or_else(|| used.remove(folder)) {
                Some(joined) => joined,
                None => read_folder(&self.reader, *folder)?,
            };
            if !first {
                hasher.update(b"\n");
            }
            first = false;
            hasher.update(&joined);
            used.insert(*folder, joined);
        }
        self.folders = used;
        Ok((hasher.count(), hasher.finalize()))
    }
}

fn read_folder(reader: &Reader, folder: ObjectId) -> Result<Vec<u8>> {
    let mut joined = Vec::new();
    let mut buffer = Vec::new();
    let messages = reader.tree(folder)?;
    for (n, message) in messages.iter().filter(|entry| entry.kind == EntryKind::Blob).enumerate() {
        if n > 0 {
            joined.push(b'\n');
        }
        joined.extend_from_slice(reader.read(message.id, Kind::Blob, &mut buffer)?);
    }
    Ok(joined)
}
