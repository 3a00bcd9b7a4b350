//! Reads the trees of snapshots; `docs/format.md` specifies their layout. Tree entries that the
//! format does not define are recorded and skipped, so that files can still be rebuilt and the
//! validator can report the entries.

use std::collections::HashMap;

use super::part_names::{PER_FOLDER, book_folder, message_file, message_folder};
use super::problem::{Problem, Problems};
use crate::store::name_encoding::is_tree_segment;
use crate::store::{Mode, ObjectId, Reader, Result, TreeEntry};

#[derive(Clone, Default)]
pub(super) struct LayoutNotes {
    pub problems: Problems,
    /// Tree entries that the format does not define or that no file refers to. The validator checks
    /// later whether their objects exist and are safe.
    pub extra: Vec<(ObjectId, Mode)>,
}

impl LayoutNotes {
    pub(super) fn extend(&mut self, part: &LayoutNotes) {
        self.problems.extend(&part.problems);
        self.extra.extend_from_slice(&part.extra);
    }

    pub(super) fn extra(&mut self, path: &str, id: ObjectId, mode: Mode) {
        self.problems.push(Problem::Extra { path: path.to_owned() });
        self.extra.push((id, mode));
    }

    pub(super) fn unused(&mut self, path: String, id: ObjectId) {
        self.problems.push(Problem::UnusedEntry { path });
        self.extra.push((id, Mode::File));
    }

    pub(super) fn missing(&mut self, path: impl Into<String>) {
        self.problems.push(Problem::NoPart { path: path.into() });
    }

    /// Pairs a part of the tree with its record in the manifest. Adds a problem if only one of the
    /// two exists.
    pub(super) fn part<R>(
        &mut self,
        path: &str,
        mode: Mode,
        record: Option<R>,
        found: Option<ObjectId>,
    ) -> Option<(R, ObjectId)> {
        match (&record, found) {
            (Some(_), None) => self.missing(path),
            (None, Some(found)) => self.extra(path, found, mode),
            _ => {}
        }
        record.zip(found)
    }
}

#[derive(Default)]
pub(super) struct Root {
    pub manifest: Option<ObjectId>,
    pub chat: Option<ObjectId>,
    pub books: Option<ObjectId>,
    pub group: Option<ObjectId>,
    pub card: Option<ObjectId>,
    pub file: Option<ObjectId>,
    pub attachments: Option<ObjectId>,
}

pub(super) fn root(reader: &Reader, id: ObjectId, noticed: &mut LayoutNotes) -> Result<Root> {
    let mut root = Root::default();
    let (mut folder, entries) = Folder::open(reader, id, "", noticed)?;
    for entry in entries {
        // If two entries have the same name, the first is used. `Folder::open` already recorded the
        // repeated name as a problem.
        match entry.name.as_slice() {
            b"snapshot.json" => root.manifest = root.manifest.or(folder.file(&entry)),
            b"chat" => root.chat = root.chat.or(folder.folder(&entry)),
            b"lorebooks" => root.books = root.books.or(folder.folder(&entry)),
            b"group.json" => root.group = root.group.or(folder.file(&entry)),
            b"card" => root.card = root.card.or(folder.folder(&entry)),
            b"file" => root.file = root.file.or(folder.folder(&entry)),
            b"attachments" if entry.mode == Mode::Folder => {
                root.attachments = root.attachments.or(Some(entry.id));
            }
            _ => folder.extra(&entry),
        }
    }
    Ok(root)
}

#[derive(Default)]
pub(super) struct FileAndFolder {
    pub file: Option<ObjectId>,
    pub folder: Option<ObjectId>,
}

fn file_and_folder(
    reader: &Reader,
    id: ObjectId,
    path: &str,
    [file, folder]: [&str; 2],
    noticed: &mut LayoutNotes,
) -> Result<FileAndFolder> {
    let mut found = FileAndFolder::default();
    let (mut place, entries) = Folder::open(reader, id, path, noticed)?;
    for entry in entries {
        match entry.name.as_slice() {
            name if name == file.as_bytes() => found.file = found.file.or(place.file(&entry)),
            name if name == folder.as_bytes() => {
                found.folder = found.folder.or(place.folder(&entry));
            }
            _ => place.extra(&entry),
        }
    }
    Ok(found)
}

pub(super) fn chat(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut LayoutNotes,
) -> Result<FileAndFolder> {
    file_and_folder(reader, id, "chat/", ["header.json", "messages"], noticed)
}

/// Messages or message folders with their numbers, in ascending order.
type NumberedObjects = Vec<(usize, ObjectId)>;

pub(super) fn folders(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut LayoutNotes,
) -> Result<NumberedObjects> {
    let mut folders = Vec::new();
    let (mut folder, entries) = Folder::open(reader, id, "chat/messages/", noticed)?;
    for entry in entries {
        let Some(number) = number(&entry.name) else {
            folder.extra(&entry);
            continue;
        };
        folders.extend(folder.folder(&entry).map(|id| (number, id)));
        folder.belongs(&entry, format!("chat/messages/{}", message_folder(number)));
    }
    folders.sort_unstable();
    Ok(folders)
}

