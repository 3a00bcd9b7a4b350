//! The owner of a SillyTavern backup. The key in the file's name follows from the character's
//! folder, or from the name of the group chat; if several have one key, or none has it, the
//! messages decide.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use crate::history::origin::Lineage;
use crate::rules::{Code, Finding};
use crate::st::{self, Backup, Category, Chat, Library, Message, Scan, TimelineName};

/// Known characters, by their folders under `chats/`, and group chats.
pub(super) struct KnownOwners {
    root: PathBuf,
    /// In the library, with a card or chats.
    here: BTreeSet<String>,
    /// Only in the store.
    stored: BTreeSet<String>,
    group_chats: BTreeSet<String>,
}

/// The owner of a backup by the key in its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Character(String),
    GroupChat(String),
    /// The key does not tell which.
    OneOf(Vec<String>),
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

    /// Of several with one key, the messages decide.
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

    /// Returns the only one of these characters that speaks.
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
    pub(super) fn may_have(&self, backup: &Backup, chat: &TimelineName) -> bool {
        match (self, chat.folder()) {
            (Owner::Character(owner), Some(folder)) => owner == folder,
            (Owner::GroupChat(owner), None) => owner == chat.chat(),
            // Or where an earlier import put an undecided one.
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

/// Returns a speaker that has the backup's key, otherwise the key itself.
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

/// Only messages of groups name their speaker's card.
pub(super) fn is_of_group(chat: &Chat<'_>) -> bool {
    let is_members = |line: &&[u8]| {
        memchr::memmem::find(line, b"\"original_avatar\"").is_some()
            && Message::read(line).is_some_and(|message| {
                !message.is_user() && message.raw().get("original_avatar").is_some()
            })
    };
    chat.messages.iter().any(is_members)
}

/// Returns all names but the user's, and the character in the header.
fn speakers(chat: &Chat<'_>) -> HashSet<String> {
    let header = chat.header.and_then(st::Raw::parse);
    let character = header.and_then(|header| header.get("character_name")?.string());
    let messages = chat.messages.iter().filter_map(|line| Message::read(line));
    let spoken = messages.filter(|message| !message.is_user()).filter_map(|said| said.name());
    spoken.chain(character).collect()
}

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

pub(super) fn undated(backup: &Backup) -> Finding {
    let subject = format!("backups/{}", backup.file);
    let written = backup.taken.format("%Y-%m-%d %H:%M:%S");
    let message = format!(
        "its name gives a date that does not exist; the time at which the file was written is used instead: {written}"
    );
    Finding::new(Code::BackupUndated, subject, message)
}
