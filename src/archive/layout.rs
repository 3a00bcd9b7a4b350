//! What stands where in a snapshot's tree: the one place that reads its shape. What does not belong there is noted and passed over, so that
//! those who want the bytes get them, and those who judge can tell.

use std::collections::HashMap;

use super::part_names::{PER_FOLDER, book_folder, message_file, message_folder};
use super::problem::{Problem, Problems};
use crate::store::name_encoding::is_tree_segment;
use crate::store::{Mode, ObjectId, RawEntry, Reader, Result};

#[derive(Clone, Default)]
pub(super) struct Noticed {
    pub problems: Problems,
    /// What is no part of a snapshot: nothing is known yet of what hangs on it.
    pub extra: Vec<(ObjectId, Mode)>,
}

impl Noticed {
    pub(super) fn extend(&mut self, part: &Noticed) {
        self.problems.extend(&part.problems);
        self.extra.extend_from_slice(&part.extra);
    }

    /// Something with a safe name is no part of the snapshot.
    pub(super) fn extra(&mut self, path: &str, id: ObjectId, mode: Mode) {
        self.problems.push(Problem::Extra { path: path.to_owned() });
        self.extra.push((id, mode));
    }

    /// Notes a file that the lorebook, card or list does not name.
    pub(super) fn unused(&mut self, path: String, id: ObjectId) {
        self.problems.push(Problem::UnusedEntry { path });
        self.extra.push((id, Mode::File));
    }

    /// Notes that a part is not in the tree.
    pub(super) fn missing(&mut self, path: impl Into<String>) {
        self.problems.push(Problem::NoPart { path: path.into() });
    }

