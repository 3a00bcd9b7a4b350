//! Every use of a lorebook in a library: by chats, groups, character cards, personas and the settings.
//!
//! A lorebook that nothing uses may be cleared away, so nothing here guesses: what cannot be read is recorded, and then no lorebook is
//! unused for certain.

use super::card::card_lorebook;
use super::json::Raw;
use super::name::{SETTINGS, lorebook_path};
use super::{
    Category, Chat, Library, LibraryPath, Scan, TimelineName, chat_name, lorebook_name, open_file,
    read,
};
use crate::auto_recap::lorebook_map;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use unicode_normalization::UnicodeNormalization;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// A chat, by its header.
    Chat(TimelineName),
    /// A chat of a group, by the group's file.
    Group(String),
    /// Every chat: it is chosen in the settings.
    AllChats,
    /// A character's chats: an additional lorebook, chosen in the settings.
    Character(String),
    /// A character, by its card.
    Card(String),
    /// A persona; the one in use if it has no name.
    Persona(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub book: String,
    pub user: User,
}

/// An entry of a map from checkpoints to lorebooks, which ST-Auto-Recap keeps in the metadata of the chat that they were made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// The chat whose metadata has it.
    pub owner: TimelineName,
    /// The checkpoint's chat, as typed.
    pub checkpoint: String,
    pub book: String,
    /// Whether the checkpoint's chat exists.
    pub is_there: bool,
}

#[derive(Clone, Debug, Default)]
pub struct References {
    /// Those that were found.
    pub list: Vec<Reference>,
    pub maps: Vec<MapEntry>,
    /// What could not be read, and why: there may be more.
    pub unreadable: Vec<(String, String)>,
    /// Those of them that the system could not read; the others hold something that cannot be understood.
    pub unread: Vec<(String, String)>,
}

impl References {
    /// The lorebooks among `names` (see [`Library::lorebooks`]) that nothing uses, as far as could be read. A checkpoint that exists uses the lorebook that a map says, also
    /// if its own metadata names another.
    pub fn unused<'n>(&self, names: &'n [String]) -> Vec<&'n str> {
        let mapped = self.maps.iter().filter(|entry| entry.is_there).map(|entry| &entry.book);
        let named = self.list.iter().map(|reference| &reference.book).chain(mapped);
        let files = named.filter_map(|book| lorebook_path(book));
        let used: HashSet<_> = files.map(|path| folded(path.file_name())).collect();
        let is_unused = |name: &&str| !used.contains(&folded(&format!("{name}.json")));
        names.iter().map(String::as_str).filter(is_unused).collect()
    }

    fn add(&mut self, book: Option<String>, user: impl FnOnce() -> User) {
        if let Some(book) = book.filter(|book| !book.is_empty()) {
            self.list.push(Reference { book, user: user() });
        }
    }

    fn add_maps(
        &mut self,
        owner: &TimelineName,
        metadata: Raw<'_>,
        chats: &HashSet<&TimelineName>,
    ) {
        for (checkpoint, book) in lorebook_map(metadata) {
            let bare = checkpoint.strip_suffix(".jsonl").unwrap_or(&checkpoint);
            let is_there = [&checkpoint, bare].into_iter().any(|id| {
                let chat = chat_name(id).and_then(|name| owner.sibling(&name).ok());
                chat.is_some_and(|chat| chats.contains(&chat))
            });
            self.maps.push(MapEntry { owner: owner.clone(), checkpoint, book, is_there });
        }
    }

    /// The system could not read it.
    fn not_read(&mut self, subject: &str, why: &io::Error) {
        self.failed(subject, why);
        self.unread.push((subject.to_owned(), why.to_string()));
    }

    fn failed(&mut self, subject: impl Into<String>, why: impl ToString) {
        self.unreadable.push((subject.into(), why.to_string()));
    }
}

/// Some systems take names for the same that differ in case or in how an accent is written; on such a one a lorebook must not pass for unused.
pub(super) fn folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).collect()
}

