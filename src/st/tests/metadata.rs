use crate::st::{Category, Chat, TimelineName, bound_lorebook, lorebook_name, main_chat, metadata};

fn group(name: &str) -> TimelineName {
    TimelineName::group(name).unwrap()
}

const GROUP: &[u8] = br#"{"id":"1","chat_id":"now","chats":["now","then","Why?"],"chat_metadata":{"world_info":"Now"},
    "past_metadata":{"then":{"world_info":"Then"},"Why?":{"world_info":"Why"},"gone":null}}"#;

#[test]
fn header_metadata_takes_precedence_over_group_metadata() {
    let bytes =
        br#"{"chat_metadata":{"world_info":"Lore","main_chat":"Main"},"user_name":"unused"}"#;
    let chat = Chat::split(bytes, Category::GroupChat);
    let found = metadata(&chat, &group("now"), Some(GROUP)).unwrap();
    assert_eq!(lorebook_name(found).unwrap(), "Lore");
    assert_eq!(main_chat(found).unwrap(), "Main");
}

#[test]
fn headerless_group_chat_has_its_metadata_in_the_group() {
    let chat = Chat::split(b"{\"mes\":\"x\"}", Category::GroupChat);
    let lorebook = |name| metadata(&chat, &group(name), Some(GROUP)).and_then(lorebook_name);
    assert_eq!(lorebook("now").unwrap(), "Now");
    assert_eq!(lorebook("then").unwrap(), "Then");
    assert_eq!(lorebook("Why").unwrap(), "Why");
    assert_eq!(lorebook("gone"), None);
    assert_eq!(lorebook("never"), None);
    assert_eq!(metadata(&chat, &group("now"), None), None);
    let solo = TimelineName::solo("A", "now").unwrap();
    assert_eq!(metadata(&chat, &solo, Some(GROUP)), None);
}

#[test]
fn chat_with_empty_or_invalid_lorebook_name_has_no_lorebook() {
    for none in ["{}", r#"{"world_info":""}"#, r#"{"world_info":null}"#, r#"{"world_info":["a"]}"#]
    {
        let header = format!("{{\"chat_metadata\":{none}}}");
        let chat = Chat::split(header.as_bytes(), Category::Chat);
        let name = TimelineName::solo("A", "b").unwrap();
        assert_eq!(bound_lorebook(&chat, &name, None), None, "{none}");
    }
}

#[test]
fn invalid_utf8_does_not_hide_the_lorebook() {
    let chat = Chat::split(
        b"{\"chat_metadata\":{\"note\":\"\xff\",\"world_info\":\"Lore\"}}",
        Category::Chat,
    );
    let name = TimelineName::solo("A", "b").unwrap();
    assert_eq!(metadata(&chat, &name, None), None);
    assert_eq!(bound_lorebook(&chat, &name, None).unwrap(), "Lore");
}
