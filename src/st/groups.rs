//! Which group a group chat belongs to: only the group's own file says so.

use super::json::Raw;
use super::name::{LibraryPath, chat_name};
use std::collections::HashMap;

/// The groups of a library, by their chats.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    of_chat: HashMap<String, LibraryPath>,
    /// A file that could not be read, and why: it may be the group of any chat.
    pub(super) unread: Option<(String, String)>,
    /// Whether a file is damaged: it may have listed any chat.
    is_damaged: bool,
}

impl Groups {
    /// The file of the group that `chat` (a name as [`TimelineName::chat`](super::TimelineName::chat) gives it) belongs to.
    pub fn group_of(&self, chat: &str) -> Option<&LibraryPath> {
        self.of_chat.get(chat)
    }

    /// Returns whether every group's file could be read: else any chat may be listed in another.
    pub fn are_complete(&self) -> bool {
        self.unread.is_none() && !self.is_damaged
    }

    /// Returns the names of all chats that groups list, as the groups spell them.
    pub fn chats(&self) -> impl Iterator<Item = &str> {
        self.of_chat.keys().map(String::as_str)
    }

    /// From the groups' files, in an order that does not depend on the file system.
    /// If two groups list one chat, the first has it; being listed goes before being the open chat.
    pub(super) fn read(files: &[(LibraryPath, Vec<u8>)]) -> Self {
        let mut groups = Self::default();
        let mut open = Vec::new();
        for (path, bytes) in files {
            // Lenient as SillyTavern is: only a chat's name could be hurt by it.
            let text = String::from_utf8_lossy(bytes);
            let Some(group) = Raw::parse_str(&text).filter(Raw::is_object) else {
                groups.is_damaged = true;
                continue;
            };
            let listed = group.get("chats").and_then(|chats| chats.items()).unwrap_or_default();
            for id in listed.iter().filter_map(Raw::string) {
                groups.add(id, path);
            }
            open.extend(group.get("chat_id").and_then(|id| id.string()).map(|id| (id, path)));
        }
        for (id, path) in open {
            groups.add(id, path);
        }
        groups
    }

    /// Also what this file of a group lists.
    pub fn read_again(&mut self, path: &LibraryPath, bytes: &[u8]) {
        let more = Self::read(&[(path.clone(), bytes.to_vec())]);
        for (chat, path) in more.of_chat {
            self.of_chat.entry(chat).or_insert(path);
        }
    }

    fn add(&mut self, id: String, path: &LibraryPath) {
        // A group lists names as they were typed; the file's name may differ.
        if let Some(file) = chat_name(&id).filter(|file| *file != id) {
            self.of_chat.entry(file).or_insert_with(|| path.clone());
        }
        self.of_chat.entry(id).or_insert_with(|| path.clone());
    }
}