    /// Returns a part that is in the tree, with the manifest's record of it. Notes it if only one of them is there.
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

/// The parts of a snapshot.
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

/// Read a snapshot's own tree.
pub(super) fn root(reader: &Reader, id: ObjectId, noticed: &mut Noticed) -> Result<Root> {
    let mut root = Root::default();
    let mut folder = Folder::new("", noticed);
    for entry in folder.open(reader, id)? {
        match entry.name.as_slice() {
            b"snapshot.json" => folder.file(&entry, &mut root.manifest),
            b"chat" => folder.folder(&entry, &mut root.chat),
            b"lorebooks" => folder.folder(&entry, &mut root.books),
            b"group.json" => folder.file(&entry, &mut root.group),
            b"card" => folder.folder(&entry, &mut root.card),
            b"file" => folder.folder(&entry, &mut root.file),
            b"attachments" if entry.mode == Mode::Folder => {
                folder.folder(&entry, &mut root.attachments);
            }
            _ => folder.extra(&entry),
        }
    }
    Ok(root)
}

/// What is in a folder that should hold one file and one folder.
#[derive(Default)]
pub(super) struct FileAndFolder {
    pub file: Option<ObjectId>,
    pub folder: Option<ObjectId>,
}

/// The header of a chat, and the folder that holds the folders of its messages.
pub(super) fn chat(reader: &Reader, id: ObjectId, noticed: &mut Noticed) -> Result<FileAndFolder> {
    Folder::new("chat/", noticed).file_and_folder(reader, id, "header.json", "messages")
}

/// The folders of messages with their numbers, in order.
pub(super) fn folders(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<Vec<(usize, ObjectId)>> {
    let mut folders = Vec::new();
    let mut folder = Folder::new("chat/messages/", noticed);
    for entry in folder.open(reader, id)? {
        let Some(number) = number(&entry.name) else {
            folder.extra(&entry);
            continue;
        };
        let mut found = None;
        folder.folder(&entry, &mut found);
        folder.belongs(&entry, || message_folder(number));
        folders.extend(found.map(|id| (number, id)));
    }
    folders.sort_unstable();
    Ok(folders)
}

/// The messages in folder `number`, in order, each with its own number.
pub(super) fn messages(
    reader: &Reader,
    number_of_folder: usize,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<Vec<(usize, ObjectId)>> {
    let mut messages = Vec::new();
    let path = format!("chat/messages/{}/", message_folder(number_of_folder));
    let mut folder = Folder::new(&path, noticed);
    for entry in folder.open(reader, id)? {
        let Some(number) = entry.name.strip_suffix(b".json").and_then(number) else {
            folder.extra(&entry);
            continue;
        };
        let mut found = None;
        folder.file(&entry, &mut found);
        if number / PER_FOLDER == number_of_folder {
            folder.belongs(&entry, || message_file(number));
        } else {
            folder.misplaced(&entry, number);
        }
        messages.extend(found.map(|id| (number, id)));
    }
    messages.sort_unstable();
    Ok(messages)
}

/// The messages of all folders, by number. There is no number that none has.
pub(super) fn in_order(
    mut messages: Vec<(usize, ObjectId)>,
    problems: &mut Problems,
) -> Vec<ObjectId> {
    messages.sort_unstable();
    if let Some(gap) = messages.iter().enumerate().position(|(n, (number, _))| n != *number) {
        problems.push(Problem::NoMessage { number: gap });
    }
    messages.into_iter().map(|(_, id)| id).collect()
}

/// The folder of the lorebook `name`, and what it is called. There is one; where nobody knows the name, or none is called so, it is the first.
pub(super) fn lorebook(
    reader: &Reader,
    id: ObjectId,
    name: Option<&str>,
    noticed: &mut Noticed,
) -> Result<Option<(String, ObjectId)>> {
    let expected = name.map(book_folder);
    let mut folder = Folder::new("lorebooks/", noticed);
    let entries = folder.open(reader, id)?;
    let is_it = |entry: &&RawEntry| {
        expected.as_ref().is_some_and(|expected| entry.name.as_slice() == expected.as_bytes())
    };
    let is_folder = |entry: &&RawEntry| entry.mode == Mode::Folder;
    let chosen = entries.iter().find(is_it).or_else(|| entries.iter().find(is_folder));
    let mut found = None;
    for entry in &entries {
        if chosen.is_some_and(|chosen| std::ptr::eq(chosen, entry)) {
            folder.folder(entry, &mut found);
            folder.safe(entry);
            if !is_it(&entry) && name.is_some() {
                folder.note(entry, |path| Problem::BookFolder { path });
            }
        } else {
            folder.extra(entry);
        }
    }
    let name = chosen.map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
    Ok(name.zip(found))
}

/// The lorebook in the folder `name`; `None` if its file is not there, which is noted.
pub(super) fn book(
    reader: &Reader,
    name: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<Option<CutFile>> {
    cut_file(reader, &format!("lorebooks/{name}/"), id, "book.json", "entries", noticed)
}

/// The picture of a card, and the folders of its texts by name, in order.
#[expect(clippy::type_complexity)]
pub(super) fn card(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<(Option<ObjectId>, Vec<(String, ObjectId)>)> {
    let (mut picture, mut texts) = (None, Vec::new());
    let mut folder = Folder::new("card/", noticed);
    for entry in folder.open(reader, id)? {
        if entry.name == b"picture.png" {
            folder.file(&entry, &mut picture);
            continue;
        }
        let name = std::str::from_utf8(&entry.name).ok();
        let order = name.and_then(|name| Some((number(name.split_once('-')?.0.as_bytes())?, name)));
        let Some((order, name)) = order else {
            folder.extra(&entry);
            continue;
        };
        let mut found = None;
        folder.folder(&entry, &mut found);
        folder.safe(&entry);
        texts.extend(found.map(|id| (order, name.to_owned(), id)));
    }
    texts.sort_unstable();
    Ok((picture, texts.into_iter().map(|(_, name, id)| (name, id)).collect()))
}

/// The text of a card in the folder `name`; `None` if its file is not there, which is noted.
pub(super) fn card_text(
    reader: &Reader,
    name: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<Option<CutFile>> {
    cut_file(reader, &format!("card/{name}/"), id, "text.json", "strings", noticed)
}

/// A file that parts were cut out of.
pub(super) struct CutFile {
    /// The file without its parts.
    pub file: ObjectId,
    /// Where the parts are in the snapshot's tree; ends in a slash.
    pub folder: String,
    /// The parts by the names of their files; empty if the file was stored whole.
    pub parts: HashMap<String, ObjectId>,
}

fn cut_file(
    reader: &Reader,
    path: &str,
    id: ObjectId,
    file: &str,
    parts: &str,
    noticed: &mut Noticed,
) -> Result<Option<CutFile>> {
    let found = Folder::new(path, noticed).file_and_folder(reader, id, file, parts)?;
    let Some(id) = found.file else {
        noticed.missing(format!("{path}{file}"));
        return Ok(None);
    };
    let folder = format!("{path}{parts}/");
    let parts = match found.folder {
        Some(parts) => named_files(Folder::new(&folder, noticed), reader, parts)?,
        None => HashMap::new(),
    };
    Ok(Some(CutFile { file: id, folder, parts }))
}

/// The list of attachments, and the folder of them.
pub(super) fn attachments(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<FileAndFolder> {
    Folder::dispensable("attachments/", noticed).file_and_folder(reader, id, "list.json", "files")
}

/// The attachments by the names of their files.
pub(super) fn attachment_files(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<HashMap<String, ObjectId>> {
    named_files(Folder::dispensable(ATTACHMENTS, noticed), reader, id)
}

pub(super) const ATTACHMENTS: &str = "attachments/files/";

/// The one file that is stored as it is, which should be called so. `None` if it is not there, which is noted.
pub(super) fn plain_file(
    reader: &Reader,
    id: ObjectId,
    name: &str,
    noticed: &mut Noticed,
) -> Result<Option<ObjectId>> {
    let mut found = None;
    let mut folder = Folder::new("file/", noticed);
    for entry in folder.open(reader, id)? {
        if entry.name == name.as_bytes() {
            folder.file(&entry, &mut found);
        } else {
            folder.extra(&entry);
        }
    }
    if found.is_none() {
        noticed.missing("file");
    }
    Ok(found)
}

/// The files of a folder in which somebody's choices are names.
fn named_files(
    mut folder: Folder<'_>,
    reader: &Reader,
    id: ObjectId,
) -> Result<HashMap<String, ObjectId>> {
    let mut entries = HashMap::new();
    for entry in folder.open(reader, id)? {
        let mut found = None;
        folder.file(&entry, &mut found);
        folder.safe(&entry);
        if let (Some(id), Ok(name)) = (found, String::from_utf8(entry.name)) {
            entries.insert(name, id);
        }
    }
    Ok(entries)
}

/// Whether a name in a tree is one that is safe everywhere.
pub(super) fn is_safe(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(is_tree_segment)
}

/// The number that a name is, however many zeros it begins with.
fn number(name: &[u8]) -> Option<usize> {
    let digits = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(name).ok().filter(|_| digits)?.parse().ok()
}

/// One folder of a snapshot, with its path, which ends in a slash.
struct Folder<'a> {
    path: &'a str,
    noticed: &'a mut Noticed,
    /// Whether the snapshot's own files can be rebuilt without it.
    is_dispensable: bool,
}

impl<'a> Folder<'a> {
    fn new(path: &'a str, noticed: &'a mut Noticed) -> Self {
        Self { path, noticed, is_dispensable: false }
    }

    fn dispensable(path: &'a str, noticed: &'a mut Noticed) -> Self {
        Self { path, noticed, is_dispensable: true }
    }

    fn open(&mut self, reader: &Reader, id: ObjectId) -> Result<Vec<RawEntry>> {
        let tree = reader.raw_tree(id)?;
        if !tree.is_gits {
            let path = match self.path {
                "" => "its tree".to_owned(),
                path => path.to_owned(),
            };
            self.noticed.problems.push(Problem::NotGits { path });
        }
        Ok(tree.entries)
    }

    /// One file and one folder belong here.
    fn file_and_folder(
        mut self,
        reader: &Reader,
        id: ObjectId,
        file: &str,
        folder: &str,
    ) -> Result<FileAndFolder> {
        let mut found = FileAndFolder::default();
        for entry in self.open(reader, id)? {
            match entry.name.as_slice() {
                name if name == file.as_bytes() => self.file(&entry, &mut found.file),
                name if name == folder.as_bytes() => self.folder(&entry, &mut found.folder),
                _ => self.extra(&entry),
            }
        }
        Ok(found)
    }

    /// Something is wrong with an entry, whose path it is.
    fn note(&mut self, entry: &RawEntry, problem: impl FnOnce(String) -> Problem) {
        let path = self.path_of(entry);
        self.noticed.problems.push(problem(path));
    }

    fn path_of(&self, entry: &RawEntry) -> String {
        format!("{}{}", self.path, String::from_utf8_lossy(&entry.name))
    }

    fn file(&mut self, entry: &RawEntry, part: &mut Option<ObjectId>) {
        match entry.mode {
            Mode::File | Mode::OtherFile => {
                if entry.mode == Mode::OtherFile {
                    self.note(entry, |path| Problem::OddMode { path });
                }
                // Of two with one name the first counts; that there are two was noticed.
                part.get_or_insert(entry.id);
            }
            Mode::Folder | Mode::Link | Mode::Other => self.wrong_kind(entry),
        }
    }

    fn folder(&mut self, entry: &RawEntry, part: &mut Option<ObjectId>) {
        match entry.mode {
            Mode::Folder => drop(part.get_or_insert(entry.id)),
            _ => self.wrong_kind(entry),
        }
    }

    /// Something else is where a file or folder belongs.
    fn wrong_kind(&mut self, entry: &RawEntry) {
        if self.is_dispensable {
            self.extra(entry)
        } else {
            self.note(entry, |path| Problem::WrongKind { path })
        }
    }

    /// Nothing belongs here.
    fn extra(&mut self, entry: &RawEntry) {
        self.note(entry, |path| match entry.mode {
            _ if !is_safe(&entry.name) => Problem::UnsafeName { path },
            Mode::Link | Mode::Other => Problem::Link { path },
            _ => Problem::Extra { path },
        });
        self.noticed.extra.push((entry.id, entry.mode));
    }

    /// Its name is somebody's choice, and must be safe.
    fn safe(&mut self, entry: &RawEntry) {
        if !is_safe(&entry.name) {
            self.note(entry, |path| Problem::UnsafeName { path });
        }
    }

    /// Its name should be this one.
    fn belongs(&mut self, entry: &RawEntry, name: impl FnOnce() -> String) {
        let name = name();
        if entry.name != name.as_bytes() {
            let belongs = format!("{}{name}", self.path);
            self.note(entry, |path| Problem::Misplaced { path, belongs });
        }
    }

    fn misplaced(&mut self, entry: &RawEntry, number: usize) {
        let folder = message_folder(number / PER_FOLDER);
        let belongs = format!("chat/messages/{folder}/{}", message_file(number));
        self.note(entry, |path| Problem::Misplaced { path, belongs });
    }
}