pub(super) fn messages(
    reader: &Reader,
    number_of_folder: usize,
    id: ObjectId,
    noticed: &mut LayoutNotes,
) -> Result<NumberedObjects> {
    let mut messages = Vec::new();
    let path = format!("chat/messages/{}/", message_folder(number_of_folder));
    let (mut folder, entries) = Folder::open(reader, id, &path, noticed)?;
    for entry in entries {
        let Some(number) = entry.name.strip_suffix(b".json").and_then(number) else {
            folder.extra(&entry);
            continue;
        };
        messages.extend(folder.file(&entry).map(|id| (number, id)));
        let of_number = message_folder(number / PER_FOLDER);
        folder.belongs(&entry, format!("chat/messages/{of_number}/{}", message_file(number)));
    }
    messages.sort_unstable();
    Ok(messages)
}

/// Sorts the messages of all folders by number. Adds a problem if a number is missing.
pub(super) fn in_order(mut messages: NumberedObjects, problems: &mut Problems) -> Vec<ObjectId> {
    messages.sort_unstable();
    if let Some(gap) = messages.iter().enumerate().position(|(n, (number, _))| n != *number) {
        problems.push(Problem::NoMessage { number: gap });
    }
    messages.into_iter().map(|(_, id)| id).collect()
}

/// Returns name and tree of the lorebook's folder: the folder for the lorebook `name` if it exists,
/// otherwise the first folder.
pub(super) fn lorebook(
    reader: &Reader,
    id: ObjectId,
    name: Option<&str>,
    noticed: &mut LayoutNotes,
) -> Result<Option<(String, ObjectId)>> {
    let expected = name.map(book_folder);
    let (mut folder, entries) = Folder::open(reader, id, "lorebooks/", noticed)?;
    let is_it = |entry: &TreeEntry| {
        expected.as_ref().is_some_and(|expected| entry.name == expected.as_bytes())
    };
    let is_folder = |entry: &TreeEntry| entry.mode == Mode::Folder;
    let chosen = entries.iter().position(is_it).or_else(|| entries.iter().position(is_folder));
    let mut found = None;
    for (at, entry) in entries.iter().enumerate() {
        if chosen != Some(at) {
            folder.extra(entry);
            continue;
        }
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        found = folder.folder(entry).map(|id| (name, id));
        folder.safe(entry);
        if !is_it(entry) && expected.is_some() {
            folder.note(entry, |path| Problem::BookFolder { path });
        }
    }
    Ok(found)
}

#[expect(clippy::type_complexity)]
pub(super) fn card(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut LayoutNotes,
) -> Result<(Option<ObjectId>, Vec<(String, ObjectId)>)> {
    let (mut picture, mut texts) = (None, Vec::new());
    let (mut folder, entries) = Folder::open(reader, id, "card/", noticed)?;
    for entry in entries {
        if entry.name == b"picture.png" {
            picture = picture.or(folder.file(&entry));
            continue;
        }
        let name = std::str::from_utf8(&entry.name).ok();
        let order = name.and_then(|name| Some((number(name.split_once('-')?.0.as_bytes())?, name)));
        let Some((order, name)) = order else {
            folder.extra(&entry);
            continue;
        };
        texts.extend(folder.folder(&entry).map(|id| (order, name.to_owned(), id)));
        folder.safe(&entry);
    }
    texts.sort_unstable();
    Ok((picture, texts.into_iter().map(|(_, name, id)| (name, id)).collect()))
}

/// File that is stored without its parts, which are separate blobs: the entries of a lorebook, or
/// the long strings in a text of a card.
pub(super) struct CutFile {
    /// Blob of the file with all parts removed.
    pub file: ObjectId,
    /// Path of the folder of parts in the snapshot's tree, with a slash at the end.
    pub folder: String,
    /// Blobs of the parts, by file name; empty if `file` is the complete file.
    pub parts: HashMap<String, ObjectId>,
}

/// Names in the tree of a cut file: the blob without the parts, and the folder of the parts.
pub(super) const BOOK: [&str; 2] = ["book.json", "entries"];
pub(super) const CARD_TEXT: [&str; 2] = ["text.json", "strings"];

/// Reads the cut file in the folder at `path`. If its blob is missing, returns `None` and adds a
/// problem.
pub(super) fn cut_file(
    reader: &Reader,
    id: ObjectId,
    path: &str,
    names: [&str; 2],
    noticed: &mut LayoutNotes,
) -> Result<Option<CutFile>> {
    let [file, parts] = names;
    let found = file_and_folder(reader, id, path, names, noticed)?;
    let Some(id) = found.file else {
        noticed.missing(format!("{path}{file}"));
        return Ok(None);
    };
    let folder = format!("{path}{parts}/");
    let parts = match found.folder {
        Some(parts) => named_files(reader, parts, &folder, noticed)?,
        None => HashMap::new(),
    };
    Ok(Some(CutFile { file: id, folder, parts }))
}

