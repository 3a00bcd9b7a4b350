//! Every use of a lorebook in a library: by chats, groups, character cards, personas and the
//! settings.
//!
//! A lorebook that nothing uses may be removed, so nothing here guesses: files that cannot be read
//! are recorded, and then no lorebook is certain to be unused.

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

/// The user of a lorebook.
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

/// An entry of a map from checkpoints to lorebooks, which ST-Auto-Recap keeps in the metadata of the
/// chat that they were made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapEntry {
    pub owner: TimelineName,
    /// The checkpoint's chat, as typed.
    pub checkpoint: String,
    pub book: String,
    pub is_there: bool,
}

impl MapEntry {
    /// Returns the timelines that the checkpoint may be: its name may have the ending of a file.
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
    /// Files that could not be read, and why: there may be more references.
    pub unreadable: Vec<(String, String)>,
    /// Those of them that the system could not read; the others hold something invalid.
    pub unread: Vec<(String, String)>,
}

impl References {
    /// Returns the lorebooks among `names` (see [`Library::lorebooks`]) that nothing uses, as far as
    /// could be read. A checkpoint that exists uses the lorebook that a map says, also if its own
    /// metadata names another.
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
        for book in items(chosen.and_then(|chosen| chosen.get("globalSelect"))) {
            self.add(book.string(), User::AllChats);
        }
        for character in items(chosen.and_then(|chosen| chosen.get("charLore"))) {
            let name = character.get("name").and_then(|name| name.string()).unwrap_or_default();
            for book in items(character.get("extraBooks")) {
                self.add(book.string(), User::Character(name.clone()));
            }
        }
        let Some(user) = settings.get("power_user") else { return };
        let book = user.get("persona_description_lorebook").and_then(|book| book.string());
        self.add(book, User::Persona(String::new()));
        let personas = user.get("persona_descriptions").and_then(|personas| personas.members());
        for persona in personas.unwrap_or_default() {
            let book = persona.value.get("lorebook").and_then(|book| book.string());
            self.add(book, User::Persona(persona.key.to_string_lossy()));
        }
    }
}

/// Some systems ignore case and the form of accents in names; on such a one a lorebook must not
/// count as unused.
fn folded(name: &str) -> String {
    name.nfc().flat_map(char::to_lowercase).collect()
}

fn items(list: Option<Raw<'_>>) -> Vec<Raw<'_>> {
    list.and_then(|list| list.items()).unwrap_or_default()
}

impl Library {
    /// Searches for every use of a lorebook. Of chats only the first line is read, of cards only the
    /// text.
    pub fn references(&self, scan: &Scan) -> References {
        let found = References { unreadable: scan.unreadable.clone(), ..Default::default() };
        let mut search = Search { library: self, chats: scan.chats.iter().collect(), found };
        for name in &scan.chats {
            search.chat(name);
        }
        for subject in search.files("groups", ".json") {
            // Groups that the system cannot read are in the scan already.
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
        // A group chat that begins with a message has its metadata in the group's file.
        let Some(header) = Chat::header_of(&line, name.category()).header else { return };
        // SillyTavern reads invalid UTF-8 leniently. A byte order mark makes it lose the header, but
        // not for good.
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

    /// A group's file has the metadata of its open chat and, in SillyTavern 1.12, of its other
    /// chats.
    fn group(&mut self, bytes: &[u8], subject: &str) {
        let text = String::from_utf8_lossy(bytes);
        let Some(group) = Raw::parse_str(&text).filter(Raw::is_object) else {
            return self.found.failed(subject, "it is not a JSON object");
        };
        let past = group.get("past_metadata").and_then(|past| past.members()).unwrap_or_default();
        let past = past.into_iter().map(|it| (Some(it.key.to_string_lossy()), it.value));
        let open = group.get("chat_id").and_then(|id| id.string());
        let open = group.get("chat_metadata").map(|metadata| (open, metadata));
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

/// Returns the file of the lorebook that a chat is bound to; none also if the chat cannot be read.
pub fn lorebook_of(library: &Library, groups: &Groups, name: &TimelineName) -> Option<LibraryPath> {
    bound_with(library, groups, name, |path| read(library.root(), path).ok())
}

/// Returns the lorebook that a chat is bound to if its group's file is what `group` returns.
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

/// Returns the chats that are bound to the lorebook at `book`, without those that cannot be read.
pub fn users_of_lorebook(library: &Library, book: &LibraryPath) -> Result<Vec<TimelineName>> {
    let scan = library.scan()?;
    let mut users = scan.chats;
    users.retain(|name| lorebook_of(library, &scan.groups, name).as_ref() == Some(book));
    Ok(users)
}

pub struct PossibleUsers {
    pub chats: Vec<TimelineName>,
    pub others: Vec<String>,
    /// Chats and folders of chats that cannot be read.
    pub unread: Vec<String>,
}

/// Returns all that name the lorebook at `book`, and checkpoints that ST-Auto-Recap maps to it.
/// Names are compared as on a system that ignores case, and files that cannot be read are reported,
/// because a lorebook is removed if this finds nothing. `group` returns the file of a group as it
/// will be.
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
    let others = named.filter_map(|reference| match &reference.user {
        User::Chat(_) | User::Group(_) => None,
        User::AllChats => Some("the settings, for all chats".to_owned()),
        User::Character(name) | User::Card(name) => Some(format!("the character {name:?}")),
        User::Persona(name) if name.is_empty() => Some("the persona in use".to_owned()),
        User::Persona(name) => Some(format!("the persona {name:?}")),
    });
    let others = others.collect();
    Ok(PossibleUsers { chats, others, unread: unread.filter(is_chat).cloned().collect() })
}
