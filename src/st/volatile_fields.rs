//! Volatile fields: SillyTavern changes them when the user opens a file or writes a message. A
//! change of volatile fields alone does not create a new version.

use super::json::{Edits, Raw};
use super::{Category, cut_card};

/// Volatile fields of a group: the open chat, dates, and the list and metadata of its chats. The
/// snapshots of the chats contain the metadata.
const OF_GROUPS: [&str; 8] = [
    "chat_id",
    "chats",
    "chat_metadata",
    "past_metadata",
    "chat_size",
    "date_last_chat",
    "date_added",
    "create_date",
];

/// Returns whether two different versions of a file differ only in volatile fields.
pub fn differ_by_use(category: Category, before: &[u8], after: &[u8]) -> bool {
    match category {
        Category::Group => same_but_for(before, after, &OF_GROUPS),
        Category::Card => {
            let (before, after) = (cut_card(before), cut_card(after));
            let pairs = before.texts.iter().zip(&after.texts);
            // A text that could not be cut out is part of the picture and is compared with it.
            before.picture == after.picture
                && before.texts.len() == after.texts.len()
                && pairs.into_iter().all(|(before, after)| {
                    before.keyword == after.keyword
                        && (before.text == after.text
                            || same_but_for(&before.text, &after.text, &["chat"]))
                })
        }
        _ => false,
    }
}

/// Returns the group file `new`, which comes from another device, with the volatile fields of
/// `live`, the file to be replaced: its list of chats, open chat and metadata. (Received chats are
/// added to the list later.) Returns `new` unchanged if either file is not a JSON object.
pub fn with_chats_of_group(live: &[u8], new: &[u8]) -> Vec<u8> {
    let object = |text| Raw::parse(text).filter(Raw::is_object);
    let mut edits = Edits::new(new);
    if let (Some(of_live), Some(of_new)) = (object(live), object(new)) {
        for key in OF_GROUPS {
            if let Some(value) = of_live.get(key) {
                edits.set(of_new, key, value.as_str());
            }
        }
    }
    edits.apply()
}

/// Returns whether two JSON objects have equal members in the same order, ignoring the members in
/// `apart_from`.
fn same_but_for(before: &[u8], after: &[u8], apart_from: &[&str]) -> bool {
    let members = |text| {
        let members = Raw::parse(text)?.members()?.into_iter();
        let compared = members.map(|member| (member.key, member.value));
        let compared: Vec<_> =
            compared.filter(|(key, _)| !apart_from.contains(&&*key.to_string_lossy())).collect();
        Some(compared)
    };
    let before = members(before);
    before.is_some() && before == members(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_change_when_a_group_is_used_are_volatile() {
        let same = |before: &str, after: &str| {
            differ_by_use(Category::Group, before.as_bytes(), after.as_bytes())
        };
        let group = r#"{"id":"1","name":"A","members":["a.png"],"chat_id":"x","chats":["x"],"date_last_chat":1}"#;
        assert!(same(group, &group.replace(":1}", ":2.5}").replace("[\"x\"]", "[\"x\",\"y\"]")));
        assert!(same(group, &group.replace("{\"id\"", "{\"chat_metadata\":{},\"id\"")));
        assert!(!same(group, &group.replace("a.png", "b.png")));
        assert!(!same(group, "{}"));
        assert!(!same("[1]", "[2]"));
        assert!(!differ_by_use(Category::Lorebook, b"{\"chat_id\":1}", b"{\"chat_id\":2}"));
    }
}
