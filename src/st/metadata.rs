//! A chat's metadata: in its header, or, for group chats of SillyTavern 1.12, in the group's own file.

use super::json::Raw;
use super::name::chat_name;
use super::{Chat, TimelineName};

/// The metadata of a chat. `group` is the file of the group that the chat belongs to.
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
        // Under its name as it was typed.
        let members = past.members()?;
        let found =
            members.iter().rfind(|member| is_called(&member.key.to_string_lossy(), name))?;
        Some(found.value).filter(Raw::is_object)
    })
}

/// The name of the lorebook bound to a chat, from its metadata.
pub fn lorebook_name(metadata: Raw) -> Option<String> {
    metadata.get("world_info")?.string().filter(|name| !name.is_empty())
}

/// The chat that this one was forked from, from its metadata.
pub fn main_chat(metadata: Raw) -> Option<String> {
    metadata.get("main_chat")?.string().filter(|name| !name.is_empty())
}

/// The chat that a checkpoint from before `main_chat` was made of, by its name: `<chat> Checkpoint #3`. Groups had no checkpoints then.
pub fn chat_of_checkpoint(name: &TimelineName) -> Option<TimelineName> {
    let (chat, _) = name.chat().rsplit_once("Checkpoint #")?;
    let chat = chat.trim().trim_end_matches('-').trim_end();
    TimelineName::solo(name.folder()?, chat).ok()
}

/// The lorebook bound to a chat, found also when the header or the group's file is no valid UTF-8: SillyTavern reads such files
/// leniently, so the binding holds.
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

/// Whether a chat that SillyTavern calls `id` has its file at `name`.
pub(super) fn is_called(id: &str, name: &TimelineName) -> bool {
    id == name.chat() || chat_name(id).is_some_and(|file| file == name.chat())
}
