//! Group files: they list the chats of a group. Edits of a group file change no other byte.

use super::json::{Edits, Raw, item_spans, quote};
use super::metadata::is_called;
use super::name::{LibraryPath, chat_name};
use super::{Chat, TimelineName, metadata, replace};
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub struct Groups {
    of_chat: HashMap<String, LibraryPath>,
    /// The names that users gave to groups.
    names: HashMap<LibraryPath, String>,
    /// A group file that could not be read, and the reason. This file may list any chat.
    pub(super) unread: Option<(String, String)>,
    /// Whether a group file is damaged, which may have listed any chat.
    is_damaged: bool,
}

impl Groups {
    /// Returns the group file that lists a chat. `chat` is the name returned by
    /// [`TimelineName::chat`].
    pub fn group_of(&self, chat: &str) -> Option<&LibraryPath> {
        self.of_chat.get(chat)
    }

    /// Returns the name that the user gave to a group.
    pub fn name_of(&self, group: &LibraryPath) -> Option<&str> {
        self.names.get(group).map(String::as_str)
    }

    /// Returns the groups with the names that users gave to them.
    pub fn names(&self) -> impl Iterator<Item = (TimelineName, &str)> {
        let name = |(path, name)| Some((TimelineName::of_file(path)?, String::as_str(name)));
        self.names.iter().filter_map(name)
    }

    /// Returns whether every group file could be read. If not, any chat may be listed in an unread
    /// file.
    pub fn are_complete(&self) -> bool {
        self.unread.is_none() && !self.is_damaged
    }

    /// Returns the names of all chats that groups list, both as typed and as file names.
    pub fn chats(&self) -> impl Iterator<Item = &str> {
        self.of_chat.keys().map(String::as_str)
    }

    /// Reads the group files in the order of `files`, so that the result does not depend on the
    /// file system. If two groups list a chat, it belongs to the first group. A group that lists a
    /// chat takes precedence over a group in which the chat is only the open chat.
    pub(super) fn read(files: &[(LibraryPath, Vec<u8>)]) -> Self {
        let mut groups = Self::default();
        let mut open = Vec::new();
        for (path, bytes) in files {
            // Lenient like SillyTavern: invalid UTF-8 can only affect the name of a chat.
            let text = String::from_utf8_lossy(bytes);
            let Some(group) = Raw::parse_str(&text).filter(Raw::is_object) else {
                groups.is_damaged = true;
                continue;
            };
            groups.names.extend(group.text("name").map(|name| (path.clone(), name)));
            for id in group.list("chats").iter().filter_map(Raw::string) {
                groups.add(id, path);
            }
            open.extend(group.text("chat_id").map(|id| (id, path)));
        }
        for (id, path) in open {
            groups.add(id, path);
        }
        groups
    }

    /// Adds the chats that another version of the group file lists.
    pub fn read_again(&mut self, path: &LibraryPath, bytes: &[u8]) {
        let more = Self::read(&[(path.clone(), bytes.to_vec())]);
        for (chat, path) in more.of_chat {
            self.of_chat.entry(chat).or_insert(path);
        }
    }

    fn add(&mut self, id: String, path: &LibraryPath) {
        // A group lists names as the user typed them; the file name may differ.
        if let Some(file) = chat_name(&id).filter(|file| *file != id) {
            self.of_chat.entry(file).or_insert_with(|| path.clone());
        }
        self.of_chat.entry(id).or_insert_with(|| path.clone());
    }
}

/// Returns the group file with `name` added to `chats`; `None` if the file cannot be edited.
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

/// Returns the group file with the chat `old` replaced by `new` in the list of chats and as the
/// open chat; `None` if the group does not list `old`.
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
    fn listing_a_chat_adds_it_once_and_changes_nothing_else() {
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
    fn group_metadata_is_written_where_sillytavern_reads_it() {
        let headless = Chat { header: None, messages: Vec::new() };
        for chat in ["a", "b"] {
            let name = TimelineName::group(chat).unwrap();
            let edited = set_group_metadata(GROUP, &name, b"{\"y\":2}").unwrap();
            assert_eq!(metadata(&headless, &name, Some(&edited)).unwrap().as_bytes(), b"{\"y\":2}");
        }
    }
}
