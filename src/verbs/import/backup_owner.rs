//! Whose a backup of SillyTavern is. The key in the file's name follows from the folder of the character, or from the name of the group chat; where several give one key, or none
//! gives it, the messages decide.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use crate::history::origin::Lineage;
use crate::rules::{Code, Finding};
use crate::st::{self, Backup, Category, Chat, Library, Message, Scan, TimelineName};

/// The characters and group chats that there are or were, as folders under `chats/` and names of chats.
pub(super) struct KnownOwners {
    root: PathBuf,
    /// Folders of characters that have a card or chats in the library.
    here: BTreeSet<String>,
    /// Folders of characters that only the store knows.
    stored: BTreeSet<String>,
    group_chats: BTreeSet<String>,
}

/// Who a backup belongs to by the key in its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The character with this folder.
    Character(String),
    /// This group chat.
    GroupChat(String),
    /// One of these; the key does not say which.
    OneOf(Vec<String>),
    /// Nobody that is known.
    Unknown,
}

impl KnownOwners {
    pub(super) fn new(library: &Library, scan: &Scan, lineage: &Lineage) -> Self {
        let folder_of = |name: &TimelineName| match name.category() {
            Category::Card => Some(name.chat().to_owned()),
            _ => name.folder().map(str::to_owned),
        };
        let heads = || lineage.history().heads().map(|(name, _)| name);
        let here: BTreeSet<_> = scan.all().filter_map(folder_of).collect();
        let stored = heads().filter_map(folder_of).filter(|folder| !here.contains(folder));
        let stored = stored.collect();
        let groups = heads().chain(&scan.chats).filter(|name| name.is_group());
        let groups = groups.map(|name| name.chat().to_owned());
        let listed = scan.groups.chats().filter_map(st::chat_name);
        let group_chats = groups.chain(listed).collect();
        Self { root: library.root().to_owned(), here, stored, group_chats }
    }

    /// Returns the owner of a backup. Of several that have its key, the one of whom its messages tell.
    pub(super) fn of(&self, backup: &Backup, chat: &Chat<'_>) -> Owner {
        let has_key = |name: &&String| backup.may_be_of(name);
        let mut folders: Vec<_> = self.here.iter().filter(has_key).collect();
        if folders.is_empty() {
            folders.extend(self.stored.iter().filter(has_key));
        }
        let mut groups: Vec<_> = self.group_chats.iter().filter(has_key).collect();
        if !folders.is_empty() && !groups.is_empty() {
            if is_of_group(chat) { folders.clear() } else { groups.clear() }
        }
        match (&folders[..], &groups[..]) {
            ([], []) => Owner::Unknown,
            ([only], []) => Owner::Character((*only).clone()),
            ([], [only]) => Owner::GroupChat((*only).clone()),
            (several, []) => match self.who_speaks(several, chat) {
                Some(folder) => Owner::Character(folder),
                None => Owner::OneOf(several.iter().map(|folder| (*folder).clone()).collect()),
            },
            (_, several) => Owner::OneOf(several.iter().map(|group| (*group).clone()).collect()),
        }
    }

    /// Returns the one of these characters whose name the messages have, if it is only one.
    fn who_speaks(&self, folders: &[&String], chat: &Chat<'_>) -> Option<String> {
        let speakers = speakers(chat);
        let speaks = |folder: &&&String| {
            let card = self.root.join("characters").join(format!("{folder}.png"));
            st::card_name(&card).is_some_and(|name| speakers.contains(&name))
                || speakers.contains(folder.as_str())
        };
        let mut found = folders.iter().filter(speaks);
        let first = found.next()?;
        found.next().is_none().then(|| (**first).clone())
    }
}

impl Owner {
    /// Returns whether a chat can be the one that the backup is of.
    pub(super) fn may_have(&self, backup: &Backup, chat: &TimelineName) -> bool {
        match (self, chat.folder()) {
            (Owner::Character(owner), Some(folder)) => owner == folder,
            (Owner::GroupChat(owner), None) => owner == chat.chat(),
            // Or where an earlier import put what nobody could tell.
            (Owner::OneOf(owners), folder) => {
                let place = folder.unwrap_or(chat.chat());
                place == backup.key || owners.iter().any(|owner| owner == place)
            }
            (Owner::Unknown, _) => true,
            _ => false,
        }
    }
}

/// The folder for backups whose names have no key.
pub(super) const UNKNOWN: &str = "unknown";

/// Returns a folder for the backup of a character that nobody knows: its name, if its messages have one that gives this key.
pub(super) fn unknown_folder(backup: &Backup, chat: &Chat<'_>) -> String {
    let mut names: Vec<_> = speakers(chat).into_iter().map(|name| st::sanitize(&name)).collect();
    names.sort_unstable();
    let named = names.into_iter().find(|name| !name.is_empty() && backup.may_be_of(name));
    match named {
        Some(name) => name,
        None if backup.key.is_empty() => UNKNOWN.to_owned(),
        None => backup.key.clone(),
    }
}

/// Returns whether the messages are those of a group: only there each says whose it is.
pub(super) fn is_of_group(chat: &Chat<'_>) -> bool {
    let is_members = |line: &&[u8]| {
        memchr::memmem::find(line, b"\"original_avatar\"").is_some()
            && Message::read(line).is_some_and(|message| {
                !message.is_user() && message.raw().get("original_avatar").is_some()
            })
    };
    chat.messages.iter().any(is_members)
}

/// The names of those who speak beside the user, and of the character whose chat it says it is.
fn speakers(chat: &Chat<'_>) -> HashSet<String> {
    let header = chat.header.and_then(st::Raw::parse);
    let character = header.and_then(|header| header.get("character_name")?.string());
    let messages = chat.messages.iter().filter_map(|line| Message::read(line));
    let spoken = messages.filter(|message| !message.is_user()).filter_map(|said| said.name());
    spoken.chain(character).collect()
}

/// Several characters give the key of a backup, and its messages do not say whose it is.
pub(super) fn ambiguous(backup: &Backup, owners: &[String], stored: &TimelineName) -> Finding {
    let names: Vec<_> = owners.iter().map(|name| format!("{name:?}")).collect();
    let message = format!(
        "backups/{} can be of {}: SillyTavern calls their backups alike, and the messages do not tell; it was stored as {stored}",
        backup.file,
        names.join(" or of "),
    );
    let remedy = format!(
        "`stvc restore {:?}` writes it; then move the file to the folder of the right character under chats/",
        stored.as_str()
    );
    Finding::new(Code::BackupAmbiguous, stored.as_str(), message).remedy(remedy)
}

/// The name of a backup gives a date that does not exist.
pub(super) fn undated(backup: &Backup) -> Finding {
    let subject = format!("backups/{}", backup.file);
    let written = backup.taken.format("%Y-%m-%d %H:%M:%S");
    let message = format!(
        "its name gives a date that does not exist; the time at which the file was written is used instead: {written}"
    );
    Finding::new(Code::BackupUndated, subject, message)
}
