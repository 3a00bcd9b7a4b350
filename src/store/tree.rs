//! Trees, as stvc needs them: two kinds of entries, in git's order. And as they were written, for those who ask whether that is so.

use std::cmp::Ordering;
use std::collections::HashSet;

use gix::bstr::BString;
use gix::objs::WriteTo;
use gix::objs::tree::{Entry, EntryKind as GitKind};

use super::{Error, ObjectId, Result};

/// What a tree's entry points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Blob,
    Tree,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub name: String,
    pub kind: EntryKind,
    pub id: ObjectId,
}

impl TreeEntry {
    pub fn blob(name: impl Into<String>, id: ObjectId) -> Self {
        Self { name: name.into(), kind: EntryKind::Blob, id }
    }

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

pub fn decode(id: ObjectId, bytes: &[u8]) -> Result<Vec<TreeEntry>> {
    let damaged = |why: String| Error::Damaged { id, why };
    let entry = |found: Option<EntryBytes<'_>>| {
        let found = found.ok_or_else(|| no_tree(id))?;
        let name = std::str::from_utf8(found.name)
            .map_err(|_| damaged("a name in it is no UTF-8".into()))?;
        let kind = match found.mode() {
            Mode::File | Mode::OtherFile => EntryKind::Blob,
            Mode::Folder => EntryKind::Tree,
            Mode::Link => {
                return Err(damaged(format!("{name} is a link, which stvc never writes")));
            }
            Mode::Other => {
                return Err(damaged(format!("{name} is neither a file nor a folder")));
            }
        };
        Ok(TreeEntry { name: name.into(), kind, id: found.id })
    };
    entries(bytes).map(entry).collect()
}

/// What the mode of an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `100644`: a file as stvc writes it.
    File,
    /// Any other file: a program, or one with other rights.
    OtherFile,
    /// `40000`: a folder.
    Folder,
    /// A link to another place.
    Link,
    /// Something else: a commit of another repository, or nothing that git knows.
    Other,
}

impl Mode {
    /// Whether the entry's object is a blob of this repository.
    pub fn is_blob(self) -> bool {
        matches!(self, Mode::File | Mode::OtherFile | Mode::Link)
    }

    fn read(text: &[u8]) -> Self {
        match text {
            b"100644" => Mode::File,
            b"40000" | b"040000" => Mode::Folder,
            b"120000" => Mode::Link,
            [b'1', b'0', b'0', b'0'..=b'7', b'0'..=b'7', b'0'..=b'7'] => Mode::OtherFile,
            _ => Mode::Other,
        }
    }
}

/// One entry, as the bytes of its tree have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEntry {
    pub mode: Mode,
    /// Its name, which may be any bytes.
    pub name: Vec<u8>,
    pub id: ObjectId,
}

/// One entry, where it stands in the bytes of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryBytes<'b> {
    mode: &'b [u8],
    pub name: &'b [u8],
    pub id: ObjectId,
}

impl EntryBytes<'_> {
    pub fn mode(&self) -> Mode {
        Mode::read(self.mode)
    }
}

/// The entries of a tree in the order in which they stand, without a copy of any; `None` where it is no tree any more, and no further.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = Option<EntryBytes<'_>>> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        if left.is_empty() {
            return None;
        }
        let found = split_entry(left);
        left = found.map_or(&[], |(_, rest)| rest);
        Some(found.map(|(entry, _)| entry))
    })
}

fn split_entry(bytes: &[u8]) -> Option<(EntryBytes<'_>, &[u8])> {
    let space = bytes.iter().take(8).position(|byte| *byte == b' ')?;
    let (mode, rest) = (&bytes[..space], &bytes[space + 1..]);
    let end = memchr::memchr(0, rest)?;
    let (name, rest) = (&rest[..end], &rest[end + 1..]);
    let (id, rest) = rest.split_first_chunk::<20>()?;
    Some((EntryBytes { mode, name, id: ObjectId::from(*id) }, rest))
}

/// A tree, whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTree {
    /// Its entries, in the order in which they stand.
    pub entries: Vec<RawEntry>,
    /// Whether git takes it for a tree: the entries in its order, none twice, modes without leading zeros.
    pub is_gits: bool,
}

