//! Fields that SillyTavern changes in a file because somebody opened it or wrote a message. Such a
//! change is not a reason to store another version.

use super::json::{Edits, Raw};
use super::{Category, cut_card};

/// Fields of a group: the open chat, dates, and the metadata of its chats, which their snapshots
/// have.
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

/// Whether two versions of a file, which differ, differ only in such fields.
pub fn differ_by_use(category: Category, before: &[u8], after: &[u8]) -> bool {
    match category {
        Category::Group => same_but_for(before, after, &OF_GROUPS),
        Category::Card => {
            let (before, after) = (cut_card(before), cut_card(after));
            let pairs = before.texts.iter().zip(&after.texts);
            // Texts that could not be cut out of the picture are compared with it.
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

/// Returns a version of a group's file that comes from elsewhere with the chats of the file that it
/// replaces: which are listed, which is open, and their metadata. (Chats that are received list
/// themselves.) Returns it unchanged if either cannot be read.
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

/// Whether two objects have equal members in the same order, apart from these.
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
    fn use_of_a_group_changes_only_volatile_fields() {
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
