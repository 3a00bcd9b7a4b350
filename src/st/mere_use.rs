//! What SillyTavern changes in a file because somebody looked at it or wrote a message. It is no change of the file's own, and no reason to keep another state of it.

use super::json::{Edits, Raw};
use super::{Category, cut_card};

/// Of a group: which chat is open, when it was used, and the metadata of its chats, which their snapshots have.
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

/// Of a character: which chat was opened last.
const OF_CARDS: [&str; 1] = ["chat"];

/// Whether two states of a file differ only in that. Whoever asks knows that they differ.
pub fn differ_by_use(category: Category, before: &[u8], after: &[u8]) -> bool {
    match category {
        Category::Group => same_but_for(before, after, &OF_GROUPS),
        Category::Card => {
            let (before, after) = (cut_card(before), cut_card(after));
            let pairs = before.texts.iter().zip(&after.texts);
            // What could not be taken out of the picture is compared with it.
            before.picture == after.picture
                && before.texts.len() == after.texts.len()
                && pairs.clone().all(|(before, after)| before.keyword == after.keyword)
                && pairs.into_iter().all(|(before, after)| {
                    before.text == after.text || same_but_for(&before.text, &after.text, &OF_CARDS)
                })
        }
        _ => false,
    }
}

/// Returns a state of a group's file that comes from elsewhere with the chats of the file that it replaces: which are listed, which is open, and their metadata. Every chat lists itself when
/// it comes. Returns the state as it is if either cannot be read.
pub fn with_chats_of_group(live: &[u8], new: &[u8]) -> Vec<u8> {
    let (Some(of_live), Some(of_new)) = (Raw::parse(live), Raw::parse(new)) else {
        return new.to_vec();
    };
    if !of_live.is_object() || !of_new.is_object() {
        return new.to_vec();
    }
    let mut edits = Edits::new(new);
    for key in OF_GROUPS {
        if let Some(value) = of_live.get(key) {
            edits.set(of_new, key, value.as_str());
        }
    }
    edits.apply()
}

/// Whether two objects have the same members, in the same order, apart from these.
fn same_but_for(before: &[u8], after: &[u8], apart_from: &[&str]) -> bool {
    let members = |text| {
        let mut members = Raw::parse(text)?.members()?;
        members.retain(|member| !apart_from.contains(&&*member.key.to_string_lossy()));
        Some(members)
    };
    match (members(before), members(after)) {
        (Some(before), Some(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(&after)
                    .all(|(before, after)| before.key == after.key && before.value == after.value)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_was_used_is_the_same_group() {
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