/// Folder of the attachments. An entry of the wrong type in this folder is not fatal, because the
/// chat can be rebuilt without its attachments.
const ATTACHMENTS: &str = "attachments/";
pub(super) const ATTACHED: &str = "attachments/files/";

pub(super) fn attachments(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut LayoutNotes,
) -> Result<FileAndFolder> {
    file_and_folder(reader, id, ATTACHMENTS, ["list.json", "files"], noticed)
}

pub(super) fn plain_file(
    reader: &Reader,
    id: ObjectId,
    name: &str,
    noticed: &mut LayoutNotes,
) -> Result<Option<ObjectId>> {
    let mut found = None;
    let (mut folder, entries) = Folder::open(reader, id, "file/", noticed)?;
    for entry in entries {
        if entry.name == name.as_bytes() {
            found = found.or(folder.file(&entry));
        } else {
            folder.extra(&entry);
        }
    }
    if found.is_none() {
        noticed.missing("file");
    }
    Ok(found)
}

/// Returns the files of a folder in which file names are derived from the user's data. Adds a
/// problem for each unsafe name.
pub(super) fn named_files(
    reader: &Reader,
    id: ObjectId,
    path: &str,
    noticed: &mut LayoutNotes,
) -> Result<HashMap<String, ObjectId>> {
    let mut files = HashMap::new();
    let (mut folder, entries) = Folder::open(reader, id, path, noticed)?;
    for entry in entries {
        let found = folder.file(&entry);
        folder.safe(&entry);
        if let (Some(id), Ok(name)) = (found, String::from_utf8(entry.name)) {
            files.insert(name, id);
        }
    }
    Ok(files)
}

pub(super) fn is_safe(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(is_tree_segment)
}

fn number(name: &[u8]) -> Option<usize> {
    let digits = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(name).ok().filter(|_| digits)?.parse().ok()
}

struct Folder<'a> {
    path: &'a str,
    noticed: &'a mut LayoutNotes,
}

impl<'a> Folder<'a> {
    fn open(
        reader: &Reader,
        id: ObjectId,
        path: &'a str,
        noticed: &'a mut LayoutNotes,
    ) -> Result<(Self, Vec<TreeEntry>)> {
        let tree = reader.raw_tree(id)?;
        if !tree.is_gits {
            let path = if path.is_empty() { "its tree" } else { path };
            noticed.problems.push(Problem::NotGits { path: path.to_owned() });
        }
        Ok((Self { path, noticed }, tree.entries))
    }

    fn note(&mut self, entry: &TreeEntry, problem: impl FnOnce(String) -> Problem) {
        let path = self.path_of(entry);
        self.noticed.problems.push(problem(path));
    }

    fn path_of(&self, entry: &TreeEntry) -> String {
        format!("{}{}", self.path, String::from_utf8_lossy(&entry.name))
    }

    fn file(&mut self, entry: &TreeEntry) -> Option<ObjectId> {
        match entry.mode {
            Mode::File => return Some(entry.id),
            Mode::OtherFile => {
                self.note(entry, |path| Problem::OddMode { path });
                return Some(entry.id);
            }
            Mode::Folder | Mode::Link | Mode::Other => self.wrong_kind(entry),
        }
        None
    }

    fn folder(&mut self, entry: &TreeEntry) -> Option<ObjectId> {
        if entry.mode == Mode::Folder {
            return Some(entry.id);
        }
        self.wrong_kind(entry);
        None
    }

    fn wrong_kind(&mut self, entry: &TreeEntry) {
        if self.path.starts_with(ATTACHMENTS) {
            self.extra(entry)
        } else {
            self.note(entry, |path| Problem::WrongKind { path })
        }
    }

    fn extra(&mut self, entry: &TreeEntry) {
        self.note(entry, |path| match entry.mode {
            _ if !is_safe(&entry.name) => Problem::UnsafeName { path },
            Mode::Link | Mode::Other => Problem::Link { path },
            _ => Problem::Extra { path },
        });
        self.noticed.extra.push((entry.id, entry.mode));
    }

    /// Adds a problem if the name of an entry, which is derived from the user's data, is not safe
    /// on all systems.
    fn safe(&mut self, entry: &TreeEntry) {
        if !is_safe(&entry.name) {
            self.note(entry, |path| Problem::UnsafeName { path });
        }
    }

    fn belongs(&mut self, entry: &TreeEntry, belongs: String) {
        let path = self.path_of(entry);
        if path != belongs {
            self.noticed.problems.push(Problem::Misplaced { path, belongs });
        }
    }
}
