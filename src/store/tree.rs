//! Encodes and decodes tree objects. Encoded trees are sorted as git requires. Decoded trees may
//! come from any program.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::{Error, ObjectId, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `100644`: a file as stvc writes it.
    File,
    /// Any other file: an executable, or one with other permissions.
    OtherFile,
    /// `40000`: a folder.
    Folder,
    Link,
    /// A submodule, or a mode that git does not know.
    Other,
}

impl Mode {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub mode: Mode,
    pub name: Vec<u8>,
    pub id: ObjectId,
}

impl TreeEntry {
    pub fn blob(name: impl Into<Vec<u8>>, id: ObjectId) -> Self {
        Self { mode: Mode::File, name: name.into(), id }
    }

    pub fn tree(name: impl Into<Vec<u8>>, id: ObjectId) -> Self {
        Self { mode: Mode::Folder, name: name.into(), id }
    }
}

/// Encodes a tree of files and folders. Names must contain neither NUL nor `/`: see
/// `name_encoding`.
pub fn encode(entries: &[TreeEntry]) -> Vec<u8> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|a, b| git_order(a, b));
    let mut out = Vec::with_capacity(sorted.len() * 48);
    for TreeEntry { mode, name, id } in sorted {
        let mode: &[u8] = if *mode == Mode::Folder { b"40000 " } else { b"100644 " };
        for part in [mode, name, b"\0", id.as_slice()] {
            out.extend_from_slice(part);
        }
    }
    out
}

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

/// Returns the entries of a tree. If the bytes cannot be parsed to the end, the last item is
/// `None`.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTree {
    pub entries: Vec<TreeEntry>,
    /// Whether git accepts the tree: its entries are sorted, their names are valid and differ, and
    /// their modes are known and have no leading zeros.
    pub is_gits: bool,
}

pub fn decode_raw(id: ObjectId, bytes: &[u8]) -> Result<RawTree> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut is_gits = true;
    for found in self::entries(bytes) {
        let Some(EntryBytes { mode, name, id: object }) = found else { return Err(no_tree(id)) };
        is_gits &= !mode.starts_with(b"0") && !name.is_empty() && !name.contains(&b'/');
        let entry = TreeEntry { mode: Mode::read(mode), name: name.to_owned(), id: object };
        let in_order = |last: &TreeEntry| git_order(last, &entry) == Ordering::Less;
        is_gits &= entry.mode != Mode::Other && entries.last().is_none_or(in_order);
        entries.push(entry);
    }
    // A folder is sorted as if its name ended with a slash. So a file of the same name need not be
    // its neighbour, and is searched for separately.
    let is_folder = |entry: &&TreeEntry| entry.mode == Mode::Folder;
    let folders: HashSet<_> = entries.iter().filter(is_folder).map(|entry| &entry.name).collect();
    let mut others = entries.iter().filter(|entry| !is_folder(entry));
    is_gits &= folders.is_empty() || !others.any(|entry| folders.contains(&entry.name));
    Ok(RawTree { entries, is_gits })
}

pub fn no_tree(id: ObjectId) -> Error {
    Error::Damaged { id, why: "it is not a tree".into() }
}

fn git_order(a: &TreeEntry, b: &TreeEntry) -> Ordering {
    let end = |entry: &TreeEntry| (entry.mode == Mode::Folder).then_some(b'/');
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
    fn only_canonical_trees_are_marked_as_git_trees() {
        for gits in [
            &[][..],
            &[("100644", "a"), ("100755", "b"), ("120000", "c")],
            // A folder is sorted as if its name ended with a slash: `a.b`, `a/`, `a0`.
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
    fn modes_are_classified_as_file_folder_link_or_other() {
        for (mode, expected) in [
            ("100644", Mode::File),
            ("100755", Mode::OtherFile),
            ("40000", Mode::Folder),
            ("42000", Mode::Other),
            ("120000", Mode::Link),
            ("100999", Mode::Other),
            ("100", Mode::Other),
        ] {
            assert_eq!(raw(&[(mode, "a")]).unwrap().entries[0].mode, expected, "{mode}");
        }
    }

    #[test]
    fn malformed_tree_is_damaged() {
        let id = ObjectId::from([1; 20]);
        for bytes in [&b"100644 a"[..], b"100644", b"100644 a\0short", b"1234567890 a\0"] {
            assert!(matches!(decode_raw(id, bytes), Err(Error::Damaged { .. })), "{bytes:?}");
        }
    }
}
