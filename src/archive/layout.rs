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

/// Reads the trees of a snapshot and notes their problems.
pub(super) struct Layout<'r> {
    pub reader: &'r Reader,
    pub notes: LayoutNotes,
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

#[derive(Default)]
pub(super) struct FileAndFolder {
    pub file: Option<ObjectId>,
    pub folder: Option<ObjectId>,
}

/// Messages or message folders with their numbers, in ascending order.
type NumberedObjects = Vec<(usize, ObjectId)>;

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

/// Folder of the attachments. An entry of the wrong type in this folder is not fatal, because the
/// chat can be rebuilt without its attachments.
const ATTACHMENTS: &str = "attachments/";
pub(super) const ATTACHED: &str = "attachments/files/";

impl<'r> Layout<'r> {
    pub(super) fn new(reader: &'r Reader) -> Self {
        Self { reader, notes: LayoutNotes::default() }
    }

    pub(super) fn root(&mut self, id: ObjectId) -> Result<Root> {
        let mut root = Root::default();
        let (mut folder, entries) = self.open(id, "")?;
        for entry in entries {
            // If two entries have the same name, the first is used. `open` already recorded the
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

    fn file_and_folder(
        &mut self,
        id: ObjectId,
        path: &str,
        [file, folder]: [&str; 2],
    ) -> Result<FileAndFolder> {
        let mut found = FileAndFolder::default();
        let (mut place, entries) = self.open(id, path)?;
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

    pub(super) fn chat(&mut self, id: ObjectId) -> Result<FileAndFolder> {
        self.file_and_folder(id, "chat/", ["header.json", "messages"])
    }

    pub(super) fn folders(&mut self, id: ObjectId) -> Result<NumberedObjects> {
        let mut folders = Vec::new();
        let (mut folder, entries) = self.open(id, "chat/messages/")?;
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

    pub(super) fn messages(&mut self, of_folder: usize, id: ObjectId) -> Result<NumberedObjects> {
        let mut messages = Vec::new();
        let path = format!("chat/messages/{}/", message_folder(of_folder));
        let (mut folder, entries) = self.open(id, &path)?;
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

    /// Returns name and tree of the lorebook's folder: the folder for the lorebook `name` if it
    /// exists, otherwise the first folder.
    pub(super) fn lorebook(
        &mut self,
        id: ObjectId,
        name: Option<&str>,
    ) -> Result<Option<(String, ObjectId)>> {
        let expected = name.map(book_folder);
        let (mut folder, entries) = self.open(id, "lorebooks/")?;
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

    /// Returns the picture of a card, and the names and trees of its texts, in order.
    #[expect(clippy::type_complexity)]
    pub(super) fn card(
        &mut self,
        id: ObjectId,
    ) -> Result<(Option<ObjectId>, Vec<(String, ObjectId)>)> {
        let (mut picture, mut texts) = (None, Vec::new());
        let (mut folder, entries) = self.open(id, "card/")?;
        for entry in entries {
            if entry.name == b"picture.png" {
                picture = picture.or(folder.file(&entry));
                continue;
            }
            let name = std::str::from_utf8(&entry.name).ok();
            let order = name.and_then(|name| number(name.split_once('-')?.0.as_bytes()));
            let (Some(order), Some(name)) = (order, name) else {
                folder.extra(&entry);
                continue;
            };
            texts.extend(folder.folder(&entry).map(|id| (order, name.to_owned(), id)));
            folder.safe(&entry);
        }
        texts.sort_unstable();
        Ok((picture, texts.into_iter().map(|(_, name, id)| (name, id)).collect()))
    }

    /// Reads the cut file in the folder at `path`. If its blob is missing, returns `None` and adds
    /// a problem.
    pub(super) fn cut_file(
        &mut self,
        id: ObjectId,
        path: &str,
        names: [&str; 2],
    ) -> Result<Option<CutFile>> {
        let [file, parts] = names;
        let found = self.file_and_folder(id, path, names)?;
        let Some(id) = found.file else {
            self.notes.missing(format!("{path}{file}"));
            return Ok(None);
        };
        let folder = format!("{path}{parts}/");
        let parts = match found.folder {
            Some(parts) => self.named_files(parts, &folder)?,
            None => HashMap::new(),
        };
        Ok(Some(CutFile { file: id, folder, parts }))
    }

    pub(super) fn attachments(&mut self, id: ObjectId) -> Result<FileAndFolder> {
        self.file_and_folder(id, ATTACHMENTS, ["list.json", "files"])
    }

    pub(super) fn plain_file(&mut self, id: ObjectId, name: &str) -> Result<Option<ObjectId>> {
        let mut found = None;
        let (mut folder, entries) = self.open(id, "file/")?;
        for entry in entries {
            if entry.name == name.as_bytes() {
                found = found.or(folder.file(&entry));
            } else {
                folder.extra(&entry);
            }
        }
        if found.is_none() {
            self.notes.missing("file");
        }
        Ok(found)
    }

    /// Returns the files of a folder in which file names are derived from the user's data. Adds a
    /// problem for each unsafe name.
    pub(super) fn named_files(
        &mut self,
        id: ObjectId,
        path: &str,
    ) -> Result<HashMap<String, ObjectId>> {
        let mut files = HashMap::new();
        let (mut folder, entries) = self.open(id, path)?;
        for entry in entries {
            let found = folder.file(&entry);
            folder.safe(&entry);
            if let (Some(id), Ok(name)) = (found, String::from_utf8(entry.name)) {
                files.insert(name, id);
            }
        }
        Ok(files)
    }

    fn open<'f>(&'f mut self, id: ObjectId, path: &'f str) -> Result<(Folder<'f>, Vec<TreeEntry>)> {
        let tree = self.reader.raw_tree(id)?;
        if !tree.is_gits {
            let path = if path.is_empty() { "its tree" } else { path };
            self.notes.problems.push(Problem::NotGits { path: path.to_owned() });
        }
        Ok((Folder { path, noticed: &mut self.notes }, tree.entries))
    }
}

/// Sorts the messages of all folders by number. Adds a problem if a number is missing.
pub(super) fn in_order(mut messages: NumberedObjects, problems: &mut Problems) -> Vec<ObjectId> {
    messages.sort_unstable();
    if let Some(gap) = messages.iter().enumerate().position(|(n, (number, _))| n != *number) {
        problems.push(Problem::NoMessage { number: gap });
    }
    messages.into_iter().map(|(_, id)| id).collect()
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

impl Folder<'_> {
    fn note(&mut self, entry: &TreeEntry, problem: impl FnOnce(String) -> Problem) {
        let path = self.path_of(entry);
        self.noticed.problems.push(problem(path));
    }

    fn path_of(&self, entry: &TreeEntry) -> String {
        format!("{}{}", self.path, String::from_utf8_lossy(&entry.name))
    }

    fn file(&mut self, entry: &TreeEntry) -> Option<ObjectId> {
        match entry.mode {
            Mode::File => {}
            Mode::OtherFile => self.note(entry, |path| Problem::OddMode { path }),
            Mode::Folder | Mode::Link | Mode::Other => return self.wrong_kind(entry),
        }
        Some(entry.id)
    }

    fn folder(&mut self, entry: &TreeEntry) -> Option<ObjectId> {
        if entry.mode == Mode::Folder { Some(entry.id) } else { self.wrong_kind(entry) }
    }

    fn wrong_kind(&mut self, entry: &TreeEntry) -> Option<ObjectId> {
        if self.path.starts_with(ATTACHMENTS) {
            self.extra(entry);
        } else {
            self.note(entry, |path| Problem::WrongKind { path });
        }
        None
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
