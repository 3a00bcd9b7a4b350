//! A chat's metadata: in its header, or, for group chats of SillyTavern 1.12, in the group's file.

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
    let current = group.get("chat_id").and_then(|id| id.string());
    if current.is_some_and(|id| is_called(&id, name))
        && let Some(found) = object(group, "chat_metadata")
    {
        return Some(found);
    }
    let past = group.get("past_metadata")?;
    object(past, name.chat()).or_else(|| {
        // Under its name as typed.
        let members = past.members()?;
        let found =
            members.iter().rfind(|member| is_called(&member.key.to_string_lossy(), name))?;
        Some(found.value).filter(Raw::is_object)
    })
}

pub fn lorebook_name(metadata: Raw) -> Option<String> {
    metadata.get("world_info")?.string().filter(|name| !name.is_empty())
}

/// Returns the chat that this one was forked from, by its metadata.
pub fn main_chat(metadata: Raw) -> Option<String> {
    metadata.get("main_chat")?.string().filter(|name| !name.is_empty())
}

/// Returns the chat that a checkpoint from before `main_chat` was made of, by its name:
/// `<chat> Checkpoint #3`. Groups had no checkpoints then.
pub fn chat_of_checkpoint(name: &TimelineName) -> Option<TimelineName> {
    let (chat, _) = name.chat().rsplit_once("Checkpoint #")?;
    let chat = chat.trim().trim_end_matches('-').trim_end();
    TimelineName::solo(name.folder()?, chat).ok()
}

/// Returns the lorebook bound to a chat, also if the header or the group's file is not valid UTF-8:
/// SillyTavern reads such files leniently.
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

/// Returns the mark of a chat, `chat_metadata.integrity`, as it stands in its file. SillyTavern asks
/// before it overwrites a chat with another mark than its page has; it does not if there is none.
pub fn mark(chat: &[u8]) -> Option<&[u8]> {
    let mark = object(Raw::parse(first_line(chat))?, "chat_metadata")?.get("integrity")?;
    // JavaScript's values that count as none.
    let is_none = [r#""""#, "null", "false", "0"].contains(&mark.as_str());
    (!is_none).then(|| mark.as_bytes())
}

/// Returns the chat with this mark, which must be JSON, and no other byte changed; none if it has
/// no header in which SillyTavern would look for it.
pub fn with_mark(chat: &[u8], mark: &[u8]) -> Option<Vec<u8>> {
    let header = first_line(chat);
    let mut edits = Edits::new(header);
    let metadata = object(Raw::parse(header)?, "chat_metadata")?;
    edits.set(metadata, "integrity", str::from_utf8(mark).ok()?);
    Some([&edits.apply(), &chat[header.len()..]].concat())
}

/// Makes a mark of the form that SillyTavern uses from a hash in hexadecimal.
pub fn new_mark(hash: &str) -> String {
    let variant = ["8", "9", "a", "b"][usize::from(hash.as_bytes()[16]) % 4];
    let [a, b, c, d, e] = [&hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32]];
    format!("{a}-{b}-4{c}-{variant}{d}-{e}")
}

fn first_line(chat: &[u8]) -> &[u8] {
    &chat[..memchr::memchr(b'\n', chat).unwrap_or(chat.len())]
}
