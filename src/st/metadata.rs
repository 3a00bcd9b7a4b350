//! A chat's metadata, which is in the chat's header or, for group chats of SillyTavern 1.12, in the
//! group's file.

use super::chat::first_line;
use super::json::{Edits, Raw};
use super::name::chat_name;
use super::{Chat, TimelineName};

pub fn metadata<'a>(
    chat: &Chat<'a>,
    name: &TimelineName,
    group: Option<&'a [u8]>,
) -> Option<Raw<'a>> {
    let header = chat.header.and_then(Raw::parse);
    if let Some(found) = header.and_then(|header| object(header, "chat_metadata")) {
        return Some(found);
    }
    let group = Raw::parse(group.filter(|_| name.is_group())?)?;
    if group.text("chat_id").is_some_and(|id| is_called(&id, name))
        && let Some(found) = object(group, "chat_metadata")
    {
        return Some(found);
    }
    let past = group.get("past_metadata")?;
    object(past, name.chat()).or_else(|| {
        // The key may be the chat's name as the user typed it, which can differ from the file name.
        let members = past.members()?;
        let found =
            members.iter().rfind(|member| is_called(&member.key.to_string_lossy(), name))?;
        Some(found.value).filter(Raw::is_object)
    })
}

pub fn lorebook_name(metadata: Raw) -> Option<String> {
    metadata.text("world_info").filter(|name| !name.is_empty())
}

/// Returns the name of the parent chat that a fork's metadata records.
pub fn main_chat(metadata: Raw) -> Option<String> {
    metadata.text("main_chat").filter(|name| !name.is_empty())
}

/// Returns the parent of a checkpoint, derived from the checkpoint's name `<chat> Checkpoint #3`.
/// Needed for old checkpoints, whose metadata has no `main_chat`. Group chats had no checkpoints at
/// that time.
pub fn chat_of_checkpoint(name: &TimelineName) -> Option<TimelineName> {
    let (chat, _) = name.chat().rsplit_once("Checkpoint #")?;
    let chat = chat.trim().trim_end_matches('-').trim_end();
    TimelineName::solo(name.folder()?, chat).ok()
}

/// Returns the name of the lorebook bound to a chat. Also reads a header or a group's file that is
/// not valid UTF-8, because SillyTavern reads such files leniently.
pub fn bound_lorebook(chat: &Chat, name: &TimelineName, group: Option<&[u8]>) -> Option<String> {
    if let Some(found) = metadata(chat, name, group) {
        return lorebook_name(found);
    }
    let header = chat.header.map(String::from_utf8_lossy);
    let group = group.map(String::from_utf8_lossy);
    let chat =
        Chat { header: header.as_ref().map(|header| header.as_bytes()), messages: Vec::new() };
    metadata(&chat, name, group.as_ref().map(|group| group.as_bytes())).and_then(lorebook_name)
}

fn object<'a>(value: Raw<'a>, key: &str) -> Option<Raw<'a>> {
    value.get(key).filter(Raw::is_object)
}

pub(super) fn is_called(id: &str, name: &TimelineName) -> bool {
    id == name.chat() || chat_name(id).is_some_and(|file| file == name.chat())
}

/// Returns the integrity value of a chat, `chat_metadata.integrity`, as raw JSON. SillyTavern asks
/// the user before its page overwrites a chat file whose integrity value differs from the value in
/// the page. SillyTavern does not ask if the file has no integrity value (`None`).
pub fn integrity(chat: &[u8]) -> Option<&[u8]> {
    let integrity = object(Raw::parse(first_line(chat))?, "chat_metadata")?.get("integrity")?;
    // These values are falsy in JavaScript.
    let is_none = [r#""""#, "null", "false", "0"].contains(&integrity.as_str());
    (!is_none).then(|| integrity.as_bytes())
}

/// Returns the chat with its integrity value set to `integrity`, which must be JSON. No other byte
/// changes. `None` if the chat has no header with metadata.
pub fn with_integrity(chat: &[u8], integrity: &[u8]) -> Option<Vec<u8>> {
    let header = first_line(chat);
    let mut edits = Edits::new(header);
    let metadata = object(Raw::parse(header)?, "chat_metadata")?;
    edits.set(metadata, "integrity", str::from_utf8(integrity).ok()?);
    Some([&edits.apply(), &chat[header.len()..]].concat())
}

/// Creates an integrity value in SillyTavern's format from a hexadecimal hash.
pub fn new_integrity(hash: &str) -> String {
    let variant = ["8", "9", "a", "b"][usize::from(hash.as_bytes()[16]) % 4];
    let [a, b, c, d, e] = [&hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32]];
    format!("{a}-{b}-4{c}-{variant}{d}-{e}")
}
