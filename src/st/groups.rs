//! Groups: which group a group chat belongs to, which only the group's own file says, and edits of
//! that file, which change no other byte.

use super::json::{Edits, Raw, item_spans, quote};
use super::metadata::is_called;
use super::name::{LibraryPath, chat_name};
use super::{Chat, TimelineName, metadata, replace};
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub struct Groups {
    of_chat: HashMap<String, LibraryPath>,
    /// A file that could not be read, and why: it may be the group of any chat.
    pub(super) unread: Option<(String, String)>,
    /// Whether a file is damaged: it may have listed any chat.
    is_damaged: bool,
}

impl Groups {
    /// Returns the file of the group of a chat, which is named as by [`TimelineName::chat`].
    pub fn group_of(&self, chat: &str) -> Option<&LibraryPath> {
        self.of_chat.get(chat)
    }

    /// Whether every group's file could be read: else any chat may be listed in another.
    pub fn are_complete(&self) -> bool {
        self.unread.is_none() && !self.is_damaged
    }

    /// Returns the names of all chats that groups list, as the groups spell them.
    pub fn chats(&self) -> impl Iterator<Item = &str> {
        self.of_chat.keys().map(String::as_str)
    }

    /// Reads the groups' files, in an order that does not depend on the file system. If two groups
    /// list one chat, the first has it; being listed goes before being the open chat.
    pub(super) fn read(files: &[(LibraryPath, Vec<u8>)]) -> Self {
        let mut groups = Self::default();
        let mut open = Vec::new();
        for (path, bytes) in files {
            // As lenient as SillyTavern: only a chat's name could suffer.
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

    /// Adds the chats that another version of a group's file lists.
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

/// Returns the group's file with `name` listed in `chats`; `None` if it cannot be edited.
pub fn list_in_group(group: &[u8], name: &TimelineName) -> Option<Vec<u8>> {
    let chats = Raw::parse(group)?.get("chats")?;
    if chats.items()?.iter().any(|item| is_listed(item, name)) {
        return Some(group.to_vec());
    }
    Some(insert_last(group, chats, &quote(name.chat().as_bytes())))
}

fn is_listed(id: &Raw<'_>, name: &TimelineName) -> bool {
    id.string().is_some_and(|id| is_called(&id, name))
}

/// Returns the group's file with the chat `old` listed as `new`, also as the open chat; `None` if
/// the group does not list `old`.
pub fn rename_in_group(group: &[u8], old: &TimelineName, new: &TimelineName) -> Option<Vec<u8>> {
    let root = Raw::parse(group)?;
    let chats = root.get("chats")?;
    let items = chats.items()?;
    let at = items.iter().position(|item| is_listed(item, old))?;
    let value = quote(new.chat().as_bytes());
    let mut edits = Edits::new(group);
    if items.iter().any(|item| is_listed(item, new)) {
        edits.retain(&item_spans(chats, group), |n| n != at);
    } else {
        edits.replace(items[at], value.as_str());
    }
    if let Some(open) = root.get("chat_id").filter(|open| is_listed(open, old)) {
        edits.replace(open, value);
    }
    Some(edits.apply())
}

pub fn set_group_metadata(group: &[u8], name: &TimelineName, value: &[u8]) -> Option<Vec<u8>> {
    let headless = Chat { header: None, messages: Vec::new() };
    if let Some(current) = metadata(&headless, name, Some(group)) {
        let span = current.span_in(group);
        return Some([&group[..span.start], value, &group[span.end..]].concat());
    }
    let member = format!("{}: {}", quote(name.chat().as_bytes()), str::from_utf8(value).ok()?);
    let root = Raw::parse(group)?;
    match root.get("past_metadata") {
        Some(past) if past.is_object() => Some(insert_last(group, past, &member)),
        Some(_) => replace(group, &["past_metadata"], format!("{{{member}}}").as_bytes()),
        None => Some(insert_last(group, root, &format!("\"past_metadata\": {{{member}}}"))),
    }
}

fn insert_last(text: &[u8], container: Raw<'_>, item: &str) -> Vec<u8> {
    let mut edits = Edits::new(text);
    edits.insert_last(container, item);
    edits.apply()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &[u8] = b"{\n    \"id\": \"1\",\n    \"chat_id\": \"a\",\n    \"chat_metadata\": {\"x\": 1},\n    \"chats\": [\n        \"a\"\n    ]\n}";

    #[test]
    fn a_chat_is_listed_once_and_nothing_else_moves() {
        let name = TimelineName::group("b \"x\"").unwrap();
        let edited = list_in_group(GROUP, &name).unwrap();
        let text = String::from_utf8(edited.clone()).unwrap();
        assert_eq!(
            text,
            String::from_utf8_lossy(GROUP)
                .replace("\"a\"\n    ]", "\"a\",\n        \"b \\\"x\\\"\"\n    ]")
        );
        assert_eq!(list_in_group(&edited, &name).unwrap(), edited);
        assert_eq!(
            list_in_group(b"{\"chats\":[]}", &TimelineName::group("q").unwrap()).unwrap(),
            b"{\"chats\":[\"q\"]}"
        );
        assert_eq!(list_in_group(b"{}", &name), None);
    }

    #[test]
    fn renaming_a_chat_changes_its_entry_and_the_open_chat() {
        let [a, b] = ["a", "b"].map(|chat| TimelineName::group(chat).unwrap());
        let renamed = String::from_utf8(rename_in_group(GROUP, &a, &b).unwrap()).unwrap();
        assert_eq!(renamed, String::from_utf8_lossy(GROUP).replace("\"a\"", "\"b\""));
        assert_eq!(
            rename_in_group(b"{\"chats\":[\"a\",\"b\"]}", &a, &b).unwrap(),
            b"{\"chats\":[\"b\"]}"
        );
        assert_eq!(rename_in_group(GROUP, &b, &a), None);
    }

    #[test]
    fn metadata_goes_where_sillytavern_looks_for_it() {
        let headless = Chat { header: None, messages: Vec::new() };
        for chat in ["a", "b"] {
            let name = TimelineName::group(chat).unwrap();
            let edited = set_group_metadata(GROUP, &name, b"{\"y\":2}").unwrap();
            assert_eq!(metadata(&headless, &name, Some(&edited)).unwrap().as_bytes(), b"{\"y\":2}");
        }
    }
}
