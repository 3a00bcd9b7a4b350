//! Every use of a lorebook in a library: by chats, groups, character cards, personas and the
//! settings.
//!
//! stvc may remove unused lorebooks, so it must be certain that a lorebook is unused. Files that
//! cannot be read are recorded: while such a file exists, no lorebook is certain to be unused.

use super::card::card_lorebook;
use super::json::Raw;
use super::name::{CHAT_ENDING, SETTINGS};
use super::{
    Chat, Groups, Library, LibraryPath, Result, Scan, TimelineName, bound_lorebook, chat_name,
    lorebook_name, lorebook_path, open_file, read,
};
use crate::auto_recap::lorebook_map;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use unicode_normalization::UnicodeNormalization;

/// A place that names a lorebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// A chat whose header names the lorebook.
    Chat(TimelineName),
    /// A group chat whose metadata is in the group's file. The value is the path of the group's
    /// file.
    Group(String),
    /// Every chat, because the lorebook is selected globally in the settings.
    AllChats,
    /// All chats of a character, because the settings list the lorebook as an additional lorebook
    /// of the character.
    Character(String),
    /// A character whose card names the lorebook. The value is the file name of the card, without
    /// ending.
    Card(String),
    /// A persona. The value is empty for the persona in use.
    Persona(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub book: String,
    pub user: User,
}

/// An entry of ST-Auto-Recap's map from checkpoints to lorebooks. The map is in the metadata of the
/// chat `owner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    pub owner: TimelineName,
    /// Name of the checkpoint's chat, as the user typed it.
    pub checkpoint: String,
    pub book: String,
    pub is_there: bool,
}

impl MapEntry {
    /// Returns the timelines that `checkpoint` may refer to: the name may include a file ending.
    fn chats(&self) -> impl Iterator<Item = TimelineName> {
        let ids = [Some(self.checkpoint.as_str()), self.checkpoint.strip_suffix(CHAT_ENDING)];
        let names = ids.into_iter().flatten().filter_map(chat_name);
        names.filter_map(|name| self.owner.sibling(&name).ok())
    }
}

#[derive(Clone, Debug, Default)]
pub struct References {
    pub list: Vec<Reference>,
    pub maps: Vec<MapEntry>,
    /// Files that could not be read or parsed, with reasons. These files may contain further
    /// references.
    pub unreadable: Vec<(String, String)>,
    /// The files in `unreadable` that failed with an I/O error; the other files have invalid
    /// content.
    pub unread: Vec<(String, String)>,
}

impl References {
    /// Returns the lorebooks among `names` (see [`Library::lorebooks`]) to which no reference was
    /// found. An existing checkpoint also uses the lorebook that a map assigns to the checkpoint,
    /// even if the checkpoint's own metadata names another lorebook.
    pub fn unused<'n>(&self, names: &'n [String]) -> Vec<&'n str> {
        let mapped = self.maps.iter().filter(|entry| entry.is_there).map(|entry| &entry.book);
        let named = self.list.iter().map(|reference| &reference.book).chain(mapped);
        let files = named.filter_map(|book| lorebook_path(book));
        let used: HashSet<_> = files.map(|path| folded(path.file_name())).collect();
        let is_unused = |name: &&str| !used.contains(&folded(&format!("{name}.json")));
        names.iter().map(String::as_str).filter(is_unused).collect()
    }

    fn add(&mut self, book: Option<String>, user: User) {
        let book = book.filter(|book| !book.is_empty());
        self.list.extend(book.map(|book| Reference { book, user }));
    }

    fn not_read(&mut self, subject: &str, why: &io::Error) {
        self.failed(subject, why);
        self.unread.push((subject.to_owned(), why.to_string()));
    }

    fn failed(&mut self, subject: impl Into<String>, why: impl ToString) {
        self.unreadable.push((subject.into(), why.to_string()));
    }

    fn settings(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let Some(settings) = Raw::parse_str(&text).filter(Raw::is_object) else {
            return self.failed(SETTINGS, "it is not a JSON object");
        };
        let chosen = settings.path(&["world_info_settings", "world_info"]);
        if let Some(chosen) = chosen {
            for book in chosen.list("globalSelect") {
                self.add(book.string(), User::AllChats);
            }
            for character in chosen.list("charLore") {
                let name = character.text("name").unwrap_or_default();
                for book in character.list("extraBooks") {
                    self.add(book.string(), User::Character(name.clone()));
                }
            }
        }
        let Some(user) = settings.get("power_user") else { return };
        self.add(user.text("persona_description_lorebook"), User::Persona(String::new()));
        let personas = user.get("persona_descriptions").and_then(|personas| personas.members());
        for persona in personas.unwrap_or_default() {
            let name = persona.key.to_string_lossy();
            self.add(persona.value.text("lorebook"), User::Persona(name));
        }
    }
}

