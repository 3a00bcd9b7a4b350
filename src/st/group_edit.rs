//! The one thing a restore does to a group's file: list a chat in it, and for chats of SillyTavern 1.12 put the chat's metadata
//! there. All other bytes stay as they are.

use super::json::{Edits, Raw, item_spans};
use super::metadata::is_called;
use super::{Chat, TimelineName, metadata, replace};

/// The group's file with `name` listed in `chats`. `None` if it cannot be edited; the same bytes if it is listed already.
pub fn list_in_group(group: &[u8], name: &TimelineName) -> Option<Vec<u8>> {
    let chats = Raw::parse(group)?.get("chats")?;
    let items = chats.items()?;
    if items.iter().any(|item| item.string().is_some_and(|id| is_called(&id, name))) {
        return Some(group.to_vec());
    }
    let value = serde_json::to_string(name.chat()).ok()?;
    Some(insert_last(group, chats, &value))
}

/// Returns the group's file with the chat `old` listed as `new`, also where it is the chat that is open. `None` if the group does not list `old`.
pub fn rename_in_group(group: &[u8], old: &TimelineName, new: &TimelineName) -> Option<Vec<u8>> {
    let root = Raw::parse(group)?;
    let chats = root.get("chats")?;
    let items = chats.items()?;
    let is_listed = |item: &Raw<'_>, name| item.string().is_some_and(|id| is_called(&id, name));
    let at = items.iter().position(|item| is_listed(item, old))?;
    let value = serde_json::to_string(new.chat()).ok()?;
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

/// The group's file with the metadata of the chat `name` set to `value`. The same bytes if it is that already.
pub fn set_group_metadata(group: &[u8], name: &TimelineName, value: &[u8]) -> Option<Vec<u8>> {
    let headless = Chat { header: None, messages: Vec::new() };
    if let Some(current) = metadata(&headless, name, Some(group)) {
        let span = current.span_in(group);
        return Some([&group[..span.start], value, &group[span.end..]].concat());
    }
    let member = format!(
        "{}: {}",
        serde_json::to_string(name.chat()).ok()?,
        std::str::from_utf8(value).ok()?
    );
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
