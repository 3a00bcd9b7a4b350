//! What stands where in a snapshot's tree: the one place that reads its shape. What does not belong there is noted and passed over, so that
//! those who want the bytes get them, and those who judge can tell.

use std::collections::HashMap;

use super::part_names::{PER_FOLDER, book_folder, message_file, message_folder};
use super::problem::{Problem, Problems};
use crate::store::name_encoding::is_tree_segment;
use crate::store::{Mode, ObjectId, RawEntry, Reader, Result};

/// What was noticed on the way.
#[derive(Clone, Default)]
pub(super) struct Noticed {
    pub problems: Problems,
    /// What is no part of a snapshot: nothing is known yet of what hangs on it.
    pub extra: Vec<(ObjectId, Mode)>,
}

impl Noticed {
    /// What was noticed of a part of it.
    pub(super) fn extend(&mut self, part: &Noticed) {
        self.problems.extend(&part.problems);
        self.extra.extend_from_slice(&part.extra);
    }

    /// Something with a safe name is no part of the snapshot.
    pub(super) fn extra(&mut self, path: &str, id: ObjectId, mode: Mode) {
        self.problems.push(Problem::Extra { path: path.to_owned() });
        self.extra.push((id, mode));
    }

    /// The text of a card in the folder `text` does not name this string.
    pub(super) fn unused_string(&mut self, text: &str, file: &str, id: ObjectId) {
        self.problems.push(Problem::UnusedEntry { path: string_path(text, file) });
        self.extra.push((id, Mode::File));
    }

    /// The list does not name this attachment.
    pub(super) fn unused_attachment(&mut self, file: &str, id: ObjectId) {
        self.problems.push(Problem::UnusedEntry { path: format!("{ATTACHMENTS}{file}") });
        self.extra.push((id, Mode::File));
    }

    /// The lorebook in the folder `book` does not name this entry.
    pub(super) fn unused_entry(&mut self, book: &str, file: &str, id: ObjectId) {
        self.problems.push(Problem::UnusedEntry { path: entry_path(book, file) });
        self.extra.push((id, Mode::File));
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

/// The header of a chat, and the folder that holds the folders of its messages.
pub(super) fn chat(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<(Option<ObjectId>, Option<ObjectId>)> {
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

/// The file of a lorebook with its entries cut out, and the folder of these.
pub(super) fn book(
    reader: &Reader,
    name: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<(Option<ObjectId>, Option<ObjectId>)> {
    let path = format!("lorebooks/{name}/");
    Folder::new(&path, noticed).file_and_folder(reader, id, "book.json", "entries")
}

/// The entries of a lorebook by the names of their files.
pub(super) fn entries(
    reader: &Reader,
    name: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<HashMap<String, ObjectId>> {
    named_files(reader, &entry_path(name, ""), id, noticed)
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

/// One text of a card with its strings cut out, and the folder of these.
pub(super) fn card_text(
    reader: &Reader,
    name: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<(Option<ObjectId>, Option<ObjectId>)> {
    let path = format!("card/{name}/");
    Folder::new(&path, noticed).file_and_folder(reader, id, "text.json", "strings")
}

/// The strings of a card's text by the names of their files.
pub(super) fn strings(
    reader: &Reader,
    text: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<HashMap<String, ObjectId>> {
    named_files(reader, &string_path(text, ""), id, noticed)
}

/// Where the file of a card's string is.
fn string_path(text: &str, file: &str) -> String {
    format!("card/{text}/strings/{file}")
}

/// The list of attachments, and the folder of them.
pub(super) fn attachments(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<(Option<ObjectId>, Option<ObjectId>)> {
    Folder::dispensable("attachments/", noticed).file_and_folder(reader, id, "list.json", "files")
}

/// The attachments by the names of their files.
pub(super) fn attachment_files(
    reader: &Reader,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<HashMap<String, ObjectId>> {
    files_in(Folder::dispensable(ATTACHMENTS, noticed), reader, id)
}

const ATTACHMENTS: &str = "attachments/files/";

/// The one file that is stored as it is, which should be called so.
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
    Ok(found)
}

/// The files of a folder in which somebody's choices are names.
fn named_files(
    reader: &Reader,
    path: &str,
    id: ObjectId,
    noticed: &mut Noticed,
) -> Result<HashMap<String, ObjectId>> {
    files_in(Folder::new(path, noticed), reader, id)
}

fn files_in(
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

/// Where the file of an entry is.
fn entry_path(book: &str, file: &str) -> String {
    format!("lorebooks/{book}/entries/{file}")
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
    ) -> Result<(Option<ObjectId>, Option<ObjectId>)> {
        let mut found = (None, None);
        for entry in self.open(reader, id)? {
            match entry.name.as_slice() {
                name if name == file.as_bytes() => self.file(&entry, &mut found.0),
                name if name == folder.as_bytes() => self.folder(&entry, &mut found.1),
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