/// Folds case and normalises accents. Some file systems ignore these differences, so a reference
/// that differs from a file name only in case or accents must count as a use.
fn folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).collect()
}

impl Library {
    /// Searches the library for every use of a lorebook. Reads only the first line of each chat,
    /// and only the text of each card.
    pub fn references(&self, scan: &Scan) -> References {
        let found = References { unreadable: scan.unreadable.clone(), ..Default::default() };
        let mut search = Search { library: self, chats: scan.chats.iter().collect(), found };
        for name in &scan.chats {
            search.chat(name);
        }
        for subject in search.files("groups", ".json") {
            // The scan has already recorded the group files that could not be read.
            if let Ok(bytes) = parsed(&subject).and_then(|path| read(self.root(), &path)) {
                search.group(&bytes, &subject);
            }
        }
        for subject in search.files("characters", ".png") {
            let file = parsed(&subject).and_then(|path| open_file(self.root(), &path));
            match file.map(card_lorebook) {
                Ok(Ok(book)) => {
                    let name = subject.rsplit('/').next().unwrap_or_default();
                    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
                    search.found.add(book, User::Card(stem.to_owned()));
                }
                Ok(Err(why)) => search.found.failed(subject, why),
                Err(error) => search.found.not_read(&subject, &error),
            }
        }
        let mut found = search.found;
        match parsed(SETTINGS).and_then(|settings| read(self.root(), &settings)) {
            Ok(bytes) => found.settings(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.not_read(SETTINGS, &error),
        }
        found
    }
}

fn parsed(path: &str) -> io::Result<LibraryPath> {
    LibraryPath::parse(path).map_err(io::Error::other)
}

struct Search<'a> {
    library: &'a Library,
    chats: HashSet<&'a TimelineName>,
    found: References,
}

impl Search<'_> {
    fn chat(&mut self, name: &TimelineName) {
        let path = name.file();
        let line = match open_file(self.library.root(), &path).and_then(first_line) {
            Ok(line) => line,
            Err(error) => return self.found.not_read(path.as_str(), &error),
        };
        // A group chat that begins with a message has no header: its metadata is in the group's
        // file.
        let Some(header) = Chat::header_of(&line, name.category()).header else { return };
        // SillyTavern reads invalid UTF-8 leniently. A byte order mark hides the header from
        // SillyTavern, but removing the mark makes the header visible again, so the lorebook counts
        // as used.
        let header = String::from_utf8_lossy(header);
        match Raw::parse_str(header.trim_start_matches('\u{feff}').trim()) {
            Some(header) => {
                let Some(metadata) = header.get("chat_metadata") else { return };
                self.found.add(lorebook_name(metadata), User::Chat(name.clone()));
                self.maps(name, metadata);
            }
            None => self.found.failed(path.as_str(), "its first line cannot be read"),
        }
    }

    /// Records the uses in a group's file, which has the metadata of the group's open chat and, in
    /// SillyTavern 1.12, of the group's other chats.
    fn group(&mut self, bytes: &[u8], subject: &str) {
        let text = String::from_utf8_lossy(bytes);
        let Some(group) = Raw::parse_str(&text).filter(Raw::is_object) else {
            return self.found.failed(subject, "it is not a JSON object");
        };
        let past = group.get("past_metadata").and_then(|past| past.members()).unwrap_or_default();
        let past = past.into_iter().map(|it| (Some(it.key.to_string_lossy()), it.value));
        let open = group.get("chat_metadata").map(|metadata| (group.text("chat_id"), metadata));
        for (chat, metadata) in open.into_iter().chain(past) {
            self.found.add(lorebook_name(metadata), User::Group(subject.to_owned()));
            if let Some(owner) = chat.and_then(|chat| TimelineName::group(&chat).ok()) {
                self.maps(&owner, metadata);
            }
        }
    }

    fn maps(&mut self, owner: &TimelineName, metadata: Raw<'_>) {
        for (checkpoint, book) in lorebook_map(metadata) {
            let mut entry = MapEntry { owner: owner.clone(), checkpoint, book, is_there: false };
            let is_there = entry.chats().any(|chat| self.chats.contains(&chat));
            entry.is_there = is_there;
            self.found.maps.push(entry);
        }
    }

    fn files(&mut self, at: &str, ending: &str) -> Vec<String> {
        let known = self.found.unreadable.len();
        let entries = self.library.list(at, &mut self.found.unreadable);
        self.found.unread.extend_from_slice(&self.found.unreadable[known..]);
        let mut names: Vec<_> = entries
            .iter()
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
            .filter(|(name, path)| name.to_ascii_lowercase().ends_with(ending) && !path.is_dir())
            .map(|(name, _)| format!("{at}/{name}"))
            .collect();
        names.sort_unstable();
        names
    }
}