/// Read the bytes of the tree `id` as they are.
pub fn decode_raw(id: ObjectId, bytes: &[u8]) -> Result<RawTree> {
    let mut entries: Vec<RawEntry> = Vec::new();
    let mut is_gits = true;
    for found in self::entries(bytes) {
        let Some(EntryBytes { mode, name, id: object }) = found else { return Err(no_tree(id)) };
        is_gits &= !mode.starts_with(b"0") && !name.is_empty() && !name.contains(&b'/');
        let entry = RawEntry { mode: Mode::read(mode), name: name.to_owned(), id: object };
        let in_order = |last: &RawEntry| gits_order(last, &entry) == Ordering::Less;
        is_gits &= entry.mode != Mode::Other && entries.last().is_none_or(in_order);
        entries.push(entry);
    }
    // A folder sorts as if its name ended in a slash, so a file of the same name need not stand beside it.
    let is_folder = |entry: &&RawEntry| entry.mode == Mode::Folder;
    let folders: HashSet<_> = entries.iter().filter(is_folder).map(|entry| &entry.name).collect();
    let mut others = entries.iter().filter(|entry| !is_folder(entry));
    is_gits &= folders.is_empty() || !others.any(|entry| folders.contains(&entry.name));
    Ok(RawTree { entries, is_gits })
}

/// What was taken for a tree is none.
pub fn no_tree(id: ObjectId) -> Error {
    Error::Damaged { id, why: "it is no tree".into() }
}

fn gits_order(a: &RawEntry, b: &RawEntry) -> Ordering {
    let end = |entry: &RawEntry| (entry.mode == Mode::Folder).then_some(b'/');
    a.name.iter().copied().chain(end(a)).cmp(b.name.iter().copied().chain(end(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(entries: &[(&str, &str)]) -> Result<RawTree> {
        let entry = |(mode, name): &(&str, &str)| {
            [format!("{mode} {name}\0").as_bytes(), &[7; 20]].concat()
        };
        decode_raw(ObjectId::from([1; 20]), &entries.iter().flat_map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn trees_are_gits_or_not() {
        for gits in [
            &[][..],
            &[("100644", "a"), ("100755", "b"), ("120000", "c")],
            // A folder sorts as if its name ended in a slash.
            &[("100644", "a.b"), ("40000", "a"), ("100644", "a0")],
        ] {
            assert!(raw(gits).unwrap().is_gits, "{gits:?}");
        }
        for others in [
            &[("100644", "b"), ("100644", "a")][..],
            &[("100644", "a"), ("100644", "a")],
            &[("100644", "a"), ("100644", "a.b"), ("40000", "a")],
            &[("40000", "a"), ("100644", "a.b")],
            &[("040000", "a")],
            &[("160000", "a")],
            &[("100644", "")],
            &[("100644", "a/b")],
        ] {
            assert!(!raw(others).unwrap().is_gits, "{others:?}");
        }
    }

    #[test]
    fn both_readers_take_equal_modes_for_files_and_folders() {
        for (mode, expected) in [
            ("100644", Some(EntryKind::Blob)),
            ("100755", Some(EntryKind::Blob)),
            ("40000", Some(EntryKind::Tree)),
            ("42000", None),
            ("120000", None),
            ("100999", None),
            ("100", None),
        ] {
            let bytes = [format!("{mode} a\0").as_bytes(), &[7; 20]].concat();
            let id = ObjectId::from([1; 20]);
            let kind = decode(id, &bytes).ok().map(|entries| entries[0].kind);
            assert_eq!(kind, expected, "{mode}");
            let raw = decode_raw(id, &bytes).unwrap().entries[0].mode;
            let raw = match raw {
                Mode::File | Mode::OtherFile => Some(EntryKind::Blob),
                Mode::Folder => Some(EntryKind::Tree),
                Mode::Link | Mode::Other => None,
            };
            assert_eq!(raw, expected, "{mode}");
        }
    }

    #[test]
    fn what_is_no_tree_is_damaged() {
        let id = ObjectId::from([1; 20]);
        for bytes in [&b"100644 a"[..], b"100644", b"100644 a\0short", b"1234567890 a\0"] {
            assert!(matches!(decode_raw(id, bytes), Err(Error::Damaged { .. })), "{bytes:?}");
        }
    }
}
