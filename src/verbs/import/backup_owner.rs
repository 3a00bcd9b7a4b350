//! Finds the owner of a backup that SillyTavern created: a character or a group chat. The backup's
//! file name contains a key, which is derived from the character's folder or from the name of the
//! group chat. If several owners have this key, or if no owner has it, the messages decide.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use crate::history::origin::Lineage;
use crate::rules::{Code, Finding};
use crate::st::{self, Backup, Category, Chat, Library, Message, Scan, TimelineName};

/// The known characters, identified by their folders under `chats/`, and the known group chats.
pub(super) struct KnownOwners {
    root: PathBuf,
    /// Characters that have a card or chats in the library.
    here: BTreeSet<String>,
    /// Characters that occur only in the store.
    stored: BTreeSet<String>,
    group_chats: BTreeSet<String>,
}

/// The owner of a backup, determined by the key in its file name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Character(String),
    GroupChat(String),
    /// Several owners have the key, and the messages do not show which owner is the right one.
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

    /// Returns the owner of a backup. If several owners have its key, the messages decide.
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

    /// Returns the only character among `folders` that speaks in the chat. Returns `None` if
    /// several of them speak, or if none of them speaks.
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
            // An earlier import may have stored this ambiguous backup in a folder that is named
            // after the key.
            (Owner::OneOf(owners), folder) => {
                let place = folder.unwrap_or(chat.chat());
                place == backup.key || owners.iter().any(|owner| owner == place)
            }
            (Owner::Unknown, _) => true,
            _ => false,
        }
    }
}

/// The folder for backups of unknown owners whose file names contain no key.
pub(super) const UNKNOWN: &str = "unknown";

/// Returns the folder for a backup of an unknown owner: the name of a speaker that matches the key,
/// or else the key itself.
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

/// Returns whether the chat is a group chat. Only messages of group chats record the speaker's
/// card.
pub(super) fn is_of_group(chat: &Chat<'_>) -> bool {
    let is_members = |line: &&[u8]| {
        memchr::memmem::find(line, b"\"original_avatar\"").is_some()
            && Message::read(line).is_some_and(|message| {
                !message.is_user() && message.raw().get("original_avatar").is_some()
            })
    };
    chat.messages.iter().any(is_members)
}

/// Returns the names of all speakers except the user, and the character's name in the header.
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
        "backups/{} may belong to {}: SillyTavern gives their backups the same name, and the messages do not show which; it was stored as {stored}",
        backup.file,
        names.join(" or "),
    );
    let remedy = format!(
        "run `stvc restore {:?}`, then move the file to the right character's folder in chats/",
        stored.as_str()
    );
    Finding::new(Code::BackupAmbiguous, stored.as_str(), message).remedy(remedy)
}

pub(super) fn undated(backup: &Backup) -> Finding {
    let subject = format!("backups/{}", backup.file);
    let written = backup.taken.format("%Y-%m-%d %H:%M:%S");
    let message = format!(
        "its name contains an invalid date, so the file's modification time is used: {written}"
    );
    Finding::new(Code::BackupUndated, subject, message)
}
