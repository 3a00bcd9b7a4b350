//! Trees, as stvc needs them: two kinds of entries, in git's order.

use gix::bstr::BString;
use gix::objs::tree::{Entry, EntryKind as GitKind};
use gix::objs::{TreeRef, WriteTo};

use super::{Error, ObjectId, Result};

/// What a tree's entry points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    Blob,
    /// A folder.
    Tree,
}

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its name in the folder.
    pub name: String,
    /// File or folder.
    pub kind: EntryKind,
    /// The object.
    pub id: ObjectId,
}

impl TreeEntry {
    /// A file.
    pub fn blob(name: impl Into<String>, id: ObjectId) -> Self {
        Self { name: name.into(), kind: EntryKind::Blob, id }
    }

    /// A folder.
    pub fn tree(name: impl Into<String>, id: ObjectId) -> Self {
        Self { name: name.into(), kind: EntryKind::Tree, id }
    }
}

/// The bytes of a tree object. Entries are sorted as git wants them, whatever their order here.
pub fn encode(entries: &[TreeEntry]) -> Vec<u8> {
    let mut sorted: Vec<Entry> = entries
        .iter()
        .map(|entry| Entry {
            mode: match entry.kind {
                EntryKind::Blob => GitKind::Blob.into(),
                EntryKind::Tree => GitKind::Tree.into(),
            },
            filename: BString::from(entry.name.as_str()),
            oid: entry.id,
        })
        .collect();
    sorted.sort();
    let mut out = Vec::with_capacity(sorted.len() * 48);
    // Writing to a Vec cannot fail, and names never hold a NUL or a slash: see `names`.
    let written = gix::objs::Tree { entries: sorted }.write_to(&mut out);
    debug_assert!(written.is_ok());
    out
}

/// Read the bytes of the tree `id`.
pub fn decode(id: ObjectId, bytes: &[u8]) -> Result<Vec<TreeEntry>> {
    let damaged = |why: String| Error::Damaged { id, why };
    let tree = TreeRef::from_bytes(bytes, gix::hash::Kind::Sha1)
        .map_err(|error| damaged(error.to_string()))?;
    tree.entries
        .iter()
        .map(|entry| {
            let name = std::str::from_utf8(entry.filename)
                .map_err(|_| damaged("a name in it is no UTF-8".into()))?;
            let kind = match entry.mode.kind() {
                GitKind::Blob | GitKind::BlobExecutable => EntryKind::Blob,
                GitKind::Tree => EntryKind::Tree,
                other => {
                    return Err(damaged(format!("{name} is a {other:?}, which stvc never writes")));
                }
            };
            Ok(TreeEntry { name: name.into(), kind, id: entry.oid.into() })
        })
        .collect()
}