fn first_line(file: File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut line)?;
    line.pop_if(|last| *last == b'\n');
    Ok(line)
}

/// Returns the path of the lorebook that a chat is bound to; `None` if the chat has no lorebook or
/// cannot be read.
pub fn lorebook_of(library: &Library, groups: &Groups, name: &TimelineName) -> Option<LibraryPath> {
    bound_with(library, groups, name, |path| read(library.root(), path).ok())
}

/// Returns the path of the lorebook that a chat is bound to. `group` returns the content of the
/// group's file, which may be planned content that is not written yet.
fn bound_with(
    library: &Library,
    groups: &Groups,
    name: &TimelineName,
    group: impl Fn(&LibraryPath) -> Option<Vec<u8>>,
) -> Option<LibraryPath> {
    let line = first_line(open_file(library.root(), &name.file()).ok()?).ok()?;
    let chat = Chat::header_of(&line, name.category());
    let of_group = groups.group_of(name.chat()).filter(|_| name.is_group());
    let group = of_group.and_then(group);
    lorebook_path(&bound_lorebook(&chat, name, group.as_deref())?)
}

/// Returns the chats that are bound to the lorebook at `book`. Unreadable chats are left out.
pub fn users_of_lorebook(library: &Library, book: &LibraryPath) -> Result<Vec<TimelineName>> {
    let scan = library.scan()?;
    let mut users = scan.chats;
    users.retain(|name| lorebook_of(library, &scan.groups, name).as_ref() == Some(book));
    Ok(users)
}

pub struct PossibleUsers {
    pub chats: Vec<TimelineName>,
    /// Paths and names of cards and settings.
    pub others: Vec<(String, String)>,
    /// Paths of chats, and of folders of chats, that could not be read.
    pub unread: Vec<String>,
}

/// Returns everything that names the lorebook at `book`, including checkpoints that ST-Auto-Recap
/// maps to the lorebook. Names are compared without case, and unreadable files are reported,
/// because the caller removes a lorebook without users. `group` returns the planned content of a
/// group's file.
pub fn possible_users_of_lorebook(
    library: &Library,
    book: &LibraryPath,
    group: impl Fn(&LibraryPath) -> Option<Vec<u8>>,
) -> Result<PossibleUsers> {
    let scan = library.scan()?;
    let references = library.references(&scan);
    let is_book = |path: LibraryPath| folded(path.as_str()) == folded(book.as_str());
    let is_named = |name: &str| lorebook_path(name).is_some_and(is_book);
    let maps = references.maps.iter().filter(|entry| entry.is_there && is_named(&entry.book));
    let mapped: Vec<_> = maps.flat_map(MapEntry::chats).collect();
    let uses = |name: &&TimelineName| {
        mapped.contains(name)
            || bound_with(library, &scan.groups, name, &group).is_some_and(is_book)
    };
    let chats = scan.chats.iter().filter(uses).cloned().collect();
    let unread = references.unread.iter().chain(&scan.unreadable).map(|(subject, _)| subject);
    let is_chat = |subject: &&String| {
        ["chats", "group chats"].contains(&subject.split('/').next().unwrap_or_default())
    };
    let named = references.list.iter().filter(|reference| is_named(&reference.book));
    let others = named.filter_map(|reference| {
        let name = match &reference.user {
            User::Chat(_) | User::Group(_) => return None,
            User::AllChats => "the settings (for all chats)".to_owned(),
            User::Character(name) | User::Card(name) => format!("the character {name:?}"),
            User::Persona(name) if name.is_empty() => "the persona in use".to_owned(),
            User::Persona(name) => format!("the persona {name:?}"),
        };
        let path = match &reference.user {
            User::Card(card) => format!("characters/{card}.png"),
            _ => SETTINGS.to_owned(),
        };
        Some((path, name))
    });
    let others = others.collect();
    Ok(PossibleUsers { chats, others, unread: unread.filter(is_chat).cloned().collect() })
}