impl Library {
    /// Look for every use of a lorebook. Of chats only the first line is read, of cards only what is not the picture.
    pub fn references(&self, scan: &Scan) -> References {
        let mut found = References { unreadable: scan.unreadable.clone(), ..Default::default() };
        let chats: HashSet<_> = scan.chats.iter().collect();
        for name in &scan.chats {
            self.chat_reference(name, &chats, &mut found);
        }
        self.each_file("groups", ".json", &mut found, |found, subject, file| {
            // Groups that the system cannot read are in the scan already.
            let mut bytes = Vec::new();
            if file.and_then(|mut file| file.read_to_end(&mut bytes)).is_ok() {
                group_references(&bytes, subject, &chats, found);
            }
        });
        self.each_file("characters", ".png", &mut found, |found, subject, file| {
            match file.map(card_lorebook) {
                Ok(Ok(book)) => found.add(book, || User::Card(stem(subject).to_owned())),
                Ok(Err(why)) => found.failed(subject, why),
                Err(error) => found.not_read(subject, &error),
            }
        });
        let settings = LibraryPath::parse(SETTINGS).map_err(io::Error::other);
        match settings.and_then(|settings| read(self.root(), &settings)) {
            Ok(bytes) => settings_references(&bytes, &mut found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.not_read("settings.json", &error),
        }
        found
    }

    fn chat_reference(
        &self,
        name: &TimelineName,
        chats: &HashSet<&TimelineName>,
        found: &mut References,
    ) {
        let path = name.file();
        let line = match open_file(self.root(), &path).and_then(first_line) {
            Ok(line) => line,
            Err(error) => return found.not_read(path.as_str(), &error),
        };
        let chat = Chat::header_of(&line, name.is_group());
        // SillyTavern reads invalid UTF-8 leniently. A byte order mark makes it lose the header, but not for good.
        let header = chat.header.map(String::from_utf8_lossy).unwrap_or_default();
        let header = header.trim_start_matches('\u{feff}').trim();
        // A group chat that begins with a message has its metadata in the group's file.
        if header.is_empty() && chat.header.is_none() {
            return;
        }
        match Raw::parse_str(header) {
            Some(header) => {
                let metadata = header.get("chat_metadata");
                found.add(metadata.and_then(lorebook_name), || User::Chat(name.clone()));
                metadata.iter().for_each(|metadata| found.add_maps(name, *metadata, chats));
            }
            None => found.failed(path.as_str(), "its first line cannot be read"),
        }
    }

    /// Call `each` with the path in the library of every file in the folder `at` that ends so, and with the file, opened.
    fn each_file(
        &self,
        at: &str,
        ending: &str,
        found: &mut References,
        mut each: impl FnMut(&mut References, &str, io::Result<File>),
    ) {
        let known = found.unreadable.len();
        let entries = self.list(at, &mut found.unreadable);
        found.unread.extend(found.unreadable[known..].iter().cloned());
        let mut files: Vec<_> =
            entries.iter().map(|entry| (entry.file_name(), entry.path())).collect();
        files.sort_unstable();
        for (name, path) in files {
            let name = name.to_string_lossy();
            if name.to_ascii_lowercase().ends_with(ending) && !path.is_dir() {
                let subject = format!("{at}/{name}");
                let path = LibraryPath::parse(&subject).map_err(io::Error::other);
                let file = path.and_then(|path| open_file(self.root(), &path));
                each(found, &subject, file);
            }
        }
    }
}

pub(super) fn first_line(file: File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line)?;
    line.pop_if(|last| *last == b'\n');
    Ok(line)
}

/// A group's file has the metadata of its open chat and, in SillyTavern 1.12, of its other chats.
fn group_references(
    bytes: &[u8],
    subject: &str,
    chats: &HashSet<&TimelineName>,
    found: &mut References,
) {
    let text = String::from_utf8_lossy(bytes);
    let Some(group) = Raw::parse_str(&text).filter(Raw::is_object) else {
        return found.failed(subject, "it is not a JSON object");
    };
    let past = group.get("past_metadata").and_then(|past| past.members()).unwrap_or_default();
    let past = past.into_iter().map(|member| (Some(member.key.to_string_lossy()), member.value));
    let open = group.get("chat_id").and_then(|id| id.string());
    let open = group.get("chat_metadata").map(|metadata| (open, metadata));
    for (chat, metadata) in open.into_iter().chain(past) {
        found.add(lorebook_name(metadata), || User::Group(subject.to_owned()));
        if let Some(owner) = chat.and_then(|chat| TimelineName::of(Category::GroupChat, &chat).ok())
        {
            found.add_maps(&owner, metadata, chats);
        }
    }
}

fn settings_references(bytes: &[u8], found: &mut References) {
    let text = String::from_utf8_lossy(bytes);
    let Some(settings) = Raw::parse_str(&text).filter(Raw::is_object) else {
        return found.failed("settings.json", "it is not a JSON object");
    };
    let chosen = settings.path(&["world_info_settings", "world_info"]);
    for book in items(chosen.and_then(|chosen| chosen.get("globalSelect"))) {
        found.add(book.string(), || User::AllChats);
    }
    for character in items(chosen.and_then(|chosen| chosen.get("charLore"))) {
        let name = character.get("name").and_then(|name| name.string()).unwrap_or_default();
        for book in items(character.get("extraBooks")) {
            found.add(book.string(), || User::Character(name.clone()));
        }
    }
    let Some(user) = settings.get("power_user") else { return };
    let book = user.get("persona_description_lorebook").and_then(|book| book.string());
    found.add(book, || User::Persona(String::new()));
    let personas = user.get("persona_descriptions").and_then(|personas| personas.members());
    for persona in personas.unwrap_or_default() {
        let book = persona.value.get("lorebook").and_then(|book| book.string());
        found.add(book, || User::Persona(persona.key.to_string_lossy()));
    }
}

fn items(list: Option<Raw<'_>>) -> Vec<Raw<'_>> {
    list.and_then(|list| list.items()).unwrap_or_default()
}

fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
